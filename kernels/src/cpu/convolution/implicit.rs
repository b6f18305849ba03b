//! Convolutions as products whose large operand is never written: each panel of it is copied from a patch.
//!
//! In: patches of the input ([`super::patch`]) and weights. Out: results; gradients of weights are in `of_weight`. A panel has for each
//! step of the inner dimension a few lines, which lie next to each other in the patch but for the ends of rows, so it is
//! copied by whole registers.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Scratch, View, ViewMut};

use super::Convolve;
use super::channelwise;
use super::columns::Sliding;
use super::patch::{Block, Grid, Patches, Planes, SLACK, strides};
use crate::cpu::converted::{is_half, narrow};
use crate::cpu::copy::{Plane, copy_plane};
use crate::cpu::linalg::blocked::SHARED;
use crate::cpu::linalg::innermost::Kernels;
#[cfg(target_arch = "x86_64")]
use crate::cpu::linalg::pairs;
use crate::cpu::linalg::panels::depth;
use crate::cpu::linalg::row_major;
use crate::cpu::linalg::{Matrix, MatrixMut};
use crate::cpu::simd::widest;

/// Panels of positions that are multiplied at a time.
pub(super) const PANELS: usize = 4;

/// Lines of a panel that lie next to each other: where they go, and their distance from the first place.
pub(super) type Run = (usize, usize);

/// Copies a panel's lines for each step of the inner dimension, `width` at a time; whatever lies behind a run is
/// overwritten by the next one, or by the next step.
///
/// # Safety
/// `width` elements are valid for reads from every run of every step on, and the target has room for a panel and
/// `width` more.
#[inline(always)]
unsafe fn copy_runs<C: Copy>(
    patch: *const C,
    runs: &[Run],
    steps: impl Iterator<Item = usize>,
    target: *mut C,
    width: usize,
) {
    let mut target = target;
    for step in steps {
        let source = patch.wrapping_add(step);
        for &(at, from) in runs {
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(source.add(from), target.add(at), width) };
        }
        target = target.wrapping_add(width);
    }
}

/// As [`copy_runs`], compiled for the widths of all innermost loops: others are a call of the system's copy for each step.
///
/// # Safety
/// As [`copy_runs`].
pub(super) unsafe fn copy_panel<C: Copy>(
    patch: *const C,
    runs: &[Run],
    steps: impl Iterator<Item = usize>,
    target: *mut C,
    width: usize,
) {
    widest(
        #[inline(always)]
        || {
            // SAFETY: the caller's promise.
            unsafe {
                match width {
                    8 => copy_runs(patch, runs, steps, target, 8),
                    16 => copy_runs(patch, runs, steps, target, 16),
                    32 => copy_runs(patch, runs, steps, target, 32),
                    64 => copy_runs(patch, runs, steps, target, 64),
                    width => copy_runs(patch, runs, steps, target, width),
                }
            }
        },
    );
}

/// The runs of lines `first..first + width`, where `line` is the place of a line, for as many as there are.
pub(super) fn runs_of(
    first: usize,
    width: usize,
    count: usize,
    line: impl Fn(usize) -> usize,
    runs: &mut Scratch<Run>,
) {
    runs.clear();
    let mut last = 0;
    for number in first..count.min(first + width) {
        let place = line(number);
        if number == first || place != last + 1 {
            runs.push((number - first, place));
        }
        last = place;
    }
}

/// Weights in panels: for each group, and each part of the inner dimension, those of all outputs.
struct Weights<C> {
    panels: Scratch<C>,
    inner: usize,
    outputs: usize,
}

impl<C: Convolve> Weights<C> {
    /// Of weights `(groups, outputs, inner)`.
    fn new(kernels: &Kernels<C>, weight: &[C], [groups, outputs, inner]: [usize; 3]) -> Weights<C> {
        let mut panels = Scratch::with_capacity(groups * kernels.right_len(inner, outputs));
        for group in weight.chunks_exact(outputs * inner).take(groups) {
            for first in (0..inner).step_by(depth(inner)) {
                let rows = depth(inner).min(inner - first);
                let right = row_major(group, outputs, inner).transposed().at(first, 0);
                // SAFETY: the part's elements are the group's.
                unsafe { kernels.append_right(Matrix { rows, ..right }, &mut panels) };
            }
        }
        Weights { panels, inner, outputs }
    }

    /// The panels of a group from one element of the inner dimension on.
    fn at(&self, kernels: &Kernels<C>, group: usize, first: usize) -> *const C {
        let start = kernels.right_len(group * self.inner + first, self.outputs);
        self.panels[start..].as_ptr()
    }
}

