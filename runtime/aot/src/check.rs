//! `OPSMITH_CHECK=1`: a kernel among guarded buffers.
//!
//! In: a kernel and the memory of a call. Out: the outputs, or a mistake of the kernel: it wrote
//! outside a buffer, changed an input or the arrays of shapes, left an output unwritten, or let its result
//! depend on uninitialised memory. Each report names the buffer. The kernel runs twice, among other
//! bytes each time: results that differ were computed from them. It works on copies, so a mistake does no harm
//! unless it goes farther than the guards.

use std::ffi::c_void;
use std::sync::Arc;

use opsmith_runtime::error::{Error, Result};

use super::device::{self, Image, Place};
use super::instance::{Instance, Shape};
use super::kernel::Kernel;
use super::library::Library;

/// Bytes of guard on each side of a buffer.
const GUARD: usize = 4096;
/// The bytes of guards in the two runs.
const CANARIES: [u8; 2] = [0xC3, 0x3C];
/// The bytes of outputs before the two runs. As numbers they are tiny and negative, and huge, so that one of them
/// changes any sum or extremum. Two, because a kernel may well write one of them.
const OUTPUTS: [u8; 2] = [0xA5, 0x7F];
/// The same of workspaces: others, so that a copy of one does not look like an output that was left unwritten.
const WORKSPACES: [u8; 2] = [0xA6, 0x7E];

/// Memory that is uninitialised when a kernel starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unwritten {
    Output(usize),
    Workspace(usize),
    /// The bytes around the buffers.
    Guards,
}

/// Which of that memory holds the bytes of the second run.
type Second<'a> = &'a dyn Fn(Unwritten) -> bool;

/// Runs a kernel; `addresses` are those of inputs (null if absent) and outputs.
///
/// # Errors
/// If the kernel fails, or makes one of these mistakes.
pub(super) fn run(
    kernel: &Kernel,
    library: &Arc<Library>,
    shape: &Shape,
    addresses: &[*mut u8],
) -> Result<()> {
    let attempt = |second: Second<'_>| attempt(kernel, library, shape, addresses, second);
    let (first, second) = (attempt(&|_| false)?, attempt(&|_| true)?);
    // Elements may really equal one poison; only unwritten ones look so with both.
    let again = second.unwritten(shape, OUTPUTS[1]);
    for (index, mut elements) in first.unwritten(shape, OUTPUTS[0]).into_iter().enumerate() {
        elements.retain(|element| again[index].binary_search(element).is_ok());
        if let Some(element) = elements.first() {
            return Err(forgotten(kernel, library, shape, index, elements.len(), *element));
        }
    }
    // A kernel with random numbers differs from itself, and nothing can be learned from that.
    if let Some(difference) = first.difference(&second)
        && attempt(&|_| false)?.difference(&first).is_none()
    {
        let outputs = (0..first.outputs.len()).map(Unwritten::Output);
        let workspaces = (0..first.workspaces).map(Unwritten::Workspace);
        let mut culprit = None;
        for suspect in workspaces.chain(outputs).chain([Unwritten::Guards]) {
            if attempt(&|memory| memory == suspect)?.difference(&first).is_some() {
                culprit = Some(suspect);
                break;
            }
        }
        return Err(dependent(kernel, library, shape, difference, culprit));
    }
    for (buffer, address) in first.outputs.iter().zip(&addresses[shape.inputs..]) {
        let content = buffer.content();
        // SAFETY: the output has the size of its slot, as the buffer, and the dispatcher holds its borrow.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), *address, content.len()) };
    }
    Ok(())
}

/// Buffers after a call.
struct Attempt {
    outputs: Vec<Guarded>,
    /// How many workspaces there were.
    workspaces: usize,
}

impl Attempt {
    /// The elements of each output that hold nothing but poison.
    fn unwritten(&self, shape: &Shape, poison: u8) -> Vec<Vec<usize>> {
        let slots = &shape.slots[shape.inputs..];
        let of = |(buffer, slot): (&Guarded, &super::instance::Slot)| {
            let size = slot.dtype.map_or(1, |dtype| dtype.size());
            let elements = buffer.content().chunks(size).enumerate();
            elements
                .filter(|(_, bytes)| bytes.iter().all(|byte| *byte == poison))
                .map(|(index, _)| index)
                .collect()
        };
        self.outputs.iter().zip(slots).map(of).collect()
    }

    /// The first output and byte of it that differ from those of another attempt.
    fn difference(&self, other: &Attempt) -> Option<(usize, usize)> {
        self.outputs.iter().zip(&other.outputs).enumerate().find_map(|(output, (one, two))| {
            let byte = one.content().iter().zip(two.content()).position(|(one, two)| one != two)?;
            Some((output, byte))
        })
    }
}

