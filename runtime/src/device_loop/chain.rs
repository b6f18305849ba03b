//! Chains: loops over elements of one shape, one after the other, as one kernel.
//!
//! In: the loops of several calls, and for each input of a loop its place: an operand in memory, or the result of an earlier loop.
//! Out: one launch that writes the results that have a place in memory; the others exist in registers alone. The kernel calls the
//! structs of the operators' own texts, with elements as they would lie in memory, so results have the bits of separate launches.
//!
//! ```text
//! links     %2 = a * b      %3 = exp(%2)      %4 = %3 + a        operands: %4, then a, b
//! kernel    v0 = l0(a, b);  v1 = l1(v0);  v2 = l2(v1, a);  r0 = v2;
//! ```
//!
//! Kernels are kept for the life of the process. Must not know graphs.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use opsmith_core::DType;
use smallvec::SmallVec;

use super::gather::ElementLoop;
use super::{Constant, DeviceProgram, Form, constant, geometry, grid};
use crate::backend::{Grid, KernelParameter};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, on_device};

/// Maximal number of operands in memory: their geometry is a parameter, and parameters have 4096 bytes together.
pub const MAX_CHAIN_OPERANDS: usize = 24;

/// Maximal number of loops: more would need more registers than a thread has.
pub const MAX_CHAIN_LINKS: usize = 24;

/// Maximal number of dimensions longer than 1.
pub const MAX_CHAIN_DIMS: usize = super::MAX_DIMS;

/// Maximal number of words of the loops' fields.
const MAX_CONSTANTS: usize = 240;

/// An input of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChainInput {
    /// An operand in memory, by its position after the results.
    Operand(usize),
    /// The result of an earlier loop.
    Link(usize),
}

/// One loop.
#[derive(Clone, Debug)]
pub struct ChainLink {
    /// The operator's name, for messages of the compiler.
    pub name: &'static str,
    /// The computation of an element.
    pub element: ElementLoop,
    /// The place of each input, in the order of the loop.
    pub inputs: SmallVec<[ChainInput; 4]>,
    /// The dtype of the result.
    pub dtype: DType,
}

/// A chain for operands of known layouts.
pub struct Chain {
    program: &'static DeviceProgram,
    form: Form,
    grid: Grid,
    /// The first parameter, and the words that it has.
    constants: SmallVec<[u64; 16]>,
    words: usize,
    /// The second parameter, with addresses of an earlier time.
    geometry: SmallVec<[u64; 96]>,
}

/// Bytes of the parameter of a kernel of many chains.
const MANY_BYTES: usize = 4000;

/// Maximal number of chains of one launch.
const MANY: usize = 64;

impl Chain {
    /// The chain of loops, for operands of these layouts: the results that have a place in memory, then the operands that are
    /// read. `stored` has the loop of each such result.
    ///
    /// # Errors
    /// If there are too many operands or dimensions.
    pub fn new(links: &[ChainLink], stored: &[usize], operands: &[&Tensor]) -> Result<Chain> {
        let constants: SmallVec<[&[Constant]; 8]> = links
            .iter()
            .filter_map(|link| match &link.element {
                ElementLoop::Expression { constants, .. } => Some(constants.as_slice()),
                ElementLoop::Conversion(_) => None,
            })
            .collect();
        let (constants, words) = constant::packed(&constants);
        let [first, ..] = operands else { return Err(too_large("no result")) };
        if operands.len() > MAX_CHAIN_OPERANDS {
            return Err(too_large(format_args!("{} operands", operands.len())));
        }
        if constants.len() > MAX_CONSTANTS {
            return Err(too_large(format_args!("{} bytes of numbers", 8 * constants.len())));
        }
        let count = first.numel() as u64;
        let (form, geometry) = geometry::<MAX_CHAIN_OPERANDS>(operands, count)?;
        let dtypes: SmallVec<[DType; 8]> = operands.iter().map(|operand| operand.dtype()).collect();
        let program = program_of(links, stored, &dtypes);
        Ok(Chain { program, form, grid: grid(count), constants, words, geometry })
    }

