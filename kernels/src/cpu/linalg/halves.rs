//! Products of 16-bit floats: sums in `f32`, each rounded once.
//!
//! In: matrices with any strides. Out: `keep * out + scale * left * right`. Few lines of neighbours are multiplied with the lines
//! of the other matrix while these are in the first cache; `bfloat16` goes to [`pairs`](super::pairs) where the processor has the
//! instruction; else both operands are widened.

use opsmith_core::DType;
use opsmith_runtime::Scratch;
use opsmith_runtime::halves::Half;
use opsmith_runtime::parallel::{self, CHUNK, Shared};

use super::product::{Matrix, MatrixMut, Multiply};
use crate::cpu::converted::widen;
use crate::cpu::lanes::sum_terms;
use crate::cpu::simd::widest;

/// Lines of the smaller operand up to which no panels are made of the larger one.
pub(in crate::cpu) const FEW_LINES: usize = 4;
/// Lines of the larger operand whose sums are computed together, if pairs of elements are converted where they lie.
pub(in crate::cpu) const TOGETHER: usize = 4;
/// Elements of a line that are widened at a time.
pub(in crate::cpu) const PART: usize = 1024;

/// Rows of the largest block of a result that registers hold, where pairs are multiplied.
pub(in crate::cpu) const ROWS: usize = 48;
/// Columns of that block.
pub(in crate::cpu) const COLUMNS: usize = 8;
/// Most elements of the inner dimension in a panel of pairs: eight columns of them stay in the first cache.
pub(in crate::cpu) const DEPTH: usize = 1536;
/// Rows whose panels stay in the second cache.
pub(in crate::cpu) const BLOCK: usize = 3 * ROWS;
/// Most columns whose panels are made at a time: their sums of a block of rows stay in the second cache.
pub(in crate::cpu) const BAND_COLUMNS: usize = 512;

/// Writes `keep * out + scale * left * right`; without `keep`, `out` is not read.
///
/// # Safety
/// As [`Multiply::multiply`].
pub(super) unsafe fn multiply<T: Half>(
    left: Matrix<T>,
    right: Matrix<T>,
    keep: Option<f32>,
    scale: f32,
    out: MatrixMut<T>,
) {
    if left.rows == 0 || right.columns == 0 {
        return;
    }
    let of_neighbours = left.column_stride == 1 && right.row_stride == 1 && left.columns > 0;
    // SAFETY: the caller's promise, of the same product or its transpose.
    unsafe {
        if of_neighbours && left.rows <= FEW_LINES {
            return of_lines(left, right.transposed(), keep, scale, out.transposed());
        }
        if of_neighbours && right.columns <= FEW_LINES {
            return of_lines(right.transposed(), left, keep, scale, out);
        }
        #[cfg(target_arch = "x86_64")]
        if const { T::DTYPE as u8 == DType::BF16 as u8 } && super::pairs::is_supported() {
            return super::pairs::multiply(left.cast(), right.cast(), keep, scale, out.cast());
        }
        widened(left, right, keep, scale, out);
    }
}

