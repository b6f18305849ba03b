//! Products of matrices and vectors: the twin of [`cpu::linalg`](crate::cpu::linalg).
//!
//! Operands may have any strides. 16-bit floats are summed in `f32` and rounded once. A product is offered to the library of the
//! device's vendor first; the kernels of `linalg.cuh` compute those that it leaves.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{Activation, Elements, LibraryProduct, Work};
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Element, Error, Result, Scalar, with_dtype};

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
    activation: u64,
}

/// Field by field as in `linalg.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Matrices<C> {
    shape: ProductShape,
    left: *const c_void,
    right: *const c_void,
    left_strides: [i64; 3],
    right_strides: [i64; 3],
    result: Scaled<C>,
}

// SAFETY: the shape is the first field.
unsafe impl<C: Element> Product for Matrices<C> {}

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

    fn of(view: &DeviceView<'_>) -> Stack {
        Stack::new(view.address().cast(), view.sizes(), view.strides())
    }

    fn of_mut(view: &DeviceViewMut<'_>) -> Stack {
        Stack::new(view.address().cast_const().cast(), view.sizes(), view.strides())
    }

    fn elements(&self, dtype: DType) -> Elements<'_> {
        let start = self.start.cast_mut().cast();
        Elements { start, dtype, sizes: &self.sizes, strides: &self.strides }
    }

    /// A vector as a matrix of one column.
    fn as_column(self) -> Stack {
        let [_, rest, size] = self.sizes;
        Stack { sizes: [1, size, rest], strides: [0, self.strides[2], 0], ..self }
    }
}

/// The result made of a product: `activation(keep * bias + scale * product)`.
struct Sum {
    bias: Option<(Stack, Scalar)>,
    scale: Scalar,
    activation: Option<Activation>,
}

impl Sum {
    const PLAIN: Sum = Sum { bias: None, scale: Scalar::Int(1), activation: None };

    /// With the bias broadcast to the sizes of the result; it is not read if `beta` is 0.
    fn with_bias(bias: &DeviceView<'_>, sizes: &[i64], beta: Scalar, alpha: Scalar) -> Result<Sum> {
        let strides = broadcast_strides(bias.sizes(), bias.strides(), sizes)?;
        let is_read = with_dtype!(bias.dtype().to_compute(), C => C::from_scalar(beta) != C::from_scalar(Scalar::Int(0)));
        let bias = is_read.then(|| (Stack::new(bias.address().cast(), sizes, &strides), beta));
        Ok(Sum { bias, scale: alpha, activation: None })
    }
}

/// The product of two matrices: `(m, k)` times `(k, n)` gives `(m, n)`.
///
/// By the vendor's library (cuBLASLt) where it is found and takes dtype and layout, else by `product.cuh`.
///
/// # Errors
/// If the inner sizes differ, or errors of the device.
pub fn mm(self_: DeviceView<'_>, mat2: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    products(&self_, &mat2, &Sum::PLAIN, &out)
}

/// The products of two stacks of matrices: `(b, m, k)` times `(b, k, n)` gives `(b, m, n)`.
///
/// By the vendor's library (cuBLASLt) where it is found and takes dtype and layout, else by `product.cuh`.
///
/// # Errors
/// If the stacks' heights or the inner sizes differ, or errors of the device.
pub fn bmm(self_: DeviceView<'_>, mat2: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    products(&self_, &mat2, &Sum::PLAIN, &out)
}

/// `beta * self + alpha * (mat1 · mat2)`; `self` broadcasts to the product's shape, and is not read if `beta` is 0.
///
/// By the vendor's library (cuBLASLt) where it is found and takes dtype and layout, else by `product.cuh`.
///
/// # Errors
/// If the inner sizes differ or `self` does not broadcast, or errors of the device.
pub fn addmm(
    self_: DeviceView<'_>,
    mat1: DeviceView<'_>,
    mat2: DeviceView<'_>,
    beta: Scalar,
    alpha: Scalar,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    products(&mat1, &mat2, &Sum::with_bias(&self_, out.sizes(), beta, alpha)?, &out)
}

