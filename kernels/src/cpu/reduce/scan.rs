//! Running sums and products.

use std::mem::MaybeUninit;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::parallel::Shared;
use opsmith_runtime::{Complex32, Complex64, Element, Result, Scratch, View, ViewMut, bf16};

use crate::cpu::converted::{self, is_half, widened};
use crate::cpu::simd::widest_over;
use crate::cpu::strides::expect_sizes;
use crate::cpu::tiles::{Tile, for_each_tile};

/// A type whose running results are kept in a wider one, as PyTorch keeps them.
pub trait Running: Arithmetic {
    /// `f64` for `f32`, `Complex64` for `Complex32`, else the type itself.
    type Wide: Arithmetic;
    /// The same number, wider.
    fn widen(self) -> Self::Wide;
    /// The number rounded.
    fn narrow(wide: Self::Wide) -> Self;
}

macro_rules! running {
    ($($ty:ty => $wide:ty, |$x:ident| $widen:expr, $narrow:expr;)*) => {$(
        impl Running for $ty {
            type Wide = $wide;
            #[inline(always)]
            fn widen(self) -> $wide {
                let $x = self;
                $widen
            }
            #[inline(always)]
            fn narrow($x: $wide) -> $ty {
                $narrow
            }
        }
    )*};
}

running! {
    bool => bool, |x| x, x;
    u8 => u8, |x| x, x;
    u16 => u16, |x| x, x;
    u32 => u32, |x| x, x;
    u64 => u64, |x| x, x;
    i8 => i8, |x| x, x;
    i16 => i16, |x| x, x;
    i32 => i32, |x| x, x;
    i64 => i64, |x| x, x;
    f32 => f64, |x| f64::from(x), x as f32;
    f64 => f64, |x| x, x;
    Complex32 => Complex64, |x| Complex64::new(x.re.into(), x.im.into()),
        Complex32::new(x.re as f32, x.im as f32);
    Complex64 => Complex64, |x| x, x;
}

/// Running sums along a dimension: `[1, 2, 3]` gives `[1, 3, 6]`.
///
/// Sums of `f32` and `complex64` are kept in double precision.
pub fn cumsum<T: Element<Compute: Running>>(self_: View<'_, T>, dim: i64, out: ViewMut<'_, T>) -> Result<()> {
    let add = |sum, x| Arithmetic::add(sum, x);
    scan(&self_, dim, <T::Compute as Running>::Wide::ZERO, add, out)
}

/// Running products along a dimension: `[1, 2, 3]` gives `[1, 2, 6]`.
///
/// Products of `f32` and `complex64` are kept in double precision.
pub fn cumprod<T: Element<Compute: Running>>(
    self_: View<'_, T>,
    dim: i64,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let multiply = |product, x| Arithmetic::mul(product, x);
    scan(&self_, dim, <T::Compute as Running>::Wide::ONE, multiply, out)
}

/// Running ln ∑ exp(x) along a dimension; sums of `f32` are kept in double precision.
pub fn logcumsumexp<T: Element<Compute: Running<Wide: LogAdd>>>(
    self_: View<'_, T>,
    dim: i64,
    out: ViewMut<'_, T>,
) -> Result<()> {
    scan(&self_, dim, LogAdd::NOTHING, LogAdd::log_add, out)
}

/// Types in which logarithms of sums are kept.
pub trait LogAdd: Arithmetic {
    /// The logarithm of 0.
    const NOTHING: Self;
    /// ln(eˣ + eʸ), without overflow.
    fn log_add(self, other: Self) -> Self;
}

impl LogAdd for f64 {
    const NOTHING: f64 = f64::NEG_INFINITY;

    #[inline(always)]
    fn log_add(self, other: f64) -> f64 {
        if self.is_nan() || other.is_nan() {
            return f64::NAN;
        }
        let (low, high) = (self.min(other), self.max(other));
        if low == high && high.is_infinite() { high } else { high + (low - high).exp().ln_1p() }
    }
}

/// Neighbouring lines that advance together where they are nearer in memory than a line's elements.
pub(in crate::cpu) const NEAR: usize = 1024;
/// Lines that advance together elsewhere, so that the latencies of their sums overlap; few enough to
/// share the ways of a cache set where lines are a power of two apart.
pub(in crate::cpu) const FAR: usize = 4;

