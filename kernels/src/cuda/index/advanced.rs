//! Several index tensors at once, one for each of some dimensions, broadcast together. A mask stands for as many as it
//! has dimensions: the places where it holds.

use opsmith_runtime::layout::{contiguous_strides, numel};
use opsmith_runtime::{
    DType, Device, DeviceView, DeviceViewMut, Dims, Error, Result, Scalar, Scratch, Untyped,
};

use super::lead::{Along, Led, SUM, add_offsets, gather_at, input, output};
use crate::cpu::{broadcast_strides, expect_sizes};
use crate::cuda::compact::{counted, write_places};
use crate::cuda::scratch::{Room, read};
use crate::infer::{Indexed, check_mask, indexed, is_mask};

/// The elements of `self` at the indices: `x[[0, 1], [2, 0]]` is `[x[0][2], x[1][0]]`.
///
/// A dimension without indices is kept whole. The indices' broadcast shape stands in the result where
/// the indexed dimensions were, or in front if these are not neighbours.
///
/// # Errors
/// If the index tensors do not broadcast, or errors of the device.
pub fn index(self_: DeviceView<'_>, indices: &[Option<Untyped<'_>>], out: DeviceViewMut<'_>) -> Result<()> {
    let places = Places::new(self_.device(), self_.sizes(), self_.strides(), indices)?;
    expect_sizes(out.sizes(), &places.result.sizes)?;
    let (Some(offsets), (start, end)) = (&places.offsets, places.range()) else { return Ok(()) };
    let own = contiguous_strides(&places.result.broadcast);
    let kept: Dims = places.result.placed.kept.iter().map(|&dim| self_.strides()[dim]).collect();
    let apart = |kept: &[i64], indexed: &[i64]| -> Dims {
        kept[..start].iter().chain(indexed).chain(&kept[start..]).copied().collect()
    };
    let none = Dims::from_elem(0, end - start);
    let (from, at) = (apart(&kept, &none), apart(&Dims::from_elem(0, kept.len()), &own));
    let offsets = (offsets.address::<i64>().cast_const().cast(), &at[..]);
    let operands = [output(&out, out.strides()), input(&self_, &from), offsets];
    // SAFETY: the offsets are those of the operand, for all indices of the output.
    unsafe { gather_at(out.dtype(), out.device(), out.sizes(), operands, Along::OFFSETS) }
}