fn attempt(
    kernel: &Kernel,
    library: &Arc<Library>,
    shape: &Shape,
    addresses: &[*mut u8],
    second: Second<'_>,
) -> Result<Attempt> {
    let place = kernel.place;
    let mut instance =
        Instance::new(library.clone(), &kernel.function, &kernel.signature, shape.clone(), place)?;
    let (inputs, outputs) = shape.slots.split_at(shape.inputs);
    let canary = CANARIES[usize::from(second(Unwritten::Guards))];
    let poisoned =
        |size, poisons: [u8; 2], memory| Guarded::new(size, poisons[usize::from(second(memory))], canary);
    let mut given = Vec::new();
    for (slot, address) in inputs.iter().zip(addresses) {
        let mut buffer = Guarded::new(slot.bytes(), 0, canary);
        if slot.dtype.is_some() {
            // SAFETY: the input has the size of its slot, and the dispatcher holds its borrow.
            unsafe { std::ptr::copy_nonoverlapping(*address, buffer.address(), slot.bytes()) };
        }
        given.push(buffer);
    }
    let outputs = outputs.iter().enumerate();
    let mut outputs: Vec<Guarded> =
        outputs.map(|(index, slot)| poisoned(slot.bytes(), OUTPUTS, Unwritten::Output(index))).collect();
    let sizes = instance.workspaces().iter().enumerate();
    let mut workspaces: Vec<Guarded> =
        sizes.map(|(index, size)| poisoned(*size, WORKSPACES, Unwritten::Workspace(index))).collect();
    let present = inputs.iter().map(|slot| slot.dtype.is_some()).chain(std::iter::repeat(true));
    let buffers = given.iter_mut().chain(&mut outputs).chain(&mut workspaces).zip(present);
    call(kernel, &mut instance, buffers)?;
    check_guards(kernel, library, [&given, &outputs, &workspaces])?;
    for (index, (buffer, address)) in
        given.iter().zip(addresses).enumerate().filter(|(_, (_, address))| !address.is_null())
    {
        let content = buffer.content();
        // SAFETY: the address is that of an input of the call, which has its slot's size, as its copy between the guards.
        let original = unsafe { std::slice::from_raw_parts(address.cast_const(), content.len()) };
        if let Some(byte) = content.iter().zip(original).position(|(now, before)| now != before) {
            let name = kernel.signature.input_name(index, shape.inputs);
            return Err(report(kernel, library, &format!("changed its input `{name}` at byte {byte}"))
                .with_help("inputs belong to others; copy what has to be changed into a workspace"));
        }
    }
    if !instance.shapes_are_intact() {
        return Err(report(kernel, library, "changed the arrays of shapes or dtypes that it was given")
            .with_help("copy what has to be changed"));
    }
    Ok(Attempt { outputs, workspaces: workspaces.len() })
}

/// Refuses a kernel that wrote around its inputs, outputs or workspaces.
fn check_guards(
    kernel: &Kernel,
    library: &Library,
    [inputs, outputs, workspaces]: [&[Guarded]; 3],
) -> Result<()> {
    for (index, buffer) in inputs.iter().enumerate() {
        let name = kernel.signature.input_name(index, inputs.len());
        buffer.check(kernel, library, &format!("input `{name}`"))?;
    }
    for (index, buffer) in outputs.iter().enumerate() {
        buffer.check(kernel, library, &format!("output `{}`", kernel.signature.output_name(index)))?;
    }
    for (index, buffer) in workspaces.iter().enumerate() {
        buffer.check(kernel, library, &format!("workspace {index}"))?;
    }
    Ok(())
}

/// Calls the kernel with the addresses of buffers, or of copies of them with their guards where its operands
/// live; null for an input that is absent.
fn call<'a>(
    kernel: &Kernel,
    instance: &mut Instance,
    buffers: impl Iterator<Item = (&'a mut Guarded, bool)>,
) -> Result<()> {
    match kernel.place {
        Place::Host => {
            let address = |(buffer, given): (&mut Guarded, bool)| match given {
                true => buffer.address().cast(),
                false => std::ptr::null_mut(),
            };
            let params: Vec<*mut c_void> = buffers.map(address).collect();
            // SAFETY: every buffer has its slot's size, or that which the kernel asked for.
            unsafe { instance.call(&kernel.function, std::ptr::null_mut(), params.into_iter()) }
        }
        Place::Device => {
            let image = |(buffer, given): (&'a mut Guarded, bool)| Image {
                bytes: buffer.bytes_mut(),
                start: GUARD,
                given,
            };
            let mut images: Vec<Image<'_>> = buffers.map(image).collect();
            // SAFETY: the operand of every image has its slot's size, or that which the kernel asked for.
            unsafe { device::run_on_images(instance, &kernel.function, &mut images) }
        }
    }
}