fn scan<T: Element<Compute: Running>>(
    input: &View<'_, T>,
    dim: i64,
    start: <T::Compute as Running>::Wide,
    step: impl Fn(<T::Compute as Running>::Wide, <T::Compute as Running>::Wide) -> <T::Compute as Running>::Wide
    + Sync,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let dim = wrap_dim(dim, input.dim())?;
    expect_sizes(out.sizes(), input.sizes())?;
    let strides = [input.strides(), out.strides()];
    let (source, target) = (Shared(input.as_ptr().cast_mut()), Shared(out.as_mut_ptr()));
    for_each_tile(
        input.sizes(),
        strides,
        dim,
        NEAR,
        FAR,
        || (),
        |(), tile| {
            let (source, target) = (source.at(tile.start[0]).cast_const(), target.at(tile.start[1]));
            let lanes = tile.lane.size as usize;
            // SAFETY: the tile's positions are positions of the two views, those of the output no other tile's.
            unsafe {
                // A fixed number of running results stays in registers.
                match lanes {
                    1 if is_half::<T>() && tile.line.steps == [1; 2] => {
                        along_converted(source, target, &tile, [start; 1], &step)
                    }
                    FAR if is_half::<T>() && tile.line.steps == [1; 2] => {
                        along_converted(source, target, &tile, [start; FAR], &step)
                    }
                    1 => along(source, target, &tile, [start; 1], &step),
                    FAR => along(source, target, &tile, [start; FAR], &step),
                    _ => across(source, target, &tile, start, &step),
                }
            }
        },
    );
    Ok(())
}

/// The wide type of an element.
type Wide<T> = <<T as Element>::Compute as Running>::Wide;

#[inline(always)]
fn widen<T: Element<Compute: Running>>(element: T) -> Wide<T> {
    element.to_compute().widen()
}

#[inline(always)]
fn narrow<T: Element<Compute: Running>>(running: Wide<T>) -> T {
    T::from_compute(Running::narrow(running))
}

/// Writes the running results of L lines, an element of each at a time.
///
/// # Safety
/// The tile has L lines, whose positions, relative to `source` and `target`, are valid for reads and for writes.
unsafe fn along<T: Element<Compute: Running>, const L: usize>(
    source: *const T,
    target: *mut T,
    tile: &Tile<2>,
    mut running: [Wide<T>; L],
    step: impl Fn(Wide<T>, Wide<T>) -> Wide<T>,
) {
    let (line, lane) = (tile.line, tile.lane);
    for index in 0..line.size as isize {
        let source = source.wrapping_offset(index * line.steps[0] as isize);
        let target = target.wrapping_offset(index * line.steps[1] as isize);
        // SAFETY: the caller's promise.
        unsafe { advance(source, target, lane.steps, &mut running, &step) };
    }
}

/// As [`along`], of lines whose elements are neighbours and are converted some at a time.
///
/// # Safety
/// As [`along`].
#[allow(clippy::needless_range_loop, reason = "one element of each line after the other")]
unsafe fn along_converted<T: Element<Compute: Running>, const L: usize>(
    source: *const T,
    target: *mut T,
    tile: &Tile<2>,
    mut running: [Wide<T>; L],
    step: impl Fn(Wide<T>, Wide<T>) -> Wide<T>,
) {
    let length = tile.line.size as usize;
    let [from_lane, to_lane] = tile.lane.steps.map(|step| step as isize);
    let mut memory = [[MaybeUninit::uninit(); CONVERTED]; L];
    for first in (0..length).step_by(CONVERTED) {
        let count = CONVERTED.min(length - first);
        for (lane, memory) in memory.iter_mut().enumerate() {
            let row = source.wrapping_offset(lane as isize * from_lane).wrapping_add(first);
            // SAFETY: the caller's promise.
            widened(unsafe { std::slice::from_raw_parts(row, count) }, memory);
        }
        for at in 0..count {
            for lane in 0..L {
                // SAFETY: so many numbers were written.
                let number = unsafe { memory[lane][at].assume_init_mut() };
                running[lane] = step(running[lane], Running::widen(*number));
                *number = Running::narrow(running[lane]);
            }
        }
        for (lane, memory) in memory.iter().enumerate() {
            let row = target.wrapping_offset(lane as isize * to_lane).wrapping_add(first);
            // SAFETY: the caller's promise; so many numbers were written.
            unsafe {
                let numbers = std::slice::from_raw_parts(memory.as_ptr().cast(), count);
                converted::narrow(numbers, std::slice::from_raw_parts_mut(row, count));
            }
        }
    }
}

/// Elements of each line that are converted at a time.
pub(in crate::cpu) const CONVERTED: usize = 512;

/// As [`along`], for any number of lines.
///
/// # Safety
/// The tile's positions, relative to `source` and `target`, are valid for reads and for writes.
unsafe fn across<T: Element<Compute: Running>>(
    source: *const T,
    target: *mut T,
    tile: &Tile<2>,
    start: Wide<T>,
    step: impl Fn(Wide<T>, Wide<T>) -> Wide<T>,
) {
    let (line, lane) = (tile.line, tile.lane);
    let mut running = Scratch::filled(start, lane.size as usize);
    let mut numbers = Scratch::new();
    for index in 0..line.size as isize {
        let source = source.wrapping_offset(index * line.steps[0] as isize);
        let target = target.wrapping_offset(index * line.steps[1] as isize);
        if is_half::<T>() && lane.steps == [1; 2] {
            // SAFETY: the caller's promise.
            let (from, to) = unsafe {
                (
                    std::slice::from_raw_parts(source, running.len()),
                    std::slice::from_raw_parts_mut(target, running.len()),
                )
            };
            converted::widen_into(from, &mut numbers);
            let (numbers, running) = (&mut numbers[..], &mut running[..]);
            widest_over::<bf16, _>(
                #[inline(always)]
                || {
                    for lane in 0..running.len() {
                        running[lane] = step(running[lane], Running::widen(numbers[lane]));
                        numbers[lane] = Running::narrow(running[lane]);
                    }
                },
            );
            converted::narrow(numbers, to);
            continue;
        }
        widest_over::<T, _>(
            #[inline(always)]
            // SAFETY: the caller's promise.
            || unsafe {
                // Steps that are known make vectors of it.
                if lane.steps == [1; 2] {
                    advance(source, target, [1; 2], &mut running, &step);
                } else {
                    advance(source, target, lane.steps, &mut running, &step);
                }
            },
        );
    }
}

