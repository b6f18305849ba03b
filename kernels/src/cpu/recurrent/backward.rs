//! The gradients of a layer's steps, from the last one back.

use opsmith_runtime::{Result, Scratch, View, ViewMut};

use super::{Kind, Layer, Unit, add_product, elements};
use crate::cpu::simd::widest_over;
use crate::math::tanh;

/// The gradients of [`steps`](super::steps): by the gates before their activations, `(steps, batch, width)`, of GRU also by
/// the sums of the state, and by the first hidden and cell state.
///
/// # Errors
/// None; shapes were checked before.
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn steps_backward<T: Unit>(
    grad_output: Option<View<'_, T>>,
    grad_cells: Option<View<'_, T>>,
    hidden: View<'_, T>,
    cell: Option<View<'_, T>>,
    weight: View<'_, T>,
    output: View<'_, T>,
    cells: View<'_, T>,
    activations: View<'_, T>,
    kind: i64,
    reverse: bool,
    mut of_gates: ViewMut<'_, T>,
    mut of_sums: ViewMut<'_, T>,
    mut of_hidden: ViewMut<'_, T>,
    mut of_cell: ViewMut<'_, T>,
) -> Result<()> {
    let layer = Layer::of(kind, &output, &hidden, reverse);
    let Layer { kind, batch, units, .. } = layer;
    let (width, saved, states) = (layer.width(), kind.saved() * units, batch * units);
    let (grad_output, grad_cells) = (grad_output.as_ref().map(elements), grad_cells.as_ref().map(elements));
    let (output, cells, activations) = (elements(&output), elements(&cells), elements(&activations));
    let first_hidden = elements(&hidden);
    let first_cell: Scratch<T> = cell.iter().flat_map(View::iter).collect();
    let two_sums = kind == Kind::Gru;
    let mut gates = Scratch::filled(T::ZERO, layer.steps * batch * width);
    let mut sums = Scratch::filled(T::ZERO, if two_sums { gates.len() } else { 0 });
    // The gradients by the state after the step at hand.
    let mut dh = Scratch::filled(T::ZERO, states);
    let mut dc = Scratch::filled(T::ZERO, first_cell.len());
    let mut bent = Scratch::filled(T::ZERO, first_cell.len());
    for step in (0..layer.steps).rev() {
        let at = layer.position(step);
        add(&mut dh, grad_output.as_ref(), at);
        add(&mut dc, grad_cells.as_ref(), at);
        let before = step.checked_sub(1).map(|step| layer.position(step) * states);
        let (before_hidden, before_cell) = match before {
            Some(start) => (&output[start..start + states], &cells[start.min(cells.len())..]),
            None => (&first_hidden[..], &first_cell[..]),
        };
        if kind == Kind::Lstm {
            let after = &cells[at * states..(at + 1) * states];
            widest_over::<T, _>(
                #[inline(always)]
                || bent.iter_mut().zip(after).for_each(|(bent, cell)| *bent = tanh(*cell)),
            );
        }
        for (sequence, row) in (at * batch..(at + 1) * batch).enumerate() {
            let own = sequence * units..(sequence + 1) * units;
            let saved = &activations[row * saved..(row + 1) * saved];
            let of_gates = &mut gates[row * width..(row + 1) * width];
            let dh = &mut dh[own.clone()];
            match kind {
                Kind::Lstm => {
                    let bent = &bent[own.clone()];
                    back_lstm(saved, (&before_cell[own.clone()], bent), dh, &mut dc[own], of_gates);
                }
                Kind::Gru => {
                    let of_sums = &mut sums[row * width..(row + 1) * width];
                    back_gru(saved, &before_hidden[own], dh, of_gates, of_sums);
                }
                Kind::Tanh | Kind::Relu => {
                    back_plain(kind, &output[row * units..(row + 1) * units], dh, of_gates);
                }
            }
        }
        let of_state = if two_sums { &sums } else { &gates };
        add_product(&of_state[at * batch * width..(at + 1) * batch * width], &weight, false, &mut dh, units);
    }
    of_gates.write(gates.iter().copied())?;
    of_sums.write(sums.iter().copied())?;
    of_cell.write(dc.iter().copied())?;
    of_hidden.write(dh.iter().copied())
}

/// Adds the gradient by the states of one step, if there is one.
fn add<T: Unit>(sums: &mut [T], grad: Option<&Scratch<T>>, at: usize) {
    let Some(grad) = grad.filter(|_| !sums.is_empty()) else { return };
    let grad = &grad[at * sums.len()..(at + 1) * sums.len()];
    sums.iter_mut().zip(grad).for_each(|(sum, value)| *sum = sum.add(*value));
}

/// The derivative of the logistic function, by its value.
fn slope<T: Unit>(value: T) -> T {
    value.mul(T::ONE.sub(value))
}

/// The derivative of the hyperbolic tangent, by its value.
fn tanh_slope<T: Unit>(value: T) -> T {
    T::ONE.sub(value.mul(value))
}

/// One step of long short-term memory. `cells` are the cell states before it, and the hyperbolic tangents of those after it.
fn back_lstm<T: Unit>(saved: &[T], cells: (&[T], &[T]), dh: &mut [T], dc: &mut [T], of_gates: &mut [T]) {
    let units = dh.len();
    for unit in 0..units {
        let [input, forget, new, out] = [0, 1, 2, 3].map(|gate| saved[gate * units + unit]);
        let bent = cells.1[unit];
        let of_cell = dc[unit].add(dh[unit].mul(out).mul(tanh_slope(bent)));
        of_gates[unit] = of_cell.mul(new).mul(slope(input));
        of_gates[units + unit] = of_cell.mul(cells.0[unit]).mul(slope(forget));
        of_gates[2 * units + unit] = of_cell.mul(input).mul(tanh_slope(new));
        of_gates[3 * units + unit] = dh[unit].mul(bent).mul(slope(out));
        dc[unit] = of_cell.mul(forget);
        dh[unit] = T::ZERO;
    }
}

/// One step of gated recurrent units, from the state before it.
fn back_gru<T: Unit>(saved: &[T], before: &[T], dh: &mut [T], of_gates: &mut [T], of_sums: &mut [T]) {
    let units = dh.len();
    for unit in 0..units {
        let [reset, update, new, state] = [0, 1, 2, 3].map(|gate| saved[gate * units + unit]);
        let of_new = dh[unit].mul(T::ONE.sub(update)).mul(tanh_slope(new));
        let of_update = dh[unit].mul(before[unit].sub(new)).mul(slope(update));
        let of_reset = of_new.mul(state).mul(slope(reset));
        for list in [&mut *of_gates, &mut *of_sums] {
            (list[unit], list[units + unit]) = (of_reset, of_update);
        }
        of_gates[2 * units + unit] = of_new;
        of_sums[2 * units + unit] = of_new.mul(reset);
        dh[unit] = dh[unit].mul(update);
    }
}

/// One step of a layer with a single gate, from the state after it.
fn back_plain<T: Unit>(kind: Kind, after: &[T], dh: &mut [T], of_gates: &mut [T]) {
    for ((dh, after), of_gate) in dh.iter_mut().zip(after).zip(of_gates) {
        let slope = match kind {
            Kind::Tanh => tanh_slope(*after),
            _ if after.gt(T::ZERO) => T::ONE,
            _ => T::ZERO,
        };
        *of_gate = dh.mul(slope);
        *dh = T::ZERO;
    }
}
