//! The gradients of attention: heads in parallel, for each the blocks of keys in order, and in each those of queries.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Result, Scratch, View, ViewMut};

use super::rows::{into_weights, product, score_gradients};
use super::{COLUMNS, Heads, ROWS, Real, Stack, blocks, row_major_mut};
use crate::cpu::copy::with_slices;
use crate::cpu::lanes::with_computed;
use crate::cpu::linalg::Matrix;
use crate::cpu::linalg::product::row_major;
use crate::cpu::strides::{expect_operand, expect_sizes};

/// From the gradients of results and logarithms, those of [`attention`](super::attention) by `query`, `key`, `value` and `attn_mask`; those that `output_mask`
/// does not ask for are left as they are.
///
/// # Errors
/// If the sizes do not belong together.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn attention_backward<T: Element<Compute: Real>>(
    grad_out: View<'_, T>,
    grad_logsumexp: Option<View<'_, T::Compute>>,
    query: View<'_, T>,
    key: View<'_, T>,
    value: View<'_, T>,
    attn_mask: Option<View<'_, T>>,
    out: View<'_, T>,
    logsumexp: View<'_, T::Compute>,
    is_causal: bool,
    scale: Option<f64>,
    output_mask: &[bool],
    grad_query: ViewMut<'_, T>,
    grad_key: ViewMut<'_, T>,
    grad_value: ViewMut<'_, T>,
    grad_mask: ViewMut<'_, T>,
) -> Result<()> {
    let heads = Heads::new([query, key, value], attn_mask, is_causal, scale)?;
    heads.expect_results(out.sizes(), logsumexp.sizes())?;
    expect_operand("grad_out", grad_out.sizes(), out.sizes())?;
    let wanted = [0, 1, 2, 3].map(|number| asked(output_mask, number));
    let of_mask = attn_mask.map_or(0, |mask| mask.numel());
    let sizes = [query.numel(), key.numel(), value.numel(), of_mask];
    let mut grads = [grad_query, grad_key, grad_value, grad_mask];
    for ((grad, size), wanted) in grads.iter().zip(sizes).zip(wanted) {
        expect_sizes(&[grad.numel() as i64], &[if wanted { size as i64 } else { 0 }])?;
    }
    if let Some(grad) = &grad_logsumexp {
        expect_operand("grad_logsumexp", grad.sizes(), logsumexp.sizes())?;
    }
    let logarithms = logsumexp.to_contiguous();
    let grad_logarithms = grad_logsumexp.as_ref().map(View::to_contiguous);
    let results = Results {
        grad: Stack::new(grad_out, "grad_out")?,
        out: Stack::new(out, "out")?,
        logarithms: &logarithms,
        grad_logarithms: grad_logarithms.as_deref(),
    };
    with_slices(&mut grads, |grads| each_head(&heads, &results, grads))
}

fn asked(output_mask: &[bool], number: usize) -> bool {
    output_mask.get(number).copied().unwrap_or(true)
}

/// The forward pass's results and their gradients.
struct Results<'a, T: Element> {
    grad: Stack<'a, T>,
    out: Stack<'a, T>,
    logarithms: &'a [T::Compute],
    grad_logarithms: Option<&'a [T::Compute]>,
}

/// Writes the gradients of all heads, each to the part of a slice that is the head's; an empty slice is not wanted.
fn each_head<T: Element<Compute: Real>>(
    heads: &Heads<'_, T>,
    results: &Results<'_, T>,
    grads: [&mut [T]; 4],
) {
    let lengths = grads.each_ref().map(|grad| grad.len() / heads.count().max(1));
    let starts = grads.map(|grad| Shared(grad.as_mut_ptr()));
    let state = || (Block::new(heads), [const { Scratch::new() }; 4]);
    parallel::for_each_with(heads.is_long(), heads.count(), state, |(block, rounded), head| {
        let part = |number: usize| {
            let start = starts[number].at((head * lengths[number]) as i64);
            // SAFETY: the part lies in the slice, and each head has one thread.
            unsafe { std::slice::from_raw_parts_mut(start, lengths[number]) }
        };
        let [of_query, of_key, of_value, of_mask] = rounded;
        with_computed(part(0), of_query, |of_query| {
            with_computed(part(1), of_key, |of_key| {
                with_computed(part(2), of_value, |of_value| {
                    with_computed(part(3), of_mask, |of_mask| {
                        block.run(heads, results, head, [of_query, of_key, of_value, of_mask]);
                    });
                });
            });
        });
    });
}