/// Writes the next running result of each line.
///
/// # Safety
/// An element for each running result, `steps` apart, is valid for reads from `source` on and for writes from `target` on.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
unsafe fn advance<T: Element<Compute: Running>>(
    source: *const T,
    target: *mut T,
    steps: [i64; 2],
    running: &mut [Wide<T>],
    step: impl Fn(Wide<T>, Wide<T>) -> Wide<T>,
) {
    for lane in 0..running.len() {
        // SAFETY: the caller's promise.
        unsafe {
            running[lane] = step(running[lane], widen(*source.offset(lane as isize * steps[0] as isize)));
            *target.offset(lane as isize * steps[1] as isize) = narrow(running[lane]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opsmith_runtime::parallel;

    use crate::cpu::testing::{Array, scattered};

    /// Running sums of a line, in the order of its elements.
    fn naive(line: impl Iterator<Item = f32>) -> Vec<f32> {
        let sums = line.scan(0.0, |sum, x| {
            *sum += f64::from(x);
            Some(*sum as f32)
        });
        sums.collect()
    }

    #[test]
    fn lines_of_any_number_length_and_stride() {
        for lines in [0, 1, 2, 3, 4, 5, 9, 300] {
            for length in [0, 1, 15, 63, 64, 65, 200] {
                let elements: Vec<f32> = scattered(lines * length).map(|x| x as f32).collect();
                let expected: Vec<Vec<f32>> = (0..lines)
                    .map(|line| naive(elements[line * length..][..length].iter().copied()))
                    .collect();
                let sizes = [lines as i64, length as i64];
                let dense = Array::new(&sizes, elements.iter().copied());
                let turned = {
                    let turned = (0..length).flat_map(|at| (0..lines).map(move |line| line * length + at));
                    let elements: Vec<f32> = turned.map(|at| elements[at]).collect();
                    Array::new(&[sizes[1], sizes[0]], elements).permuted(&[1, 0])
                };
                let gaps = {
                    let twice = elements.iter().flat_map(|&x| [x, f32::NAN]);
                    Array::new(&[sizes[0], 2 * sizes[1]], twice).halved(1)
                };
                for input in [&dense, &turned, &gaps] {
                    for mut out in [
                        Array::<f32>::zeros(&sizes),
                        Array::zeros(&[sizes[1], sizes[0]]).permuted(&[1, 0]),
                        Array::zeros(&sizes).reversed(1),
                    ] {
                        cumsum(input.view(), 1, out.view_mut()).unwrap();
                        assert_eq!(out.to_vec(), expected.concat());
                    }
                }
            }
        }
    }

    #[test]
    fn narrow_elements_are_converted_in_blocks() {
        for (lines, length) in [(1, 1), (1, 513), (4, 512), (5, 1030), (9, 3), (300, 700)] {
            let sizes = [lines as i64, length as i64];
            let elements: Vec<bf16> = scattered(lines * length).map(|x| bf16::from_f32(x as f32)).collect();
            let x = Array::new(&sizes, elements.iter().copied());
            let line = |line: usize| naive(elements[line * length..][..length].iter().map(|x| x.to_f32()));
            let expected: Vec<bf16> = (0..lines).flat_map(line).map(bf16::from_f32).collect();
            let columns =
                (0..length).map(|at| naive((0..lines).map(|line| elements[line * length + at].to_f32())));
            let columns: Vec<Vec<f32>> = columns.collect();
            for threads in [1, 2, 5] {
                parallel::set_num_threads(threads).unwrap();
                let mut out = Array::<bf16>::zeros(&sizes);
                cumsum(x.view(), 1, out.view_mut()).unwrap();
                assert_eq!(out.to_vec(), expected, "{lines} {length} {threads}");
                cumsum(x.view(), 0, out.view_mut()).unwrap();
                let got = out.to_vec();
                for (at, column) in columns.iter().enumerate() {
                    let same = |line: usize| got[line * length + at] == bf16::from_f32(column[line]);
                    assert!((0..lines).all(same), "{lines} {length} {threads} {at}");
                }
            }
        }
    }
}
