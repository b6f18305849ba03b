//! Compiling one loop for several processors and choosing when it runs.
//!
//! A release build targets the oldest processor of its architecture, so that it runs everywhere. [`widest`]
//! compiles a loop once more for AVX2 and for AVX-512 and picks the version that the machine has; there are no
//! intrinsics. The environment's `OPSMITH_SIMD`, one of `scalar`, `avx2` and `avx512`, picks an older version, for
//! tests and measurements.

use opsmith_core::DType;

use crate::element::Element;

/// Runs `body`, compiled for the widest vectors the processor has.
///
/// Pass an `#[inline(always)]` closure over `#[inline(always)]` functions: code that is not inlined
/// stays compiled for the oldest processor. The choice costs about a nanosecond.
///
/// No variant fuses multiplications with additions unless the body asks for it (`mul_add`), so results do not
/// depend on the machine. A build with debug assertions, where no loop is vectorised, has the oldest version alone.
#[inline(always)]
pub fn widest<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
    match x86::level() {
        // SAFETY: the processor has every feature the function is compiled for.
        Level::Avx512 => return unsafe { x86::with_avx512(body) },
        // SAFETY: the processor has every feature the function is compiled for.
        Level::Avx2 => return unsafe { x86::with_avx2(body) },
        Level::Oldest | Level::Unknown => {}
    }
    body()
}

/// Bytes of the vectors that [`widest`] compiles loops for, on this processor. Wider ones than 16 come with fused multiplication and
/// addition; so do all outside of x86.
pub fn vector_bytes() -> usize {
    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
    match x86::level() {
        Level::Avx512 => return 64,
        Level::Avx2 => return 32,
        Level::Oldest | Level::Unknown => {}
    }
    16
}

/// As [`widest`], for a loop over elements of `T` that is compiled for each dtype, in as many versions as programs have
/// use for. Every build of the library pays for each version of each loop, and most dtypes are those of few tensors.
#[inline(always)]
pub fn widest_over<T: Element, R>(body: impl FnOnce() -> R) -> R {
    match const { versions(T::DTYPE) } {
        3 => widest(body),
        2 => wide(body),
        _ => body(),
    }
}

/// For how many processors an element-wise loop over these operands is compiled: for all if one is `f32`, which the loops of
/// 16-bit floats are too, for those without AVX-512 if one is `f64`, and for the oldest alone with others.
pub(crate) const fn versions_over<T: Operands>() -> u8 {
    T::VERSIONS
}

/// The number of the version of a loop for this processor: 0 with AVX-512 in two halves of 256 bits, 1 for the oldest, 2 with AVX2, 3
/// with AVX-512.
#[inline(always)]
pub(crate) fn version() -> usize {
    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
    return x86::version();
    #[cfg(not(all(target_arch = "x86_64", not(debug_assertions))))]
    return 1;
}

/// Element types of an element-wise loop's operands, as a tuple.
pub(crate) trait Operands {
    /// For how many processors the loop is compiled.
    const VERSIONS: u8;
}

macro_rules! operands {
    ($($T:ident)*) => {
        impl<$($T: Element),*> Operands for ($($T,)*) {
            const VERSIONS: u8 = loop_versions(&[$($T::DTYPE),*]);
        }
    };
}

operands!(A);
operands!(A B);
operands!(A B C);
operands!(A B C D);
operands!(A B C D E);
operands!(A B C D E F);

const fn loop_versions(dtypes: &[DType]) -> u8 {
    let (mut versions, mut at) = (1, 0);
    while at < dtypes.len() {
        versions = match dtypes[at] {
            DType::F32 => 3,
            DType::F64 if versions < 2 => 2,
            _ => versions,
        };
        at += 1;
    }
    versions
}

/// For how many processors a loop over elements is compiled.
const fn versions(dtype: DType) -> u8 {
    match dtype {
        DType::F32 | DType::F64 => 3,
        DType::I64 | DType::I32 | DType::U8 | DType::Bool | DType::BF16 | DType::F16 => 2,
        _ => 1,
    }
}

/// As [`widest`], with vectors of at most 256 bits.
#[inline(always)]
fn wide<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
    if matches!(x86::level(), Level::Avx512 | Level::Avx2) {
        // SAFETY: the processor has every feature the function is compiled for.
        return unsafe { x86::with_avx2(body) };
    }
    body()
}

/// How wide a processor's vectors are.
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Level {
    Unknown,
    Oldest,
    Avx2,
    Avx512,
}

/// The level that the environment asks for.
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
fn wanted() -> Option<Level> {
    let text = std::env::var("OPSMITH_SIMD").ok()?;
    match text.trim() {
        "scalar" => Some(Level::Oldest),
        "avx2" => Some(Level::Avx2),
        "avx512" => Some(Level::Avx512),
        _ => {
            eprintln!(
                "warning: OPSMITH_SIMD is `{text}`, not `scalar`, `avx2` or `avx512`: the widest vectors are used"
            );
            None
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
mod x86 {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Level;

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

    /// The number of [`version`](super::version), or [`UNKNOWN`].
    static VERSION: AtomicU8 = AtomicU8::new(UNKNOWN);

    const UNKNOWN: u8 = u8::MAX;

    #[inline(always)]
    pub fn version() -> usize {
        match VERSION.load(Ordering::Relaxed) {
            UNKNOWN => detect_version(),
            known => usize::from(known),
        }
    }

    #[cold]
    #[inline(never)]
    fn detect_version() -> usize {
        let version = match level() {
            Level::Avx512 if std::env::var_os("OPSMITH_SIMD").is_none() && has_halves() => 0,
            level => level as u8,
        };
        VERSION.store(version, Ordering::Relaxed);
        usize::from(version)
    }

    /// Whether the processor, one with AVX-512, moves 64 bytes as two times 32: Zen 4.
    fn has_halves() -> bool {
        use std::arch::x86_64::__cpuid;
        let vendor = __cpuid(0);
        let signature = __cpuid(1).eax;
        let family = (signature >> 8 & 0xF) + (signature >> 20 & 0xFF);
        let text = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat();
        text == b"AuthenticAMD" && family == 0x19
    }

    #[cold]
    #[inline(never)]
    fn detect() -> Level {
        let avx512 = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl");
        let avx2 = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
        let widest = match (avx512, avx2) {
            (true, true) => Level::Avx512,
            (false, true) => Level::Avx2,
            _ => Level::Oldest,
        };
        let level = super::wanted().map_or(widest, |wanted| wanted.min(widest));
        LEVEL.store(level as u8, Ordering::Relaxed);
        level
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    pub fn with_avx512<R>(body: impl FnOnce() -> R) -> R {
        body()
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn with_avx2<R>(body: impl FnOnce() -> R) -> R {
        body()
    }
}
