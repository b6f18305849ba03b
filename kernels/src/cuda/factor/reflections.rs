//! Orthogonal factors, eigenvalues and singular values: `reflections.cuh`, `eigen.cuh`, `singular.cuh`.

use opsmith_runtime::device_loop::DeviceProgram;
use opsmith_runtime::{DeviceView, DeviceViewMut, Result};

use super::stack::{Kernel, Launch, Memory, Part, Refused};
use crate::cpu::factor::{Field, expect_square, has_columns, is_upper, not_converged, not_finite};
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
pub fn qr<T: Field>(
    a: DeviceView<'_, T>,
    mode: &str,
    q: DeviceViewMut<'_, T>,
    r: DeviceViewMut<'_, T>,
) -> Result<()> {
    let with_q = has_columns(mode)?;
    let [rows, columns] = sides(a.sizes());
    let memory = Memory::default()
        .with::<T>(rows * columns)
        .with::<T>(rows.min(columns))
        .with::<T>(if with_q { rows * sides(q.sizes())[1] } else { 0 });
    // Without columns, the place of `Q` is not read; the stack is that of all operands.
    let first = if with_q { Part::of(&q) } else { Part::of(&r) };
    let launch = Launch {
        kernel: Kernel { program: &ORTHOGONAL, number: 0, function: "orthogonal" },
        dtype: T::DTYPE,
        device: r.device(),
        parts: &[first, Part::of(&r), Part::matrices(&a)],
        options: &[with_q],
        memory,
        may_refuse: false,
    };
    // SAFETY: the sizes are those of the operator's shapes; the memory is what the kernel takes, in its order.
    unsafe { launch.run()? };
    Ok(())
}

/// The eigenvalues in ascending order, and with `compute_v` the eigenvectors as columns, of each matrix, of which the lower
/// (`uplo` is `L`) or upper (`U`) triangle is read. The largest element of an eigenvector is positive. A matrix that is not
/// finite gives NaN.
///
/// # Errors
/// If the matrices are not square, `uplo` is another, the algorithm does not converge, or errors of the device.
pub fn eigh<T: Field>(
    a: DeviceView<'_, T>,
    uplo: &str,
    compute_v: bool,
    eigenvalues: DeviceViewMut<'_, T::Real>,
    eigenvectors: DeviceViewMut<'_, T>,
) -> Result<()> {
    expect_square(a.sizes())?;
    let upper = is_upper(uplo)?;
    let n = sides(a.sizes())[0];
    if n == 0 {
        return Ok(());
    }
    let mut memory = Memory::default().with::<T>(n * n).with::<T>(n * n).with::<T>(n).with::<T>(n);
    for _ in 0..4 {
        memory = memory.with::<T::Real>(n);
    }
    memory = memory.with::<u32>(n).with::<T>(if compute_v { n * n } else { 0 });
    let values = Part::rows_of(&eigenvalues);
    // Without vectors, their place is not read.
    let vectors = if compute_v { Part::of(&eigenvectors) } else { Part::rows_of(&eigenvalues) };
    let launch = Launch {
        kernel: Kernel { program: &EIGEN, number: 0, function: "eigen" },
        dtype: T::DTYPE,
        device: eigenvalues.device(),
        parts: &[values, vectors, Part::matrices(&a)],
        options: &[upper, compute_v],
        memory,
        may_refuse: true,
    };
    // SAFETY: the sizes are those of the operator's shapes; the memory is what the kernel takes, in its order.
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
pub fn svd<T: Field>(
    a: DeviceView<'_, T>,
    compute_uv: bool,
    u: DeviceViewMut<'_, T>,
    s: DeviceViewMut<'_, T::Real>,
    vh: DeviceViewMut<'_, T>,
) -> Result<()> {
    let [rows, columns] = sides(a.sizes());
    let (m, n) = (rows.max(columns), rows.min(columns));
    let mut memory = Memory::default().with::<T>(m * n).with::<T>(n).with::<T>(n * n).with::<T>(n * n);
    memory = memory.with::<T::Real>(n).with::<T::Real>(n).with::<u32>(n);
    if compute_uv {
        let left = if rows < columns { sides(vh.sizes())[0] } else { sides(u.sizes())[1] };
        memory = memory.with::<T>(n * n).with::<T>(m * left).with::<T>(n);
    }
    let values = || Part::rows_of(&s);
    // Without vectors, their places are not read.
    let (left, right) = if compute_uv { (Part::of(&u), Part::of(&vh)) } else { (values(), values()) };
    let launch = Launch {
        kernel: Kernel { program: &SINGULAR, number: 0, function: "singular" },
        dtype: T::DTYPE,
        device: s.device(),
        parts: &[left, values(), right, Part::matrices(&a)],
        options: &[compute_uv],
        memory,
        may_refuse: true,
    };
    // SAFETY: the sizes are those of the operator's shapes; the memory is what the kernel takes, in its order.
    match unsafe { launch.run()? } {
        Some(Refused { number, .. }) => Err(not_finite(number)),
        None => Ok(()),
    }
}
