//! Products of matrices and vectors: the twin of [`cpu::linalg`](crate::cpu::linalg).
//!
//! Operands may have any strides. 16-bit floats are summed in `f32` and rounded once.

use std::ffi::c_void;

use opsmith_runtime::device_loop::DeviceProgram;
use opsmith_runtime::{Device, DeviceView, DeviceViewMut, Element, Error, Result, Scalar};

use super::product::{Functor, Product, ProductShape};
use crate::cpu::broadcast_strides;
use crate::cpu::linalg::sizes_differ;
use crate::device::PRODUCT;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("linalg.cuh", PRODUCT, include_str!("../../cuda/linalg.cuh"));

/// Field by field as in `linalg.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Scaled<C> {
    out: *const c_void,
    bias: *const c_void,
    out_strides: [i64; 3],
    bias_strides: [i64; 3],
    keep: C,
    scale: C,
}

/// Field by field as in `linalg.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Matrices<C> {
    shape: ProductShape<C>,
    left: *const c_void,
    right: *const c_void,
    left_strides: [i64; 3],
    right_strides: [i64; 3],
    result: Scaled<C>,
}

impl<C: Element> Product for Matrices<C> {
    type Sum = C;

    fn shape(&mut self) -> &mut ProductShape<C> {
        &mut self.shape
    }
}

/// An operand as a stack of matrices: address, sizes and strides.
#[derive(Clone, Copy)]
struct Stack {
    start: *const c_void,
    sizes: [i64; 3],
    strides: [i64; 3],
}

impl Stack {
    /// The sizes and strides of the last three dimensions; missing ones have size 1.
    fn new(start: *const c_void, sizes: &[i64], strides: &[i64]) -> Stack {
        let mut stack = Stack { start, sizes: [1; 3], strides: [0; 3] };
        let missing = 3 - sizes.len().min(3);
        for (dim, (&size, &stride)) in sizes.iter().zip(strides).take(3).enumerate() {
            (stack.sizes[missing + dim], stack.strides[missing + dim]) = (size, stride);
        }
        stack
    }

    fn of<T: Element>(view: &DeviceView<'_, T>) -> Stack {
        Stack::new(view.address().cast(), view.sizes(), view.strides())
    }

    fn of_mut<T: Element>(view: &DeviceViewMut<'_, T>) -> Stack {
        Stack::new(view.address().cast_const().cast(), view.sizes(), view.strides())
    }

    /// A vector as a matrix of one column.
    fn as_column(self) -> Stack {
        let [_, rest, size] = self.sizes;
        Stack { sizes: [1, size, rest], strides: [0, self.strides[2], 0], ..self }
    }
}

/// What becomes of a product: `keep * bias + scale * product`.
struct Sum<C> {
    bias: Option<(Stack, C)>,
    scale: C,
}

impl<C: Element> Sum<C> {
    fn plain() -> Sum<C> {
        Sum { bias: None, scale: C::from_scalar(Scalar::Int(1)) }
    }

