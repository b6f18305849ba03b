//! Copies of which a device has a side: within it, to and from the host, and between two devices.
//!
//! In: tensors whose borrows are held. Out: the target's elements, written or asked for; those of the host are there when
//! it returns. Bytes move between devices row-major; conversion and layout are the work of the side that has a dtype or
//! a layout to change: the device, wherever one takes part.

use opsmith_core::{Backend, DType};

use super::{convert, value_at};
use crate::arg::Arg;
use crate::backend::{Address, Elements};
use crate::device::Device;
use crate::dispatch::Borrows;
use crate::dispatch::spans::{self, Span};
use crate::error::Result;
use crate::layout::Dims;
use crate::pointwise::refuse_other_shape;
use crate::scalar::Scalar;
use crate::tensor::{Tensor, on_device};

/// Writes the elements of `source`, broadcast and converted, into `target`, where they are not both on the host.
pub(super) fn convert_between(target: &Tensor, source: &Tensor) -> Result<()> {
    if target.numel() == 0 {
        return Ok(());
    }
    let (to, from) = (target.device(), source.device());
    let is_stored = target.dtype().is_stored() || source.dtype().is_stored();
    if is_stored && source.dtype() != target.dtype() {
        return convert_by_host(target, source);
    }
    if to == from {
        return convert_on(to, target, source);
    }
    // The bytes that move: on the source's side row-major, of its own sizes and the target's dtype.
    let sent = match source.is_contiguous() && source.dtype() == target.dtype() {
        true => source.clone(),
        false => converted_on(source, from, target)?,
    };
    if from.backend == Backend::Cpu && sent.numel() == 1 {
        // Of the target's dtype by now: a number of another would be converted by other rules than a copy's.
        return fill(target, value_at(&sent));
    }
    // On the target's side, at once where they belong if that is the same.
    if target.is_contiguous() && target.shape() == sent.shape() {
        return transfer(target, &sent);
    }
    let received = Tensor::with_memory(sent.shape(), sent.dtype(), to)?;
    transfer(&received, &sent)?;
    convert(target, &received)
}

/// Converts to or from a dtype that only stores, which the host does for devices.
fn convert_by_host(target: &Tensor, source: &Tensor) -> Result<()> {
    let copy_of = |dtype| Tensor::with_memory(source.shape(), dtype, Device::CPU);
    let (given, converted) = (copy_of(source.dtype())?, copy_of(target.dtype())?);
    convert(&given, source)?;
    convert(&converted, &given)?;
    convert(target, &converted)
}

/// Writes a number into every element of a tensor of a device, whose borrow is held.
pub(crate) fn fill(target: &Tensor, value: Scalar) -> Result<()> {
    let for_each = |visit: &mut dyn FnMut(&Tensor)| visit(target);
    on_device(target.device(), for_each, |work| {
        // SAFETY: the layout is inside the memory, which is kept until the last use that is noted.
        unsafe { work.runtime().fill(work.queue(), target.elements(), value) }
    })
}

/// Adds elements to a tensor of their device that may show one at several indices; the borrows are held.
pub(crate) fn accumulate(target: &Tensor, source: &Tensor) -> Result<()> {
    let for_each = |visit: &mut dyn FnMut(&Tensor)| [target, source].into_iter().for_each(visit);
    on_device(target.device(), for_each, |work| {
        // SAFETY: both layouts are inside their memory, which is kept until the last use that is noted; the target is new,
        // and so other memory.
        unsafe { work.runtime().accumulate(work.queue(), target.elements(), source.elements()) }
    })
}

/// A row-major copy of a tensor of a device on the host, outside any graph and any trace.
///
/// # Errors
/// If the tensor has no elements yet, as in a traced function, there is no memory, or the device fails.
pub(crate) fn downloaded(source: &Tensor) -> Result<Tensor> {
    let reads = [Arg::Tensor(source)];
    let _held = Borrows::acquire(&reads, &[])?;
    let copy = Tensor::with_memory(source.shape(), source.dtype(), Device::CPU)?;
    convert(&copy, source)?;
    Ok(copy)
}