/// [`addmm`], then `relu` of each element, or `gelu` in its approximation by `tanh`.
///
/// By the vendor's library (cuBLASLt), in its epilogue, where it is found and takes dtype and layout, else by `product.cuh`.
///
/// # Errors
/// As [`addmm`].
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn addmm_activation(
    self_: DeviceView<'_>,
    mat1: DeviceView<'_>,
    mat2: DeviceView<'_>,
    beta: Scalar,
    alpha: Scalar,
    use_gelu: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let activation = Some(activation(use_gelu));
    let sum = Sum { activation, ..Sum::with_bias(&self_, out.sizes(), beta, alpha)? };
    products(&mat1, &mat2, &sum, &out)
}

fn activation(use_gelu: bool) -> Activation {
    if use_gelu { Activation::TanhGelu } else { Activation::Relu }
}

/// [`mm`], then `relu` of each element, or `gelu` in its approximation by `tanh`.
///
/// By the vendor's library (cuBLASLt), in its epilogue, where it is found and takes dtype and layout, else by `product.cuh`.
///
/// # Errors
/// As [`mm`].
pub fn mm_activation(
    self_: DeviceView<'_>,
    mat2: DeviceView<'_>,
    use_gelu: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let sum = Sum { activation: Some(activation(use_gelu)), ..Sum::PLAIN };
    products(&self_, &mat2, &sum, &out)
}

/// [`addmm`] for stacks of matrices.
///
/// By the vendor's library (cuBLASLt) where it is found and takes dtype and layout, else by `product.cuh`.
///
/// # Errors
/// As [`addmm`], or if the stacks' heights differ.
pub fn baddbmm(
    self_: DeviceView<'_>,
    batch1: DeviceView<'_>,
    batch2: DeviceView<'_>,
    beta: Scalar,
    alpha: Scalar,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    products(&batch1, &batch2, &Sum::with_bias(&self_, out.sizes(), beta, alpha)?, &out)
}

/// The product of a matrix and a vector: `(m, n)` times `(n)` gives `(m)`.
///
/// By the vendor's library (cuBLASLt) where it is found and takes dtype and layout, else by `product.cuh`.
///
/// # Errors
/// If the sizes differ, or errors of the device.
pub fn mv(self_: DeviceView<'_>, vec: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    matrix_times_vector(&self_, &vec, Sum::PLAIN, &out)
}

/// [`addmm`] for a matrix and a vector: `beta * self + alpha * (mat · vec)`.
///
/// By the vendor's library (cuBLASLt) where it is found and takes dtype and layout, else by `product.cuh`.
///
/// # Errors
/// If the sizes differ or `self` does not broadcast, or errors of the device.
pub fn addmv(
    self_: DeviceView<'_>,
    mat: DeviceView<'_>,
    vec: DeviceView<'_>,
    beta: Scalar,
    alpha: Scalar,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let mut sum = Sum::with_bias(&self_, out.sizes(), beta, alpha)?;
    sum.bias = sum.bias.map(|(bias, keep)| (bias.as_column(), keep));
    matrix_times_vector(&mat, &vec, sum, &out)
}

/// The sum of products of two vectors' elements: `dot([1, 2], [3, 4])` is 11.
///
/// # Errors
/// If the lengths differ, or errors of the device.
pub fn dot(self_: DeviceView<'_>, tensor: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    sum_of_products(&self_, &tensor, false, &out)
}

/// [`dot`] with the complex conjugates of the first vector's elements.
///
/// # Errors
/// As [`dot`].
pub fn vdot(self_: DeviceView<'_>, other: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = self_.dtype();
    sum_of_products(&self_, &other, dtype.is_complex(), &out)
}

/// A matrix in memory of a device.
#[derive(Clone, Copy)]
pub(super) struct Plane {
    pub start: *const c_void,
    pub sizes: [i64; 2],
    pub strides: [i64; 2],
}

