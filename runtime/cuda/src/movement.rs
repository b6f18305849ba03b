//! Movement of elements on a device, by kernels of this crate's own text (`movement.cuh`).
//!
//! In: elements of any layout. Out: work of a stream. Rows of one dtype are copied, and rows of a repeated word filled, by
//! the driver itself, so that both work without a compiler. Must not know tensors.

mod instance;

use std::ptr::null;

use opsmith_runtime::backend::{DeviceSource, Elements, Grid, KernelParameter};
use opsmith_runtime::copy::fill_elements;
use opsmith_runtime::{Error, Result, Scalar};

use crate::device::Device;
use crate::geometry::{
    Dim, Dims, Geometry, MAX_DIMS, collapse, count, dims_of, is_row, may_overlap, order_by_target, transposed,
};
use crate::launch::launch;
use crate::stream::Stream;
use instance::{accumulate_each, convert_each, convert_row, fill_each, index_type, move_bits, move_tiles};

static SOURCE: DeviceSource =
    DeviceSource { name: "movement.cuh", headers: &[], text: include_str!("movement.cuh") };

/// Threads of a block, and elements of a thread in a large grid.
const THREADS: u32 = 256;
const ELEMENTS: u64 = 4;
const MAX_BLOCKS: u64 = 1 << 20;

/// The source and all lines that define its kernels, for compilation ahead of time.
pub fn all_lines() -> (&'static DeviceSource, Vec<String>) {
    (&SOURCE, instance::all().collect())
}

/// Work of a stream on its device.
#[derive(Clone, Copy)]
pub struct Place {
    /// The device.
    pub device: &'static Device,
    /// The stream.
    pub stream: &'static Stream,
}

/// Converts elements to the dtype of the target, which has the same sizes.
///
/// # Errors
/// Errors of the compiler and the device.
///
/// # Safety
/// As [`convert`](opsmith_runtime::backend::DeviceRuntime::convert).
pub unsafe fn convert(place: Place, to: Elements<'_>, from: Elements<'_>) -> Result<()> {
    if to.dtype != from.dtype && (to.dtype.is_stored() || from.dtype.is_stored()) {
        return Err(Error::dtype(format!("no device converts {} to {}", from.dtype, to.dtype))
            .with_help("convert the elements on the host"));
    }
    let mut dims = dims_of(to, Some(from));
    if count(&dims) == 0 {
        return Ok(());
    }
    order_by_target(&mut dims);
    let dims = collapse(&dims);
    let size = to.dtype.size();
    if to.dtype == from.dtype && is_row(&dims) {
        // SAFETY: the caller's promise.
        return unsafe { copy(place, to.start, from.start, count(&dims) as usize * size) };
    }
    if is_row(&dims) {
        let instance = convert_row(to.dtype, from.dtype);
        let geometry = Geometry::new(&dims, to.start, from.start);
        // A thread converts a pack of 16 bytes of the larger type.
        let packs = count(&dims).div_ceil(16 / size.max(from.dtype.size()) as u64);
        // SAFETY: the caller's promise.
        return unsafe { run(place, &instance, packs * ELEMENTS, &[KernelParameter::of(&geometry)]) };
    }
    if to.dtype == from.dtype
        && dims.len() <= MAX_DIMS
        && let Some((dims, tiles)) = transposed(&dims)
    {
        let instance = move_tiles(size);
        let geometry = Geometry::new(&dims, to.start, from.start);
        // A block moves a tile.
        let elements = tiles.saturating_mul(u64::from(THREADS) * ELEMENTS);
        // SAFETY: the caller's promise.
        return unsafe { run(place, &instance, elements, &[KernelParameter::of(&geometry)]) };
    }
    let index = index_type(count(&dims));
    let instance = match to.dtype == from.dtype {
        true => move_bits(size, index),
        false => convert_each(to.dtype, from.dtype, index),
    };
    for_each_part(&dims, MAX_DIMS, to, from.start, from.dtype.size(), &mut |dims, to, from| {
        let geometry = Geometry::new(dims, to, from);
        // SAFETY: the caller's promise; the part is inside both sides.
        unsafe { run(place, &instance, count(dims), &[KernelParameter::of(&geometry)]) }
    })
}

