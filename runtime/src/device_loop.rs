//! Loops over elements of device memory, from an expression in the device's language.
//!
//! In: a call, the source of a loop, the tensors it reads and the numbers it needs. Out: one launch in this thread's stream,
//! or the error of the backend that compiles and launches it. The layout of parameters is that of `kernels/cuda/loop.cuh`.
//! Must know no operator and no driver.

mod batch;
mod chain;
mod constant;
mod gather;
mod grow;
mod program;

use opsmith_core::DType;
use smallvec::SmallVec;

use crate::axes::{Axes, Axis, in_memory_order};
use crate::backend::{DeviceSource, Grid, KernelParameter};
use crate::copy;
use crate::error::{Error, Result};
use crate::op::KernelCall;
use crate::pointwise::{MAX_OPERANDS, refuse_other_shape};
use crate::tensor::Tensor;
pub use batch::{apart, in_batches};
pub use chain::{Chain, ChainLink, MAX_CHAIN_DIMS};
pub use constant::Constant;
pub use gather::{ElementLoop, element_loop};
pub use grow::{ChainElements, ChainWrite, GrowingChain};
pub use program::DeviceProgram;

/// Maximal number of merged dimensions of a strided loop.
const MAX_DIMS: usize = 8;

/// Threads of a block.
const THREADS: u64 = 256;

/// Elements that each thread computes before the grid's stride.
const ELEMENTS: u64 = 4;

/// Maximal number of blocks; each goes on with the grid's stride.
const MAX_BLOCKS: u64 = 1 << 20;

/// The way of a loop through memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Contiguous,
    Strided32,
    Strided64,
}

impl Form {
    const ALL: [Form; 3] = [Form::Contiguous, Form::Strided32, Form::Strided64];

    fn name(self) -> &'static str {
        match self {
            Form::Contiguous => "contiguous",
            Form::Strided32 => "strided32",
            Form::Strided64 => "strided64",
        }
    }
}

/// The source of an operator's loops.
#[derive(Debug)]
pub struct DeviceLoop(DeviceProgram);

impl DeviceLoop {
    /// The loops of an operator: `text` defines structs `Loop0`, `Loop1`, …, after the texts of `headers`.
    ///
    /// # Safety
    /// Each struct has as many inputs as [`run`] is given with its number, and the constants as fields.
    pub const unsafe fn new(
        name: &'static str,
        headers: &'static [&'static str],
        text: &'static str,
    ) -> DeviceLoop {
        DeviceLoop(DeviceProgram::new(name, headers, text))
    }

    /// The source.
    pub fn source(&self) -> &DeviceSource {
        self.0.source()
    }
}

/// Runs a loop over the elements of the first output and the given inputs.
///
/// # Errors
/// If the operands are not in device memory or have shapes that do not broadcast, if the backend compiles no source, or the
/// device fails.
pub fn run(
    call: &KernelCall<'_>,
    of: &'static DeviceLoop,
    variant: u8,
    dtype: DType,
    inputs: &[usize],
    constants: &[Constant],
) -> Result<()> {
    let described = gather::described(|| ElementLoop::Expression {
        of,
        variant,
        dtype,
        inputs: inputs.into(),
        constants: constants.into(),
    });
    if described {
        return Ok(());
    }
    let operands = operands(call, inputs)?;
    if operands[0].numel() == 0 {
        return Ok(());
    }
    let held = batch::held(call.op().name, &operands, || ElementLoop::Expression {
        of,
        variant,
        dtype,
        inputs: inputs.into(),
        constants: constants.into(),
    });
    if held {
        return Ok(());
    }
    launch(of, (variant, dtype), &operands, constants)
}

/// Launches a loop over the elements of the first operand, the result, and the others, its inputs.
fn launch(
    of: &'static DeviceLoop,
    (variant, dtype): (u8, DType),
    operands: &[&Tensor],
    constants: &[Constant],
) -> Result<()> {
    let (device, count) = (operands[0].device(), operands[0].numel() as u64);
    let (form, geometry) = geometry::<MAX_OPERANDS>(operands, count)?;
    let instance = || {
        let of = format!("opsmith::Loop{variant}<opsmith::dtype::{}>", dtype.ident());
        line(&of, form)
    };
    let choice = u32::from_le_bytes([variant, dtype as u8, form as u8, 0]);
    let constants = constant::packed(&[constants]).0;
    let parameters = [KernelParameter::within(&constants[..]), KernelParameter::within(&geometry[..])];
    // SAFETY: the kernel was compiled for these operands' dtypes and this form, and its parameters have the layout that it
    // declares; the layouts are inside their memory, which the caller keeps until the use that is noted.
    unsafe { of.0.launch(device, choice, instance, grid(count), &parameters) }
}

/// The beginning of the line of every loop.
const LINE: &str = "OPSMITH_LOOP(opsmith_kernel, ";

/// The line that defines the kernel of a struct in a form.
fn line(of: &str, form: Form) -> String {
    format!("{LINE}{of}, {})", form.name())
}

/// The lines of a loop for all ways through memory, from one of them; `None` for the line of another kernel. So a loop that
/// was run for elements in a row can be compiled ahead of time for all others.
pub fn lines_of_loop(of_one: &str) -> Option<[String; 3]> {
    let rest = of_one.trim().strip_prefix(LINE)?;
    let of = Form::ALL.into_iter().find_map(|form| rest.strip_suffix(&format!(", {})", form.name())))?;
    Some(Form::ALL.map(|form| line(of, form)))
}

