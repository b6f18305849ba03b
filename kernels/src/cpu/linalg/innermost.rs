//! The innermost loops of blocked products: those of the `gemm` crates, chosen by processor.
//!
//! Out: for each element type the functions that this processor has, with the sizes they work on and the packing of their
//! operands; none on processors other than x86-64. Must know no blocks.

#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

use gemm_common::microkernel::MicroKernelFn;
use gemm_common::{Parallelism, Ptr};
use opsmith_runtime::arith::Arithmetic;

#[cfg(target_arch = "x86_64")]
use super::unpacked;
use super::unpacked::Unpacked;

/// Element types with blocked products.
pub(in crate::cpu) trait Blocked: Arithmetic + 'static {
    /// The innermost loops that this processor has, the fastest first.
    fn all_kernels() -> &'static [Kernels<Self>];

    /// The crate's own product, of a result whose columns have the closest elements and of steps that are not negative.
    fn whole() -> Whole<Self>;

    /// The innermost loops for this processor, if there are any.
    fn kernels() -> Option<&'static Kernels<Self>> {
        Self::all_kernels().first()
    }
}

/// Sizes; the result with its steps by columns and rows, and whether it is read; the operands with theirs; the factors
/// of the result and of the product; whether each of the three is conjugated.
type Whole<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    Parallelism,
);

/// Innermost loops, and how operands are packed for them.
pub struct Kernels<T: 'static> {
    /// Rows of the result that one register holds.
    pub(in crate::cpu) lanes: usize,
    /// Rows and columns of the largest block that one call computes.
    pub(in crate::cpu) rows: usize,
    pub(in crate::cpu) columns: usize,
    /// A function for each number of registers of rows, and of columns.
    pub(in crate::cpu) table: &'static [MicroKernelFn<T>],
    pub(in crate::cpu) pack_left: Pack<T>,
    pub(in crate::cpu) pack_right: Pack<T>,
    /// The loop for a left operand that is not packed, of the largest block.
    pub(in crate::cpu) unpacked: Unpacked<T>,
}

/// Copies lines into panels: how many lines, how long, where to, where from, the steps from a column to the next
/// and from a row to the next, and how many elements a panel has.
pub(super) type Pack<T> = unsafe fn(usize, usize, Ptr<T>, Ptr<T>, isize, isize, usize);

/// The loops of a type for an instruction set: the crate's table of them, and its sizes.
#[cfg(target_arch = "x86_64")]
macro_rules! of {
    ($ty:ty, $simd:ident, $module:path, $unpacked:path, $lanes:expr) => {{
        use $module as module;
        use $unpacked as unpacked;
        const LANES: usize = $lanes;
        const ROWS: usize = module::MR_DIV_N * LANES;
        const COLUMNS: usize = module::NR;
        static TABLE: [[MicroKernelFn<$ty>; COLUMNS]; module::MR_DIV_N] = module::UKR;
        fn simd() -> Option<$simd> {
            <$simd as MixedSimd<$ty, $ty, $ty, $ty>>::try_new()
        }
        const { assert!(ROWS == unpacked::ROWS && COLUMNS == unpacked::COLUMNS) };
        simd().map(|_| Kernels {
            unpacked: unpacked::multiply,
            lanes: LANES,
            rows: ROWS,
            columns: COLUMNS,
            table: TABLE.as_flattened(),
            pack_left: |lines, length, to, from, step, line, panel| {
                let simd = simd().expect("the processor has it, or it would not have these loops");
                // SAFETY: the pointer is an `unsafe fn`, whose caller vouches for the block and the room for its panels; the
                // processor has the instructions.
                unsafe {
                    gemm_common::pack_operands::pack_lhs::<$ty, LANES, ROWS, _>(
                        simd, lines, length, to, from, step, line, panel,
                    )
                }
            },
            pack_right: |lines, length, to, from, step, line, panel| {
                let simd = simd().expect("the processor has it, or it would not have these loops");
                // SAFETY: the pointer is an `unsafe fn`, whose caller vouches for the block and the room for its panels; the
                // processor has the instructions.
                unsafe {
                    gemm_common::pack_operands::pack_rhs::<$ty, 1, COLUMNS, _>(
                        simd, lines, length, to, from, step, line, panel,
                    )
                }
            },
        })
    }};
}

#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($($ty:ty, $whole:path, $wide:path, $narrow:path, $unpacked:path, $narrow_unpacked:path, $lanes:literal;)*) => {$(
        impl Blocked for $ty {
            fn whole() -> Whole<$ty> {
                $whole()
            }

            fn all_kernels() -> &'static [Kernels<$ty>] {
                static ALL: LazyLock<Vec<Kernels<$ty>>> = LazyLock::new(|| {
                    use gemm_common::simd::{MixedSimd, V3, V4};
                    let all = [
                        of!($ty, V4, $wide, $unpacked, $lanes),
                        of!($ty, V3, $narrow, $narrow_unpacked, $lanes / 2),
                    ];
                    all.into_iter().flatten().collect()
                });
                &ALL
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
kernels! {
    f32, gemm_f32::gemm::f32::get_gemm_fn, gemm_f32::microkernel::avx512f::f32, gemm_f32::microkernel::fma::f32,
        unpacked::f32_avx512, unpacked::f32_avx2, 16;
    f64, gemm_f64::gemm::f64::get_gemm_fn, gemm_f64::microkernel::avx512f::f64, gemm_f64::microkernel::fma::f64,
        unpacked::f64_avx512, unpacked::f64_avx2, 8;
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! without_kernels {
    ($($ty:ty, $whole:path;)*) => {$(
        impl Blocked for $ty {
            fn whole() -> Whole<$ty> {
                $whole()
            }

            fn all_kernels() -> &'static [Kernels<$ty>] {
                &[]
            }
        }
    )*};
}

#[cfg(not(target_arch = "x86_64"))]
without_kernels! {
    f32, gemm_f32::gemm::f32::get_gemm_fn;
    f64, gemm_f64::gemm::f64::get_gemm_fn;
}
