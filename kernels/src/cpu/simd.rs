//! Compiling one loop for several processors and choosing when it runs.
//!
//! A release build targets the oldest processor of its architecture, so that it runs everywhere. [`widest`]
//! compiles a loop once more for AVX2 and for AVX-512 and picks the version that the machine has; there are no
//! intrinsics.

use opsmith_runtime::{DType, Element};

/// Runs `body`, compiled for the widest vectors the processor has.
///
/// Pass an `#[inline(always)]` closure over `#[inline(always)]` functions: code that is not inlined
/// stays compiled for the oldest processor. The choice costs about a nanosecond.
///
/// No variant fuses multiplications with additions unless the body asks for it, so results do not
/// depend on the machine.
#[inline(always)]
pub fn widest<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    match x86::level() {
        // SAFETY: the processor has every feature the function is compiled for.
        x86::Level::Avx512 => return unsafe { x86::with_avx512(body) },
        // SAFETY: the processor has AVX2, the one feature that this is compiled for.
        x86::Level::Avx2 => return unsafe { x86::with_avx2(body) },
        x86::Level::Oldest | x86::Level::Unknown => {}
    }
    body()
}

/// As [`widest`], for a loop over elements of `T` that is compiled for each dtype, in as many versions as programs have
/// use for. Every build of the library pays for each version of each loop, and most dtypes are those of few tensors.
///
/// A 16-bit float of IEEE 754 is converted by a call, alone, so that wider vectors win nothing.
#[inline(always)]
pub fn widest_over<T: Element, R>(body: impl FnOnce() -> R) -> R {
    match const { versions(T::DTYPE) } {
        3 => widest(body),
        2 => wide(body),
        _ => body(),
    }
}

/// For how many processors a loop over elements is compiled.
const fn versions(dtype: DType) -> u8 {
    match dtype {
        DType::F32 | DType::F64 => 3,
        DType::I64 | DType::I32 | DType::U8 | DType::Bool | DType::BF16 => 2,
        _ => 1,
    }
}

/// As [`widest`], with vectors of at most 256 bits.
#[inline(always)]
fn wide<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if matches!(x86::level(), x86::Level::Avx512 | x86::Level::Avx2) {
        // SAFETY: the processor has AVX2, the one feature that this is compiled for.
        return unsafe { x86::with_avx2(body) };
    }
    body()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// How wide the processor's vectors are.
    #[derive(Clone, Copy, PartialEq)]
    #[repr(u8)]
    pub enum Level {
        Unknown,
        Oldest,
        Avx2,
        Avx512,
    }

    static LEVEL: AtomicU8 = AtomicU8::new(Level::Unknown as u8);

    #[inline(always)]
    pub fn level() -> Level {
        // Asking the standard library for several features costs more than this one load.
        const LEVELS: [Level; 4] = [Level::Unknown, Level::Oldest, Level::Avx2, Level::Avx512];
        match LEVELS[usize::from(LEVEL.load(Ordering::Relaxed) & 3)] {
            Level::Unknown => detect(),
            known => known,
        }
    }

    #[cold]
    #[inline(never)]
    fn detect() -> Level {
        let avx512 = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl");
        let level = match (avx512, std::arch::is_x86_feature_detected!("avx2")) {
            (true, true) => Level::Avx512,
            (false, true) => Level::Avx2,
            _ => Level::Oldest,
        };
        LEVEL.store(level as u8, Ordering::Relaxed);
        level
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
    pub fn with_avx512<R>(body: impl FnOnce() -> R) -> R {
        body()
    }

    #[target_feature(enable = "avx2")]
    pub fn with_avx2<R>(body: impl FnOnce() -> R) -> R {
        body()
    }
}
