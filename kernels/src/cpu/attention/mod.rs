//! Attention: for each query the mean of the values, weighted by the softmax of the query's products with the keys.
//!
//! In: queries `(…, L, E)`, keys `(…, S, E)` and values `(…, S, F)` of any strides, and a mask `(…, L, S)` that is added to
//! the scores. Out: results `(…, L, F)`, and for each query the logarithm of its sum of exponentials, with which the
//! gradients compute the weights anew. Scores exist for `ROWS` queries and `COLUMNS` keys at a time, never as a whole.
//!
//! Source: T. Dao et al., "FlashAttention" (2022); the sums of a row that is not finished are those of M. Milakov and
//! N. Gimelshein, "Online normalizer calculation for softmax" (2018).

mod backward;
mod forward;
mod rows;

use std::ops::Range;

use opsmith_runtime::arith::Ordered;
use opsmith_runtime::{Dims, Element, Error, Result, Scalar, Scratch, View};

use super::linalg::blocked::SHARED;
use super::linalg::{Matrix, MatrixMut, Multiply};
use super::strides::expect_operand;
use crate::math::Inexact;

pub use backward::attention_backward;
pub use forward::attention;

/// Queries of a block of scores.
pub(super) const ROWS: usize = 128;
/// Keys of a block of scores.
pub(super) const COLUMNS: usize = 256;

/// Floats with products of their own type.
pub trait Real: Ordered + Inexact + Multiply<Compute = Self> {}

impl Real for f32 {}
impl Real for f64 {}

/// Matrices of one shape: a tensor's last two dimensions, for each index of the others.
struct Stack<'a, T> {
    view: View<'a, T>,
    rows: usize,
    columns: usize,
}

impl<'a, T: Element> Stack<'a, T> {
    fn new(view: View<'a, T>, name: &str) -> Result<Stack<'a, T>> {
        let [.., rows, columns] = view.sizes() else {
            return Err(Error::shape(format!("`{name}` has less than two dimensions")));
        };
        Ok(Stack { view, rows: *rows as usize, columns: *columns as usize })
    }

    /// Sizes of the dimensions before the last two.
    fn leading(&self) -> &'a [i64] {
        &self.view.sizes()[..self.view.dim() - 2]
    }

    /// The matrix with the given number in row-major order.
    fn matrix(&self, number: usize) -> Matrix<T> {
        let (mut rest, mut offset) = (number as i64, 0);
        for (&size, &stride) in self.leading().iter().zip(self.view.strides()).rev() {
            offset += rest % size * stride;
            rest /= size;
        }
        let strides = &self.view.strides()[self.view.dim() - 2..];
        Matrix {
            data: self.view.as_ptr().wrapping_offset(offset as isize),
            rows: self.rows,
            columns: self.columns,
            row_stride: strides[0],
            column_stride: strides[1],
        }
    }

    /// The matrix in the compute type: itself, or a copy in the buffer.
    fn computed(&self, number: usize, buffer: &mut Scratch<T::Compute>) -> Matrix<T::Compute> {
        // SAFETY: the view vouches for its elements.
        unsafe { self.matrix(number).computed(buffer) }
    }
}

/// The operands of attention, for each head: an index of the leading dimensions.
struct Heads<'a, T: Element> {
    query: Stack<'a, T>,
    key: Stack<'a, T>,
    value: Stack<'a, T>,
    mask: Option<Stack<'a, T>>,
    /// Whether a query has the keys up to its own position alone.
    is_causal: bool,
    scale: T::Compute,
}

impl<'a, T: Element<Compute: Real>> Heads<'a, T> {
    fn new(
        [query, key, value]: [View<'a, T>; 3],
        mask: Option<View<'a, T>>,
        is_causal: bool,
        scale: Option<f64>,
    ) -> Result<Heads<'a, T>> {
        let (query, key, value) =
            (Stack::new(query, "query")?, Stack::new(key, "key")?, Stack::new(value, "value")?);
        let mask = mask.map(|mask| Stack::new(mask, "attn_mask")).transpose()?;
        let sizes = [query.view.sizes(), key.view.sizes(), value.view.sizes()];
        check_sizes(sizes, mask.as_ref().map(|mask| mask.view.sizes()))?;
        let scale = scale.unwrap_or_else(|| 1.0 / (query.columns as f64).sqrt());
        let scale = T::Compute::from_scalar(Scalar::Float(scale));
        Ok(Heads { query, key, value, mask, is_causal, scale })
    }