    /// Launches the chain in this thread's stream.
    ///
    /// # Errors
    /// If the backend compiles no source, or the device fails.
    ///
    /// # Safety
    /// The operands have the layouts, dtypes and device of those that the chain was made for; their memory is borrowed; a result
    /// overlaps another operand only if both have the same elements.
    pub unsafe fn run(&self, device: Device, operands: &[&Tensor]) -> Result<()> {
        if self.geometry.first() == Some(&0) {
            return Ok(());
        }
        let mut geometry: SmallVec<[u64; 256]> = SmallVec::from_slice(&self.geometry);
        let start = geometry.len() - operands.len();
        for (word, operand) in geometry[start..].iter_mut().zip(operands) {
            *word = operand.data_ptr().addr() as u64;
        }
        let parameters =
            [KernelParameter::within(&self.constants[..]), KernelParameter::within(&geometry[..])];
        let for_each = |visit: &mut dyn FnMut(&Tensor)| operands.iter().for_each(|operand| visit(operand));
        let instance = || format!("OPSMITH_CHAIN(opsmith_kernel, {})", self.form.name());
        on_device(device, for_each, |_| {
            // SAFETY: the program is the one of these operands' dtypes, its parameters have the layout that its text declares,
            // and the caller promises the rest.
            unsafe { self.program.launch(device, self.form as u32, instance, self.grid, &parameters) }
        })
    }

    /// Whether a launch may do both: they are of one kernel, and all operands of each lie in one order.
    pub fn goes_with(&self, other: &Chain) -> bool {
        std::ptr::eq(self.program, other.program)
            && self.form == Form::Contiguous
            && other.form == Form::Contiguous
    }

    /// Maximal number of chains that a launch does.
    pub fn most(&self) -> usize {
        let item = 8 * (self.words + self.geometry.len());
        ((MANY_BYTES - 8) / (item + 4)).min(MANY) / 2 * 2
    }
}

/// Launches chains that go with each other, at most as many as a launch does, with the operands of each.
///
/// # Errors
/// As [`Chain::run`].
///
/// # Safety
/// As of [`Chain::run`]; no chain writes what another accesses. The addresses are those for which the chains were made.
pub(super) unsafe fn run_many(device: Device, chains: &[(&Chain, &[&Tensor])]) -> Result<()> {
    let [(first, _), ..] = chains else { return Ok(()) };
    let most = first.most();
    let mut blocks: Vec<u32> = vec![chains.len() as u32, 0];
    for (chain, _) in chains {
        blocks.push(blocks.last().copied().unwrap_or(0).saturating_add(chain.grid.blocks[0]));
    }
    blocks.resize(most + 2, 0);
    let mut words: Vec<u64> = Vec::with_capacity(MANY_BYTES / 8);
    words.extend(blocks.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32));
    for (chain, _) in chains {
        words.extend_from_slice(&chain.constants[..chain.words]);
        words.extend_from_slice(&chain.geometry);
    }
    words.resize(MANY_BYTES / 8, 0);
    let total: u32 = chains.iter().map(|(chain, _)| chain.grid.blocks[0]).fold(0, u32::saturating_add);
    let grid = Grid { blocks: [total, 1, 1], ..first.grid };
    let parameters = [KernelParameter::within(&words[..])];
    let for_each = |visit: &mut dyn FnMut(&Tensor)| {
        chains.iter().flat_map(|(_, operands)| *operands).for_each(|operand| visit(operand));
    };
    let instance = || format!("OPSMITH_CHAINS(opsmith_kernel, {most})");
    on_device(device, for_each, |_| {
        // SAFETY: the program is the one of these operands' dtypes, its parameter has the layout that its text declares, and the
        // caller promises the rest.
        unsafe { first.program.launch(device, MANY as u32, instance, grid, &parameters) }
    })
}

#[cold]
fn too_large(what: impl std::fmt::Display) -> Error {
    Error::kernel(format!("a kernel of several loops cannot have {what}"))
        .with_help("run the graph without `Pass::Fusion`")
}

/// The program of a chain, which is kept for the life of the process.
fn program_of(links: &[ChainLink], stored: &[usize], dtypes: &[DType]) -> &'static DeviceProgram {
    static PROGRAMS: Mutex<Option<HashMap<Vec<u64>, &'static DeviceProgram>>> = Mutex::new(None);
    let key = key_of(links, stored, dtypes);
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let programs = programs.get_or_insert_default();
    if let Some(known) = programs.get(&key) {
        return known;
    }
    let names: Vec<&str> = links.iter().map(|link| link.name).collect();
    let text: &'static str = text_of(links, stored, dtypes).leak();
    let program = DeviceProgram::new(names.join(" + ").leak(), headers_of(links).leak(), text);
    let program: &'static DeviceProgram = Box::leak(Box::new(program));
    programs.insert(key, program);
    program
}

