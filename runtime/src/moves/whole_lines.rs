//! Transposing elements past the caches, a whole cache line of the result at a time: parts of lines are not joined in memory.
//!
//! In: lines of neighbours, and the size of an element. Out: the same elements, lines as columns, in memory. Must know no tensor.

use std::arch::x86_64::{
    __m128, __m512, _mm_loadu_ps, _mm512_castpd_ps, _mm512_castps_pd, _mm512_castps128_ps512,
    _mm512_insertf32x4, _mm512_shuffle_ps, _mm512_stream_ps, _mm512_unpackhi_pd, _mm512_unpackhi_ps,
    _mm512_unpacklo_pd, _mm512_unpacklo_ps,
};

use crate::simd::vector_bytes;

/// Bytes of a cache line, and of a register.
const LINE: usize = 64;

/// Bytes of each line that are moved together.
const PIECE: usize = 16;

/// Whether elements of this size are moved to these lines: they are whole ones, and the processor stores one at once.
pub(super) fn fit(size: usize, to: *const u8, to_line: isize) -> bool {
    vector_bytes() == LINE && are_whole(size, to, to_line)
}

fn are_whole(size: usize, to: *const u8, to_line: isize) -> bool {
    matches!(size, 4 | 8 | 16) && to.addr().is_multiple_of(LINE) && to_line % LINE as isize == 0
}

/// As [`transpose_elements`](super::transpose_elements). Other threads find the elements after [`finish`](super::stream::finish).
///
/// # Safety
/// As there; the lines [`fit`].
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn transpose(
    size: usize,
    from: *const u8,
    from_line: isize,
    lines: usize,
    to: *mut u8,
    to_line: isize,
    length: usize,
) {
    let (across, along) = (LINE / size, PIECE / size);
    let (whole_lines, whole_length) = (lines / across * across, length / along * along);
    let source = |line: usize, element: usize| {
        from.wrapping_offset(line as isize * from_line).wrapping_add(element * size)
    };
    let target = |line: usize, element: usize| {
        to.wrapping_offset(element as isize * to_line).wrapping_add(line * size)
    };
    for line in (0..whole_lines).step_by(across) {
        for element in (0..whole_length).step_by(along) {
            let (from, to) = (source(line, element), target(line, element));
            // SAFETY: the pieces of these lines are those that the caller promises, and so are the lines of the target.
            unsafe {
                match size {
                    4 => four_bytes(from, from_line, to, to_line),
                    8 => eight_bytes(from, from_line, to, to_line),
                    _ => _mm512_stream_ps(to.cast(), pieces(from, from_line, 1)),
                }
            }
        }
    }
    for line in 0..lines {
        for element in if line < whole_lines { whole_length } else { 0 }..length {
            // SAFETY: the elements are those that the caller promises.
            unsafe { target(line, element).copy_from_nonoverlapping(source(line, element), size) };
        }
    }
}

/// The first 16 bytes of four lines, `step` lines apart.
///
/// # Safety
/// They are valid for reads.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn pieces(from: *const u8, from_line: isize, step: isize) -> __m512 {
    // SAFETY: the caller's promise; moving bits as floats changes none.
    unsafe {
        let piece = |at: isize| -> __m128 { _mm_loadu_ps(from.offset(at * step * from_line).cast()) };
        let two = _mm512_insertf32x4::<1>(_mm512_castps128_ps512(piece(0)), piece(1));
        _mm512_insertf32x4::<3>(_mm512_insertf32x4::<2>(two, piece(2)), piece(3))
    }
}

/// Four elements of 4 bytes of each of sixteen lines.
///
/// # Safety
/// They are valid for reads, and four lines of the target for writes.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn four_bytes(from: *const u8, from_line: isize, to: *mut u8, to_line: isize) {
    // SAFETY: the caller's promise.
    unsafe {
        let lines = |first: isize| pieces(from.offset(first * from_line), from_line, 4);
        let [a, b, c, d] = [lines(0), lines(1), lines(2), lines(3)];
        let (low_ab, high_ab) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let (low_cd, high_cd) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        let turned = [
            _mm512_shuffle_ps::<0b01_00_01_00>(low_ab, low_cd),
            _mm512_shuffle_ps::<0b11_10_11_10>(low_ab, low_cd),
            _mm512_shuffle_ps::<0b01_00_01_00>(high_ab, high_cd),
            _mm512_shuffle_ps::<0b11_10_11_10>(high_ab, high_cd),
        ];
        for (at, line) in turned.into_iter().enumerate() {
            _mm512_stream_ps(to.offset(at as isize * to_line).cast(), line);
        }
    }
}

/// Two elements of 8 bytes of each of eight lines.
///
/// # Safety
/// They are valid for reads, and two lines of the target for writes.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn eight_bytes(from: *const u8, from_line: isize, to: *mut u8, to_line: isize) {
    // SAFETY: the caller's promise.
    unsafe {
        let lines = |first: isize| _mm512_castps_pd(pieces(from.offset(first * from_line), from_line, 2));
        let (a, b) = (lines(0), lines(1));
        _mm512_stream_ps(to.cast(), _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)));
        _mm512_stream_ps(to.offset(to_line).cast(), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Aligned([u8; ROWS * PITCH]);

    /// Of the target.
    const ROWS: usize = 37;
    const PITCH: usize = 1024;

    #[test]
    fn lines_become_columns() {
        if !is_x86_feature_detected!("avx512f") {
            println!("the processor has no AVX-512");
            return;
        }
        for size in [4, 8, 16] {
            for (lines, length) in [(32, 16), (35, 37), (3, 5), (16, 1), (PITCH / size, 7)] {
                let source: Vec<u8> = (0..lines * length * size).map(|at| (at * 7 % 251) as u8).collect();
                let mut target = Box::new(Aligned([0; ROWS * PITCH]));
                let (from, to) = (source.as_ptr(), target.0.as_mut_ptr());
                assert!(are_whole(size, to, PITCH as isize));
                // SAFETY: the buffers have the elements, and the processor the instructions.
                unsafe {
                    transpose(size, from, (length * size) as isize, lines, to, PITCH as isize, length);
                }
                for (line, elements) in source.chunks_exact(length * size).enumerate() {
                    for (element, bytes) in elements.chunks_exact(size).enumerate() {
                        let at = element * PITCH + line * size;
                        assert_eq!(&target.0[at..at + size], bytes);
                    }
                }
            }
        }
        assert!(!are_whole(2, std::ptr::null(), 64));
        assert!(!are_whole(4, std::ptr::without_provenance(32), 64));
        assert!(!are_whole(4, std::ptr::null(), 4000));
    }
}
