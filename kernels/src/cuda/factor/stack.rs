//! Parameters and launches of kernels with a block for each matrix of a stack: `matrix.cuh`.
//!
//! In: operands of any strides. Out: work in the stream of the calling thread. Must not know the operators.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{Grid, KernelParameter};
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Error, Result, Scalar};

use super::super::launch::too_many_dims;
use super::super::scratch::{Room, read};

/// The largest number of dimensions before the last two, as in `team.cuh`.
const MOST_DIMS: usize = 8;
/// The largest number of operands, as in `matrix.cuh`.
const MOST_OPERANDS: usize = 5;
/// Bytes of working memory above which blocks have more matrices each.
const MEMORY: u64 = 1 << 28;
/// Blocks that occupy every device of today, where each has working memory.
const BUSY: u64 = 2048;

/// A tensor's matrices: an address, sizes and strides, of which the last two are of rows and columns.
pub(super) struct Part<'a> {
    start: *mut c_void,
    sizes: &'a [i64],
    strides: &'a [i64],
    /// The number of last dimensions that are within a matrix.
    inner: usize,
}

impl<'a> Part<'a> {
    /// The matrices of an operand.
    pub fn matrices(view: &DeviceView<'a>) -> Part<'a> {
        Part {
            start: view.address().cast_mut().cast(),
            sizes: view.sizes(),
            strides: view.strides(),
            inner: 2,
        }
    }

    /// The rows of an operand, as matrices of one row.
    pub fn rows(view: &DeviceView<'a>) -> Part<'a> {
        Part { inner: 1, ..Part::matrices(view) }
    }

    /// The matrices of an output.
    pub fn of(view: &DeviceViewMut<'a>) -> Part<'a> {
        Part { start: view.address().cast(), sizes: view.sizes(), strides: view.strides(), inner: 2 }
    }

    /// The rows of an output, as matrices of one row.
    pub fn rows_of(view: &DeviceViewMut<'a>) -> Part<'a> {
        Part { inner: 1, ..Part::of(view) }
    }

    /// The elements of an output, as matrices of one element.
    pub fn elements_of(view: &DeviceViewMut<'a>) -> Part<'a> {
        Part { inner: 0, ..Part::of(view) }
    }

    /// # Errors
    /// If it has too few dimensions.
    fn outer(&self) -> Result<&'a [i64]> {
        self.sizes.len().checked_sub(self.inner).map(|outer| &self.sizes[..outer]).ok_or_else(|| {
            Error::shape(format!("expected matrices, got the shape {}", ShapeText(self.sizes)))
        })
    }
}

/// Field by field as in `matrix.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Operand {
    start: *mut c_void,
    rows: u64,
    columns: u64,
    row_step: i64,
    column_step: i64,
    steps: [i64; MOST_DIMS],
}

impl Operand {
    const NONE: Operand = Operand {
        start: std::ptr::null_mut(),
        rows: 0,
        columns: 0,
        row_step: 0,
        column_step: 0,
        steps: [0; MOST_DIMS],
    };

    /// An operand whose stack broadcasts to the sizes of another.
    fn of(part: &Part<'_>, sizes: &[i64]) -> Result<Operand> {
        let own = part.outer()?;
        let new = sizes.len().checked_sub(own.len());
        let fits = |new: usize| own.iter().zip(&sizes[new..]).all(|(own, size)| own == size || *own == 1);
        let Some(new) = new.filter(|new| fits(*new)) else {
            return Err(Error::shape(format!(
                "matrices of the sizes {} do not broadcast to {}",
                ShapeText(own),
                ShapeText(sizes)
            )));
        };
        let mut operand = Operand { start: part.start, rows: 1, columns: 1, ..Operand::NONE };
        for (dim, (size, stride)) in own.iter().zip(part.strides).enumerate() {
            operand.steps[new + dim] = if *size == 1 { 0 } else { *stride };
        }
        let (inner_sizes, inner_strides) = (&part.sizes[own.len()..], &part.strides[own.len()..]);
        if let (Some(&size), Some(&stride)) = (inner_sizes.last(), inner_strides.last()) {
            (operand.columns, operand.column_step) = (size as u64, stride);
        }
        if let (&[size, _], &[stride, _]) = (inner_sizes, inner_strides) {
            (operand.rows, operand.row_step) = (size as u64, stride);
        }
        Ok(operand)
    }
}

/// Field by field as in `matrix.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Matrices {
    count: u64,
    dims: u64,
    sizes: [u64; MOST_DIMS],
    operands: [Operand; MOST_OPERANDS],
    memory: *mut u8,
    room: u64,
    options: u64,
    refused: *mut u64,
}

/// A kernel of a program: its number there and its function.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    pub program: &'static DeviceProgram,
    pub number: u32,
    pub function: &'static str,
}

/// Bytes of a block's working memory, as `take` of `matrix.cuh` hands them out.
#[derive(Clone, Copy, Default)]
pub(super) struct Memory(u64);

impl Memory {
    /// With as many elements more.
    pub fn with(self, dtype: DType, count: u64) -> Memory {
        Memory(self.0.saturating_add(count.saturating_mul(dtype.size() as u64).next_multiple_of(16)))
    }
}

/// The launch of a kernel.
pub(super) struct Launch<'a> {
    pub kernel: Kernel,
    /// The type of the kernel's elements.
    pub dtype: DType,
    pub device: Device,
    /// The operands, in the order of the kernel; the stack is that of the first.
    pub parts: &'a [Part<'a>],
    /// The options, in the order of the kernel.
    pub options: &'a [bool],
    pub memory: Memory,
    /// Whether matrices may be refused, which the host waits for.
    pub may_refuse: bool,
}