/// A buffer between two guards.
struct Guarded {
    /// In words, so that the buffer is aligned for every element type.
    memory: Vec<u128>,
    size: usize,
    canary: u8,
}

impl Guarded {
    fn new(size: usize, fill: u8, canary: u8) -> Guarded {
        let words = (2 * GUARD + size).div_ceil(size_of::<u128>());
        let mut buffer = Guarded { memory: vec![u128::from_ne_bytes([canary; 16]); words], size, canary };
        // SAFETY: the memory holds both guards and the buffer between.
        unsafe { buffer.address().write_bytes(fill, size) };
        buffer
    }

    fn address(&mut self) -> *mut u8 {
        // SAFETY: the memory is larger than a guard.
        unsafe { self.memory.as_mut_ptr().cast::<u8>().add(GUARD) }
    }

    fn bytes(&self) -> &[u8] {
        let bytes = size_of_val(self.memory.as_slice());
        // SAFETY: plain bytes of a vector that lives.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = size_of_val(self.memory.as_slice());
        // SAFETY: as in `bytes`; any bytes are words.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), bytes) }
    }

    fn content(&self) -> &[u8] {
        &self.bytes()[GUARD..GUARD + self.size]
    }

    fn check(&self, kernel: &Kernel, library: &Library, what: &str) -> Result<()> {
        let (before, after) = (&self.bytes()[..GUARD], &self.bytes()[GUARD + self.size..]);
        let strange = |byte: &u8| *byte != self.canary;
        if let Some(first) = before.iter().position(strange) {
            let bytes = GUARD - first;
            return Err(report(
                kernel,
                library,
                &format!("wrote before the start of {what}, {bytes} bytes before it"),
            )
            .with_help("an index is negative"));
        }
        let Some(first) = after.iter().position(strange) else { return Ok(()) };
        let count = after.iter().filter(|byte| strange(byte)).count();
        let offset = self.size + first;
        Err(report(
            kernel,
            library,
            &format!("wrote past the end of {what}: it has {} bytes, and byte {offset} was written ({count} bytes or more in all)", self.size),
        )
        .with_help(if what.starts_with("workspace") {
            "let FInit ask for more with SetWorkSpace"
        } else {
            "the loop goes farther than the shape"
        }))
    }
}

#[cold]
fn forgotten(
    kernel: &Kernel,
    library: &Library,
    shape: &Shape,
    output: usize,
    count: usize,
    element: usize,
) -> Error {
    let slot = &shape.slots[shape.inputs + output];
    let size = slot.dtype.map_or(1, |dtype| dtype.size());
    let total = slot.bytes() / size;
    let name = kernel.signature.output_name(output);
    let what = format!(
        "left {count} of {total} elements of its output `{name}` unwritten, the first at byte {} (element {element})",
        element * size
    );
    report(kernel, library, &what)
        .with_help("every element of every output must be written; memory is not zeroed")
}

/// The error of a result that depends on uninitialised memory.
#[cold]
fn dependent(
    kernel: &Kernel,
    library: &Library,
    shape: &Shape,
    (output, byte): (usize, usize),
    culprit: Option<Unwritten>,
) -> Error {
    let size = shape.slots[shape.inputs + output].dtype.map_or(1, |dtype| dtype.size());
    let name = kernel.signature.output_name(output);
    let (memory, help) = match culprit {
        Some(Unwritten::Workspace(index)) => (
            format!("what workspace {index} held before the call"),
            "write every element of a workspace before reading it; does the loop that fills it go as far as the one that reads it?",
        ),
        Some(Unwritten::Output(index)) => (
            format!("what output `{}` held before the call", kernel.signature.output_name(index)),
            "write every element of an output before reading it: sums start with 0, memory does not",
        ),
        Some(Unwritten::Guards) => (
            "bytes outside of its buffers".to_owned(),
            "an index goes farther than the shape, or a size is not that of the buffer it is used for",
        ),
        None => (
            "what its outputs and workspaces held before the call".to_owned(),
            "write every element before reading it; memory is not zeroed",
        ),
    };
    let element = byte / size;
    report(
        kernel,
        library,
        &format!(
            "computes its output `{name}` from {memory}: with other bytes there, element {element} (byte {byte}) is another"
        ),
    )
    .with_help(help)
}

fn report(kernel: &Kernel, library: &Library, what: &str) -> Error {
    Error::kernel(format!("the kernel `{}` ({}) {what}", kernel.function, library.source.display()))
        .with_note("found by OPSMITH_CHECK")
}