/// Copies an argument into the first output, converted to its dtype: a loop whose expression is the argument itself.
///
/// # Errors
/// As [`run`].
pub fn copy(call: &KernelCall<'_>, argument: usize) -> Result<()> {
    if gather::described(|| ElementLoop::Conversion(argument)) {
        return Ok(());
    }
    let operands = operands(call, &[argument])?;
    copy::convert(operands[0], operands[1])
}

fn operands<'a>(call: &KernelCall<'a>, inputs: &[usize]) -> Result<SmallVec<[&'a Tensor; MAX_OPERANDS]>> {
    let Some(out) = call.device_outputs()?.first() else {
        return Err(Error::argument("a loop over elements has an output"));
    };
    let mut operands = SmallVec::from_slice(&[out]);
    for &index in inputs {
        let input = call.args()[index].tensor();
        refuse_other_shape(index, input, out)?;
        operands.push(input);
    }
    Ok(operands)
}

/// The threads for so many elements.
fn grid(count: u64) -> Grid {
    let blocks = count.div_ceil(THREADS * ELEMENTS).clamp(1, MAX_BLOCKS) as u32;
    Grid { blocks: [blocks, 1, 1], threads: [THREADS as u32, 1, 1], shared: 0 }
}

/// The second parameter of a kernel in whole words, the addresses of operands last, and the form that it is for.
fn geometry<const N: usize>(operands: &[&Tensor], count: u64) -> Result<(Form, SmallVec<[u64; 96]>)> {
    let mut words: SmallVec<[u64; 96]> = SmallVec::from_slice(&[count]);
    let pointers = operands.iter().map(|tensor| tensor.data_ptr().addr() as u64);
    let first = operands[0].layout();
    let is_row_major = |tensor: &&Tensor| tensor.is_contiguous() && tensor.numel() as u64 == count;
    if operands.iter().all(is_row_major)
        || first.is_dense() && operands.iter().all(|tensor| tensor.layout().has_order_of(first))
    {
        words.extend(pointers);
        return Ok((Form::Contiguous, words));
    }
    let axes = in_memory_order(steps::<N>(operands));
    if axes.len() > MAX_DIMS {
        return Err(Error::not_implemented(format!(
            "a loop on a device walks at most {MAX_DIMS} dimensions that do not merge, and these operands have {}",
            axes.len()
        ))
        .with_help("make the operands contiguous first"));
    }
    let form = if count <= i32::MAX as u64 { Form::Strided32 } else { Form::Strided64 };
    words.push(axes.len() as u64);
    let size = |dim: usize| axes.get(dim).map_or(1, |axis| axis.size as u64);
    match form {
        Form::Strided64 => words.extend((0..MAX_DIMS).map(size)),
        _ => words.extend((0..MAX_DIMS / 2).map(|pair| size(2 * pair) | size(2 * pair + 1) << 32)),
    }
    for operand in 0..operands.len() {
        words.extend((0..MAX_DIMS).map(|dim| axes.get(dim).map_or(0, |axis| axis.steps[operand] as u64)));
    }
    words.extend(pointers);
    Ok((form, words))
}

/// The dimensions of the first operand with the step of each operand in elements, 0 where it is broadcast.
fn steps<const N: usize>(operands: &[&Tensor]) -> Axes<N> {
    let sizes = operands[0].shape();
    let dims = (0..sizes.len()).filter(|&dim| sizes[dim] != 1);
    dims.map(|dim| {
        let mut steps = [0; N];
        for (step, tensor) in steps.iter_mut().zip(operands) {
            let missing = sizes.len() - tensor.dim();
            if dim >= missing && tensor.shape()[dim - missing] != 1 {
                *step = tensor.strides()[dim - missing];
            }
        }
        Axis { size: sizes[dim], steps }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    #[test]
    fn a_loop_has_a_line_for_each_way_through_memory() {
        let of = "opsmith::Loop0<opsmith::dtype::F32>";
        let lines = Form::ALL.map(|form| line(of, form));
        assert_eq!(lines[1], "OPSMITH_LOOP(opsmith_kernel, opsmith::Loop0<opsmith::dtype::F32>, strided32)");
        for one in &lines {
            assert_eq!(lines_of_loop(&format!("{one}\n")).as_ref(), Some(&lines));
        }
        assert_eq!(lines_of_loop("OPSMITH_EACH(opsmith_kernel, fill<opsmith::dtype::F32>)"), None);
        assert_eq!(lines_of_loop(&line(of, Form::Contiguous).replace("contiguous", "other")), None);
    }

    #[test]
    fn operands_of_one_order_are_walked_as_contiguous_ones() {
        let [rows, turned] = [[2, 1], [1, 3]].map(|strides| {
            let layout = Layout { sizes: [3, 2][..].into(), strides: strides[..].into(), offset: 0 };
            Tensor::of(&[0.0f32; 6]).with_layout(&layout).unwrap()
        });
        let form = |operands: [&Tensor; 2]| geometry::<2>(&operands, 6).unwrap().0;
        assert_eq!(form([&rows, &rows]), Form::Contiguous);
        assert_eq!(form([&turned, &turned]), Form::Contiguous);
        assert_eq!(form([&turned, &rows]), Form::Strided32);
        let row = Tensor::of(&[0.0f32; 2]);
        assert_eq!(form([&turned, &row]), Form::Strided32);
    }
}
