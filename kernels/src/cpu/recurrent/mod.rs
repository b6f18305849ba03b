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

use super::linalg::innermost::Kernels;
use super::linalg::panels::depth;
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
    // SAFETY: the matrices lie in the slices and the view, as was asserted, and nothing else writes them.
    unsafe { T::multiply(left, right, Some(T::ONE), T::ONE, out) };
}

/// The weight `(width, units)` of the state, packed once for the products of all steps.
struct Packed<T: 'static> {
    kernels: &'static Kernels<T>,
    width: usize,
    units: usize,
    /// Panels of each part of the units.
    panels: Scratch<T>,
    /// The states of a step, packed.
    states: Scratch<T>,
}

impl<T: Unit> Packed<T> {
    /// If the processor has innermost loops of the type, and there are several products: of one sequence each is one with a
    /// vector, which reads the weight where it is.
    fn new(weight: &View<'_, T>, layer: Layer) -> Option<Packed<T>> {
        let (width, units) = (weight.size(0), weight.size(1));
        let kernels = T::loops().filter(|_| layer.steps > 1 && layer.batch > 1 && width * units > 0)?;
        let strides = weight.strides();
        let whole = Matrix {
            data: weight.as_ptr(),
            rows: width,
            columns: units,
            row_stride: strides[0],
            column_stride: strides[1],
        };
        let mut panels = Scratch::new();
        for first in (0..units).step_by(depth(units)) {
            let part = Matrix { columns: depth(units).min(units - first), ..whole.at(0, first) };
            // SAFETY: the part lies in the view.
            unsafe { kernels.append_left(part, &mut panels) };
        }
        Some(Packed { kernels, width, units, panels, states: Scratch::new() })
    }

    /// Adds the products of the states of all sequences to their sums.
    fn add(&mut self, states: &[T], sums: &mut [T]) {
        let sequences = states.len() / self.units;
        assert_eq!(sums.len(), sequences * self.width, "shapes were checked before");
        let rows = self.width.next_multiple_of(self.kernels.rows);
        for first in (0..self.units).step_by(depth(self.units)) {
            let inner = depth(self.units).min(self.units - first);
            let right = row_major(states, sequences, self.units).transposed().at(first, 0);
            self.states.clear();
            // SAFETY: the part's elements are those of the states.
            unsafe { self.kernels.append_right(Matrix { rows: inner, ..right }, &mut self.states) };
            let out = MatrixMut { data: sums.as_mut_ptr(), row_stride: 1, column_stride: self.width as i64 };
            let (left, right) = (self.panels[first * rows..].as_ptr(), self.states.as_ptr());
            // SAFETY: the panels hold the part of all units, and there are sums for all sequences.
            unsafe { self.kernels.multiply([self.width, sequences, inner], left, right, true, out) };
        }
    }
}

/// The elements of a tensor, in order.
fn elements<T: Unit>(view: &View<'_, T>) -> Scratch<T> {
    view.iter().collect()
}
