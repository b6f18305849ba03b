//! Orthogonal factors, eigenvalues and singular values: `reflections.cuh`, `eigen.cuh`, `singular.cuh`.

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DType, DeviceView, DeviceViewMut, Result};

use super::stack::{Kernel, Launch, Memory, Part, Refused};
use crate::cpu::factor::{expect_square, has_columns, is_upper, not_converged, not_finite};
use crate::device::REFLECTIONS;

static ORTHOGONAL: DeviceProgram = DeviceProgram::new("reflections.cuh", REFLECTIONS, "");
static EIGEN: DeviceProgram =
    DeviceProgram::new("eigen.cuh", REFLECTIONS, include_str!("../../../cuda/eigen.cuh"));
static SINGULAR: DeviceProgram =
    DeviceProgram::new("singular.cuh", REFLECTIONS, include_str!("../../../cuda/singular.cuh"));

/// The rows and columns of an operand's matrices, 0 if it has none.
fn sides(sizes: &[i64]) -> [u64; 2] {
    match *sizes {
        [.., rows, columns] => [rows as u64, columns as u64],
        _ => [0; 2],
    }
}

/// The factors of `A = Q R`: `Q` with orthonormal columns, `R` upper triangular. In the mode `reduced` `Q` has as many columns
/// as the smaller side of `A`, in `complete` it is square, in `r` there is none.
///
/// # Errors
/// If there are less than two dimensions, the mode is another, or errors of the device.
pub fn qr(a: DeviceView<'_>, mode: &str, q: DeviceViewMut<'_>, r: DeviceViewMut<'_>) -> Result<()> {
    let dtype = a.dtype();
    let with_q = has_columns(mode)?;
    let [rows, columns] = sides(a.sizes());
    let memory = Memory::default()
        .with(dtype, rows * columns)
        .with(dtype, rows.min(columns))
        .with(dtype, if with_q { rows * sides(q.sizes())[1] } else { 0 });
    // Without columns, the place of `Q` is not read; the stack is that of all operands.
    let first = if with_q { Part::of(&q) } else { Part::of(&r) };
    let launch = Launch {
        kernel: Kernel { program: &ORTHOGONAL, number: 0, function: "orthogonal" },
        dtype,
        device: r.device(),
        parts: &[first, Part::of(&r), Part::matrices(&a)],
        options: &[with_q],
        memory,
        may_refuse: false,
    };
    // SAFETY: the sizes are those of the operator's shapes; the memory has the kernel's parts, in its order.
    unsafe { launch.run()? };
    Ok(())
}

/// The eigenvalues in ascending order, and with `compute_v` the eigenvectors as columns, of each matrix, of which the lower
/// (`uplo` is `L`) or upper (`U`) triangle is read. The largest element of an eigenvector is positive. A matrix that is not
/// finite gives NaN.
///
/// # Errors
/// If the matrices are not square, `uplo` is another, the algorithm does not converge, or errors of the device.
pub fn eigh(
    a: DeviceView<'_>,
    uplo: &str,
    compute_v: bool,
    eigenvalues: DeviceViewMut<'_>,
    eigenvectors: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = a.dtype();
    expect_square(a.sizes())?;
    let upper = is_upper(uplo)?;
    let n = sides(a.sizes())[0];
    if n == 0 {
        return Ok(());
    }
    let mut memory = Memory::default().with(dtype, n * n).with(dtype, n * n).with(dtype, n).with(dtype, n);
    for _ in 0..4 {
        memory = memory.with(dtype.to_real(), n);
    }
    memory = memory.with(DType::U32, n).with(dtype, if compute_v { n * n } else { 0 });
    let values = Part::rows_of(&eigenvalues);
    // Without vectors, their place is not read.
    let vectors = if compute_v { Part::of(&eigenvectors) } else { Part::rows_of(&eigenvalues) };
    let launch = Launch {
        kernel: Kernel { program: &EIGEN, number: 0, function: "eigen" },
        dtype,
        device: eigenvalues.device(),
        parts: &[values, vectors, Part::matrices(&a)],
        options: &[upper, compute_v],
        memory,
        may_refuse: true,
    };
    // SAFETY: the sizes are those of the operator's shapes; the memory has the kernel's parts, in its order.
    match unsafe { launch.run()? } {
        Some(_) => Err(not_converged()),
        None => Ok(()),
    }
}

/// The factors of `A = U diag(S) Vh`: `U` and the adjoint of `Vh` with orthonormal columns, `S` in descending order. `U`
/// has as many columns as its result, `Vh` as many rows; without `compute_uv` there are only singular values.
///
/// # Errors
/// If there are less than two dimensions, an element is infinite or NaN, or errors of the device.
pub fn svd(
    a: DeviceView<'_>,
    compute_uv: bool,
    u: DeviceViewMut<'_>,
    s: DeviceViewMut<'_>,
    vh: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = a.dtype();
    let [rows, columns] = sides(a.sizes());
    let (m, n) = (rows.max(columns), rows.min(columns));
    let mut memory =
        Memory::default().with(dtype, m * n).with(dtype, n).with(dtype, n * n).with(dtype, n * n);
    memory = memory.with(dtype.to_real(), n).with(dtype.to_real(), n).with(DType::U32, n);
    if compute_uv {
        let left = if rows < columns { sides(vh.sizes())[0] } else { sides(u.sizes())[1] };
        memory = memory.with(dtype, n * n).with(dtype, m * left).with(dtype, n);
    }
    let values = || Part::rows_of(&s);
    // Without vectors, their places are not read.
    let (left, right) = if compute_uv { (Part::of(&u), Part::of(&vh)) } else { (values(), values()) };
    let launch = Launch {
        kernel: Kernel { program: &SINGULAR, number: 0, function: "singular" },
        dtype,
        device: s.device(),
        parts: &[left, values(), right, Part::matrices(&a)],
        options: &[compute_uv],
        memory,
        may_refuse: true,
    };
    // SAFETY: the sizes are those of the operator's shapes; the memory has the kernel's parts, in its order.
    match unsafe { launch.run()? } {
        Some(Refused { number, .. }) => Err(not_finite(number)),
        None => Ok(()),
    }
}