/// A row-major copy of the source where it is, in the target's dtype.
fn converted_on(source: &Tensor, device: Device, target: &Tensor) -> Result<Tensor> {
    let copy = Tensor::with_memory(source.shape(), target.dtype(), device)?;
    convert(&copy, source)?;
    Ok(copy)
}

fn convert_on(device: Device, target: &Tensor, source: &Tensor) -> Result<()> {
    refuse_other_shape(0, source, target)?;
    if target.overlaps(source) {
        if target.layout() == source.layout() {
            return Ok(());
        }
        return convert_on(device, target, &converted_on(source, device, target)?);
    }
    let strides = broadcast_strides(source, target.dim());
    let for_each = |visit: &mut dyn FnMut(&Tensor)| [target, source].into_iter().for_each(visit);
    on_device(device, for_each, |work| {
        let from = Elements { sizes: target.shape(), strides: &strides, ..source.elements() };
        // SAFETY: both layouts are inside their memory, which is kept until the last use that is noted; they do not
        // overlap.
        unsafe { work.runtime().convert(work.queue(), target.elements(), from) }
    })
}

/// The source's steps along the dimensions of a shape that it broadcasts to: 0 where it has one element or no dimension.
fn broadcast_strides(source: &Tensor, dim: usize) -> Dims {
    let own = std::iter::zip(source.shape(), source.strides())
        .map(|(&size, &stride)| if size == 1 { 0 } else { stride });
    std::iter::repeat_n(0, dim - source.dim()).chain(own).collect()
}

/// Moves row-major elements of one dtype and shape from one device to another.
fn transfer(target: &Tensor, source: &Tensor) -> Result<()> {
    let (to, from) = (target.device(), source.device());
    if to.backend != from.backend && to.backend != Backend::Cpu && from.backend != Backend::Cpu {
        let through = Tensor::with_memory(source.shape(), source.dtype(), Device::CPU)?;
        transfer(&through, source)?;
        return transfer(target, &through);
    }
    let device = if to.backend == Backend::Cpu { from } else { to };
    let bytes = source.numel() as usize * source.dtype().size();
    let _span = spans::open(|| Span::Copy { source, target });
    let for_each = |visit: &mut dyn FnMut(&Tensor)| [target, source].into_iter().for_each(visit);
    on_device(device, for_each, |work| {
        let to = Address { device: to, start: target.data_ptr() };
        let from = Address { device: from, start: source.data_ptr() };
        let host = if to.device == Device::CPU { target } else { source };
        {
            let _submission = spans::submission(device, work.queue().stream.0);
            // SAFETY: both are row-major and have as many bytes in memory of their own, which on a device is kept until the
            // last use that is noted; memory of the host is read at once, or waited for, or, where it is pinned, kept until then,
            // too, and borrowed.
            unsafe {
                match host.storage().pinned_memory().filter(|memory| memory.serves(device)) {
                    None => work.runtime().transfer(work.queue(), to, from, bytes),
                    Some(memory) if to.device == Device::CPU => memory.receive(work, to, from, bytes),
                    Some(memory) => host.storage().send(memory, work, to, from, bytes),
                }?;
            }
        }
        if to.device == Device::CPU { work.wait() } else { Ok(()) }
    })?;
    if target.is_on_host() {
        make_valid(target);
    }
    Ok(())
}

/// Makes `bool`s of bytes that came from a device, whose memory may hold any before a kernel writes them: all but 0 are
/// true.
fn make_valid(target: &Tensor) {
    if target.dtype() != DType::Bool {
        return;
    }
    // SAFETY: the tensor is row-major on the host, a `bool` is a byte, and the caller has borrowed it for writing.
    let bytes = unsafe { std::slice::from_raw_parts_mut(target.data_ptr(), target.numel() as usize) };
    bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
}
