//! From indices to positions, and kernels for the elements there.
//!
//! In: indices on a device, and operands of any strides. Out: elements gathered, put or joined. Must not know how the operator
//! that needs it counts dimensions.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::layout::{contiguous_strides, numel};
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Dims, Element, Result, Scalar, with_dtype};

use crate::cuda::entries::{Entry, in_order};
use crate::cuda::launch::{bits, each, merged, strided};
use crate::cuda::scratch::Room;
use crate::device::ORDER;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("index.cuh", ORDER, include_str!("../../../cuda/index.cuh"));

/// How indices lead to elements: `step` apart along a dimension of `size` elements. Of a size below 0, indices are offsets.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Along {
    pub size: i64,
    pub step: i64,
}

impl Along {
    /// Indices that are offsets.
    pub const OFFSETS: Along = Along { size: -1, step: 1 };
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Gather {
    places: Strided<3>,
    along: Along,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Lead {
    places: Strided<2>,
    along: Along,
    first: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Targets {
    places: Strided<4>,
    sources: *mut i64,
    along: Along,
    skipped: i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Put {
    places: Strided<3>,
    sources: *const i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct PutNumber<B> {
    places: Strided<2>,
    along: Along,
    number: B,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Join<C> {
    places: Strided<3>,
    sources: *const i64,
    kind: u32,
    with_own: u32,
    by_uses: u32,
    scaled: u32,
    factor: C,
}

/// Elements of an operand: the first, and strides for sizes that the call has.
pub(super) type Operand<'a> = (*const c_void, &'a [i64]);

/// Elements of `source` at the indices: `out` at each index has the element that its index leads to.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// Operands have the places, indices aside, in memory of the device.
pub(super) unsafe fn gather_at(
    dtype: DType,
    device: Device,
    sizes: &[i64],
    [out, source, index]: [Operand<'_>; 3],
    along: Along,
) -> Result<()> {
    let places = merged(sizes, [out, source, index])?;
    // SAFETY: the struct has the fields of `index.cuh`; the caller's promise.
    unsafe { each(&PROGRAM, device, (1, "Gather"), bits(dtype), &places, &Gather { places, along }) }
}

/// Adds to offsets those that indices of `int64` or `int32` lead to; the first ones write them.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// As [`gather_at`].
pub(super) unsafe fn add_offsets(
    device: Device,
    dtype: DType,
    sizes: &[i64],
    operands: [Operand<'_>; 2],
    along: Along,
    first: bool,
) -> Result<()> {
    let places = merged(sizes, operands)?;
    let parameter = Lead { places, along, first: u64::from(first) };
    // SAFETY: the struct has the fields of `index.cuh`; the caller's promise.
    unsafe { each(&PROGRAM, device, (2, "Lead"), dtype, &places, &parameter) }
}

/// Puts a number at the indices of a target.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// As [`gather_at`].
pub(super) unsafe fn put_number(
    dtype: DType,
    device: Device,
    sizes: &[i64],
    operands: [Operand<'_>; 2],
    along: Along,
    number: Scalar,
) -> Result<()> {
    let places = merged(sizes, operands)?;
    with_dtype!(dtype, T => {
        let parameter = PutNumber { places, along, number: T::from_scalar(number) };
        // SAFETY: the struct has the fields of `index.cuh`, where the number is one of the same size; the caller's promise.
        unsafe { each(&PROGRAM, device, (3, "PutNumber"), bits(dtype), &places, &parameter) }
    })
}

/// Elements that lead to targets, in the order of these.
pub(super) struct Led {
    entries: Room,
    sources: Room,
    count: u64,
}

impl Led {
    /// One element for each index; none for the index `skipped`. Strides are those of the indices, and those along which
    /// targets and sources move with them.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// Indices are at the places, in memory of the device.
    pub unsafe fn new(
        device: Device,
        sizes: &[i64],
        index: (*const i64, &[i64]),
        [target, source]: [&[i64]; 2],
        along: Along,
        skipped: Option<i64>,
    ) -> Result<Led> {
        let count = numel(sizes) as u64;
        let (entries, sources) = (Room::new::<Entry>(device, count)?, Room::new::<i64>(device, count)?);
        let nothing = std::ptr::null();
        let own = contiguous_strides(sizes);
        let first = entries.address::<Entry>().cast_const().cast();
        let operands = [(first, &own[..]), (index.0.cast(), index.1), (nothing, target), (nothing, source)];
        let places = merged(sizes, operands)?;
        // The sign of a skipped index keeps every index that may be right.
        let skipped = skipped.unwrap_or(i64::MIN);
        let parameter = Targets { places, sources: sources.address(), along, skipped };
        // SAFETY: the struct has the fields of `index.cuh`; the caller's promise.
        unsafe { each(&PROGRAM, device, (4, "Targets"), DType::I64, &places, &parameter)? };
        let entries = match count {
            0 => entries,
            // Targets are 64 bits, of which a skipped index has all: eight digits move as many bytes as the merges of a million entries.
            _ => in_order(device, entries, 1, count, count, None)?.0,
        };
        Ok(Led { entries, sources, count })
    }

    fn places(&self, rest: &[i64], [target, source]: [Operand<'_>; 2]) -> Result<Strided<3>> {
        let with_first = |first: i64, strides: &[i64]| {
            let mut all = Dims::from_slice(&[first]);
            all.extend_from_slice(strides);
            all
        };
        let sizes = with_first(self.count as i64, rest);
        let entries = self.entries.address::<Entry>().cast_const().cast();
        let none = Dims::from_elem(0, rest.len());
        strided(
            &sizes,
            [
                (target.0, &with_first(0, target.1)[..]),
                (source.0, &with_first(0, source.1)),
                (entries, &with_first(0, &none)),
            ],
        )
    }

    /// Puts the last element that leads to each target there; each is one for each index of the sizes `rest`.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// Operands have the places, in memory of the device.
    pub unsafe fn put(
        &self,
        dtype: DType,
        device: Device,
        rest: &[i64],
        operands: [Operand<'_>; 2],
    ) -> Result<()> {
        let places = self.places(rest, operands)?;
        let parameter = Put { places, sources: self.sources.address() };
        // SAFETY: the struct has the fields of `index.cuh`; the caller's promise.
        unsafe { each(&PROGRAM, device, (5, "Put"), bits(dtype), &places, &parameter) }
    }

    /// Joins the elements that lead to each target, as [`Led::put`] puts them.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// As [`Led::put`].
    pub unsafe fn join(
        &self,
        dtype: DType,
        device: Device,
        rest: &[i64],
        operands: [Operand<'_>; 2],
        how: How,
    ) -> Result<()> {
        let places = self.places(rest, operands)?;
        with_dtype!(dtype.to_compute(), C => {
            let parameter = Join {
                places,
                sources: self.sources.address(),
                kind: how.kind as u32,
                with_own: u32::from(how.with_own),
                by_uses: u32::from(how.by_uses),
                scaled: u32::from(how.factor.is_some()),
                factor: C::from_scalar(how.factor.unwrap_or(Scalar::Int(1))),
            };
            // SAFETY: the struct has the fields of `index.cuh`; the caller's promise.
            unsafe { each(&PROGRAM, device, (6, "Join"), dtype, &places, &parameter) }
        })
    }
}

/// How elements are joined.
#[derive(Clone, Copy)]
pub(super) struct How {
    pub kind: Kind,
    /// Whether the target's own element counts.
    pub with_own: bool,
    /// Whether each is divided by the number of those that lead to its target.
    pub by_uses: bool,
    /// A factor of each.
    pub factor: Option<Scalar>,
}

/// The operations, by their numbers in `index.cuh`.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum Kind {
    Sum,
    Product,
    Mean,
    Maximum,
    Minimum,
}

/// A sum with the target's own element.
pub(super) const SUM: How = How { kind: Kind::Sum, with_own: true, by_uses: false, factor: None };

/// An input with other strides.
pub(super) fn input<'a>(view: &DeviceView<'_>, strides: &'a [i64]) -> Operand<'a> {
    (view.address().cast(), strides)
}

/// An output with other strides.
pub(super) fn output<'a>(view: &DeviceViewMut<'_>, strides: &'a [i64]) -> Operand<'a> {
    (view.address().cast_const().cast(), strides)
}

/// A list with 0 for one dimension.
pub(super) fn without(strides: &[i64], dim: usize) -> Dims {
    let mut without: Dims = strides.into();
    if let Some(stride) = without.get_mut(dim) {
        *stride = 0;
    }
    without
}