/// Puts `values`, broadcast to the shape [`index`] would give, at the indices or, with `accumulate`, adds them there. Where an index repeats without `accumulate`, the last value stays.
///
/// # Errors
/// If the index tensors or the values do not broadcast, or errors of the device.
pub fn index_put(
    indices: &[Option<Untyped<'_>>],
    values: DeviceView<'_>,
    accumulate: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = values.dtype();
    let device = out.device();
    let places = Places::new(device, out.sizes(), out.strides(), indices)?;
    let result = &places.result;
    let strides = broadcast_strides(values.sizes(), values.strides(), &result.sizes)?;
    let (Some(offsets), (start, end)) = (&places.offsets, places.range()) else { return Ok(()) };
    let own = contiguous_strides(&result.broadcast);
    let none = Dims::from_elem(0, end - start);
    let at = (offsets.address::<i64>().cast_const(), &own[..]);
    let moving = [&none[..], &strides[start..end]];
    // SAFETY: the offsets are those of the output, for all broadcast indices.
    let led = unsafe { Led::new(device, &result.broadcast, at, moving, Along::OFFSETS, None)? };
    let kept = |list: &[i64]| -> Dims { result.placed.kept.iter().map(|&dim| list[dim]).collect() };
    let (rest, to) = (kept(out.sizes()), kept(out.strides()));
    let from: Dims = strides[..start].iter().chain(&strides[end..]).copied().collect();
    let operands = [output(&out, &to), input(&values, &from)];
    // SAFETY: the dimensions without indices, of both.
    unsafe {
        match accumulate {
            true => led.join(dtype, device, &rest, operands, SUM),
            false => led.put(dtype, device, &rest, operands),
        }
    }
}

/// Where index tensors lead in a data tensor.
struct Places {
    result: Indexed,
    /// The offset in the data of each element of the broadcast indices, in row-major order; none if the result is empty.
    offsets: Option<Room>,
}

impl Places {
    fn new(
        device: Device,
        sizes: &[i64],
        strides: &[i64],
        indices: &[Option<Untyped<'_>>],
    ) -> Result<Places> {
        let indices =
            indices.iter().map(|index| index.as_ref().map(|index| Index::read(device, index)).transpose());
        let indices: Scratch<Option<Index<'_>>> = indices.collect::<Result<_>>()?;
        let shapes: Scratch<Option<(usize, &[i64])>> = indices
            .iter()
            .map(|index| index.as_ref().map(|index| (index.taken(), &index.sizes[..])))
            .collect();
        let result = indexed(sizes, &shapes)?;
        for (index, &first) in indices.iter().zip(&result.placed.first) {
            if let Some(mask) = index.as_ref().and_then(|index| index.mask) {
                check_mask(mask, &sizes[first..])?;
            }
        }
        if numel(&result.sizes) == 0 {
            return Ok(Places { result, offsets: None });
        }
        let offsets = Room::filled(device, DType::I64, numel(&result.broadcast) as u64, Scalar::Int(0))?;
        for (index, &first) in indices.iter().zip(&result.placed.first) {
            let Some(index) = index else { continue };
            for number in 0..index.taken() {
                let along = Along { size: sizes[first + number], step: strides[first + number] };
                index.add_offsets(device, number, &result.broadcast, &offsets, along)?;
            }
        }
        Ok(Places { result, offsets: Some(offsets) })
    }

    /// The dimensions of the result that the indices have.
    fn range(&self) -> (usize, usize) {
        let start = self.result.placed.start;
        (start, start + self.result.broadcast.len())
    }
}

/// One index: the place of each of its elements along the dimensions that it takes.
struct Index<'a> {
    /// The sizes of the lists of places.
    sizes: Dims,
    strides: Dims,
    dtype: DType,
    /// The first list; those of a mask follow it.
    first: *const u8,
    /// The sizes of the mask that the lists were made from.
    mask: Option<&'a [i64]>,
    _lists: Option<Room>,
}

impl<'a> Index<'a> {
    fn read(device: Device, index: &Untyped<'a>) -> Result<Index<'a>> {
        let first = index.address().ok_or_else(|| Error::value("the elements of `indices` are not there"))?;
        if is_mask(index.dtype(), index.numel() == 0)? {
            return Index::of_mask(device, index, first);
        }
        let (sizes, strides) = (index.sizes().into(), index.strides().into());
        Ok(Index { sizes, strides, dtype: index.dtype(), first, mask: None, _lists: None })
    }

    /// The places where a mask holds, in row-major order.
    fn of_mask(device: Device, mask: &Untyped<'a>, first: *const u8) -> Result<Index<'a>> {
        let count = mask.numel();
        let (mut lists, mut held) = (None, 0);
        if count > 0 {
            // SAFETY: the elements of the mask; the last sum is one of `count`.
            unsafe {
                let sums = counted(device, mask.dtype(), first, mask.sizes(), mask.strides())?;
                held = read(device, sums.address::<i64>().cast_const().add(count - 1))?;
                let room = Room::new::<i64>(device, held as u64 * mask.dim() as u64)?;
                write_places(device, &sums, mask.sizes(), room.address(), held as u64, [1, held])?;
                lists = Some(room);
            }
        }
        let first = lists.as_ref().map_or(std::ptr::null(), |lists| lists.address::<u8>().cast_const());
        let sizes = Dims::from_slice(&[held]);
        let strides = Dims::from_slice(&[1]);
        Ok(Index { sizes, strides, dtype: DType::I64, first, mask: Some(mask.sizes()), _lists: lists })
    }

    /// How many dimensions it takes.
    fn taken(&self) -> usize {
        self.mask.map_or(1, <[i64]>::len)
    }

    /// Adds the contribution of one list to the offsets of the broadcast indices.
    fn add_offsets(
        &self,
        device: Device,
        number: usize,
        broadcast: &[i64],
        offsets: &Room,
        along: Along,
    ) -> Result<()> {
        let skipped = number * numel(&self.sizes) as usize * self.dtype.size();
        let steps = broadcast_strides(&self.sizes, &self.strides, broadcast)?;
        let own = contiguous_strides(broadcast);
        let list = (self.first.wrapping_add(skipped).cast(), &steps[..]);
        let operands = [(offsets.address::<i64>().cast_const().cast(), &own[..]), list];
        // SAFETY: the list has an element for each of its sizes, and there is an offset for each broadcast index.
        unsafe { add_offsets(device, self.dtype, broadcast, operands, along, false) }
    }
}
