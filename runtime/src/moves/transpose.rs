//! Transposing elements as bytes, in squares that stay in registers.
//!
//! In: lines of neighbours, and the size of an element. Out: the same elements, lines as columns. Must know no tensor.

#[cfg(target_arch = "x86_64")]
use crate::simd::vector_bytes;

/// Copies `lines` lines of `length` elements of `size` bytes each, so that element `e` of line `l` becomes element `l` of line
/// `e`. Elements of a line are neighbours; lines begin so many bytes from each other.
///
/// # Safety
/// All elements are valid for reads and for writes, and do not overlap.
pub(crate) unsafe fn transpose_elements(
    size: usize,
    from: *const u8,
    from_line: isize,
    lines: usize,
    to: *mut u8,
    to_line: isize,
    length: usize,
) {
    // Rows of the target that are so far apart have one place of the first cache, which few lines share: unless those of the source
    // do, which is read in larger pieces then.
    #[cfg(target_arch = "x86_64")]
    let wide = (to_line % 2048 != 0 || from_line % 2048 == 0) && vector_bytes() >= 32;
    // SAFETY: the caller's promises are those of each function.
    unsafe {
        match size {
            1 => transpose_typed::<u8, 8>(from, from_line, lines, to, to_line, length),
            2 => transpose_typed::<u16, 8>(from, from_line, lines, to, to_line, length),
            #[cfg(target_arch = "x86_64")]
            4 if wide => transpose_typed::<u32, 8>(from, from_line, lines, to, to_line, length),
            #[cfg(target_arch = "x86_64")]
            8 if wide => transpose_typed::<u64, 4>(from, from_line, lines, to, to_line, length),
            4 => transpose_typed::<u32, 4>(from, from_line, lines, to, to_line, length),
            8 => transpose_typed::<u64, 2>(from, from_line, lines, to, to_line, length),
            _ => transpose_typed::<[u64; 2], 2>(from, from_line, lines, to, to_line, length),
        }
    }
}

/// In squares of `K` elements, which stay in registers.
///
/// # Safety
/// As [`transpose_elements`], of elements of `T`; squares of 32 bytes need AVX.
unsafe fn transpose_typed<T: Copy, const K: usize>(
    from: *const u8,
    from_line: isize,
    lines: usize,
    to: *mut u8,
    to_line: isize,
    length: usize,
) {
    let unit = size_of::<T>() as isize;
    let (whole_lines, whole_length) = (lines / K * K, length / K * K);
    // SAFETY: lines and elements are those that the caller promises; addresses need no alignment.
    unsafe {
        let source =
            |line: usize, element: usize| from.offset(line as isize * from_line + element as isize * unit);
        let target =
            |line: usize, element: usize| to.offset(element as isize * to_line + line as isize * unit);
        let square = |line: usize, element: usize| {
            transpose_square::<T, K>(source(line, element), from_line, target(line, element), to_line);
        };
        // Cache lines that are further apart share fewer places of a cache: each is read, or written, whole before the next.
        if to_line.abs() >= from_line.abs() {
            for element in (0..whole_length).step_by(K) {
                (0..whole_lines).step_by(K).for_each(|line| square(line, element));
            }
        } else {
            for line in (0..whole_lines).step_by(K) {
                (0..whole_length).step_by(K).for_each(|element| square(line, element));
            }
        }
        for line in 0..lines {
            let first = if line < whole_lines { whole_length } else { 0 };
            for element in first..length {
                let moved = source(line, element).cast::<T>().read_unaligned();
                target(line, element).cast::<T>().write_unaligned(moved);
            }
        }
    }
}

/// Copies a square of elements, lines to columns. Compilers make shuffles of the general form for some sizes alone.
///
/// # Safety
/// `K` elements of each of `K` lines are valid for reads and for writes; addresses need no alignment.
#[inline(always)]
unsafe fn transpose_square<T: Copy, const K: usize>(
    from: *const u8,
    from_line: isize,
    to: *mut u8,
    to_line: isize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        match (size_of::<T>(), K) {
            (4, 4) => return shuffles::square_of_four(from, from_line, to, to_line),
            (4, 8) => return shuffles::square_of_eight(from, from_line, to, to_line),
            (8, 2) => return shuffles::square_of_two(from, from_line, to, to_line),
            (8, 4) => return shuffles::square_of_four_wide(from, from_line, to, to_line),
            _ => {}
        }
        let line = |at: usize| from.offset(at as isize * from_line).cast::<[T; K]>().read_unaligned();
        let square: [[T; K]; K] = std::array::from_fn(line);
        let turned: [[T; K]; K] = std::array::from_fn(|at| std::array::from_fn(|other| square[other][at]));
        for (at, row) in turned.into_iter().enumerate() {
            to.offset(at as isize * to_line).cast::<[T; K]>().write_unaligned(row);
        }
    }
}

