//! The result of attention: each block of queries alone, over all blocks of keys in order.

use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Result, Scratch, View, ViewMut};

use super::rows::{Sums, divide, weigh};
use super::{COLUMNS, Heads, ROWS, Real, row_major_mut};
use crate::cpu::copy::with_slice;
use crate::cpu::lanes::with_computed;
use crate::cpu::linalg::Matrix;
use crate::cpu::linalg::product::row_major;

/// `softmax(scale * query @ keyᵀ + attn_mask) @ value` for each head, and the logarithm of each row's sum of
/// exponentials. An absent `scale` is 1 / √E. With `is_causal`, query number i has the keys up to number i. The row of a
/// query without keys is 0.
///
/// # Errors
/// If the sizes do not belong together.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn attention<T: Element<Compute: Real>>(
    query: View<'_, T>,
    key: View<'_, T>,
    value: View<'_, T>,
    attn_mask: Option<View<'_, T>>,
    is_causal: bool,
    scale: Option<f64>,
    mut out: ViewMut<'_, T>,
    mut logsumexp: ViewMut<'_, T::Compute>,
) -> Result<()> {
    let heads = Heads::new([query, key, value], attn_mask, is_causal, scale)?;
    let (queries, width) = (heads.query.rows, heads.value.columns);
    heads.expect_results(out.sizes(), logsumexp.sizes())?;
    let blocks = queries.div_ceil(ROWS);
    let mut done = Ok(());
    with_slice(&mut out, |out| {
        done = with_slice(&mut logsumexp, |logsumexp| {
            let (out, logsumexp) = (Shared(out.as_mut_ptr()), Shared(logsumexp.as_mut_ptr()));
            parallel::for_each_with(
                heads.is_long(),
                heads.count() * blocks,
                || Block::new(&heads),
                |block, number| {
                    let (head, first) = (number / blocks, number % blocks * ROWS);
                    let count = ROWS.min(queries - first);
                    let place = head * queries + first;
                    // SAFETY: the rows lie in the outputs, and each block of queries has one thread.
                    let (out, logsumexp) = unsafe {
                        (
                            std::slice::from_raw_parts_mut(out.at((place * width) as i64), count * width),
                            std::slice::from_raw_parts_mut(logsumexp.at(place as i64), count),
                        )
                    };
                    block.run(&heads, head, first, out, logsumexp);
                },
            );
        });
    })?;
    done
}

/// Memory for one block of queries after the other.
struct Block<C> {
    /// The last head, and its matrices in the compute type, which may lie in the buffers.
    matrices: Option<(usize, [Matrix<C>; 3])>,
    buffers: [Scratch<C>; 3],
    scores: Scratch<C>,
    sums: Scratch<Sums<C>>,
    /// The result before it is rounded.
    result: Scratch<C>,
}

impl<C: Real> Block<C> {
    fn new<T: Element<Compute = C>>(heads: &Heads<'_, T>) -> Block<C> {
        let (rows, columns) = (heads.query.rows.min(ROWS), heads.key.rows.min(COLUMNS));
        Block {
            matrices: None,
            buffers: [Scratch::new(), Scratch::new(), Scratch::new()],
            scores: Scratch::filled(C::ZERO, rows * columns),
            sums: Scratch::filled(Sums::NONE, rows),
            result: Scratch::new(),
        }
    }

    fn matrices<T: Element<Compute = C>>(&mut self, heads: &Heads<'_, T>, head: usize) -> [Matrix<C>; 3] {
        if let Some((known, matrices)) = self.matrices
            && known == head
        {
            return matrices;
        }
        let [query, key, value] = &mut self.buffers;
        let matrices = [
            heads.query.computed(head, query),
            heads.key.computed(head, key),
            heads.value.computed(head, value),
        ];
        self.matrices = Some((head, matrices));
        matrices
    }

    /// Writes the results of a head's queries from `first` on, and the logarithms of their sums.
    fn run<T: Element<Compute = C>>(
        &mut self,
        heads: &Heads<'_, T>,
        head: usize,
        first: usize,
        out: &mut [T],
        logsumexp: &mut [C],
    ) {
        let [query, key, value] = self.matrices(heads, head);
        let rows = first..first + logsumexp.len();
        let sums = &mut self.sums[..rows.len()];
        sums.fill(Sums::NONE);
        with_computed(out, &mut self.result, |out| {
            out.fill(C::ZERO);
            for columns in heads.blocks_of_keys(rows.end) {
                let scores = &mut self.scores[..rows.len() * columns.len()];
                // SAFETY: the matrices are those of the head, and the ranges are those of its queries and keys; `out` has a row
                // of values for each query.
                unsafe {
                    heads.scores(head, (query, &rows), (key, &columns), scores);
                    weigh(scores, columns.len(), sums, out);
                    let out = row_major_mut(out, value.columns);
                    let weights = row_major(scores, rows.len(), columns.len());
                    C::multiply(weights, value.some_rows(&columns), Some(C::ONE), C::ONE, out);
                }
            }
            divide(out, sums);
        });
        for (logarithm, sums) in logsumexp.iter_mut().zip(sums) {
            *logarithm = sums.logarithm();
        }
    }
}
