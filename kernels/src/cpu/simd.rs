//! Compiling one loop for several processors and choosing when it runs.
//!
//! A release build targets the oldest processor of its architecture, so that it runs everywhere.
//! [`widest`] compiles a loop once more for AVX2 and for AVX-512 and picks what the machine has;
//! nothing is written in intrinsics.

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
    {
        if has_avx512() {
            // SAFETY: the processor has every feature the function is compiled for.
            return unsafe { with_avx512(body) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { with_avx2(body) };
        }
    }
    body()
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
fn with_avx512<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<R>(body: impl FnOnce() -> R) -> R {
    body()
}
