//! The steps of recurrent layers, one after the other, and back.
//!
//! In: the gates of all steps as far as the input determines them, which is one product for all steps, and the weights of
//! the state. Out: the states, and activations for the way back. Products of gradients with inputs and weights are made by
//! other operators.

mod backward;
mod forward;

pub use backward::steps_backward;
pub use forward::steps;
use opsmith_runtime::{Scratch, View};

use super::linalg::few::FEW;
use super::linalg::{Matrix, MatrixMut, Multiply, row_major};
use super::normalisation::Real;

/// Elements in which steps are computed.
pub trait Unit: Multiply<Compute = Self> + Real {}

impl<T: Multiply<Compute = T> + Real> Unit for T {}

/// The cell of a layer.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Long short-term memory; gates: input, forget, cell, output.
    Lstm,
    /// Gated recurrent units; gates: reset, update, new.
    Gru,
    /// The hyperbolic tangent of the sum.
    Tanh,
    /// The positive part of the sum.
    Relu,
}

impl Kind {
    pub fn of(number: i64) -> Kind {
        match number {
            0 => Kind::Lstm,
            1 => Kind::Gru,
            2 => Kind::Tanh,
            _ => Kind::Relu,
        }
    }

    /// Number of gates.
    pub fn gates(self) -> usize {
        match self {
            Kind::Lstm => 4,
            Kind::Gru => 3,
            Kind::Tanh | Kind::Relu => 1,
        }
    }

    /// Number of activations that the way back needs beside the states.
    pub fn saved(self) -> usize {
        match self {
            Kind::Lstm | Kind::Gru => 4,
            Kind::Tanh | Kind::Relu => 0,
        }
    }
}

/// Sizes of a layer, and its direction.
#[derive(Clone, Copy)]
struct Layer {
    kind: Kind,
    steps: usize,
    batch: usize,
    units: usize,
    reverse: bool,
}

impl Layer {
    fn of<T>(kind: i64, sequence: &View<'_, T>, hidden: &View<'_, T>, reverse: bool) -> Layer
    where
        T: opsmith_runtime::Element,
    {
        Layer {
            kind: Kind::of(kind),
            steps: sequence.size(0),
            batch: sequence.size(1),
            units: hidden.size(1),
            reverse,
        }
    }

    /// Width of the gates of one sequence.
    fn width(self) -> usize {
        self.kind.gates() * self.units
    }

    /// The position of a step.
    fn position(self, step: usize) -> usize {
        if self.reverse { self.steps - 1 - step } else { step }
    }
}

/// Adds the product of rows and a matrix, transposed if asked for, to rows of `width`.
fn add_product<T: Multiply<Compute = T>>(
    rows: &[T],
    matrix: &View<'_, T>,
    transposed: bool,
    sums: &mut [T],
    width: usize,
) {
    let (inner, columns) = if transposed { (1, 0) } else { (0, 1) };
    let strides = matrix.strides();
    let (inner, inner_stride, column_stride) = (matrix.size(inner), strides[inner], strides[columns]);
    if rows.is_empty() || sums.is_empty() || inner == 0 {
        return;
    }
    let count = sums.len() / width;
    assert!(rows.len() == count * inner && matrix.size(columns) == width, "shapes were checked before");
    let left = row_major(rows, count, inner);
    let right = Matrix {
        data: matrix.as_ptr(),
        rows: inner,
        columns: width,
        row_stride: inner_stride,
        column_stride,
    };
    let out = MatrixMut { data: sums.as_mut_ptr(), row_stride: width as i64, column_stride: 1 };
    // Of few sequences, the product of the weight with them, which reads each of its rows once.
    let (left, right, out) = match count <= FEW && inner_stride == 1 {
        true => (
            right.transposed(),
            left.transposed(),
            MatrixMut { row_stride: 1, column_stride: width as i64, ..out },
        ),
        false => (left, right, out),
    };
    // SAFETY: the matrices lie in the slices and the view, as was asserted, and nothing else writes them.
    unsafe { T::multiply(left, right, Some(T::ONE), T::ONE, out) };
}

/// The elements of a tensor, in order.
fn elements<T: Unit>(view: &View<'_, T>) -> Scratch<T> {
    view.iter().collect()
}
