//! The steps of a layer, from its gates to its states.

use opsmith_runtime::{Result, Scratch, View, ViewMut};

use super::{Kind, Layer, Packed, Unit, add_product, elements};
use crate::cpu::copy::with_slices;
use crate::cpu::simd::widest_over;
use crate::math::{sigmoid, tanh};

/// The steps of a layer. `gates` is `(steps, batch, width)`, `hidden` and `cell` `(batch, units)`, `weight`
/// `(width, units)`; the results are `(steps, batch, units)`, and activations `(steps, batch, 4 * units)` of layers with
/// gates: those of the gates, of GRU those and the sum of the state in the new gate.
///
/// # Errors
/// None; shapes were checked before.
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn steps<T: Unit>(
    gates: View<'_, T>,
    hidden: View<'_, T>,
    cell: Option<View<'_, T>>,
    weight: View<'_, T>,
    bias: Option<View<'_, T>>,
    kind: i64,
    reverse: bool,
    output: ViewMut<'_, T>,
    cells: ViewMut<'_, T>,
    activations: ViewMut<'_, T>,
) -> Result<()> {
    let layer = Layer::of(kind, &gates, &hidden, reverse);
    let Layer { kind, batch, units, .. } = layer;
    let (width, saved, states) = (layer.width(), kind.saved() * units, batch * units);
    let gates = gates.to_contiguous();
    let bias = bias.map_or_else(|| Scratch::filled(T::ZERO, width), |bias| elements(&bias));
    let mut hidden = elements(&hidden);
    let mut cell: Scratch<T> = cell.iter().flat_map(View::iter).collect();
    let mut sums = Scratch::filled(T::ZERO, batch * width);
    let mut packed = Packed::new(&weight, layer);
    with_slices(&mut [output, cells, activations], |[all_hidden, all_cells, all_saved]| {
        for at in (0..layer.steps).map(|step| layer.position(step)) {
            sums.chunks_exact_mut(width.max(1)).for_each(|row| row.copy_from_slice(&bias));
            match &mut packed {
                Some(packed) => packed.add(&hidden, &mut sums),
                None => add_product(&hidden, &weight, true, &mut sums, width),
            }
            let step = Step {
                input: &gates[at * batch * width..(at + 1) * batch * width],
                sums: &sums,
                hidden: &mut hidden,
                cell: &mut cell,
                saved: &mut all_saved[at * batch * saved..(at + 1) * batch * saved],
            };
            step.run(kind, units);
            all_hidden[at * states..(at + 1) * states].copy_from_slice(&hidden);
            if kind == Kind::Lstm {
                all_cells[at * states..(at + 1) * states].copy_from_slice(&cell);
            }
        }
    })
}

/// One step of all sequences.
struct Step<'a, T> {
    /// The products of the input.
    input: &'a [T],
    /// Those of the state, with its bias.
    sums: &'a [T],
    /// The states before the step, and after it.
    hidden: &'a mut [T],
    cell: &'a mut [T],
    /// Activations for the gradients.
    saved: &'a mut [T],
}

impl<T: Unit> Step<'_, T> {
    fn run(self, kind: Kind, units: usize) {
        let (width, saved) = (kind.gates() * units, kind.saved() * units);
        widest_over::<T, _>(
            #[inline(always)]
            || {
                for (sequence, hidden) in self.hidden.chunks_exact_mut(units.max(1)).enumerate() {
                    let row = |width: usize| sequence * width..(sequence + 1) * width;
                    let (input, state) = (&self.input[row(width)], &self.sums[row(width)]);
                    let saved = &mut self.saved[row(saved)];
                    match kind {
                        Kind::Lstm => {
                            advance_lstm(input, state, hidden, &mut self.cell[row(units)], saved);
                        }
                        Kind::Gru => advance_gru(input, state, hidden, saved),
                        Kind::Tanh => write_sums(hidden, input, state, tanh),
                        Kind::Relu => write_sums(hidden, input, state, positive),
                    }
                }
            },
        );
    }
}

/// Writes a function of sums.
#[inline(always)]
fn write_sums<T: Unit>(out: &mut [T], a: &[T], b: &[T], function: impl Fn(T) -> T) {
    out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out = function(a.add(*b)));
}

/// One step of long short-term memory: the states become the next ones. Loops over a gate each, which compilers vectorise.
#[inline(always)]
fn advance_lstm<T: Unit>(input: &[T], state: &[T], hidden: &mut [T], cell: &mut [T], saved: &mut [T]) {
    let units = hidden.len();
    let gate = |at: usize| at * units..(at + 1) * units;
    write_sums(&mut saved[..2 * units], &input[..2 * units], &state[..2 * units], sigmoid);
    write_sums(&mut saved[gate(2)], &input[gate(2)], &state[gate(2)], tanh);
    write_sums(&mut saved[gate(3)], &input[gate(3)], &state[gate(3)], sigmoid);
    let (kept, added) = (saved[gate(1)].iter(), saved[gate(0)].iter().zip(&saved[gate(2)]));
    for (cell, (forget, (input, new))) in cell.iter_mut().zip(kept.zip(added)) {
        *cell = forget.mul(*cell).add(input.mul(*new));
    }
    for (hidden, (out, cell)) in hidden.iter_mut().zip(saved[gate(3)].iter().zip(cell.iter())) {
        *hidden = out.mul(tanh(*cell));
    }
}

/// One step of gated recurrent units.
#[inline(always)]
fn advance_gru<T: Unit>(input: &[T], state: &[T], hidden: &mut [T], saved: &mut [T]) {
    let units = hidden.len();
    let gate = |at: usize| at * units..(at + 1) * units;
    write_sums(&mut saved[..2 * units], &input[..2 * units], &state[..2 * units], sigmoid);
    saved[gate(3)].copy_from_slice(&state[gate(2)]);
    let (resets, rest) = saved.split_at_mut(units);
    let (updates, news) = rest.split_at_mut(units);
    let sums = input[gate(2)].iter().zip(&state[gate(2)]);
    for (new, (reset, (input, state))) in news.iter_mut().zip(resets.iter().zip(sums)) {
        *new = tanh(input.add(reset.mul(*state)));
    }
    for (hidden, (update, new)) in hidden.iter_mut().zip(updates.iter().zip(news.iter())) {
        *hidden = new.add(update.mul(hidden.sub(*new)));
    }
}

/// The positive part; NaN stays.
#[inline(always)]
fn positive<T: Unit>(sum: T) -> T {
    if sum.lt(T::ZERO) { T::ZERO } else { sum }
}
