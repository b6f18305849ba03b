//! Launches of `reduction.cuh`: many elements to one, over any dimensions.
//!
//! In: a fold by its name, an input and an output. Out: work in the stream of the calling thread.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{Grid, KernelParameter};
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::{Device, DeviceView, DeviceViewMut, Result};

use super::launch::too_many_dims;
use super::scratch::Room;
use crate::cpu::reduced_strides;
use crate::device::{Dim, Plan, Reduction};

/// A fold's text: the program, a number for it, the struct with its arguments, and the value of the call that it is: a number,
/// or a struct with its fields.
pub(super) struct Fold<Text, Value = f64> {
    pub program: &'static DeviceProgram,
    /// Different for each text, below 2^31.
    pub number: u32,
    pub text: Text,
    pub value: Value,
    /// Whether it looks at the numbers of elements.
    pub ordered: bool,
}

/// Operands of a reduction, with a stride of both for each dimension.
pub(super) struct Operands<'a> {
    pub device: Device,
    pub sizes: &'a [i64],
    pub reduced: &'a [bool],
    pub input: (*const c_void, &'a [i64]),
    pub out: (*mut c_void, &'a [i64]),
}

/// Writes the fold of the reduced dimensions.
///
/// # Errors
/// If more than eight dimensions are left after merging, or errors of the device.
///
/// # Safety
/// The operands' places are inside their memory, which is kept until the stream has passed this request; their elements are of
/// the types of the fold.
pub(super) unsafe fn fold<Value: Copy>(
    fold: &Fold<impl Fn() -> String, Value>,
    operands: &Operands<'_>,
) -> Result<()> {
    let dim = |dim: usize| Dim {
        size: operands.sizes[dim],
        input: operands.input.1[dim],
        output: operands.out.1[dim],
        reduced: operands.reduced[dim],
    };
    let dims: Vec<Dim> = (0..operands.sizes.len()).map(dim).collect();
    let plan = Plan::new(&dims, fold.ordered).ok_or_else(|| too_many_dims(dims.len()))?;
    let (outputs, splits) = (plan.geometry.outputs as usize, plan.geometry.splits as usize);
    if outputs == 0 {
        return Ok(());
    }
    // A partial value has at most 48 bytes.
    let partials = match plan.end_blocks {
        0 => None,
        _ => Some(Room::new::<[u64; 6]>(operands.device, (outputs * splits) as u64)?),
    };
    let geometry = Reduction {
        out: operands.out.0,
        input: operands.input.0,
        partials: partials.as_ref().map_or(std::ptr::null_mut(), Room::address),
        ..plan.geometry
    };
    let parameters = [KernelParameter::within(&fold.value), KernelParameter::of(&geometry)];
    let grid = Grid {
        blocks: [plan.blocks[0], plan.blocks[1], 1],
        threads: [plan.threads[0], plan.threads[1], 1],
        shared: 0,
    };
    let line = |name: &str| format!("{name}(opsmith_kernel, {})", (fold.text)());
    let number = fold.number << 1;
    // SAFETY: the caller's promise; the parameters are those of `reduction.cuh`.
    unsafe {
        let first = || line("OPSMITH_REDUCTION");
        fold.program.launch(operands.device, number, first, grid, &parameters)?;
        if plan.end_blocks > 0 {
            let grid = Grid { blocks: [plan.end_blocks, 1, 1], threads: [256, 1, 1], shared: 0 };
            let end = || line("OPSMITH_REDUCTION_END");
            fold.program.launch(operands.device, number | 1, end, grid, &parameters)?;
        }
    }
    Ok(())
}

/// Writes the fold of an operand over dimensions, all without any, into an output that keeps them with size 1 if `keepdim`.
///
/// # Errors
/// As [`fold`], and if a dimension is out of range or the output has another shape.
///
/// # Safety
/// The types of the fold are those of the operands.
pub(super) unsafe fn fold_view(
    f: &Fold<impl Fn() -> String>,
    input: &DeviceView<'_>,
    dim: Option<&[i64]>,
    keepdim: bool,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let reduced = reduced_dims(input.sizes().len(), dim)?;
    let strides = reduced_strides(input.sizes(), &reduced, keepdim, out.sizes(), out.strides())?;
    let operands = Operands {
        device: out.device(),
        sizes: input.sizes(),
        reduced: &reduced,
        input: (input.address().cast(), input.strides()),
        out: (out.address().cast(), &strides),
    };
    // SAFETY: places of the views; the caller's promise.
    unsafe { fold(f, &operands) }
}
