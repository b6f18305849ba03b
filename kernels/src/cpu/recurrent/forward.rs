//! The steps of a layer, from its gates to its states.

use opsmith_runtime::{Result, Scratch, View, ViewMut};

use super::{Kind, Layer, Unit, add_product, elements};
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
    mut output: ViewMut<'_, T>,
    mut cells: ViewMut<'_, T>,
    mut activations: ViewMut<'_, T>,
) -> Result<()> {
    let layer = Layer::of(kind, &gates, &hidden, reverse);
    let Layer { kind, batch, units, .. } = layer;
    let (width, saved, states) = (layer.width(), kind.saved() * units, batch * units);
    let gates = elements(&gates);
    let bias = bias.map_or_else(|| Scratch::filled(T::ZERO, width), |bias| elements(&bias));
    let mut hidden = elements(&hidden);
    let mut cell: Scratch<T> = cell.iter().flat_map(View::iter).collect();
    let mut sums = Scratch::filled(T::ZERO, batch * width);
    let mut all_hidden = Scratch::filled(T::ZERO, layer.steps * states);
    let mut all_cells = Scratch::filled(T::ZERO, if kind == Kind::Lstm { layer.steps * states } else { 0 });
    let mut all_saved = Scratch::filled(T::ZERO, layer.steps * batch * saved);
    for at in (0..layer.steps).map(|step| layer.position(step)) {
        sums.chunks_exact_mut(width.max(1)).for_each(|row| row.copy_from_slice(&bias));
        add_product(&hidden, &weight, true, &mut sums, width);
        for sequence in 0..batch {
            let row = at * batch + sequence;
            let sums = Sums {
                input: &gates[row * width..(row + 1) * width],
                state: &sums[sequence * width..(sequence + 1) * width],
                units,
            };
            let h = &mut hidden[sequence * units..(sequence + 1) * units];
            let saved = &mut all_saved[row * saved..(row + 1) * saved];
            match kind {
                Kind::Lstm => {
                    let c = &mut cell[sequence * units..(sequence + 1) * units];
                    advance_lstm(sums, h, c, saved);
                    all_cells[row * units..(row + 1) * units].copy_from_slice(c);
                }
                Kind::Gru => advance_gru(sums, h, saved),
                Kind::Tanh => (0..units).for_each(|unit| h[unit] = tanh(sums.of(0, unit))),
                Kind::Relu => (0..units).for_each(|unit| h[unit] = positive(sums.of(0, unit))),
            }
            all_hidden[row * units..(row + 1) * units].copy_from_slice(h);
        }
    }
    cells.write(all_cells.iter().copied())?;
    activations.write(all_saved.iter().copied())?;
    output.write(all_hidden.iter().copied())
}

/// The products that the gates of one sequence add at one step.
#[derive(Clone, Copy)]
struct Sums<'a, T> {
    /// Those of the input.
    input: &'a [T],
    /// Those of the state, with its bias.
    state: &'a [T],
    units: usize,
}

impl<T: Unit> Sums<'_, T> {
    fn of(&self, gate: usize, unit: usize) -> T {
        let index = gate * self.units + unit;
        self.input[index].add(self.state[index])
    }
}

/// One step of long short-term memory: the states become the next ones.
fn advance_lstm<T: Unit>(sums: Sums<'_, T>, hidden: &mut [T], cell: &mut [T], saved: &mut [T]) {
    for unit in 0..sums.units {
        let (input, forget) = (sigmoid(sums.of(0, unit)), sigmoid(sums.of(1, unit)));
        let (new, out) = (tanh(sums.of(2, unit)), sigmoid(sums.of(3, unit)));
        cell[unit] = forget.mul(cell[unit]).add(input.mul(new));
        hidden[unit] = out.mul(tanh(cell[unit]));
        save(saved, unit, sums.units, [input, forget, new, out]);
    }
}

/// One step of gated recurrent units.
fn advance_gru<T: Unit>(sums: Sums<'_, T>, hidden: &mut [T], saved: &mut [T]) {
    for (unit, hidden) in hidden.iter_mut().enumerate() {
        let (reset, update) = (sigmoid(sums.of(0, unit)), sigmoid(sums.of(1, unit)));
        let state = sums.state[2 * sums.units + unit];
        let new = tanh(sums.input[2 * sums.units + unit].add(reset.mul(state)));
        *hidden = new.add(update.mul(hidden.sub(new)));
        save(saved, unit, sums.units, [reset, update, new, state]);
    }
}

/// Keeps the values that the gradients of one unit read.
fn save<T: Unit>(saved: &mut [T], unit: usize, units: usize, values: [T; 4]) {
    values.into_iter().enumerate().for_each(|(gate, value)| saved[gate * units + unit] = value);
}

/// The positive part; NaN stays.
fn positive<T: Unit>(sum: T) -> T {
    if sum.lt(T::ZERO) { T::ZERO } else { sum }
}
