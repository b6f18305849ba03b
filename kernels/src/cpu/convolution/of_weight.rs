//! Gradients of weights: products of the gradients of positions with the elements that the window sees from there.
//!
//! In: patches of the input ([`super::patch`]) and gradients of results. Out: a sum for each weight. Several blocks' patches and
//! panels are made at a time, each by one thread, and then each thread adds the products of all of them to some of the sums, in
//! the order of the blocks, so that their bits do not depend on the number of threads.

use std::ops::Range;

use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Scratch, View};

use super::Convolve;
use super::channelwise;
use super::implicit::{Implicit, Run, copy_panel, runs_of};
use super::patch::{Block, Planes, SLACK};
use crate::cpu::linalg::blocked::SHARED;
use crate::cpu::linalg::panels::depth;
use crate::cpu::linalg::row_major;
use crate::cpu::linalg::{Matrix, MatrixMut};

/// Groups of channels for each thread from which on each group has one thread.
const GROUPS: usize = 4;

/// The operands of a block's products.
struct Operands<C> {
    patch: Scratch<C>,
    /// The gradients: a row for each output, and these in panels for each part of the positions.
    rows: Scratch<C>,
    right: Scratch<C>,
    /// The place in the patch of each position.
    steps: Scratch<usize>,
    block: Block,
}

