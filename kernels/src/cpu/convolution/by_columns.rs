//! Convolutions as products with columns that are written block by block.
//!
//! In: contiguous operands in the compute type. Out: results and gradients. For types without innermost loops, windows
//! whose elements lie far apart, sums that are rounded on the way, and gradients of inputs under strides.

use opsmith_runtime::Scratch;
use opsmith_runtime::parallel::{self, Shared};

use super::{Convolve, Plan};
use crate::cpu::linalg::blocked::SHARED;
use crate::cpu::linalg::{Matrix, MatrixMut, row_major};

/// Columns that are made and multiplied at a time stay in the second cache: about this many elements.
pub(in crate::cpu) const BLOCK: usize = 1 << 16;

impl Plan {
    /// Elements of a group on the large side, of one sample.
    fn large_group(&self) -> usize {
        self.large * self.sliding.plane()
    }

    /// Elements of a group on the small side, of one sample.
    fn small_group(&self) -> usize {
        self.small * self.sliding.positions()
    }

    /// Rows of a group's columns.
    fn column_height(&self) -> usize {
        self.large * self.sliding.elements()
    }

    /// Whether several threads share the products.
    fn is_long(&self) -> bool {
        let multiplications = self.samples * self.groups * self.small_group();
        multiplications.saturating_mul(self.column_height()) >= SHARED
    }

    /// Calls `body` with a range of rows of positions for each block of columns.
    fn for_each_block(&self, mut body: impl FnMut(std::ops::Range<usize>)) {
        let rows = self.sliding.positions() / self.sliding.row().max(1);
        let each = self.column_height() * self.sliding.row();
        // Whole planes need no columns, so they need no blocks either.
        let together = if self.sliding.is_identity() { rows } else { BLOCK / each.max(1) };
        for first in (0..rows).step_by(together.max(1)) {
            body(first..rows.min(first + together.max(1)));
        }
    }

    /// Convolves the large side into the small one, a group of a sample after the other or in several threads.
    pub(super) fn to_small<C: Convolve>(&self, large: &[C], weight: &[C], small: &mut [C]) {
        let target = Shared(small.as_mut_ptr());
        parallel::for_each_with(
            self.is_long(),
            self.samples * self.groups,
            Scratch::new,
            |columns, number| {
                let planes = &large[number * self.large_group()..][..self.large_group()];
                let target = target.at((number * self.small_group()) as i64);
                let weight = self.weight_of(number, weight);
                self.for_each_block(|rows| {
                    let (columns, width) = self.columns(planes, &rows, columns);
                    let right = row_major(columns, self.column_height(), width);
                    let out = MatrixMut {
                        data: target.wrapping_add(rows.start * self.sliding.row()),
                        row_stride: self.sliding.positions() as i64,
                        column_stride: 1,
                    };
                    // SAFETY: the block's positions of each channel lie inside the group, which no other thread has.
                    unsafe { C::multiply(weight, right, None, C::ONE, out) };
                });
            },
        );
    }

    /// The transpose of [`Plan::to_small`]; `held` rounds the columns' elements and their sums.
    pub(super) fn to_large<C: Convolve>(
        &self,
        small: &[C],
        weight: &[C],
        held: impl Fn(C) -> C + Sync,
        large: &mut [C],
    ) {
        large.fill(C::ZERO);
        let each = self.large_group();
        let target = Shared(large.as_mut_ptr());
        parallel::for_each_with(
            self.is_long(),
            self.samples * self.groups,
            Scratch::new,
            |columns, number| {
                let source = &small[number * self.small_group()..][..self.small_group()];
                let start = target.at((number * each) as i64);
                // SAFETY: the group lies in the slice, and no other thread has it.
                let planes = unsafe { std::slice::from_raw_parts_mut(start, each) };
                let weight = self.weight_of(number, weight).transposed();
                self.for_each_block(|rows| {
                    let width = rows.len() * self.sliding.row();
                    columns.clear();
                    columns.resize(self.column_height() * width, C::ZERO);
                    let right = self.block_of(source, &rows);
                    let out =
                        MatrixMut { data: columns.as_mut_ptr(), row_stride: width as i64, column_stride: 1 };
                    // SAFETY: the columns have a row for each column of the weight.
                    unsafe { C::multiply(weight, right, None, C::ONE, out) };
                    columns.iter_mut().for_each(|sum| *sum = held(*sum));
                    self.sliding.scatter(columns, rows, planes, &held);
                });
            },
        );
    }

    /// The gradient for the weight: the small side times the columns of the large one, transposed.
    /// `held` rounds the sum after each sample.
    pub(super) fn of_weight<C: Convolve>(
        &self,
        large: &[C],
        small: &[C],
        held: impl Fn(C) -> C,
    ) -> Scratch<C> {
        let each = self.small * self.column_height();
        let mut sums = Scratch::filled(C::ZERO, self.groups * each);
        let mut columns = Scratch::new();
        for number in 0..self.samples * self.groups {
            let planes = &large[number * self.large_group()..][..self.large_group()];
            let source = &small[number * self.small_group()..][..self.small_group()];
            let target = &mut sums[number % self.groups * each..][..each];
            self.for_each_block(|rows| {
                let (columns, width) = self.columns(planes, &rows, &mut columns);
                let right = row_major(columns, self.column_height(), width).transposed();
                let left = self.block_of(source, &rows);
                let out = MatrixMut {
                    data: target.as_mut_ptr(),
                    row_stride: self.column_height() as i64,
                    column_stride: 1,
                };
                // SAFETY: the group's sums have a row for each small channel.
                unsafe { C::multiply(left, right, Some(C::ONE), C::ONE, out) };
            });
            target.iter_mut().for_each(|sum| *sum = held(*sum));
        }
        sums
    }

    /// The weight of a sample's group: a row for each small channel.
    fn weight_of<C>(&self, number: usize, weight: &[C]) -> Matrix<C> {
        let each = self.small * self.column_height();
        row_major(&weight[number % self.groups * each..][..each], self.small, self.column_height())
    }

    /// The columns of a block, and how many there are.
    fn columns<'a, C: Convolve>(
        &self,
        planes: &'a [C],
        rows: &std::ops::Range<usize>,
        buffer: &'a mut Scratch<C>,
    ) -> (&'a [C], usize) {
        let width = rows.len() * self.sliding.row();
        if self.sliding.is_identity() {
            return (planes, width);
        }
        self.sliding.gather(planes, rows.clone(), buffer);
        (buffer, width)
    }

    /// A block of a group on the small side: a row for each channel.
    fn block_of<C>(&self, group: &[C], rows: &std::ops::Range<usize>) -> Matrix<C> {
        Matrix {
            data: group[rows.start * self.sliding.row()..].as_ptr(),
            rows: self.small,
            columns: rows.len() * self.sliding.row(),
            row_stride: self.sliding.positions() as i64,
            column_stride: 1,
        }
    }
}