/// Memory for one block of scores after the other.
struct Block<C> {
    /// Matrices of a head in the compute type.
    buffers: [Scratch<C>; 5],
    weights: Scratch<C>,
    /// Gradients of weights, then of scores.
    gradients: Scratch<C>,
    logarithms: Scratch<C>,
    /// For each query the product of its result and the gradient of that, less the gradient of the logarithm.
    products: Scratch<C>,
}

impl<C: Real> Block<C> {
    fn new<T: Element<Compute = C>>(heads: &Heads<'_, T>) -> Block<C> {
        let (rows, columns) = (heads.query.rows.min(ROWS), heads.key.rows.min(COLUMNS));
        Block {
            buffers: [const { Scratch::new() }; 5],
            weights: Scratch::filled(C::ZERO, rows * columns),
            gradients: Scratch::filled(C::ZERO, rows * columns),
            logarithms: Scratch::filled(C::ZERO, heads.query.rows),
            products: Scratch::filled(C::ZERO, heads.query.rows),
        }
    }

    /// Writes the gradients of a head, each to a row-major matrix; one without elements is not wanted.
    fn run<T: Element<Compute = C>>(
        &mut self,
        heads: &Heads<'_, T>,
        results: &Results<'_, T>,
        head: usize,
        [of_query, of_key, of_value, of_mask]: [&mut [C]; 4],
    ) {
        let [query, key, value, grad, out] = &mut self.buffers;
        let (query, key) = (heads.query.computed(head, query), heads.key.computed(head, key));
        let value = heads.value.computed(head, value);
        let (grad, out) = (results.grad.computed(head, grad), results.out.computed(head, out));
        let logarithms = &results.logarithms[head * query.rows..][..query.rows];
        for (row, &logarithm) in logarithms.iter().enumerate() {
            self.logarithms[row] = logarithm;
            // SAFETY: the matrices are those of the head, with a row for each query.
            self.products[row] = unsafe { product(grad.at(row, 0), out.at(row, 0)) };
            if let Some(grads) = results.grad_logarithms {
                self.products[row] = Arithmetic::sub(self.products[row], grads[head * query.rows + row]);
            }
        }
        of_query.fill(C::ZERO);
        of_key.fill(C::ZERO);
        of_value.fill(C::ZERO);
        of_mask.fill(C::ZERO);
        for columns in blocks(key.rows, COLUMNS) {
            // The first query that has one of the keys.
            let first = if heads.is_causal { columns.start / ROWS * ROWS } else { 0 };
            for rows in blocks(query.rows, ROWS).filter(|rows| rows.start >= first) {
                let weights = &mut self.weights[..rows.len() * columns.len()];
                let gradients = &mut self.gradients[..weights.len()];
                // SAFETY: the matrices are those of the head and the ranges those of its queries and keys; a gradient that is
                // wanted has the size of its matrix.
                unsafe {
                    heads.scores(head, (query, &rows), (key, &columns), weights);
                    into_weights(weights, columns.len(), &self.logarithms[rows.clone()]);
                    let (grad, query) = (grad.some_rows(&rows), query.some_rows(&rows));
                    let by_columns = row_major(weights, rows.len(), columns.len()).transposed();
                    add(by_columns, grad, C::ONE, of_value, columns.start);
                    if of_query.is_empty() && of_key.is_empty() && of_mask.is_empty() {
                        continue;
                    }
                    let by_value = value.some_rows(&columns).transposed();
                    C::multiply(grad, by_value, None, C::ONE, row_major_mut(gradients, columns.len()));
                    score_gradients(gradients, weights, columns.len(), &self.products[rows.clone()]);
                    let by_rows = row_major(gradients, rows.len(), columns.len());
                    add(by_rows, key.some_rows(&columns), heads.scale, of_query, rows.start);
                    add(by_rows.transposed(), query, heads.scale, of_key, columns.start);
                }
                if !of_mask.is_empty() {
                    for (row, gradients) in rows.clone().zip(gradients.chunks_exact(columns.len())) {
                        of_mask[row * key.rows + columns.start..][..columns.len()].copy_from_slice(gradients);
                    }
                }
            }
        }
    }
}

/// Adds `scale * left * right` to the rows of a matrix from `first` on, if it is wanted.
///
/// # Safety
/// Every element of the operands is valid for reads, and a matrix that is wanted has the rows.
unsafe fn add<C: Real>(left: Matrix<C>, right: Matrix<C>, scale: C, sum: &mut [C], first: usize) {
    if !sum.is_empty() {
        let rows = &mut sum[first * right.columns..];
        // SAFETY: the caller's promise.
        unsafe { C::multiply(left, right, Some(C::ONE), scale, row_major_mut(rows, right.columns)) }
    }
}
