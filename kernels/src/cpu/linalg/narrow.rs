//! Narrow products of complex matrices: of vectors, and sums of at most two products.
//!
//! In: matrices with any strides. Out: `keep * out + scale * left * right`. The loops are those that the `gemm` crates have
//! for such products, in the widest instructions of the processor. Their crates for complex numbers are not used: compiling
//! their innermost loops, which [`by_reals`](super::by_reals) replaces, takes longer than all of ours.

use gemm_common::gemv::{mixed_gemv_colmajor, mixed_gemv_rowmajor};
use gemm_common::gevv::gevv;
use gemm_common::simd::{MixedSimd, Scalar};
use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Complex32, Complex64};

use super::blocked::NarrowLoop;
use super::product::{Matrix, MatrixMut};

/// Complex types, whose narrow products need no memory.
pub(super) trait Narrow: Sized {
    /// Writes the product of matrices that are [`oriented`](super::blocked::oriented), by the loop that [`NarrowLoop::of`]
    /// gives for them.
    ///
    /// # Safety
    /// As [`blocked::multiply`](super::blocked::multiply).
    unsafe fn narrow(
        narrow: NarrowLoop,
        left: Matrix<Self>,
        right: Matrix<Self>,
        keep: Option<Self>,
        scale: Self,
        out: MatrixMut<Self>,
    );
}

macro_rules! narrow {
    ($($ty:ident in $module:ident;)*) => {$(
        impl Narrow for $ty {
            unsafe fn narrow(
                narrow: NarrowLoop,
                left: Matrix<$ty>,
                right: Matrix<$ty>,
                keep: Option<$ty>,
                scale: $ty,
                out: MatrixMut<$ty>,
            ) {
                // SAFETY: the caller's promise.
                unsafe {
                    #[cfg(target_arch = "x86_64")]
                    {
                        use gemm_common::simd::{V3, V4};
                        if let Some(simd) = <V4 as MixedSimd<$ty, $ty, $ty, $ty>>::try_new() {
                            return $module::product(simd, narrow, left, right, keep, scale, out);
                        }
                        if let Some(simd) = <V3 as MixedSimd<$ty, $ty, $ty, $ty>>::try_new() {
                            return $module::product(simd, narrow, left, right, keep, scale, out);
                        }
                    }
                    $module::product(Scalar, narrow, left, right, keep, scale, out);
                }
            }
        }

        mod $module {
            use super::*;

            /// # Safety
            /// As [`Narrow::narrow`].
            pub(super) unsafe fn product<S: MixedSimd<$ty, $ty, $ty, $ty>>(
                simd: S,
                narrow: NarrowLoop,
                left: Matrix<$ty>,
                right: Matrix<$ty>,
                keep: Option<$ty>,
                scale: $ty,
                out: MatrixMut<$ty>,
            ) {
                let (m, n, k) = (left.rows, right.columns, left.columns);
                let (keep, to) = (keep.unwrap_or($ty::ZERO), out.data);
                if k == 0 && keep.equal($ty::ONE) {
                    return;
                }
                let [rows, columns] = [out.row_stride as isize, out.column_stride as isize];
                let (a, a_rows, a_columns) = (left.data, left.row_stride as isize, left.column_stride as isize);
                let (b, b_rows, b_columns) = (right.data, right.row_stride as isize, right.column_stride as isize);
                // SAFETY: the caller's promise.
                unsafe {
                    match narrow {
                        NarrowLoop::Empty => {}
                        NarrowLoop::Outer => {
                            let add = |x: $ty, y: $ty, sum: $ty| x * y + sum;
                            gevv(
                                simd, m, n, k, to, columns, rows, a, a_columns, a_rows, b, b_columns, b_rows, keep, scale, add,
                            );
                        }
                        NarrowLoop::Columns => mixed_gemv_colmajor(
                            simd, m, n, k, to, columns, rows, a, a_columns, a_rows, b, b_columns, b_rows, keep, scale,
                        ),
                        NarrowLoop::Rows => mixed_gemv_rowmajor(
                            simd, m, n, k, to, columns, rows, a, a_columns, a_rows, b, b_columns, b_rows, keep, scale,
                        ),
                        NarrowLoop::RowOfRows => mixed_gemv_colmajor(
                            simd, n, m, k, to, rows, columns, b, b_rows, b_columns, a, a_rows, a_columns, keep, scale,
                        ),
                        NarrowLoop::RowOfColumns => mixed_gemv_rowmajor(
                            simd, n, m, k, to, rows, columns, b, b_rows, b_columns, a, a_rows, a_columns, keep, scale,
                        ),
                    }
                }
            }
        }
    )*};
}

narrow! {
    Complex32 in single;
    Complex64 in double;
}