/// Numbers that are equal for equal texts alone: a source is identified by its address.
fn key_of(links: &[ChainLink], stored: &[usize], dtypes: &[DType]) -> Vec<u64> {
    let mut key = vec![links.len() as u64, stored.len() as u64];
    key.extend(stored.iter().map(|link| *link as u64));
    key.extend(dtypes.iter().map(|dtype| *dtype as u64));
    for link in links {
        match &link.element {
            ElementLoop::Expression { of, variant, dtype, .. } => {
                let choice = u64::from(*variant) << 8 | *dtype as u64;
                key.extend([std::ptr::from_ref(*of).addr() as u64, choice]);
            }
            ElementLoop::Conversion(_) => key.push(0),
        }
        key.push(link.dtype as u64 | (link.inputs.len() as u64) << 8);
        key.extend(link.inputs.iter().map(|input| match input {
            ChainInput::Operand(operand) => 2 * *operand as u64,
            ChainInput::Link(link) => 2 * *link as u64 + 1,
        }));
    }
    key
}

/// The texts that the loops' own texts need, each once.
fn headers_of(links: &[ChainLink]) -> Vec<&'static str> {
    let mut headers: Vec<&'static str> = Vec::new();
    for link in links {
        let ElementLoop::Expression { of, .. } = &link.element else { continue };
        for header in of.source().headers {
            if !headers.contains(header) {
                headers.push(header);
            }
        }
    }
    headers
}

/// The text of a chain: that of each operator once, in a namespace of its own, and the struct `Chain`.
fn text_of(links: &[ChainLink], stored: &[usize], dtypes: &[DType]) -> String {
    let mut text = include_str!("chain.cuh").to_owned();
    let mut sources: Vec<&'static str> = Vec::new();
    let (mut fields, mut steps) = (String::new(), String::new());
    for (number, link) in links.iter().enumerate() {
        let inputs: Vec<String> = link
            .inputs
            .iter()
            .map(|input| match input {
                ChainInput::Operand(operand) => format!("e{}", stored.len() + operand),
                ChainInput::Link(link) => format!("v{link}"),
            })
            .collect();
        let (inputs, ty) = (inputs.join(", "), link.dtype.ident());
        match &link.element {
            ElementLoop::Expression { of, variant, dtype, .. } => {
                let own = of.source().text;
                let source = sources.iter().position(|known| *known == own).unwrap_or_else(|| {
                    // Names of the library are found through the inner namespace, too.
                    let number = sources.len();
                    let _ = writeln!(text, "namespace chain_{number} {{");
                    let _ = writeln!(text, "namespace opsmith {{\nusing namespace ::opsmith;\n}}");
                    let _ = writeln!(text, "{own}}}");
                    sources.push(own);
                    number
                });
                let dtype = dtype.ident();
                let _ =
                    writeln!(fields, "  chain_{source}::opsmith::Loop{variant}<dtype::{dtype}> l{number};");
                let _ = writeln!(steps, "    const dtype::{ty} v{number} = l{number}({inputs});");
            }
            ElementLoop::Conversion(_) => {
                let _ = writeln!(
                    steps,
                    "    const dtype::{ty} v{number} = opsmith::convert<dtype::{ty}>({inputs});"
                );
            }
        }
    }
    for (result, link) in stored.iter().enumerate() {
        let _ = writeln!(steps, "    e{result} = v{link};");
    }
    let types: Vec<String> = dtypes.iter().map(|dtype| format!("dtype::{}", dtype.ident())).collect();
    let parameters: Vec<String> = types
        .iter()
        .enumerate()
        .map(|(operand, ty)| {
            format!("{}{ty} &e{operand}", if operand < stored.len() { "" } else { "const " })
        })
        .collect();
    let _ = writeln!(text, "namespace opsmith {{\nstruct Chain {{");
    let _ = writeln!(text, "  enum : int {{ kResults = {}, kOperands = {} }};", stored.len(), dtypes.len());
    let _ = writeln!(text, "  using Operands = Types<{}>;\n{fields}", types.join(", "));
    let _ =
        writeln!(text, "  DEVICE void operator()({}) const {{\n{steps}  }}\n}};\n}}", parameters.join(", "));
    text
}