/// Squares in registers of 16 bytes, which every processor of this architecture has, and of 32.
#[cfg(target_arch = "x86_64")]
mod shuffles {
    use std::arch::x86_64::{
        __m128, __m128d, __m256, __m256d, _mm_loadu_pd, _mm_loadu_ps, _mm_movehl_ps, _mm_movelh_ps,
        _mm_storeu_pd, _mm_storeu_ps, _mm_unpackhi_pd, _mm_unpackhi_ps, _mm_unpacklo_pd, _mm_unpacklo_ps,
        _mm256_castpd128_pd256, _mm256_castps128_ps256, _mm256_insertf128_pd, _mm256_insertf128_ps,
        _mm256_shuffle_ps, _mm256_storeu_pd, _mm256_storeu_ps, _mm256_unpackhi_pd, _mm256_unpackhi_ps,
        _mm256_unpacklo_pd, _mm256_unpacklo_ps,
    };

    /// # Safety
    /// Four elements of 4 bytes of each of four lines are valid for reads and for writes.
    #[inline(always)]
    pub(super) unsafe fn square_of_four(from: *const u8, from_line: isize, to: *mut u8, to_line: isize) {
        // SAFETY: the caller's promise; moving bits as floats changes none.
        unsafe {
            let line = |at: isize| -> __m128 { _mm_loadu_ps(from.offset(at * from_line).cast()) };
            let [a, b, c, d] = [line(0), line(1), line(2), line(3)];
            let (low_ab, high_ab) = (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
            let (low_cd, high_cd) = (_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));
            let turned = [
                _mm_movelh_ps(low_ab, low_cd),
                _mm_movehl_ps(low_cd, low_ab),
                _mm_movelh_ps(high_ab, high_cd),
                _mm_movehl_ps(high_cd, high_ab),
            ];
            for (at, row) in turned.into_iter().enumerate() {
                _mm_storeu_ps(to.offset(at as isize * to_line).cast(), row);
            }
        }
    }

    /// # Safety
    /// As [`square_of_four`], of eight elements of eight lines, on a processor with AVX.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn square_of_eight(from: *const u8, from_line: isize, to: *mut u8, to_line: isize) {
        // SAFETY: the caller's promise; moving bits as floats changes none.
        unsafe {
            // Four elements of a line beside those of the fourth line after it.
            let pair = |at: isize, half: usize| -> __m256 {
                let line = |at: isize| _mm_loadu_ps(from.offset(at * from_line).cast::<f32>().add(half * 4));
                _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(line(at)), line(at + 4))
            };
            for half in 0..2 {
                let [a, b, c, d] = [pair(0, half), pair(1, half), pair(2, half), pair(3, half)];
                let (low_ab, high_ab) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let (low_cd, high_cd) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                let turned = [
                    _mm256_shuffle_ps::<0b01_00_01_00>(low_ab, low_cd),
                    _mm256_shuffle_ps::<0b11_10_11_10>(low_ab, low_cd),
                    _mm256_shuffle_ps::<0b01_00_01_00>(high_ab, high_cd),
                    _mm256_shuffle_ps::<0b11_10_11_10>(high_ab, high_cd),
                ];
                for (at, row) in turned.into_iter().enumerate() {
                    _mm256_storeu_ps(to.offset((half * 4 + at) as isize * to_line).cast(), row);
                }
            }
        }
    }

    /// # Safety
    /// As [`square_of_two`], of four elements of four lines, on a processor with AVX.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn square_of_four_wide(from: *const u8, from_line: isize, to: *mut u8, to_line: isize) {
        // SAFETY: the caller's promise; moving bits as floats changes none.
        unsafe {
            // Two elements of a line beside those of the second line after it.
            let pair = |at: isize, half: usize| -> __m256d {
                let line = |at: isize| _mm_loadu_pd(from.offset(at * from_line).cast::<f64>().add(half * 2));
                _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(line(at)), line(at + 2))
            };
            for half in 0..2 {
                let (a, b) = (pair(0, half), pair(1, half));
                let row = |at: usize| to.offset((half * 2 + at) as isize * to_line).cast();
                _mm256_storeu_pd(row(0), _mm256_unpacklo_pd(a, b));
                _mm256_storeu_pd(row(1), _mm256_unpackhi_pd(a, b));
            }
        }
    }

    /// # Safety
    /// Two elements of 8 bytes of each of two lines are valid for reads and for writes.
    #[inline(always)]
    pub(super) unsafe fn square_of_two(from: *const u8, from_line: isize, to: *mut u8, to_line: isize) {
        // SAFETY: the caller's promise; moving bits as floats changes none.
        unsafe {
            let line = |at: isize| -> __m128d { _mm_loadu_pd(from.offset(at * from_line).cast()) };
            let (a, b) = (line(0), line(1));
            _mm_storeu_pd(to.cast(), _mm_unpacklo_pd(a, b));
            _mm_storeu_pd(to.offset(to_line).cast(), _mm_unpackhi_pd(a, b));
        }
    }
}