impl<C: Convolve> Implicit<'_, C> {
    /// The gradient for the weight, `(groups, outputs, channels, window…)`, from that of the result.
    pub fn of_weight<T: Element<Compute = C>>(&self, input: View<'_, T>, grad: View<'_, T>) -> Scratch<C> {
        let each = self.outputs * self.channels * self.elements;
        let mut result = Scratch::filled(C::ZERO, self.groups * each);
        let target = Shared(result.as_mut_ptr());
        let of_group = |group: usize, threads: usize| {
            let sums = self.of_group(input, grad, group, threads);
            let lines = self.channels * self.elements;
            for output in 0..self.outputs {
                for channel in 0..self.channels {
                    for element in 0..self.elements {
                        let at = (output * self.channels + channel) * self.elements + element;
                        let sum = sums[output * lines + element * self.channels + channel];
                        // SAFETY: the element is of this group.
                        unsafe { *target.at((group * each + at) as i64) = sum };
                    }
                }
            }
        };
        let threads = parallel::num_threads();
        if self.groups >= GROUPS * threads {
            parallel::for_each_range(self.groups, 1, |groups| groups.for_each(|group| of_group(group, 1)));
        } else {
            let positions = input.size(0) * self.patches.blocks() * self.patches.most();
            let is_shared = positions.saturating_mul(each) >= SHARED;
            (0..self.groups).for_each(|group| of_group(group, if is_shared { threads } else { 1 }));
        }
        result
    }

    /// Sums over samples and positions, of a group: a row for each output, with the channels of each element of the window.
    fn of_group<T: Element<Compute = C>>(
        &self,
        input: View<'_, T>,
        grad: View<'_, T>,
        group: usize,
        threads: usize,
    ) -> Scratch<C> {
        let patches = &self.patches;
        let mut sums = Scratch::filled(C::ZERO, self.outputs * self.channels * self.elements);
        let count = input.size(0) * patches.blocks();
        let together = threads.min(count).max(1);
        let empty = || Operands {
            patch: Scratch::filled(C::ZERO, patches.places() * self.channels + SLACK),
            rows: Scratch::new(),
            right: Scratch::new(),
            steps: Scratch::new(),
            block: patches.block(0),
        };
        let mut operands: Scratch<Operands<C>> = (0..together).map(|_| empty()).collect();
        let (all, target) = (Shared(operands.as_mut_ptr()), Shared(sums.as_mut_ptr()));
        let units = self.units();
        for first in (0..count).step_by(together) {
            let blocks = together.min(count - first);
            parallel::run(threads, blocks, &|number| {
                let (sample, block) =
                    ((first + number) / patches.blocks(), (first + number) % patches.blocks());
                let inputs = Planes::new(input, sample, group * self.channels, self.channels);
                let grads = Planes::new(grad, sample, group * self.outputs, self.outputs);
                // SAFETY: each number is one thread's.
                let own = unsafe { &mut *all.at(number as i64) };
                // The zeros around the only block of a sample stay.
                let has_border = patches.blocks() == 1 && first > 0;
                self.prepare(&patches.block(block), inputs, grads, has_border, own);
            });
            parallel::run(threads, threads, &|part| {
                // SAFETY: the operands of the blocks, which no thread changes now.
                let blocks = unsafe { std::slice::from_raw_parts(all.at(0), blocks) };
                let units = part * units / threads..(part + 1) * units / threads;
                // SAFETY: each unit is one thread's.
                unsafe { self.add_blocks(blocks, first > 0, units, &target) };
            });
        }
        sums
    }

    /// Parts of the sums: panels of lines, and of these panels of outputs; outputs, if they are not multiplied in panels.
    fn units(&self) -> usize {
        if self.channels == 1 {
            return self.outputs;
        }
        let lines = self.channels * self.elements;
        lines.div_ceil(self.kernels.rows) * self.outputs.div_ceil(self.kernels.columns)
    }

    /// Copies a block's inputs and gradients.
    fn prepare<T: Element<Compute = C>>(
        &self,
        block: &Block,
        inputs: Planes<'_, T>,
        grads: Planes<'_, T>,
        has_border: bool,
        own: &mut Operands<C>,
    ) {
        let positions = block.positions();
        self.patches.fill(block, &inputs, &mut own.patch, [1, self.channels], has_border);
        own.block = *block;
        own.rows.resize(self.outputs * positions, C::ZERO);
        grads.copy_block(block, &mut own.rows);
        own.steps.clear();
        for row in 0..block.rows {
            let first = row * self.patches.row();
            own.steps.extend((first..first + block.columns).map(|place| place * self.channels));
        }
        own.right.clear();
        if self.channels == 1 {
            return;
        }
        for first in (0..positions).step_by(depth(positions)) {
            let rows = depth(positions).min(positions - first);
            let matrix = row_major(&own.rows, self.outputs, positions).transposed();
            // SAFETY: the part's elements are the block's.
            unsafe { self.kernels.append_right(Matrix { rows, ..matrix.at(first, 0) }, &mut own.right) };
        }
    }

    /// Adds the products of blocks to some units of the sums, or writes those of the first block.
    ///
    /// # Safety
    /// The sums are valid for reads and writes, and no other thread has these units.
    unsafe fn add_blocks(&self, blocks: &[Operands<C>], adds: bool, units: Range<usize>, target: &Shared<C>) {
        let (width, columns) = (self.kernels.rows, self.kernels.columns);
        let (lines, of_line) = (self.channels * self.elements, self.outputs.div_ceil(columns));
        let mut left = Scratch::filled(C::ZERO, depth(self.patches.most()) * width + SLACK);
        let mut runs = Scratch::new();
        let taps = self.patches.taps();
        let place = |line: usize| taps[line / self.channels] * self.channels + line % self.channels;
        for (number, own) in blocks.iter().enumerate() {
            let positions = own.block.positions();
            if self.channels == 1 {
                let grads = &own.rows[units.start * positions..units.end * positions];
                let first = target.at((units.start * self.elements) as i64);
                // SAFETY: the caller's promise.
                let sums = unsafe { std::slice::from_raw_parts_mut(first, units.len() * self.elements) };
                channelwise::add_of_weight(&self.patches, &own.block, &own.patch, grads, sums);
                continue;
            }
            let mut done = 0;
            for steps in own.steps.chunks(depth(positions)) {
                let right = &own.right[self.kernels.right_len(done, self.outputs)..];
                for panel in units.start / of_line..units.end.div_ceil(of_line) {
                    let line = panel * width;
                    let first = units.start.saturating_sub(panel * of_line) * columns;
                    let end = ((units.end - panel * of_line).min(of_line) * columns).min(self.outputs);
                    runs_of(line, width, lines, place, &mut runs);
                    let out = MatrixMut {
                        data: target.at((first * lines + line) as i64),
                        row_stride: 1,
                        column_stride: lines as i64,
                    };
                    let sizes = [width.min(lines - line), end - first];
                    let (right, part) = (&right[first * steps.len()..], (steps, adds || number + done > 0));
                    // SAFETY: the panels of gradients hold these outputs, and the sums are this thread's.
                    unsafe { self.multiply_runs(sizes, &own.patch, &runs, part, right, &mut left, out) };
                }
                done += steps.len();
            }
        }
    }

    /// Computes the sums of one panel's lines for some steps, or adds them: of lines that are one run where they are, of others
    /// from a copy.
    ///
    /// # Safety
    /// The right panels have so many outputs for each step, and the sums are valid for reads and writes.
    #[allow(clippy::too_many_arguments, reason = "two operands, the steps of both, and the result")]
    unsafe fn multiply_runs(
        &self,
        [rows, outputs]: [usize; 2],
        patch: &[C],
        runs: &[Run],
        (steps, adds): (&[usize], bool),
        right: &[C],
        left: &mut [C],
        out: MatrixMut<C>,
    ) {
        let (width, right) = (self.kernels.rows, right.as_ptr());
        // SAFETY: the runs of all steps lie in the patch, which has slack at its end, as the panel has; the caller promises the
        // rest.
        unsafe {
            if let [(_, from)] = *runs {
                let start = patch[from..].as_ptr();
                return self.kernels.multiply_unpacked([rows, outputs], steps, start, right, adds, out);
            }
            copy_panel(patch.as_ptr(), runs, steps.iter().copied(), left.as_mut_ptr(), width);
            self.kernels.multiply([rows, outputs, steps.len()], left.as_ptr(), right, adds, out);
        }
    }
}
