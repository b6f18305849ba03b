//! Innermost loops whose left operand stays where it lies: rows that are neighbours, at a place of its own for each step.
//!
//! In: the places of the steps, and a panel of the right operand. Out: the sums of some rows and columns, or the old ones and
//! those. Rows are read by whole registers, also behind the last one.

use super::product::MatrixMut;

/// Writes the sums of so many rows and columns over all steps, or adds them to `out`, whose rows are neighbours: of the rows from
/// each step's place after `left` on, and the columns of the panel `right`.
///
/// # Safety
/// The processor has the instructions. A register's rows are valid for reads from each place on, and the panel has all columns for
/// each step; the sums are valid for writes, and for reads if they are added to.
pub(in crate::cpu) type Unpacked<T> = unsafe fn(
    sizes: [usize; 2],
    steps: &[usize],
    left: *const T,
    right: *const T,
    adds: bool,
    out: MatrixMut<T>,
);

#[cfg(target_arch = "x86_64")]
/// A module with the loop of a type for an instruction set: lanes of a register, registers of rows, columns of a panel, and
/// the numbers of columns for which it is compiled.
macro_rules! unpacked {
    (
        $name:ident: $ty:ty, $features:literal, $register:ident of $lanes:literal, $rows:literal by $all:literal [$($some:literal)*];
        $zero:ident $load:ident $repeat:ident $fused:ident $add:ident $store:ident
    ) => {
        pub(super) mod $name {
            use std::arch::x86_64 as x86;

            use super::MatrixMut;

            pub(in crate::cpu::linalg) const ROWS: usize = $rows * $lanes;
            pub(in crate::cpu::linalg) const COLUMNS: usize = $all;

            /// # Safety
            /// As [`Unpacked`](super::Unpacked).
            pub(in crate::cpu::linalg) unsafe fn multiply(
                sizes: [usize; 2],
                steps: &[usize],
                left: *const $ty,
                right: *const $ty,
                adds: bool,
                out: MatrixMut<$ty>,
            ) {
                // SAFETY: the caller's promise.
                unsafe {
                    match sizes[1] {
                        $(columns if columns <= $some => sum::<$some>(sizes, steps, left, right, adds, out),)*
                        _ => sum::<$all>(sizes, steps, left, right, adds, out),
                    }
                }
            }

            /// # Safety
            /// As [`multiply`], of at most `C` columns.
            #[target_feature(enable = $features)]
            unsafe fn sum<const C: usize>(
                [rows, columns]: [usize; 2],
                steps: &[usize],
                left: *const $ty,
                right: *const $ty,
                adds: bool,
                out: MatrixMut<$ty>,
            ) {
                let mut sums = [[x86::$zero(); $rows]; C];
                // SAFETY: the caller's promise.
                unsafe {
                    for (step, place) in steps.iter().enumerate() {
                        let (left, right) = (left.add(*place), right.add(step * $all));
                        let mut registers = [x86::$zero(); $rows];
                        for (number, register) in registers.iter_mut().enumerate() {
                            *register = x86::$load(left.add(number * $lanes));
                        }
                        for (column, sums) in sums.iter_mut().enumerate() {
                            let factor = x86::$repeat(*right.add(column));
                            for (sum, register) in sums.iter_mut().zip(registers) {
                                *sum = x86::$fused(register, factor, *sum);
                            }
                        }
                    }
                    for (column, sums) in sums.iter_mut().enumerate().take(columns) {
                        let target = out.at(0, column).data;
                        if rows == ROWS {
                            for (number, sum) in sums.iter().enumerate() {
                                let target = target.add(number * $lanes);
                                let old = if adds { x86::$load(target) } else { x86::$zero() };
                                x86::$store(target, x86::$add(old, *sum));
                            }
                            continue;
                        }
                        let mut tile = [0.0; ROWS];
                        for (number, sum) in sums.iter().enumerate() {
                            x86::$store(tile.as_mut_ptr().add(number * $lanes), *sum);
                        }
                        for (row, sum) in tile.iter().enumerate().take(rows) {
                            let old = if adds { *target.add(row) } else { 0.0 };
                            target.add(row).write(old + sum);
                        }
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
unpacked! {
    f32_avx512: f32, "avx512f", __m512 of 16, 4 by 6 [1 2 4];
    _mm512_setzero_ps _mm512_loadu_ps _mm512_set1_ps _mm512_fmadd_ps _mm512_add_ps _mm512_storeu_ps
}
#[cfg(target_arch = "x86_64")]
unpacked! {
    f64_avx512: f64, "avx512f", __m512d of 8, 4 by 6 [1 2 4];
    _mm512_setzero_pd _mm512_loadu_pd _mm512_set1_pd _mm512_fmadd_pd _mm512_add_pd _mm512_storeu_pd
}
#[cfg(target_arch = "x86_64")]
unpacked! {
    f32_avx2: f32, "avx2,fma", __m256 of 8, 2 by 6 [1 2 4];
    _mm256_setzero_ps _mm256_loadu_ps _mm256_set1_ps _mm256_fmadd_ps _mm256_add_ps _mm256_storeu_ps
}
#[cfg(target_arch = "x86_64")]
unpacked! {
    f64_avx2: f64, "avx2,fma", __m256d of 4, 2 by 6 [1 2 4];
    _mm256_setzero_pd _mm256_loadu_pd _mm256_set1_pd _mm256_fmadd_pd _mm256_add_pd _mm256_storeu_pd
}