    /// Refuses results whose sizes are not `(…, L, F)` and `(…, L)`.
    fn expect_results(&self, out: &[i64], logsumexp: &[i64]) -> Result<()> {
        expect_results(self.query.view.sizes(), self.value.view.sizes(), out, logsumexp)
    }

    /// Number of heads.
    fn count(&self) -> usize {
        self.query.leading().iter().product::<i64>() as usize
    }

    /// Whether several threads share the heads, by the number of multiplications of scores.
    fn is_long(&self) -> bool {
        let scores = self.count().saturating_mul(self.query.rows).saturating_mul(self.key.rows);
        scores.saturating_mul(self.query.columns) >= SHARED
    }

    /// Blocks of keys for queries up to the given number, of all or of those that a causal mask leaves.
    fn blocks_of_keys(&self, queries: usize) -> impl Iterator<Item = Range<usize>> + use<T> {
        let keys = if self.is_causal { queries.min(self.key.rows) } else { self.key.rows };
        blocks(keys, COLUMNS)
    }

    /// Writes the scores of a block, masked ones minus infinity.
    ///
    /// # Safety
    /// `query` and `key` are the matrices of a head, and the ranges are within their rows.
    unsafe fn scores(
        &self,
        head: usize,
        (query, rows): (Matrix<T::Compute>, &Range<usize>),
        (key, columns): (Matrix<T::Compute>, &Range<usize>),
        out: &mut [T::Compute],
    ) {
        // SAFETY: the caller's promise; the block has room for its scores.
        unsafe {
            let key = key.some_rows(columns).transposed();
            T::Compute::multiply(
                query.some_rows(rows),
                key,
                None,
                self.scale,
                row_major_mut(out, columns.len()),
            );
        }
        if let Some(mask) = &self.mask {
            let mask = mask.matrix(head);
            for (row, scores) in rows.clone().zip(out.chunks_exact_mut(columns.len())) {
                let start = mask.at(row, columns.start);
                // SAFETY: the ranges are within the mask, which has a row for each query and a column for each key.
                unsafe { rows::add_mask(scores, start.data, start.column_stride as isize) }
            }
        }
        if self.is_causal {
            for (row, scores) in rows.clone().zip(out.chunks_exact_mut(columns.len())) {
                let seen = (row + 1).saturating_sub(columns.start).min(columns.len());
                scores[seen..].fill(T::Compute::LOWEST);
            }
        }
    }
}

/// Refuses operands whose sizes do not belong together.
///
/// # Errors
/// If there are such.
pub(crate) fn check_sizes(operands: [&[i64]; 3], mask: Option<&[i64]>) -> Result<()> {
    fn split<'a>(sizes: &'a [i64], name: &str) -> Result<(&'a [i64], [i64; 2])> {
        let parts = sizes.split_last_chunk::<2>().map(|(leading, last)| (leading, *last));
        parts.ok_or_else(|| Error::shape(format!("`{name}` has less than two dimensions")))
    }
    let [query, key, value] = operands;
    let (leading, [queries, inner]) = split(query, "query")?;
    let (of_key, [keys, inner_of_key]) = split(key, "key")?;
    let (of_value, [values, _]) = split(value, "value")?;
    let mask = mask.map(|mask| split(mask, "attn_mask")).transpose()?;
    let fits = inner == inner_of_key
        && keys == values
        && of_key == leading
        && of_value == leading
        && mask.is_none_or(|(of_mask, last)| of_mask == leading && last == [queries, keys]);
    if fits {
        return Ok(());
    }
    Err(Error::shape("query, key, value and mask do not have sizes that belong together")
        .with_help("they are (…, L, E), (…, S, E), (…, S, F) and (…, L, S), with the same sizes before"))
}

/// Refuses results whose sizes are not `(…, L, F)` and `(…, L)`.
///
/// # Errors
/// If there are such.
pub(crate) fn expect_results(query: &[i64], value: &[i64], out: &[i64], logsumexp: &[i64]) -> Result<()> {
    let mut sizes = Dims::from_slice(query);
    sizes.pop();
    expect_operand("logsumexp", logsumexp, &sizes)?;
    sizes.extend(value.last().copied());
    expect_operand("out", out, &sizes)
}

/// Ranges of at most `length` numbers that together are those below `count`.
fn blocks(count: usize, length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(length).map(move |start| start..count.min(start + length))
}

fn row_major_mut<C>(elements: &mut [C], columns: usize) -> MatrixMut<C> {
    MatrixMut { data: elements.as_mut_ptr(), row_stride: columns as i64, column_stride: 1 }
}

#[cfg(test)]
mod tests;
