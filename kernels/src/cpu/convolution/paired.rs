//! Convolutions of `bfloat16` as products of pairs of channels, where the processor multiplies pairs.
//!
//! In: patches of the input's bits ([`super::patch`]) and weights. Out: results, each sum rounded once. A place of a patch
//! holds the elements of two channels side by side, so that steps of the inner dimension are half as many as of floats.

use opsmith_runtime::parallel;
use opsmith_runtime::{Element, Scratch, View, ViewMut, bf16};

use super::Convolve;
use super::implicit::{Implicit, PANELS, Run, Target, copy_panel, runs_of};
use super::patch::{Grid, Planes, SLACK, strides};
use crate::cpu::linalg::MatrixMut;
use crate::cpu::linalg::blocked::SHARED;
use crate::cpu::linalg::paired::{COLUMNS, ROWS, multiply};
use crate::cpu::linalg::panels::depth;
use crate::cpu::simd::widest;

const _: () = assert!(ROWS <= SLACK);

/// A thread's own memory.
struct Work<C> {
    /// The elements of each channel, and those of two side by side.
    planes: Scratch<u16>,
    patch: Scratch<u32>,
    left: Scratch<u32>,
    sums: Scratch<C>,
    runs: Scratch<Run>,
}

/// Weights in panels of [`COLUMNS`] outputs: for each group, and each part of the inner dimension, those of all outputs.
struct Weights {
    panels: Scratch<u32>,
    inner: usize,
    outputs: usize,
}

impl Weights {
    /// Of weights `(groups, outputs, channels, elements)`, which are numbers of `bfloat16`; the pair of an odd channel is a zero.
    fn new(weight: &[f32], [groups, outputs, channels, elements]: [usize; 4]) -> Weights {
        let inner = channels.div_ceil(2) * elements;
        let mut panels = Scratch::with_capacity(groups * inner * outputs.next_multiple_of(COLUMNS));
        for group in weight.chunks_exact(outputs * channels * elements).take(groups) {
            let bits = |output: usize, channel: usize, element: usize| {
                let is_there = output < outputs && channel < channels;
                let at = (output * channels + channel) * elements + element;
                if is_there { u32::from(bf16::from_f32(group[at]).to_bits()) } else { 0 }
            };
            for first in (0..inner).step_by(depth(inner)) {
                for panel in (0..outputs).step_by(COLUMNS) {
                    for step in first..inner.min(first + depth(inner)) {
                        let (pair, element) = (step / elements, step % elements);
                        panels.extend((panel..panel + COLUMNS).map(|output| {
                            bits(output, 2 * pair, element) | bits(output, 2 * pair + 1, element) << 16
                        }));
                    }
                }
            }
        }
        Weights { panels, inner, outputs }
    }

    /// The panels of a group from one step of the inner dimension on.
    fn at(&self, group: usize, first: usize) -> *const u32 {
        self.panels[(group * self.inner + first) * self.outputs.next_multiple_of(COLUMNS)..].as_ptr()
    }
}

/// Puts the elements of two planes side by side.
fn join(low: &[u16], high: &[u16], pairs: &mut [u32]) {
    widest(
        #[inline(always)]
        move || {
            let (low, high) = (&low[..pairs.len()], &high[..pairs.len()]);
            for at in 0..pairs.len() {
                pairs[at] = u32::from(low[at]) | u32::from(high[at]) << 16;
            }
        },
    );
}

