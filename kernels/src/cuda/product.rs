//! Launches of products in tiles: `product.cuh`.
//!
//! In: a program with a functor for products, and its parameter. Out: work in the stream of the calling thread. Must not know
//! the operands.

use std::ffi::c_void;
use std::marker::PhantomData;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{Grid, KernelParameter};
use opsmith_runtime::{DType, Device, Error, Result};

use super::scratch::Room;

/// Sizes of a product, field by field as in `product.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct ProductShape {
    pub stacks: u64,
    pub rows: u64,
    pub columns: u64,
    pub inner: u64,
    part: u64,
    partial: *mut c_void,
}

impl ProductShape {
    /// A product whose inner dimension is one part.
    pub fn new(stacks: u64, rows: u64, columns: u64, inner: u64) -> ProductShape {
        ProductShape { stacks, rows, columns, inner, part: inner.max(1), partial: std::ptr::null_mut() }
    }

    fn sums(&self) -> u64 {
        self.stacks * self.rows * self.columns
    }

    fn parts(&self) -> u64 {
        self.inner.div_ceil(self.part).max(1)
    }

    /// Parts of the inner dimension, of at least `shortest` indices, so that a device has work for all its processors;
    /// `blocks` would run without. The memory is for their sums.
    fn split(&mut self, device: Device, dtype: DType, blocks: u64, shortest: u64) -> Result<Option<Room>> {
        let parts = (BUSY / blocks.max(1)).min(self.inner / shortest).min(MOST_PARTS);
        if parts < 2 {
            return Ok(None);
        }
        self.part = self.inner.div_ceil(parts).next_multiple_of(16);
        let memory = Room::of_dtype(device, dtype, self.parts() * self.sums())?;
        self.partial = memory.address();
        Ok(Some(memory))
    }
}

/// Blocks that occupy a device, and the maximal number of parts.
const BUSY: u64 = 512;
const MOST_PARTS: u64 = 256;
/// The maximal number of blocks along the second dimension of a grid.
const MOST_STACKS: u64 = 65535;

/// The parameter of a functor for products.
///
/// # Safety
/// It is laid out as C has it, and its first field is the shape.
pub(super) unsafe trait Product: Copy {}

/// A parameter without its type, so that launches are compiled once.
#[derive(Clone, Copy)]
struct Erased<'a> {
    start: *mut ProductShape,
    bytes: usize,
    lives: PhantomData<&'a mut ProductShape>,
}

impl<'a> Erased<'a> {
    fn of<P: Product>(parameter: &'a mut P) -> Erased<'a> {
        Erased { start: std::ptr::from_mut(parameter).cast(), bytes: size_of::<P>(), lives: PhantomData }
    }

    /// The shape, which is the parameter's first field.
    fn shape(&mut self) -> &mut ProductShape {
        // SAFETY: a `Product` begins with it, and is borrowed by this; copies of this are used one after the other.
        unsafe { &mut *self.start }
    }

    fn of_kernel(&self) -> KernelParameter<'a> {
        // SAFETY: the parameter has so many bytes, and is borrowed by this.
        unsafe { KernelParameter::from_raw(self.start.cast(), self.bytes) }
    }
}

/// A functor of a program: its number there, and its type.
pub(super) struct Functor<'a> {
    pub program: &'static DeviceProgram,
    /// Less than 64; functors of other dtypes may share it.
    pub number: u32,
    pub dtype: DType,
    /// The type in the namespace `opsmith`.
    pub name: &'a str,
}

