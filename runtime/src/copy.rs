//! Copying elements: between tensors of any layout and dtype, and out of tensors.
//!
//! In: tensors. Out: tensors of the same elements, or the elements as numbers of Rust. Must know no operator.

use num_complex::Complex;
use opsmith_core::DType;

use crate::arg::Arg;
use crate::dispatch::Borrows;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::op::KernelCall;
use crate::pointwise::for_each_row;
use crate::scalar::Scalar;
use crate::tensor::{Tensor, observer};
use crate::with_dtype;

/// Writes the elements of `source`, broadcast and converted, into `target`.
///
/// Conversion is C's where C defines it: floats truncate toward zero, integers wrap, anything but zero
/// (NaN too) is true, a complex number loses its imaginary part in a real type. A negative float wraps
/// into an unsigned type as its integer would. Beyond that, a float saturates at the bounds of `int32`,
/// `int64` and `uint64`, and at those of `int64` before it wraps into another type; NaN becomes 0.
///
/// # Errors
/// If the two overlap and there is no memory for a copy of `source`.
pub fn copy(target: &Tensor, source: &Tensor) -> Result<()> {
    // Elements that overlap at other positions would be read after they were written.
    if target.overlaps(source) && target.layout() != source.layout() {
        return copy(target, &source.cast_untracked(source.dtype())?);
    }
    if let Some(observer) = observer::observer() {
        return observer.copied(target, source);
    }
    let reads = [Arg::Tensor(source)];
    let _held = Borrows::acquire(&reads, std::slice::from_ref(target))?;
    convert(target, source)
}

/// The kernel of an operator whose first output is a converted copy of an argument.
///
/// # Errors
/// If there is no such output or argument, the two do not have shapes that go together, or the output was handed
/// out as a view.
pub fn kernel(call: &KernelCall<'_>, argument: usize) -> Result<()> {
    let [target, source] = call.operands_of_any_dtype(&[argument])?;
    convert(target, source)
}

/// The same of two tensors whose borrows are held.
pub(crate) fn convert(target: &Tensor, source: &Tensor) -> Result<()> {
    if target.dtype() == source.dtype() {
        // The same bytes, so one loop a size serves every dtype.
        return match target.dtype().size() {
            1 => rows(target, source, |value: u8| value),
            2 => rows(target, source, |value: u16| value),
            4 => rows(target, source, |value: u32| value),
            8 => rows(target, source, |value: u64| value),
            _ => rows(target, source, |value: u128| value),
        };
    }
    with_dtype!(source.dtype(), S => with_dtype!(target.dtype(), D => {
        rows(target, source, <D as ConvertFrom<S>>::convert_from)
    }))
}

fn rows<S: Copy, D: Copy>(target: &Tensor, source: &Tensor, convert: impl Fn(S) -> D) -> Result<()> {
    for_each_row(&[target, source], &mut |row| {
        let (out, input) = (row.pointers[0], row.pointers[1]);
        let (out_step, in_step) = (row.strides[0], row.strides[1]);
        if out_step == size_of::<D>() as isize && in_step == size_of::<S>() as isize {
            let (out, input) = (out.cast::<D>(), input.cast::<S>());
            for position in 0..row.length {
                // SAFETY: the plan keeps both inside their tensors, the borrows are held; a
                // storage's data is 64-byte aligned and elements lie at multiples of their size.
                unsafe { out.add(position).write_unaligned(convert(input.add(position).read_unaligned())) }
            }
        } else {
            for position in 0..row.length as isize {
                // SAFETY: as above.
                unsafe {
                    out.offset(out_step * position).cast::<D>().write_unaligned(convert(
                        input.offset(in_step * position).cast::<S>().read_unaligned(),
                    ));
                }
            }
        }
    })
}

impl Tensor {
    /// The elements in row-major order, copied.
    ///
    /// # Errors
    /// If `T` is not the tensor's element type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if self.dtype() != T::DTYPE {
            return Err(Error::dtype(format!("the tensor holds {}, not {}", self.dtype(), T::DTYPE))
                .with_help("convert it first, or ask for the type it holds"));
        }
        let reads = [Arg::Tensor(self)];
        let _held = Borrows::acquire(&reads, &[])?;
        let mut elements = Vec::new();
        if !crate::allocator::fits(self.numel() as usize * size_of::<T>())
            || elements.try_reserve_exact(self.numel() as usize).is_err()
        {
            return Err(Error::memory(format!("there is no memory for a copy of {} elements", self.numel()))
                .with_help("take parts of the tensor one after the other"));
        }
        // SAFETY: the dtype was checked and the borrow is held.
        elements.extend(unsafe { self.view_unchecked::<T>() }.iter());
        Ok(elements)
    }

    /// The only element.
    ///
    /// # Errors
    /// If there is not exactly one.
    pub fn item(&self) -> Result<Scalar> {
        if self.numel() != 1 {
            return Err(Error::shape(format!("a tensor with {} elements has no single value", self.numel()))
                .with_help("reduce it or select one element first"));
        }
        let reads = [Arg::Tensor(self)];
        let _held = Borrows::acquire(&reads, &[])?;
        // SAFETY: one element of the dtype, and the borrow is held.
        Ok(crate::with_dtype!(self.dtype(), T => unsafe { *self.data_ptr().cast::<T>() }.to_scalar()))
    }

    /// A copy of the elements with another dtype, outside any graph.
    pub(crate) fn cast_untracked(&self, dtype: DType) -> Result<Tensor> {
        let result = Tensor::uninitialized(self.shape(), dtype, self.device())?;
        copy(&result, self)?;
        Ok(result)
    }

    /// The tensor itself if it is row-major, else a row-major copy outside any graph.
    pub(crate) fn contiguous_untracked(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.cast_untracked(self.dtype()) }
    }
}