impl<C: Convolve> Implicit<'_, C> {
    /// As [`forward`](Implicit::forward), of elements that are `bfloat16`.
    ///
    /// # Safety
    /// The processor multiplies pairs ([`is_supported`](crate::cpu::linalg::pairs::is_supported)), `T` is `bf16` and `C` is `f32`.
    pub(super) unsafe fn forward_pairs<T: Element<Compute = C>>(
        &self,
        input: View<'_, T>,
        weight: &[C],
        out: &mut ViewMut<'_, T>,
    ) {
        // SAFETY: the caller's promise about the types.
        let (input, weight) = unsafe {
            (
                View::<u16>::from_raw(input.as_ptr().cast(), input.sizes(), input.strides()),
                std::slice::from_raw_parts(weight.as_ptr().cast::<f32>(), weight.len()),
            )
        };
        let (places, pairs) = (self.patches.places(), self.channels.div_ceil(2));
        let weights = Weights::new(weight, [self.groups, self.outputs, self.channels, self.elements]);
        let steps: Scratch<usize> = (0..pairs)
            .flat_map(|pair| self.patches.taps().iter().map(move |&tap| pair * places + tap))
            .collect();
        let target = Target::new(out);
        let of_sample = out.strides()[0];
        let of_channel = strides(out.strides())[0];
        let blocks = self.patches.blocks();
        let count = input.size(0) * self.groups * blocks;
        let multiplications = count * self.patches.most() * self.outputs;
        let is_long = multiplications.saturating_mul(weights.inner) >= SHARED;
        let work = || self.work(weights.inner);
        // A thread's memory, and the block whose border its patch has.
        parallel::for_each_with(
            is_long,
            count,
            || (work(), None),
            |(work, filled), number| {
                let (sample, group) = (number / blocks / self.groups, number / blocks % self.groups);
                let block = self.patches.block(number % blocks);
                let planes = Planes::new(input, sample, group * self.channels, self.channels);
                let has_border = filled.replace(number % blocks) == Some(number % blocks);
                self.patches.fill(&block, &planes, &mut work.planes, [places, 1], has_border);
                for (planes, pairs) in
                    work.planes.chunks_exact(2 * places).zip(work.patch.chunks_exact_mut(places))
                {
                    let (low, high) = planes.split_at(places);
                    join(low, high, pairs);
                }
                let first = group * self.outputs;
                let start = sample as i64 * of_sample + first as i64 * of_channel;
                let bias = self.bias.map(|bias| &bias[first..first + self.outputs]);
                let grid = self.patches.grid(&block);
                for line in (0..grid.lines).step_by(ROWS * PANELS) {
                    let lines = (ROWS * PANELS).min(grid.lines - line);
                    // SAFETY: the caller's promise; the block's patch is filled.
                    unsafe { self.multiply_pairs(work, &weights, group, &grid, line..line + lines, &steps) };
                    let sums = &mut work.sums[..self.outputs * lines];
                    // SAFETY: the block's positions of the group's outputs are the result's, and no other thread has them.
                    unsafe { target.write(start, &block, [grid.width, line, lines], sums, bias) };
                }
            },
        );
    }

    /// A thread's memory for an inner dimension of so many pairs.
    fn work(&self, inner: usize) -> Work<C> {
        let (places, pairs) = (self.patches.places(), self.channels.div_ceil(2));
        Work {
            // Behind an odd number of channels lies one of zeros.
            planes: Scratch::filled(0, 2 * pairs * places),
            patch: Scratch::filled(0, pairs * places + SLACK),
            left: Scratch::filled(0, ROWS * depth(inner) + SLACK),
            sums: Scratch::filled(C::ZERO, ROWS * PANELS * self.outputs),
            runs: Scratch::new(),
        }
    }

    /// Computes the sums of some lines of a block: a row for each output.
    ///
    /// # Safety
    /// As [`forward_pairs`](Self::forward_pairs).
    unsafe fn multiply_pairs(
        &self,
        work: &mut Work<C>,
        weights: &Weights,
        group: usize,
        grid: &Grid,
        lines: std::ops::Range<usize>,
        steps: &[usize],
    ) {
        let place = |line: usize| line / grid.width * self.patches.row() + line % grid.width;
        let together = depth(weights.inner);
        let sums: MatrixMut<f32> = MatrixMut {
            data: work.sums.as_mut_ptr().cast(),
            row_stride: 1,
            column_stride: lines.len() as i64,
        };
        for first in (0..weights.inner).step_by(together) {
            let steps = &steps[first..weights.inner.min(first + together)];
            let (right, adds) = (weights.at(group, first), first > 0);
            if grid.width == self.patches.row() {
                let (sizes, left) = ([lines.len(), self.outputs], work.patch[lines.start..].as_ptr());
                // SAFETY: the lines of all steps lie in the patch, which has slack at its end; there are sums for all of them.
                unsafe { multiply(sizes, steps, left, right, adds, sums) };
                continue;
            }
            let in_panel: Scratch<usize> = (0..steps.len()).map(|step| step * ROWS).collect();
            for line in lines.clone().step_by(ROWS) {
                runs_of(line, ROWS, lines.end, place, &mut work.runs);
                let (panel, count) = (work.left.as_mut_ptr(), ROWS.min(lines.end - line));
                // SAFETY: the runs of all steps lie in the patch, which has slack at its end, as the panel has; there are
                // sums for all lines.
                unsafe {
                    copy_panel(work.patch.as_ptr(), &work.runs, steps.iter().copied(), panel, ROWS);
                    let sums = sums.at(line - lines.start, 0);
                    multiply([count, self.outputs], &in_panel, panel, right, adds, sums);
                }
            }
        }
    }
}