impl Functor<'_> {
    /// The number of one of the functor's kernels.
    fn kernel(&self, kernel: u32) -> u32 {
        (self.number << 3 | kernel) << 8 | self.dtype as u32
    }

    unsafe fn launch(
        &self,
        device: Device,
        kernel: u32,
        instance: impl FnOnce() -> String,
        grid: Grid,
        parameter: Erased<'_>,
        more: Option<&u32>,
    ) -> Result<()> {
        let mut parameters = vec![parameter.of_kernel()];
        parameters.extend(more.map(KernelParameter::of));
        // SAFETY: the caller's promise.
        unsafe { self.program.launch(device, self.kernel(kernel), instance, grid, &parameters) }
    }

    /// Launches the product in tiles, and the sum of its parts if there are several.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// The functor has the layout of `P`; operands are on the device, inside their memory.
    pub unsafe fn product<P: Product>(&self, device: Device, mut parameter: P) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.product_of(device, Erased::of(&mut parameter)) }
    }

    /// # Safety
    /// As for [`Functor::product`].
    unsafe fn product_of(&self, device: Device, mut parameter: Erased<'_>) -> Result<()> {
        let shape = parameter.shape();
        if shape.sums() == 0 {
            return Ok(());
        }
        let stacks = shape.stacks.min(MOST_STACKS);
        let edge = edge(shape.rows, shape.columns, stacks, self.dtype.to_compute().size());
        let tiles = tiles(shape.rows, shape.columns, edge);
        let memory = shape.split(device, self.dtype.to_compute(), tiles * stacks, 256)?;
        let blocks = [blocks(tiles)?, stacks as u32, shape.parts() as u32];
        let grid = Grid { blocks, threads: [256, 1, 1], shared: 0 };
        let instance = || format!("OPSMITH_PRODUCT(opsmith_kernel, {edge}, {})", self.name);
        // SAFETY: the caller's promise; the memory for parts has room for all.
        unsafe { self.launch(device, edge.ilog2(), instance, grid, parameter, None)? };
        // SAFETY: the caller's promise; the launch above wrote the parts, in this stream.
        unsafe { self.add_parts(device, parameter, memory) }
    }

    /// Launches products of rows and one column, by teams along x or y.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// As for [`Functor::product`].
    pub unsafe fn rows<P: Product>(
        &self,
        device: Device,
        mut parameter: P,
        is_row_major: bool,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.rows_of(device, Erased::of(&mut parameter), is_row_major) }
    }

    /// # Safety
    /// As for [`Functor::rows`].
    unsafe fn rows_of(&self, device: Device, mut parameter: Erased<'_>, is_row_major: bool) -> Result<()> {
        let shape = parameter.shape();
        if shape.sums() == 0 {
            return Ok(());
        }
        // Along x the threads of a team are neighbours in a row, along y its teams are in a column.
        let lanes = shape.inner.next_power_of_two().clamp(32, 256) as u32;
        let (threads, teams) = match is_row_major {
            true => ([lanes, 256 / lanes, 1], 256 / lanes),
            false => ([32, 8, 1], 32),
        };
        let across = shape.rows.div_ceil(u64::from(teams)).min(1 << 20);
        let memory = shape.split(device, self.dtype.to_compute(), across, 4096)?;
        let grid = Grid { blocks: [across as u32, 1, shape.parts() as u32], threads, shared: 0 };
        let along_x = u32::from(is_row_major);
        let instance = || format!("OPSMITH_PRODUCT_ROWS(opsmith_kernel, {})", self.name);
        // SAFETY: the caller's promise.
        unsafe { self.launch(device, 6, instance, grid, parameter, Some(&along_x))? };
        // SAFETY: the caller's promise; the launch above wrote the parts, in this stream.
        unsafe { self.add_parts(device, parameter, memory) }
    }

    unsafe fn add_parts(
        &self,
        device: Device,
        mut parameter: Erased<'_>,
        memory: Option<Room>,
    ) -> Result<()> {
        let Some(_memory) = memory else { return Ok(()) };
        let count = parameter.shape().sums().div_ceil(256).min(1 << 20);
        let grid = Grid { blocks: [count as u32, 1, 1], threads: [256, 1, 1], shared: 0 };
        let instance = || format!("OPSMITH_PRODUCT_PARTS(opsmith_kernel, {})", self.name);
        // SAFETY: the caller's promise; the parts were written before, in this stream.
        unsafe { self.launch(device, 7, instance, grid, parameter, None) }
    }
}

/// Sums of a tile along each side, in units of 16.
fn edge(rows: u64, columns: u64, stacks: u64, bytes: usize) -> u32 {
    if rows <= 16 || columns <= 16 {
        1
    } else if bytes <= 8 && tiles(rows, columns, 8) * stacks >= BUSY / 2 {
        8
    } else {
        4
    }
}

fn tiles(rows: u64, columns: u64, edge: u32) -> u64 {
    let side = u64::from(16 * edge);
    rows.div_ceil(side) * columns.div_ceil(side)
}

fn blocks(tiles: u64) -> Result<u32> {
    let fits = i32::try_from(tiles).ok().map(i32::unsigned_abs);
    fits.ok_or_else(|| {
        Error::shape(format!("a product has {tiles} tiles, more than a launch on a device takes"))
    })
}