/// The product of few lines and many, whose own elements are neighbours: `out` has a row for each of the many.
///
/// # Safety
/// As [`multiply`]; lines have elements.
unsafe fn of_lines<T: Half>(
    few: Matrix<T>,
    many: Matrix<T>,
    keep: Option<f32>,
    scale: f32,
    out: MatrixMut<T>,
) {
    let (inner, count) = (few.columns, few.rows);
    // SAFETY: the caller's promise: lines are slices.
    let line = |matrix: &Matrix<T>, number: usize| unsafe {
        std::slice::from_raw_parts(matrix.at(number, 0).data, inner)
    };
    let mut wide = Scratch::filled(0f32, count * inner);
    let pairs = inner / 2;
    for (number, wide) in wide.chunks_exact_mut(inner).enumerate() {
        if const { in_pairs::<T>() } {
            // Numbers of even places, those of odd ones, and the last of an odd number of them.
            for (at, element) in line(&few, number).iter().enumerate() {
                let place = if at < 2 * pairs { at % 2 * pairs + at / 2 } else { at };
                wide[place] = element.to_compute();
            }
        } else {
            widen(line(&few, number), wide);
        }
    }
    let lines = Shared(many.data.cast_mut());
    let target = Shared(out.data);
    parallel::for_each_range(many.rows, CHUNK.div_ceil(inner), |range| {
        let (many, out) =
            (Matrix { data: lines.at(0).cast_const(), ..many }, MatrixMut { data: target.at(0), ..out });
        let mut part = [0f32; PART];
        let mut number = range.start;
        while number < range.end {
            let together = if in_pairs::<T>() && range.end - number >= TOGETHER { TOGETHER } else { 1 };
            // For each of the few lines, the sums with those of the many that are read together.
            let mut sums = [[0f32; TOGETHER]; FEW_LINES];
            if const { in_pairs::<T>() } {
                let of_many: [&[T]; TOGETHER] =
                    std::array::from_fn(|at| line(&many, number + at.min(together - 1)));
                for (sums, wide) in sums.iter_mut().zip(wide.chunks_exact(inner)) {
                    sums_of_pairs(&of_many[..together], wide, &mut sums[..together]);
                }
            } else {
                for (place, elements) in line(&many, number).chunks(PART).enumerate() {
                    let part = &mut part[..elements.len()];
                    widen(elements, part);
                    for (few, sums) in sums.iter_mut().enumerate().take(count) {
                        let wide = &wide[few * inner + place * PART..][..part.len()];
                        let part = &*part;
                        let [more] = widest(
                            #[inline(always)]
                            move || sum_terms([part, wide], |[a, b]| [a * b]),
                        );
                        sums[0] += more;
                    }
                }
            }
            for (few, sums) in sums.iter().enumerate().take(count) {
                for (at, sum) in sums.iter().enumerate().take(together) {
                    // SAFETY: the caller's promise; a row of the result is one thread's.
                    let target = unsafe { &mut *out.at(number + at, few).data };
                    let kept = keep.map_or(0.0, |keep| keep * target.to_compute());
                    *target = T::from_compute(kept + scale * sum);
                }
            }
            number += together;
        }
    });
}

/// Whether a number is the high half of an `f32`, so that two neighbours are converted where they lie: in a register.
const fn in_pairs<T: Half>() -> bool {
    matches!(T::DTYPE, DType::BF16)
}

/// Two neighbours, aligned as one of them.
#[derive(Clone, Copy, Default)]
#[repr(C, packed(2))]
struct Pair(u32);

impl Pair {
    /// The sum of products with two numbers, given by their bits.
    #[inline(always)]
    fn times(self, even: Pair, odd: Pair) -> f32 {
        let (shifted, masked) = (f32::from_bits(self.0 << 16), f32::from_bits(self.0 & 0xffff_0000));
        let (first, second) =
            if cfg!(target_endian = "little") { (shifted, masked) } else { (masked, shifted) };
        first * f32::from_bits(even.0) + second * f32::from_bits(odd.0)
    }
}

/// The sums of products of some lines' elements, which are `bfloat16`, with numbers of even places, odd places and a last one. A sum
/// is the same for a line alone and for one of four, which arrive from memory side by side.
#[inline(never)]
fn sums_of_pairs<T: Half>(lines: &[&[T]], numbers: &[f32], sums: &mut [f32]) {
    let length = lines[0].len();
    let pairs = length / 2;
    let words = |start: *const Pair| {
        // SAFETY: the elements, and both halves of the numbers, are at least as many pairs.
        unsafe { std::slice::from_raw_parts(start, pairs) }
    };
    let (even, odd) = (words(numbers.as_ptr().cast()), words(numbers[pairs..].as_ptr().cast()));
    let line = |number: usize| words(lines[number][..length].as_ptr().cast());
    if lines.len() == TOGETHER {
        let lines: [_; TOGETHER] = std::array::from_fn(line);
        sums.copy_from_slice(&widest(
            #[inline(always)]
            move || {
                let [a, b, c, d] = lines;
                sum_terms([a, b, c, d, even, odd], |[a, b, c, d, even, odd]: [Pair; 6]| {
                    [a, b, c, d].map(|pair| pair.times(even, odd))
                })
            },
        ));
    } else {
        for (number, sum) in sums.iter_mut().enumerate() {
            let line = line(number);
            [*sum] = widest(
                #[inline(always)]
                move || sum_terms([line, even, odd], |[pair, even, odd]: [Pair; 3]| [pair.times(even, odd)]),
            );
        }
    }
    if length % 2 == 1 {
        for (sum, line) in sums.iter_mut().zip(lines) {
            *sum += line[length - 1].to_compute() * numbers[length - 1];
        }
    }
}