    /// With the bias broadcast to the sizes of the result; it is not read if `beta` is 0.
    fn with_bias<T: Element<Compute = C>>(
        bias: &DeviceView<'_, T>,
        sizes: &[i64],
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<Sum<C>> {
        let (beta, scale) = (C::from_scalar(beta), C::from_scalar(alpha));
        let strides = broadcast_strides(bias.sizes(), bias.strides(), sizes)?;
        let is_read = beta != C::from_scalar(Scalar::Int(0));
        let bias = is_read.then(|| (Stack::new(bias.address().cast(), sizes, &strides), beta));
        Ok(Sum { bias, scale })
    }
}

/// The product of two matrices: `(m, k)` times `(k, n)` gives `(m, n)`.
///
/// # Errors
/// If the inner sizes differ, or errors of the device.
pub fn mm<T: Element>(
    self_: DeviceView<'_, T>,
    mat2: DeviceView<'_, T>,
    out: DeviceViewMut<'_, T>,
) -> Result<()> {
    products(&self_, &mat2, &Sum::plain(), &out)
}

/// The products of two stacks of matrices: `(b, m, k)` times `(b, k, n)` gives `(b, m, n)`.
///
/// # Errors
/// If the stacks' heights or the inner sizes differ, or errors of the device.
pub fn bmm<T: Element>(
    self_: DeviceView<'_, T>,
    mat2: DeviceView<'_, T>,
    out: DeviceViewMut<'_, T>,
) -> Result<()> {
    products(&self_, &mat2, &Sum::plain(), &out)
}

/// `beta * self + alpha * (mat1 · mat2)`; `self` broadcasts to the product's shape, and is not read if `beta` is 0.
///
/// # Errors
/// If the inner sizes differ or `self` does not broadcast, or errors of the device.
pub fn addmm<T: Element>(
    self_: DeviceView<'_, T>,
    mat1: DeviceView<'_, T>,
    mat2: DeviceView<'_, T>,
    beta: Scalar,
    alpha: Scalar,
    out: DeviceViewMut<'_, T>,
) -> Result<()> {
    products(&mat1, &mat2, &Sum::with_bias(&self_, out.sizes(), beta, alpha)?, &out)
}

/// [`addmm`] for stacks of matrices.
///
/// # Errors
/// As [`addmm`], or if the stacks' heights differ.
pub fn baddbmm<T: Element>(
    self_: DeviceView<'_, T>,
    batch1: DeviceView<'_, T>,
    batch2: DeviceView<'_, T>,
    beta: Scalar,
    alpha: Scalar,
    out: DeviceViewMut<'_, T>,
) -> Result<()> {
    products(&batch1, &batch2, &Sum::with_bias(&self_, out.sizes(), beta, alpha)?, &out)
}

/// The product of a matrix and a vector: `(m, n)` times `(n)` gives `(m)`.
///
/// # Errors
/// If the sizes differ, or errors of the device.
pub fn mv<T: Element>(
    self_: DeviceView<'_, T>,
    vec: DeviceView<'_, T>,
    out: DeviceViewMut<'_, T>,
) -> Result<()> {
    matrix_times_vector(&self_, &vec, Sum::plain(), &out)
}

/// [`addmm`] for a matrix and a vector: `beta * self + alpha * (mat · vec)`.
///
/// # Errors
/// If the sizes differ or `self` does not broadcast, or errors of the device.
pub fn addmv<T: Element>(
    self_: DeviceView<'_, T>,
    mat: DeviceView<'_, T>,
    vec: DeviceView<'_, T>,
    beta: Scalar,
    alpha: Scalar,
    out: DeviceViewMut<'_, T>,
) -> Result<()> {
    let mut sum = Sum::with_bias(&self_, out.sizes(), beta, alpha)?;
    sum.bias = sum.bias.map(|(bias, keep)| (bias.as_column(), keep));
    matrix_times_vector(&mat, &vec, sum, &out)
}

/// The sum of products of two vectors' elements: `dot([1, 2], [3, 4])` is 11.
///
/// # Errors
/// If the lengths differ, or errors of the device.
pub fn dot<T: Element>(
    self_: DeviceView<'_, T>,
    tensor: DeviceView<'_, T>,
    out: DeviceViewMut<'_, T>,
) -> Result<()> {
    sum_of_products(&self_, &tensor, false, &out)
}

/// [`dot`] with the complex conjugates of the first vector's elements.
///
/// # Errors
/// As [`dot`].
pub fn vdot<T: Element>(
    self_: DeviceView<'_, T>,
    other: DeviceView<'_, T>,
    out: DeviceViewMut<'_, T>,
) -> Result<()> {
    sum_of_products(&self_, &other, T::DTYPE.is_complex(), &out)
}

/// A matrix in memory of a device.
#[derive(Clone, Copy)]
pub(super) struct Plane<T> {
    pub start: *const T,
    pub sizes: [i64; 2],
    pub strides: [i64; 2],
}

impl<T> Plane<T> {
    /// Elements in row-major order.
    pub fn dense(start: *const T, sizes: [i64; 2]) -> Plane<T> {
        Plane { start, sizes, strides: [sizes[1], 1] }
    }

