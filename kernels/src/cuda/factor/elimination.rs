//! Factors by elimination, and the systems, inverses and determinants that they solve: `factor.cuh`.

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DType, DeviceView, DeviceViewMut, Result};

use super::stack::{Kernel, Launch, Memory, Part, Refused};
use crate::cpu::factor::{expect_square, not_positive, not_regular};
use crate::cpu::{expect_operand, expect_sizes};
use crate::device::MATRICES;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("factor.cuh", MATRICES, include_str!("../../../cuda/factor.cuh"));

const fn kernel(number: u32, function: &'static str) -> Kernel {
    Kernel { program: &PROGRAM, number, function }
}

/// The rows and columns of an operand's matrices.
fn sides(sizes: &[i64]) -> [i64; 2] {
    match *sizes {
        [.., rows, columns] => [rows, columns],
        _ => [0; 2],
    }
}

/// The working memory of a factored copy of a square matrix.
fn of_copy(dtype: DType, sizes: &[i64]) -> Memory {
    let n = sides(sizes)[0] as u64;
    Memory::default().with(dtype, n * n).with(DType::I32, n)
}

/// The solution `X` of `A X = B`, or of `X A = B` unless `left`, with a triangle of each matrix `A`, whose diagonal is taken
/// for ones if `unitriangular`. Stacks broadcast to that of the result.
///
/// # Errors
/// If the matrices `A` are not square, sizes do not fit, or errors of the device.
pub fn solve_triangular(
    self_: DeviceView<'_>,
    b: DeviceView<'_>,
    upper: bool,
    left: bool,
    unitriangular: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = self_.dtype();
    expect_square(self_.sizes())?;
    expect_system(self_.sizes(), b.sizes(), out.sizes(), left)?;
    let launch = Launch {
        kernel: kernel(0, "solve_triangular"),
        dtype,
        device: out.device(),
        parts: &[Part::of(&out), Part::matrices(&self_), Part::matrices(&b)],
        options: &[upper, left, unitriangular],
        memory: Memory::default(),
        may_refuse: false,
    };
    // SAFETY: the sizes were checked, and the kernel takes no memory.
    unsafe { launch.run()? };
    Ok(())
}

/// Refuses a system whose sides differ.
fn expect_system(matrix: &[i64], right: &[i64], out: &[i64], left: bool) -> Result<()> {
    let ([n, _], [rows, columns], [out_rows, out_columns]) = (sides(matrix), sides(right), sides(out));
    expect_operand("B", &[rows, columns], &[out_rows, out_columns])?;
    expect_operand("the matrix", &[n], &[if left { out_rows } else { out_columns }])
}

/// The lower triangular `L` of `A = L Lᴴ`; with `upper`, `Lᴴ` from the upper triangle. `info` is 0, or the order of the first
/// leading minor that is not positive, where `L` is not a factor.
///
/// # Errors
/// If the matrices are not square; with `check_errors`, if one is not positive-definite; errors of the device.
pub fn cholesky_ex(
    self_: DeviceView<'_>,
    upper: bool,
    check_errors: bool,
    factor: DeviceViewMut<'_>,
    info: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = self_.dtype();
    expect_square(self_.sizes())?;
    expect_sizes(factor.sizes(), self_.sizes())?;
    let launch = Launch {
        kernel: kernel(1, "cholesky"),
        dtype,
        device: factor.device(),
        parts: &[Part::of(&factor), Part::elements_of(&info), Part::matrices(&self_)],
        options: &[upper, check_errors],
        memory: Memory::default(),
        may_refuse: check_errors,
    };
    // SAFETY: the sizes were checked, and the kernel takes no memory.
    match unsafe { launch.run()? } {
        Some(Refused { number, place }) => Err(not_positive(number, place)),
        None => Ok(()),
    }
}

/// The factors of `P A = L U` in one matrix; `pivots` has the row, counted from 1, that each row was exchanged with, `info`
/// the first zero on the diagonal of `U`, counted from 1, or 0.
///
/// # Errors
/// With `check_errors`, if a diagonal has a zero; errors of the device.
pub fn lu_factor_ex(
    a: DeviceView<'_>,
    pivot: bool,
    check_errors: bool,
    lu: DeviceViewMut<'_>,
    pivots: DeviceViewMut<'_>,
    info: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = a.dtype();
    expect_sizes(lu.sizes(), a.sizes())?;
    let launch = Launch {
        kernel: kernel(2, "lu_factor"),
        dtype,
        device: lu.device(),
        parts: &[Part::of(&lu), Part::rows_of(&pivots), Part::elements_of(&info), Part::matrices(&a)],
        options: &[pivot, check_errors],
        memory: Memory::default(),
        may_refuse: check_errors,
    };
    // SAFETY: the sizes are those of the operator's shapes, and the kernel takes no memory.
    regular(unsafe { launch.run()? })
}

fn regular(refused: Option<Refused>) -> Result<()> {
    refused.map_or(Ok(()), |Refused { number, place }| Err(not_regular(number, place)))
}