/// Conversion of one element to another type, as a C cast would.
pub trait ConvertFrom<S> {
    /// The converted element.
    fn convert_from(value: S) -> Self;
}

macro_rules! real_to_real {
    ($($from:ty => [$($to:ty),*];)*) => {$($(
        impl ConvertFrom<$from> for $to {
            #[inline(always)]
            fn convert_from(value: $from) -> $to { value as $to }
        }
    )*)*};
}

real_to_real! {
    u8 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    u16 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    u32 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    u64 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    i8 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    i16 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    i32 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    i64 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    f32 => [i32, i64, f32, f64];
    f64 => [i32, i64, f32, f64];
}

macro_rules! float_to_u64 {
    ($($from:ty),*) => {$(
        impl ConvertFrom<$from> for u64 {
            #[inline(always)]
            fn convert_from(value: $from) -> u64 {
                if value < 0.0 { value as i64 as u64 } else { value as u64 }
            }
        }
    )*};
}
float_to_u64!(f32, f64);

/// Narrow integers take a float's low bits, by way of a wide integer.
macro_rules! float_to_narrow {
    ($($from:ty => [$($to:ty),*];)*) => {$($(
        impl ConvertFrom<$from> for $to {
            #[inline(always)]
            fn convert_from(value: $from) -> $to { value as i64 as $to }
        }
    )*)*};
}
float_to_narrow! { f32 => [u8, u16, u32, i8, i16]; f64 => [u8, u16, u32, i8, i16]; }

macro_rules! to_and_from_bool {
    ($($ty:ty),*) => {$(
        impl ConvertFrom<bool> for $ty {
            #[inline(always)]
            fn convert_from(value: bool) -> $ty { u8::from(value) as $ty }
        }
        impl ConvertFrom<$ty> for bool {
            #[inline(always)]
            fn convert_from(value: $ty) -> bool { value != (0 as $ty) }
        }
    )*};
}
to_and_from_bool!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);
impl ConvertFrom<bool> for bool {
    #[inline(always)]
    fn convert_from(value: bool) -> bool {
        value
    }
}

/// The 16-bit floats convert by way of `f32`.
macro_rules! halves {
    ($($half:ty: [$($other:ty),*];)*) => {$(
        $(
            impl ConvertFrom<$other> for $half {
                #[inline(always)]
                fn convert_from(value: $other) -> $half {
                    <$half>::from_f64(<f64 as ConvertFrom<$other>>::convert_from(value))
                }
            }
            impl ConvertFrom<$half> for $other {
                #[inline(always)]
                fn convert_from(value: $half) -> $other {
                    <$other as ConvertFrom<f32>>::convert_from(value.to_f32())
                }
            }
        )*
        impl ConvertFrom<$half> for $half {
            #[inline(always)]
            fn convert_from(value: $half) -> $half { value }
        }
        impl ConvertFrom<f32> for $half {
            #[inline(always)]
            fn convert_from(value: f32) -> $half { <$half>::from_f32(value) }
        }
        impl ConvertFrom<$half> for f32 {
            #[inline(always)]
            fn convert_from(value: $half) -> f32 { value.to_f32() }
        }
    )*};
}
halves! {
    half::f16: [bool, u8, u16, u32, u64, i8, i16, i32, i64, f64];
    half::bf16: [bool, u8, u16, u32, u64, i8, i16, i32, i64, f64];
}
impl ConvertFrom<half::f16> for half::bf16 {
    #[inline(always)]
    fn convert_from(value: half::f16) -> half::bf16 {
        half::bf16::from_f32(value.to_f32())
    }
}
impl ConvertFrom<half::bf16> for half::f16 {
    #[inline(always)]
    fn convert_from(value: half::bf16) -> half::f16 {
        half::f16::from_f32(value.to_f32())
    }
}

macro_rules! complexes {
    ($($real:ty: [$($other:ty),*];)*) => {$($(
        impl ConvertFrom<$other> for Complex<$real> {
            #[inline(always)]
            fn convert_from(value: $other) -> Complex<$real> {
                Complex::new(<$real as ConvertFrom<$other>>::convert_from(value), 0.0)
            }
        }
        impl ConvertFrom<Complex<$real>> for $other {
            #[inline(always)]
            fn convert_from(value: Complex<$real>) -> $other {
                <$other as ConvertFrom<$real>>::convert_from(value.re)
            }
        }
    )*)*};
}
complexes! {
    f32: [u8, u16, u32, u64, i8, i16, i32, i64, half::f16, half::bf16, f32, f64];
    f64: [u8, u16, u32, u64, i8, i16, i32, i64, half::f16, half::bf16, f32, f64];
}

macro_rules! complex_special {
    ($($real:ty),*) => {$(
        impl ConvertFrom<bool> for Complex<$real> {
            #[inline(always)]
            fn convert_from(value: bool) -> Complex<$real> { Complex::new(u8::from(value) as $real, 0.0) }
        }
        impl ConvertFrom<Complex<$real>> for bool {
            /// A complex number is zero only if both its parts are.
            #[inline(always)]
            fn convert_from(value: Complex<$real>) -> bool { value.re != 0.0 || value.im != 0.0 }
        }
        impl ConvertFrom<Complex<$real>> for Complex<f32> {
            #[inline(always)]
            fn convert_from(value: Complex<$real>) -> Complex<f32> { Complex::new(value.re as f32, value.im as f32) }
        }
        impl ConvertFrom<Complex<$real>> for Complex<f64> {
            #[inline(always)]
            fn convert_from(value: Complex<$real>) -> Complex<f64> { Complex::new(value.re as f64, value.im as f64) }
        }
    )*};
}
complex_special!(f32, f64);