impl Plane {
    /// Elements in row-major order.
    pub fn dense(start: *const c_void, sizes: [i64; 2]) -> Plane {
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
pub(super) unsafe fn product(
    dtype: DType,
    device: Device,
    [left, right]: [Plane; 2],
    added: Option<Plane>,
    out: Plane,
) -> Result<()> {
    let sum = Sum { bias: added.map(|added| (added.stack(), Scalar::Int(1))), ..Sum::PLAIN };
    // SAFETY: the caller's promise.
    unsafe { launch(dtype, [left.stack(), right.stack(), out.stack()], &sum, device) }
}

fn products(left: &DeviceView<'_>, right: &DeviceView<'_>, sum: &Sum, out: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = left.dtype();
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
    // SAFETY: the sizes were checked, and the views vouch for their elements.
    unsafe { launch(dtype, [a, b, c], sum, out.device()) }
}

fn matrix_times_vector(
    matrix: &DeviceView<'_>,
    vector: &DeviceView<'_>,
    sum: Sum,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = matrix.dtype();
    let a = Stack::of(matrix);
    if matrix.sizes().len() != 2 || vector.sizes() != &a.sizes[2..] || out.sizes() != &a.sizes[1..2] {
        return Err(sizes_differ(matrix.sizes(), vector.sizes()));
    }
    let (b, c) = (Stack::of(vector).as_column(), Stack::of_mut(out).as_column());
    // SAFETY: the sizes were checked, and the views vouch for their elements.
    if unsafe { by_library(dtype, [a, b, c], &sum, out.device())? } {
        return Ok(());
    }
    rows(dtype, a, b, c, &sum, false, out.device())
}

fn sum_of_products(
    left: &DeviceView<'_>,
    right: &DeviceView<'_>,
    conjugates: bool,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = left.dtype();
    if left.sizes().len() != 1 || left.sizes() != right.sizes() {
        return Err(sizes_differ(left.sizes(), right.sizes()));
    }
    if out.numel() != 1 {
        return Err(Error::shape("the sum of products is one number"));
    }
    let right = Stack::of(right).as_column();
    rows(dtype, Stack::of(left), right, Stack::of_mut(out), &Sum::PLAIN, conjugates, out.device())
}

/// Products of the rows of `a` and the only column of `b`.
fn rows(
    dtype: DType,
    a: Stack,
    b: Stack,
    c: Stack,
    sum: &Sum,
    conjugates: bool,
    device: Device,
) -> Result<()> {
    let is_row_major = a.sizes[1] == 1 || a.strides[2].abs() <= a.strides[1].abs();
    let name = format!("Matrices<opsmith::dtype::{}, {conjugates}>", dtype.ident());
    let functor = functor(dtype, 1 + u32::from(conjugates), &name);
    with_dtype!(dtype.to_compute(), C => {
        let parameter = matrices::<C>([a, b, c], sum);
        // SAFETY: the caller checked the sizes, and the views vouch for their elements.
        unsafe { functor.rows(device, parameter, is_row_major) }
    })
}

/// Submits products of the stacks `a` and `b`, written to `c`, to a library of the vendor, if one computes them.
///
/// # Safety
/// As for [`product`].
unsafe fn by_library(dtype: DType, [a, b, c]: [Stack; 3], sum: &Sum, device: Device) -> Result<bool> {
    let product = LibraryProduct {
        left: a.elements(dtype),
        right: b.elements(dtype),
        out: c.elements(dtype),
        scale: sum.scale,
        added: sum.bias.as_ref().map(|(bias, keep)| (bias.elements(dtype), *keep)),
        activation: sum.activation,
    };
    let work = Work::on(device)?;
    // SAFETY: the caller's promise.
    unsafe { work.runtime().product(work.queue(), &product) }
}

/// Launches products of the stacks `a` and `b`, written to `c`.
///
/// # Safety
/// As for [`product`].
unsafe fn launch(dtype: DType, stacks: [Stack; 3], sum: &Sum, device: Device) -> Result<()> {
    // SAFETY: the caller's promise.
    if unsafe { by_library(dtype, stacks, sum, device)? } {
        return Ok(());
    }
    let name = format!("Matrices<opsmith::dtype::{}>", dtype.ident());
    let functor = functor(dtype, 0, &name);
    with_dtype!(dtype.to_compute(), C => {
        // SAFETY: the caller's promise.
        unsafe { functor.product(device, matrices::<C>(stacks, sum)) }
    })
}

fn matrices<C: Element>([a, b, c]: [Stack; 3], sum: &Sum) -> Matrices<C> {
    let [stacks, rows, inner] = a.sizes.map(|size| size as u64);
    let none = Stack::new(std::ptr::null(), &[], &[]);
    let (bias, keep) = sum.bias.unwrap_or((none, Scalar::Int(0)));
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
            keep: C::from_scalar(keep),
            scale: C::from_scalar(sum.scale),
            // As `linalg.cuh` numbers them.
            activation: match sum.activation {
                None => 0,
                Some(Activation::Relu) => 1,
                Some(Activation::TanhGelu) => 2,
            },
        },
    }
}

fn functor(dtype: DType, number: u32, name: &str) -> Functor<'_> {
    Functor { program: &PROGRAM, number, dtype, name }
}
