//! Stores that bypass the caches, for results that are larger than the last one: memory is written without being read first.
//!
//! In: bytes in a cache. Out: the same bytes in memory. Results that fit a cache are stored as usual, since their reader finds
//! them there.

use std::sync::LazyLock;

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::simd;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of the last cache that are taken where the system does not state them.
const USUAL: usize = 32 << 20;

/// Whether a result of so many bytes is streamed.
pub(crate) fn is_streamed(bytes: usize) -> bool {
    /// Results of fewer are never, without a question to the system.
    const LEAST: usize = 1 << 20;
    static CACHE: LazyLock<usize> = LazyLock::new(|| last_cache().unwrap_or(USUAL));
    cfg!(target_arch = "x86_64") && bytes >= LEAST && bytes >= *CACHE
}

/// Bytes of the processor's last cache.
fn last_cache() -> Option<usize> {
    let text = |index: usize| {
        std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")).ok()
    };
    let sizes = (0..).map_while(text).filter_map(|text| bytes_of(&text));
    sizes.max()
}

/// The bytes in the system's text, such as `32768K`.
fn bytes_of(text: &str) -> Option<usize> {
    let kilobytes: usize = text.trim().strip_suffix('K')?.parse().ok()?;
    Some(kilobytes << 10)
}

/// Stores bytes. Other threads find them after [`finish`].
///
/// # Safety
/// As many bytes are valid for reads at `from`, and for writes at `to`; they do not overlap.
pub(crate) unsafe fn store(from: *const u8, to: *mut u8, bytes: usize) {
    let head = to.align_offset(LINE).min(bytes);
    let whole = (bytes - head) / LINE * LINE;
    // SAFETY: the parts lie in the caller's.
    unsafe {
        to.copy_from_nonoverlapping(from, head);
        store_lines(from.add(head), to.add(head), whole);
        let rest = head + whole;
        to.add(rest).copy_from_nonoverlapping(from.add(rest), bytes - rest);
    }
}

/// Stores whole lines. They are read as they were written, by whole registers: parts of one would wait for it.
///
/// # Safety
/// As [`store`], at the start of a line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn store_lines(from: *const u8, to: *mut u8, bytes: usize) {
    use std::arch::x86_64 as x86;
    macro_rules! lines {
        ($name:ident, $features:literal, $register:ident, $load:ident, $store:ident) => {
            #[target_feature(enable = $features)]
            unsafe fn $name(from: *const u8, to: *mut u8, bytes: usize) {
                for at in (0..bytes).step_by(size_of::<x86::$register>()) {
                    // SAFETY: the caller's promise.
                    unsafe { x86::$store(to.add(at).cast(), x86::$load(from.add(at).cast())) };
                }
            }
        };
    }
    lines!(by_64, "avx512f", __m512i, _mm512_loadu_si512, _mm512_stream_si512);
    lines!(by_32, "avx", __m256i, _mm256_loadu_si256, _mm256_stream_si256);
    lines!(by_16, "sse2", __m128i, _mm_loadu_si128, _mm_stream_si128);
    // SAFETY: the caller's promise; the processor has the instructions.
    unsafe {
        match simd::vector_bytes() {
            64 => by_64(from, to, bytes),
            32 => by_32(from, to, bytes),
            _ => by_16(from, to, bytes),
        }
    }
}

/// Stores whole lines.
///
/// # Safety
/// As [`store`].
#[cfg(any(not(target_arch = "x86_64"), miri))]
unsafe fn store_lines(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { to.copy_from_nonoverlapping(from, bytes) }
}

/// Ends stores of this thread, before it tells others of them.
pub(crate) fn finish() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every processor of this architecture has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_place_and_number_are_stored() {
        let source: Vec<u8> = (0..1000).map(|at| (at % 251) as u8).collect();
        for start in [0, 1, 16, 63, 64] {
            for count in [0, 1, 15, 63, 64, 65, 200, 900] {
                let mut target = vec![255u8; 1000];
                // SAFETY: the bytes lie in the vectors.
                unsafe { store(source.as_ptr().add(3), target.as_mut_ptr().add(start), count) };
                finish();
                assert_eq!(target[start..start + count], source[3..3 + count]);
                assert!(target[..start].iter().chain(&target[start + count..]).all(|byte| *byte == 255));
            }
        }
    }

    #[test]
    fn sizes_of_caches_are_read() {
        assert_eq!(bytes_of("32768K\n"), Some(32 << 20));
        assert_eq!(bytes_of("none"), None);
        assert!(!is_streamed(1 << 19));
    }
}