/// A matrix that an operator refuses, and the place in it.
pub(super) struct Refused {
    pub number: usize,
    pub place: usize,
}

impl Launch<'_> {
    /// Submits the work; with `may_refuse`, waits for it and returns the first refused matrix.
    ///
    /// # Errors
    /// If the operands' stacks do not go together, or errors of the device.
    ///
    /// # Safety
    /// The operands are those that the kernel's text lists, of the types that it has for this dtype, and the working memory is
    /// as large as it takes.
    pub unsafe fn run(&self) -> Result<Option<Refused>> {
        let outer = self.parts[0].outer()?;
        if outer.len() > MOST_DIMS {
            return Err(too_many_dims(outer.len() + 2));
        }
        let mut matrices = Matrices {
            count: outer.iter().product::<i64>() as u64,
            dims: outer.len() as u64,
            sizes: [1; MOST_DIMS],
            operands: [Operand::NONE; MOST_OPERANDS],
            memory: std::ptr::null_mut(),
            room: self.memory.0,
            options: 0,
            refused: std::ptr::null_mut(),
        };
        for (to, size) in matrices.sizes.iter_mut().zip(outer) {
            *to = *size as u64;
        }
        for (to, part) in matrices.operands.iter_mut().zip(self.parts) {
            *to = Operand::of(part, outer)?;
        }
        for (number, option) in self.options.iter().enumerate() {
            matrices.options |= u64::from(*option) << number;
        }
        if matrices.count == 0 {
            return Ok(None);
        }
        let most = match self.memory.0 {
            0 => u64::from(u32::MAX >> 1),
            room => (MEMORY / room).clamp(1, BUSY),
        };
        let blocks = matrices.count.min(most);
        let memory = Room::new::<u8>(self.device, blocks.saturating_mul(self.memory.0))?;
        matrices.memory = memory.address();
        let refused = match self.may_refuse {
            true => Some(Room::filled(self.device, DType::I64, 1, Scalar::Int(-1))?),
            false => None,
        };
        if let Some(refused) = &refused {
            matrices.refused = refused.address();
        }
        // SAFETY: the caller's promise.
        unsafe { self.launch(blocks as u32, &matrices)? };
        let Some(refused) = refused else { return Ok(None) };
        // SAFETY: the room has one number.
        let first = unsafe { read::<i64>(self.device, refused.address())? } as u64;
        let found = Refused { number: (first >> 32) as usize, place: (first & u64::from(u32::MAX)) as usize };
        Ok((first != u64::MAX).then_some(found))
    }

    /// # Safety
    /// As [`Launch::run`].
    unsafe fn launch(&self, blocks: u32, matrices: &Matrices) -> Result<()> {
        let longest = matrices.operands.iter().map(|operand| operand.rows.max(operand.columns)).max();
        // A thread has some elements of each step; fewer threads wait less for each other.
        let threads = match longest.unwrap_or(0) {
            0..=16 => 32,
            17..=32 => 64,
            33..=64 => 128,
            _ => 256,
        };
        let Kernel { program, number, function } = self.kernel;
        let number = number << 8 | self.dtype as u32;
        let instance = || {
            format!("OPSMITH_MATRICES(opsmith_kernel, {function}, opsmith::dtype::{})", self.dtype.ident())
        };
        let grid = Grid { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared: 0 };
        let parameters = [KernelParameter::of(matrices)];
        // SAFETY: the caller's promise; the parameter is that of `matrix.cuh`.
        unsafe { program.launch(self.device, number, instance, grid, &parameters) }
    }
}
