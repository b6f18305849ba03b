//! The kernels, for elements of any floating-point type.

use opsmith::runtime::Scalar;
use opsmith::{Element, Result, View, ViewMut};

/// See the operator's documentation.
#[allow(clippy::too_many_arguments, reason = "the operator has that many inputs")]
pub fn gated_cell<T: Element>(
    x: View<'_, T>,
    weight: View<'_, T>,
    recurrent: View<'_, T>,
    bias: View<'_, T>,
    hidden: View<'_, T>,
    cell: View<'_, T>,
    lengths: Option<View<'_, T>>,
    peephole: Option<View<'_, T>>,
    gain: Option<View<'_, T>>,
    mask: Option<View<'_, T>>,
    project: Option<View<'_, T>>,
    mut output: ViewMut<'_, T>,
    mut state: ViewMut<'_, T>,
) -> Result<()> {
    let numbers = |view: &View<'_, T>| -> Vec<f64> { view.iter().map(|x| x.to_scalar().to_f64()).collect() };
    let (rows, inner, width) = (x.size(0), x.size(1), weight.size(1));
    let [x, weight, recurrent, bias, hidden, cell] =
        [&x, &weight, &recurrent, &bias, &hidden, &cell].map(numbers);
    let [lengths, peephole, gain, mask] =
        [&lengths, &peephole, &gain, &mask].map(|view| view.as_ref().map(numbers));
    // An absent operand has no effect.
    let of = |list: &Option<Vec<f64>>, at: usize, absent: f64| list.as_ref().map_or(absent, |list| list[at]);
    let product = |row: &[f64], matrix: &[f64], column: usize| {
        let columns = matrix.len() / row.len();
        row.iter().enumerate().map(|(at, factor)| factor * matrix[at * columns + column]).sum::<f64>()
    };
    let element = |row: usize, column: usize| {
        let at = row * width + column;
        let sum = product(&x[row * inner..][..inner], &weight, column)
            + product(&hidden[row * width..][..width], &recurrent, column)
            + bias[column];
        let gate = sum * of(&gain, column, 1.0) + of(&peephole, column, 0.0) * cell[at];
        cell[at].tanh() / (1.0 + (-gate).exp()) * of(&mask, row, 1.0) * of(&lengths, row, 1.0)
    };
    let results: Vec<f64> = (0..rows * width).map(|at| element(at / width, at % width)).collect();
    let typed = |value: f64| T::from_scalar(Scalar::Float(value));
    output.write(results.iter().map(|value| typed(*value)))?;
    match project {
        None => state.write(results.iter().map(|value| typed(*value))),
        Some(project) => {
            let (matrix, columns) = (numbers(&project), project.size(1));
            let projected =
                |at: usize| product(&results[at / columns * width..][..width], &matrix, at % columns);
            state.write((0..rows * columns).map(|at| typed(projected(at))))
        }
    }
}

/// See the operator's documentation.
pub fn join_rows<T: Element>(parts: &[View<'_, T>], mut out: ViewMut<'_, T>) -> Result<()> {
    out.write(parts.iter().flat_map(View::iter))
}

/// See the operator's documentation.
pub fn split_sign<T>(
    self_: View<'_, T>,
    mut positive: ViewMut<'_, T>,
    mut negative: ViewMut<'_, T>,
) -> Result<()>
where
    T: Element + PartialOrd,
{
    let zero = T::from_scalar(Scalar::Int(0));
    positive.write(self_.iter().map(|element| if element > zero { element } else { zero }))?;
    negative.write(self_.iter().map(|element| if element > zero { zero } else { element }))
}