    fn stack(&self) -> Stack {
        Stack::new(self.start.cast(), &self.sizes, &self.strides)
    }
}

/// The product of two matrices, and another one added to it.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// The sizes go together; all elements are in memory of the device that is kept until the stream has passed this request, and
/// those of the result in none of the others.
pub(super) unsafe fn product<T: Element>(
    device: Device,
    [left, right]: [Plane<T>; 2],
    added: Option<Plane<T>>,
    out: Plane<T>,
) -> Result<()> {
    let mut sum = Sum::plain();
    sum.bias = added.map(|added| (added.stack(), sum.scale));
    let parameter = matrices::<T>(left.stack(), right.stack(), out.stack(), &sum);
    // SAFETY: the caller's promise.
    unsafe { functor::<T>(0, &name::<T>()).product(device, parameter) }
}

fn products<T: Element>(
    left: &DeviceView<'_, T>,
    right: &DeviceView<'_, T>,
    sum: &Sum<T::Compute>,
    out: &DeviceViewMut<'_, T>,
) -> Result<()> {
    let rank = left.sizes().len();
    let (a, b, c) = (Stack::of(left), Stack::of(right), Stack::of_mut(out));
    let fits = (2..=3).contains(&rank)
        && right.sizes().len() == rank
        && out.sizes().len() == rank
        && a.sizes[2] == b.sizes[1]
        && [a.sizes[0], a.sizes[1], b.sizes[2]] == c.sizes
        && a.sizes[0] == b.sizes[0];
    if !fits {
        return Err(sizes_differ(left.sizes(), right.sizes()));
    }
    let parameter = matrices::<T>(a, b, c, sum);
    // SAFETY: the sizes were checked, and the views vouch for their elements.
    unsafe { functor::<T>(0, &name::<T>()).product(out.device(), parameter) }
}

fn matrix_times_vector<T: Element>(
    matrix: &DeviceView<'_, T>,
    vector: &DeviceView<'_, T>,
    sum: Sum<T::Compute>,
    out: &DeviceViewMut<'_, T>,
) -> Result<()> {
    let a = Stack::of(matrix);
    if matrix.sizes().len() != 2 || vector.sizes() != &a.sizes[2..] || out.sizes() != &a.sizes[1..2] {
        return Err(sizes_differ(matrix.sizes(), vector.sizes()));
    }
    rows::<T>(a, Stack::of(vector).as_column(), Stack::of_mut(out).as_column(), &sum, false, out.device())
}

fn sum_of_products<T: Element>(
    left: &DeviceView<'_, T>,
    right: &DeviceView<'_, T>,
    conjugates: bool,
    out: &DeviceViewMut<'_, T>,
) -> Result<()> {
    if left.sizes().len() != 1 || left.sizes() != right.sizes() {
        return Err(sizes_differ(left.sizes(), right.sizes()));
    }
    if out.numel() != 1 {
        return Err(Error::shape("the sum of products is one number"));
    }
    let right = Stack::of(right).as_column();
    rows::<T>(Stack::of(left), right, Stack::of_mut(out), &Sum::plain(), conjugates, out.device())
}

/// Products of the rows of `a` and the only column of `b`.
fn rows<T: Element>(
    a: Stack,
    b: Stack,
    c: Stack,
    sum: &Sum<T::Compute>,
    conjugates: bool,
    device: Device,
) -> Result<()> {
    let is_row_major = a.sizes[1] == 1 || a.strides[2].abs() <= a.strides[1].abs();
    let parameter = matrices::<T>(a, b, c, sum);
    let name = format!("Matrices<opsmith::dtype::{}, {conjugates}>", T::DTYPE.ident());
    // SAFETY: the caller checked the sizes, and the views vouch for their elements.
    unsafe { functor::<T>(1 + u32::from(conjugates), &name).rows(device, parameter, is_row_major) }
}

fn matrices<T: Element>(a: Stack, b: Stack, c: Stack, sum: &Sum<T::Compute>) -> Matrices<T::Compute> {
    let [stacks, rows, inner] = a.sizes.map(|size| size as u64);
    let none = Stack::new(std::ptr::null(), &[], &[]);
    let (bias, keep) = sum.bias.unwrap_or((none, T::Compute::default()));
    Matrices {
        shape: ProductShape::new(stacks, rows, b.sizes[2] as u64, inner),
        left: a.start,
        right: b.start,
        left_strides: a.strides,
        right_strides: b.strides,
        result: Scaled {
            out: c.start,
            bias: bias.start,
            out_strides: c.strides,
            bias_strides: bias.strides,
            keep,
            scale: sum.scale,
        },
    }
}

fn name<T: Element>() -> String {
    format!("Matrices<opsmith::dtype::{}>", T::DTYPE.ident())
}

fn functor<T: Element>(number: u32, name: &str) -> Functor<'_> {
    Functor { program: &PROGRAM, number, dtype: T::DTYPE, name }
}
