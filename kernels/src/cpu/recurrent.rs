//! Recurrent networks: sequences whose steps depend on the one before.
//!
//! The products of all steps with the weights of the input are one product; only those with the state are made step by
//! step.

use opsmith_runtime::{Error, Result, Scratch, View, ViewMut};

use super::linalg::{Matrix, MatrixMut, Multiply};
use super::normalisation::Real;
use crate::math::{sigmoid, tanh};

/// Numbers of steps, sequences and units.
#[derive(Clone, Copy)]
struct Extent {
    steps: usize,
    batch: usize,
    hidden: usize,
    directions: usize,
}

/// Weights of one layer in one direction: `(4 * hidden, inputs)` and `(4 * hidden, hidden)`, and biases.
struct Weights<'a, T: Multiply> {
    input: &'a View<'a, T>,
    state: &'a View<'a, T>,
    biases: &'a [View<'a, T>],
}

/// Long short-term memory, in layers and one or two directions: the states of all steps, `(steps, batch, directions *
/// hidden)`, and the last hidden and cell states, `(layers * directions, batch, hidden)`.
///
/// Gates are in PyTorch's order: input, forget, cell, output. `params` has two weights for each layer and direction, and
/// two biases after them if `has_biases`.
///
/// # Errors
/// If there are fewer parameters than layers need; shapes were checked before.
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn lstm<T: Multiply<Compute = T> + Real>(
    input: View<'_, T>,
    hx: &[View<'_, T>],
    params: &[View<'_, T>],
    has_biases: bool,
    num_layers: i64,
    bidirectional: bool,
    batch_first: bool,
    mut output: ViewMut<'_, T>,
    mut last_hidden: ViewMut<'_, T>,
    mut last_cell: ViewMut<'_, T>,
) -> Result<()> {
    let (states, params_each) = (hx.first().zip(hx.get(1)), if has_biases { 4 } else { 2 });
    let directions = if bidirectional { 2 } else { 1 };
    let blocks = num_layers as usize * directions;
    let Some((hidden, cell)) = states.filter(|_| params.len() == blocks * params_each) else {
        return Err(Error::argument("states or parameters of a layer are missing"));
    };
    let (batch, steps) = if batch_first { (0, 1) } else { (1, 0) };
    let extent =
        Extent { steps: input.size(steps), batch: input.size(batch), hidden: hidden.size(2), directions };
    let mut current = time_major(&input, batch_first);
    let mut hidden: Scratch<T> = hidden.iter().collect();
    let mut cell: Scratch<T> = cell.iter().collect();
    let state = extent.batch * extent.hidden;
    for layer in 0..num_layers as usize {
        let mut next = Scratch::filled(T::ZERO, extent.steps * directions * state);
        for direction in 0..directions {
            let block = layer * directions + direction;
            let own = &params[block * params_each..(block + 1) * params_each];
            let weights = Weights { input: &own[0], state: &own[1], biases: &own[2..] };
            let range = block * state..(block + 1) * state;
            let (h, c) = (&mut hidden[range.clone()], &mut cell[range]);
            run_layer(&current, &weights, extent, direction, h, c, &mut next);
        }
        current = next;
    }
    last_hidden.write(hidden.iter().copied())?;
    last_cell.write(cell.iter().copied())?;
    let width = directions * extent.hidden;
    if batch_first {
        let element = |at: usize| {
            let (row, unit) = (at / width, at % width);
            let (sequence, step) = (row / extent.steps.max(1), row % extent.steps.max(1));
            current[(step * extent.batch + sequence) * width + unit]
        };
        output.write((0..current.len()).map(element))
    } else {
        output.write(current.iter().copied())
    }
}

/// The elements of a sequence, steps outside.
fn time_major<T: Multiply<Compute = T>>(input: &View<'_, T>, batch_first: bool) -> Scratch<T> {
    let elements: Scratch<T> = input.iter().collect();
    if !batch_first {
        return elements;
    }
    let (batch, steps, width) = (input.size(0), input.size(1), input.size(2));
    let mut turned = Scratch::new();
    turned.extend_from_fn(elements.len(), |at| {
        let (row, unit) = (at / width.max(1), at % width.max(1));
        elements[((row % batch.max(1)) * steps + row / batch.max(1)) * width + unit]
    });
    turned
}

/// One layer in one direction: reads `(steps, batch, inputs)`, and writes its part of `(steps, batch, directions *
/// hidden)` and the last states.
fn run_layer<T: Multiply<Compute = T> + Real>(
    input: &[T],
    weights: &Weights<'_, T>,
    extent: Extent,
    direction: usize,
    hidden: &mut [T],
    cell: &mut [T],
    output: &mut [T],
) {
    let Extent { steps, batch, hidden: units, directions } = extent;
    let width = 4 * units;
    let mut bias: Scratch<T> = Scratch::filled(T::ZERO, width);
    for part in weights.biases {
        bias.iter_mut().zip(part.iter()).for_each(|(sum, value)| *sum = sum.add(value));
    }
    let mut gates = Scratch::new();
    gates.extend_from_fn(steps * batch * width, |at| bias[at % width.max(1)]);
    add_product(input, weights.input, &mut gates, width);
    for step in 0..steps {
        let at = if direction == 0 { step } else { steps - 1 - step };
        let gates = &mut gates[at * batch * width..(at + 1) * batch * width];
        add_product(hidden, weights.state, gates, width);
        for sequence in 0..batch {
            let gates = &gates[sequence * width..(sequence + 1) * width];
            let state = sequence * units..(sequence + 1) * units;
            let (h, c) = (&mut hidden[state.clone()], &mut cell[state]);
            let start = ((at * batch + sequence) * directions + direction) * units;
            let out = &mut output[start..start + units];
            for unit in 0..units {
                let gate = |number: usize| gates[number * units + unit];
                let kept = sigmoid(gate(1)).mul(c[unit]);
                c[unit] = kept.add(sigmoid(gate(0)).mul(tanh(gate(2))));
                h[unit] = sigmoid(gate(3)).mul(tanh(c[unit]));
                out[unit] = h[unit];
            }
        }
    }
}

/// Adds the product of rows and the transposed weights, `(width, inner)`, to rows of `width`.
fn add_product<T: Multiply<Compute = T>>(rows: &[T], weights: &View<'_, T>, sums: &mut [T], width: usize) {
    let inner = weights.size(1);
    if rows.is_empty() || sums.is_empty() || inner == 0 {
        return;
    }
    let count = sums.len() / width;
    assert!(rows.len() == count * inner && weights.size(0) == width, "shapes were checked before");
    let left = Matrix {
        data: rows.as_ptr(),
        rows: count,
        columns: inner,
        row_stride: inner as i64,
        column_stride: 1,
    };
    let strides = weights.strides();
    let right = Matrix {
        data: weights.as_ptr(),
        rows: inner,
        columns: width,
        row_stride: strides[1],
        column_stride: strides[0],
    };
    let out = MatrixMut { data: sums.as_mut_ptr(), row_stride: width as i64, column_stride: 1 };
    // SAFETY: the matrices lie in the slices and the view, as was asserted, and nothing else writes them.
    unsafe { T::multiply(left, right, Some(T::ONE), T::ONE, out) };
}