/// The product by way of operands and sums in `f32`.
///
/// # Safety
/// As [`multiply`].
unsafe fn widened<T: Half>(
    left: Matrix<T>,
    right: Matrix<T>,
    keep: Option<f32>,
    scale: f32,
    out: MatrixMut<T>,
) {
    let (rows, columns) = (left.rows, right.columns);
    // In the order of the result, whose lines are rounded one by one.
    let by_columns = out.row_stride.abs() < out.column_stride.abs();
    let (lines, length) = if by_columns { (columns, rows) } else { (rows, columns) };
    let mut sums = Scratch::filled(0f32, lines * length);
    let (row_stride, column_stride) = if by_columns { (1, length as i64) } else { (length as i64, 1) };
    let (mut wide_left, mut wide_right) = (Scratch::new(), Scratch::new());
    // SAFETY: the caller's promise; the sums have room for the product.
    unsafe {
        let (left, right) = (wide(left, &mut wide_left), wide(right, &mut wide_right));
        f32::multiply(
            left,
            right,
            None,
            scale,
            MatrixMut { data: sums.as_mut_ptr(), row_stride, column_stride },
        );
    }
    let (line, step) =
        if by_columns { (out.column_stride, out.row_stride) } else { (out.row_stride, out.column_stride) };
    let target = Shared(out.data);
    parallel::for_each_range(lines, CHUNK.div_ceil(length), |range| {
        for number in range {
            let sums = &sums[number * length..][..length];
            let start = target.at(number as i64 * line);
            if step == 1 && keep.is_none() {
                // SAFETY: the caller's promise; a line of the result is one thread's.
                T::narrow(sums, unsafe { std::slice::from_raw_parts_mut(start, length) });
                continue;
            }
            for (at, sum) in sums.iter().enumerate() {
                // SAFETY: as above.
                let target = unsafe { &mut *start.offset(at as isize * step as isize) };
                let kept = keep.map_or(0.0, |keep| keep * target.to_compute());
                *target = T::from_compute(kept + sum);
            }
        }
    });
}

/// A matrix's numbers, in the buffer; neighbours stay neighbours.
///
/// # Safety
/// Every element is valid for reads.
unsafe fn wide<T: Half>(matrix: Matrix<T>, buffer: &mut Scratch<f32>) -> Matrix<f32> {
    if matrix.row_stride.abs() < matrix.column_stride.abs() {
        // SAFETY: the caller's promise.
        return unsafe { wide(matrix.transposed(), buffer) }.transposed();
    }
    let Matrix { data, rows, columns, row_stride, column_stride } = matrix;
    *buffer = Scratch::with_capacity(rows * columns);
    let (source, target) = (Shared(data.cast_mut()), Shared(buffer.as_mut_ptr()));
    parallel::for_each_range(rows, CHUNK.div_ceil(columns.max(1)), |range| {
        for row in range {
            let from = source.at(row as i64 * row_stride);
            let to = target.at((row * columns) as i64);
            // SAFETY: the caller's promise; the buffer has room for each row. Any bits are a number.
            unsafe {
                if column_stride == 1 {
                    to.write_bytes(0, columns);
                    let to = std::slice::from_raw_parts_mut(to, columns);
                    T::widen(std::slice::from_raw_parts(from, columns), to);
                } else {
                    for column in 0..columns {
                        let element = *from.offset(column as isize * column_stride as isize);
                        to.add(column).write(element.to_compute());
                    }
                }
            }
        }
    });
    // SAFETY: each row was written.
    unsafe { buffer.set_len(rows * columns) };
    Matrix { data: buffer.as_ptr(), rows, columns, row_stride: columns as i64, column_stride: 1 }
}

#[cfg(test)]
mod tests;