/// Writes one number into all elements.
///
/// # Errors
/// Errors of the compiler and the device.
///
/// # Safety
/// As [`fill`](opsmith_runtime::backend::DeviceRuntime::fill).
pub unsafe fn fill(place: Place, to: Elements<'_>, value: Scalar) -> Result<()> {
    let mut dims = dims_of(to, None);
    if count(&dims) == 0 {
        return Ok(());
    }
    let mut element = [0u128; 1];
    let one = Elements { start: element.as_mut_ptr().cast(), dtype: to.dtype, sizes: &[], strides: &[] };
    // SAFETY: the array has room for an element of any dtype, and is aligned for it.
    unsafe { fill_elements(one, value)? };
    order_by_target(&mut dims);
    let dims = collapse(&dims);
    let size = to.dtype.size();
    if matches!(dims[..], [] | [Dim { to: 1, .. }])
        && let Some(word) = repeated_word(&element[0].to_ne_bytes()[..size])
    {
        // SAFETY: the caller's promise.
        return unsafe { set(place, to.start, word, count(&dims) as usize * size) };
    }
    let instance = fill_each(to.dtype, index_type(count(&dims)));
    for_each_part(&dims, MAX_DIMS, to, null(), 0, &mut |dims, to, from| {
        let geometry = Geometry::new(dims, to, from);
        let parameters = [KernelParameter::of(&geometry), KernelParameter::within(&element)];
        // SAFETY: the caller's promise; the part is inside the target.
        unsafe { run(place, &instance, count(dims), &parameters) }
    })
}

/// Adds elements to a target of the same dtype and sizes, whose elements may overlap.
///
/// One thread adds all addends of a target in row-major order. The targets are the dimensions with a stride; if those
/// overlap among each other too, one thread adds everything, which is slow and right.
///
/// # Errors
/// Errors of the compiler and the device, or if the dtype has no sum.
///
/// # Safety
/// As [`accumulate`](opsmith_runtime::backend::DeviceRuntime::accumulate).
pub unsafe fn accumulate(place: Place, to: Elements<'_>, from: Elements<'_>) -> Result<()> {
    if !to.dtype.is_differentiable() || to.dtype != from.dtype {
        return Err(Error::dtype(format!("a gradient of dtype {} cannot be added", to.dtype)));
    }
    let dims = dims_of(to, Some(from));
    if count(&dims) == 0 {
        return Ok(());
    }
    let (mut targets, addends): (Dims, Dims) = dims.iter().copied().partition(|dim| dim.to != 0);
    let (targets, addends) = if may_overlap(&targets) {
        (Dims::new(), collapse(&dims))
    } else {
        order_by_target(&mut targets);
        (collapse(&targets), collapse(&addends))
    };
    let index = index_type(count(&targets).max(count(&addends)));
    let instance = accumulate_each(to.dtype, index);
    let size = from.dtype.size();
    // The outer addends first: launches of a stream keep the row-major order.
    for_each_part(&addends, MAX_DIMS, to, from.start, size, &mut |addends, to_start, from_start| {
        let to = Elements { start: to_start, ..to };
        for_each_part(&targets, MAX_DIMS, to, from_start, size, &mut |targets, to, from| {
            let parts = [Geometry::new(targets, to, from), Geometry::new(addends, to, from)];
            let parameters = [KernelParameter::of(&parts[0]), KernelParameter::of(&parts[1])];
            // SAFETY: the caller's promise; the parts are inside both sides.
            unsafe { run(place, &instance, count(targets), &parameters) }
        })
    })
}

/// Copies bytes within the device.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// Both sides have as many bytes, do not overlap, and stay valid until the stream has passed the copy.
pub unsafe fn copy(place: Place, to: *mut u8, from: *const u8, bytes: usize) -> Result<()> {
    let context = place.stream.context;
    let _entered = context.enter()?;
    // SAFETY: the caller's promise.
    let code = unsafe {
        (context.api().cuMemcpyDtoDAsync_v2)(to.addr() as u64, from.addr() as u64, bytes, place.stream.raw())
    };
    context.check(code, format_args!("copy {bytes} bytes"))
}

/// The shortest word that is repeated in an element, of 1, 2 or 4 bytes.
fn repeated_word(element: &[u8]) -> Option<&[u8]> {
    let repeats = |length: &usize| {
        element.len().is_multiple_of(*length)
            && element.chunks_exact(*length).all(|chunk| chunk == &element[..*length])
    };
    [1, 2, 4].into_iter().find(repeats).map(|length| &element[..length])
}