/// A convolution by patches.
pub(super) struct Implicit<'a, C: 'static> {
    pub kernels: &'static Kernels<C>,
    pub patches: Patches,
    pub groups: usize,
    /// Channels of a group on the side that the window slides over, and on the other.
    pub channels: usize,
    pub outputs: usize,
    pub elements: usize,
    pub bias: Option<&'a [C]>,
}

impl<'a, C: Convolve> Implicit<'a, C> {
    /// If the type has innermost loops and patches are no larger than columns.
    pub fn new(
        sliding: Sliding,
        [groups, channels, outputs]: [usize; 3],
        bias: Option<&'a [C]>,
    ) -> Option<Implicit<'a, C>> {
        let kernels = C::loops()?;
        if [groups, channels, outputs, sliding.positions()].contains(&0) || kernels.rows > SLACK {
            return None;
        }
        let patches = Patches::new(sliding, channels)?;
        Some(Implicit { kernels, patches, groups, channels, outputs, elements: sliding.elements(), bias })
    }

    /// Writes the convolution of the input with weights `(groups, outputs, channels, window…)`.
    pub fn forward<T: Element<Compute = C>>(
        &self,
        input: View<'_, T>,
        weight: &[C],
        out: &mut ViewMut<'_, T>,
    ) {
        if self.channels * self.outputs == 1 {
            return channelwise::forward(self.kernels, &self.patches, self.bias, input, weight, out);
        }
        #[cfg(target_arch = "x86_64")]
        if const { matches!(T::DTYPE, opsmith_runtime::DType::BF16) }
            && self.channels > 1
            && pairs::is_supported()
        {
            // SAFETY: the processor has the instruction; a dtype has one element type, which computes in `f32`.
            return unsafe { self.forward_pairs(input, weight, out) };
        }
        let inner = self.channels * self.elements;
        let weights = Weights::new(self.kernels, weight, [self.groups, self.outputs, inner]);
        let steps: Scratch<usize> = (0..self.channels)
            .flat_map(|channel| {
                self.patches.taps().iter().map(move |&tap| channel * self.patches.places() + tap)
            })
            .collect();
        let target = Target::new(out);
        let of_sample = out.strides()[0];
        let blocks = self.patches.blocks();
        let count = input.size(0) * self.groups * blocks;
        let multiplications = count * self.patches.most() * self.outputs;
        let is_long = multiplications.saturating_mul(inner) >= SHARED;
        // A thread's memory, and the block whose border its patch has.
        let state = || (Work::new(self, inner), None);
        parallel::for_each_with(is_long, count, state, |(work, filled), number| {
            let (sample, group) = (number / blocks / self.groups, number / blocks % self.groups);
            let block = self.patches.block(number % blocks);
            let planes = Planes::new(input, sample, group * self.channels, self.channels);
            let has_border = filled.replace(number % blocks) == Some(number % blocks);
            self.patches.fill(&block, &planes, &mut work.patch, [self.patches.places(), 1], has_border);
            let first = group * self.outputs;
            let start = sample as i64 * of_sample + first as i64 * target.strides[0];
            let bias = self.bias.map(|bias| &bias[first..first + self.outputs]);
            let grid = self.patches.grid(&block);
            for line in (0..grid.lines).step_by(self.kernels.rows * PANELS) {
                let lines = (self.kernels.rows * PANELS).min(grid.lines - line);
                self.multiply_lines(work, &weights, group, &grid, line..line + lines, &steps);
                let sums = &mut work.sums[..self.outputs * lines];
                // SAFETY: the block's positions of the group's outputs are the result's, and no other thread has them.
                unsafe { target.write(start, &block, [grid.width, line, lines], sums, bias) };
            }
        });
    }

    /// Computes the sums of some lines of a block: a row for each output.
    fn multiply_lines(
        &self,
        work: &mut Work<C>,
        weights: &Weights<C>,
        group: usize,
        grid: &Grid,
        lines: std::ops::Range<usize>,
        steps: &[usize],
    ) {
        let place = |line: usize| line / grid.width * self.patches.row() + line % grid.width;
        let width = self.kernels.rows;
        let together = depth(weights.inner);
        for depth in (0..weights.inner).step_by(together) {
            let inner = together.min(weights.inner - depth);
            let steps = &steps[depth..depth + inner];
            let out =
                MatrixMut { data: work.sums.as_mut_ptr(), row_stride: 1, column_stride: lines.len() as i64 };
            let right = weights.at(self.kernels, group, depth);
            if grid.width == self.patches.row() {
                let (sizes, left) = ([lines.len(), self.outputs], work.patch[lines.start..].as_ptr());
                // SAFETY: the lines of all steps lie in the patch, which has slack at its end; there are sums for all of them.
                unsafe { self.kernels.multiply_unpacked(sizes, steps, left, right, depth > 0, out) };
                continue;
            }
            for (number, first) in lines.clone().step_by(width).enumerate() {
                runs_of(first, width, lines.end, place, &mut work.runs);
                let panel = work.left[number * inner * width..].as_mut_ptr();
                // SAFETY: the runs of all steps lie in the patch, which has slack at its end, as the panels have.
                unsafe { copy_panel(work.patch.as_ptr(), &work.runs, steps.iter().copied(), panel, width) };
            }
            let sizes = [lines.len(), self.outputs, inner];
            // SAFETY: the panels hold these lines and outputs, and there are sums for all of them.
            unsafe { self.kernels.multiply(sizes, work.left.as_ptr(), right, depth > 0, out) };
        }
    }
}