/// The solution `X` of `A X = B`, or of `X A = B` unless `left`, with the factors of `A`; of the adjoint of `A` if `adjoint`.
/// Stacks broadcast to that of the result.
///
/// # Errors
/// If the factors are not square, sizes do not fit, or errors of the device, which reports a pivot that is no row.
pub fn lu_solve(
    lu: DeviceView<'_>,
    pivots: DeviceView<'_>,
    b: DeviceView<'_>,
    left: bool,
    adjoint: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = lu.dtype();
    expect_square(lu.sizes())?;
    expect_system(lu.sizes(), b.sizes(), out.sizes(), left)?;
    expect_operand(
        "pivots",
        &pivots.sizes()[pivots.sizes().len().saturating_sub(1)..],
        &sides(lu.sizes())[..1],
    )?;
    let launch = Launch {
        kernel: kernel(3, "lu_solve"),
        dtype,
        device: out.device(),
        parts: &[Part::of(&out), Part::matrices(&lu), Part::rows(&pivots), Part::matrices(&b)],
        options: &[left, adjoint],
        memory: Memory::default(),
        may_refuse: false,
    };
    // SAFETY: the sizes were checked, and the kernel takes no memory.
    unsafe { launch.run()? };
    Ok(())
}

/// The inverse of each matrix; `info` as in [`lu_factor_ex`].
///
/// # Errors
/// If the matrices are not square; with `check_errors`, if one has no inverse; errors of the device.
pub fn inv_ex(
    a: DeviceView<'_>,
    check_errors: bool,
    inverse: DeviceViewMut<'_>,
    info: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = a.dtype();
    expect_square(a.sizes())?;
    expect_sizes(inverse.sizes(), a.sizes())?;
    let launch = Launch {
        kernel: kernel(4, "inverse"),
        dtype,
        device: inverse.device(),
        parts: &[Part::of(&inverse), Part::elements_of(&info), Part::matrices(&a)],
        options: &[check_errors],
        memory: of_copy(a.dtype(), a.sizes()),
        may_refuse: check_errors,
    };
    // SAFETY: the sizes were checked; the memory is that of a factored copy.
    regular(unsafe { launch.run()? })
}

/// The determinant of each matrix, and the factors of [`lu_factor_ex`].
///
/// # Errors
/// If the matrices are not square, or errors of the device.
pub fn det(
    a: DeviceView<'_>,
    result: DeviceViewMut<'_>,
    lu: DeviceViewMut<'_>,
    pivots: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = a.dtype();
    expect_square(a.sizes())?;
    expect_sizes(lu.sizes(), a.sizes())?;
    let launch = Launch {
        kernel: kernel(5, "determinant"),
        dtype,
        device: lu.device(),
        parts: &[Part::elements_of(&result), Part::of(&lu), Part::rows_of(&pivots), Part::matrices(&a)],
        options: &[],
        memory: Memory::default(),
        may_refuse: false,
    };
    // SAFETY: the sizes were checked, and the kernel takes no memory.
    unsafe { launch.run()? };
    Ok(())
}

/// The sign of the determinant of each matrix (for complex numbers one of size 1; 0 for 0), the logarithm of its size, and
/// the factors of [`lu_factor_ex`].
///
/// # Errors
/// If the matrices are not square, or errors of the device.
pub fn slogdet(
    a: DeviceView<'_>,
    sign: DeviceViewMut<'_>,
    logabsdet: DeviceViewMut<'_>,
    lu: DeviceViewMut<'_>,
    pivots: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = a.dtype();
    expect_square(a.sizes())?;
    expect_sizes(lu.sizes(), a.sizes())?;
    let launch = Launch {
        kernel: kernel(6, "log_determinant"),
        dtype,
        device: lu.device(),
        parts: &[
            Part::elements_of(&sign),
            Part::elements_of(&logabsdet),
            Part::of(&lu),
            Part::rows_of(&pivots),
            Part::matrices(&a),
        ],
        options: &[],
        memory: Memory::default(),
        may_refuse: false,
    };
    // SAFETY: the sizes were checked, and the kernel takes no memory.
    unsafe { launch.run()? };
    Ok(())
}

/// The matrix of cofactors of each matrix, the derivatives of its determinant by its elements. Zeros on the diagonal of `U`
/// are replaced by a small number.
///
/// # Errors
/// If the matrices are not square, or errors of the device.
pub fn cofactors(a: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = a.dtype();
    expect_square(a.sizes())?;
    expect_sizes(out.sizes(), a.sizes())?;
    let launch = Launch {
        kernel: kernel(7, "cofactors"),
        dtype,
        device: out.device(),
        parts: &[Part::of(&out), Part::matrices(&a)],
        options: &[],
        memory: of_copy(a.dtype(), a.sizes()),
        may_refuse: false,
    };
    // SAFETY: the sizes were checked; the memory is that of a factored copy.
    unsafe { launch.run()? };
    Ok(())
}