/// Repeats a word of 1, 2 or 4 bytes.
unsafe fn set(place: Place, to: *mut u8, word: &[u8], bytes: usize) -> Result<()> {
    let context = place.stream.context;
    let _entered = context.enter()?;
    let (api, to, raw) = (context.api(), to.addr() as u64, place.stream.raw());
    // SAFETY: the caller's promise: there are as many bytes.
    let code = unsafe {
        match *word {
            [one] => (api.cuMemsetD8Async)(to, one, bytes, raw),
            [one, two] => (api.cuMemsetD16Async)(to, u16::from_ne_bytes([one, two]), bytes / 2, raw),
            _ => {
                let word = word.try_into().map_or(0, u32::from_ne_bytes);
                (api.cuMemsetD32Async)(to, word, bytes / 4, raw)
            }
        }
    };
    context.check(code, format_args!("fill {bytes} bytes"))
}

/// A function of dimensions, and the addresses of the first elements of target and source.
type Visit<'a> = &'a mut dyn FnMut(&[Dim], *mut u8, *const u8) -> Result<()>;

/// Calls a function with parts of at most `most` dimensions and the addresses of their first elements, in row-major order.
fn for_each_part(
    dims: &[Dim],
    most: usize,
    to: Elements<'_>,
    from: *const u8,
    from_size: usize,
    visit: Visit<'_>,
) -> Result<()> {
    let [outer, inner @ ..] = dims else { return visit(dims, to.start, from) };
    if dims.len() <= most {
        return visit(dims, to.start, from);
    }
    for index in 0..outer.size as i64 {
        let offset = |stride: i64, size: usize| (index * stride) as isize * size as isize;
        let start = to.start.wrapping_offset(offset(outer.to, to.dtype.size()));
        let from = from.wrapping_offset(offset(outer.from, from_size));
        for_each_part(inner, most, Elements { start, ..to }, from, from_size, visit)?;
    }
    Ok(())
}

/// # Safety
/// The instance takes these parameters, and their memory stays valid until the stream has passed the work.
unsafe fn run(place: Place, instance: &str, count: u64, parameters: &[KernelParameter<'_>]) -> Result<()> {
    let function = place.device.function(&SOURCE, instance)?;
    let blocks = count.div_ceil(u64::from(THREADS) * ELEMENTS).clamp(1, MAX_BLOCKS) as u32;
    let grid = Grid { blocks: [blocks, 1, 1], threads: [THREADS, 1, 1], shared: 0 };
    // SAFETY: the caller's promise.
    unsafe { launch(place.stream, place.device.status()?, function, grid, parameters) }
}

#[cfg(test)]
mod tests {
    use opsmith_core::DType;

    use super::instance::all as instances;
    use super::*;

    #[test]
    fn words_are_the_shortest_that_repeat() {
        let word = |element: &[u8]| repeated_word(element).map(<[u8]>::len);
        assert_eq!(word(&[0; 16]), Some(1));
        assert_eq!(word(&[1, 0]), Some(2));
        assert_eq!(word(&1.0f32.to_ne_bytes()), Some(4));
        assert_eq!(word(&1.0f64.to_ne_bytes()), None);
        assert_eq!(word(&[7]), Some(1));
    }

    #[test]
    fn parts_are_visited_in_row_major_order() {
        let dims = [Dim { size: 2, to: 6, from: 1 }, Dim { size: 3, to: 2, from: 2 }];
        let mut found = Vec::new();
        let to = Elements { start: std::ptr::null_mut(), dtype: DType::F32, sizes: &[], strides: &[] };
        for_each_part(&dims, 0, to, null(), 4, &mut |dims, to, from| {
            assert!(dims.is_empty());
            found.push((to.addr(), from.addr()));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [(0, 0), (8, 8), (16, 16), (24, 4), (32, 12), (40, 20)]);
    }

    /// Every instance, by the real compiler, for an architecture with and one without instructions for bfloat16.
    #[test]
    #[ignore = "needs NVRTC, in a place of the search or named in OPSMITH_NVRTC; no device"]
    fn every_instance_compiles() {
        for instance in instances().filter(|instance| !instance.ends_with("u64)")) {
            let image = crate::compile::image_for(&SOURCE, &instance, 90).unwrap();
            assert!(image.starts_with(b"\x7fELF"), "{instance}");
        }
        crate::compile::image_for(&SOURCE, "OPSMITH_CONVERT(opsmith_kernel, bf16, f16, u64)", 75).unwrap();
        // An architecture of the future.
        let text = crate::compile::image_for(&SOURCE, "OPSMITH_MOVE(opsmith_kernel, u8, u32)", 999).unwrap();
        assert!(text.starts_with(b"//"), "text for the driver's compiler");
    }

    #[test]
    fn instances_are_different() {
        let all: Vec<String> = instances().collect();
        let different: std::collections::HashSet<&String> = all.iter().collect();
        assert_eq!((all.len(), different.len()), (687, 687));
    }
}