/// A thread's own memory.
struct Work<C> {
    patch: Scratch<C>,
    left: Scratch<C>,
    sums: Scratch<C>,
    runs: Scratch<Run>,
}

impl<C: Convolve> Work<C> {
    fn new(implicit: &Implicit<'_, C>, inner: usize) -> Work<C> {
        let lines = implicit.kernels.rows * PANELS;
        Work {
            patch: Scratch::filled(C::ZERO, implicit.patches.places() * implicit.channels + SLACK),
            left: Scratch::filled(C::ZERO, lines * depth(inner) + SLACK),
            sums: Scratch::filled(C::ZERO, lines * implicit.outputs),
            runs: Scratch::new(),
        }
    }
}

/// Where results go, with any strides.
pub(super) struct Target<T> {
    data: Shared<T>,
    strides: [i64; 4],
}

impl<T: Element<Compute: Convolve>> Target<T> {
    pub fn new(out: &mut ViewMut<'_, T>) -> Target<T> {
        Target { strides: strides(out.strides()), data: Shared(out.as_mut_ptr()) }
    }

    /// Writes the sums of `count` lines of a block from the `first` on, of which a row has `width`, a row of sums for each
    /// output, with the outputs' bias.
    ///
    /// # Safety
    /// The positions of these outputs, from `start` on, are valid for writes.
    pub unsafe fn write(
        &self,
        start: i64,
        block: &Block,
        [width, first, count]: [usize; 3],
        sums: &mut [T::Compute],
        bias: Option<&[T::Compute]>,
    ) {
        let outputs = sums.len() / count;
        for (sums, &bias) in sums.chunks_exact_mut(count).zip(bias.unwrap_or(&[])) {
            sums.iter_mut().for_each(|sum| *sum = Arithmetic::add(*sum, bias));
        }
        let [of_output, of_plane, of_row, of_column] = self.strides;
        let mut rounded = Scratch::new();
        if const { is_half::<T>() } {
            rounded.resize(sums.len(), T::default());
            narrow(sums, &mut rounded);
        }
        let mut done = 0;
        while done < count {
            let (row, column) = ((first + done) / width, (first + done) % width);
            let together = block.columns.saturating_sub(column).min(count - done);
            if together > 0 {
                let place = block.plane as i64 * of_plane
                    + (block.row + row) as i64 * of_row
                    + (block.column + column) as i64 * of_column;
                let to = Plane { data: self.data.at(start + place), steps: [of_output, of_column] };
                let steps = [count as i64, 1];
                // SAFETY: the caller's promise; each row of sums has as many from here on.
                unsafe {
                    if const { is_half::<T>() } {
                        let from = Plane { data: rounded[done..].as_ptr(), steps };
                        copy_plane([outputs, together], to, from, |element| element);
                    } else {
                        let from = Plane { data: sums[done..].as_ptr(), steps };
                        copy_plane([outputs, together], to, from, T::from_compute);
                    }
                }
            }
            done += (width - column).min(count - done);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::linalg::innermost::Blocked;

    #[test]
    fn panels_of_all_loops_are_compiled_for_their_width() {
        let rows = |kernels: &[usize]| {
            assert!(kernels.iter().all(|rows| [8, 16, 32, 64].contains(rows)), "{kernels:?}")
        };
        rows(&f32::all_kernels().iter().map(|kernels| kernels.rows).collect::<Vec<_>>());
        rows(&f64::all_kernels().iter().map(|kernels| kernels.rows).collect::<Vec<_>>());
    }
}
