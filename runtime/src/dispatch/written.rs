//! Whether kernels write every element of their outputs.
//!
//! In: a kernel and a call of it. Out: what the kernel returns, or an error that names the first element that it
//! left. Debug builds run every kernel so; release builds only where a check asks ([`check_written`]). The
//! outputs' memory is filled with a byte before. Where an element consists of that byte afterwards, the kernel runs
//! again over other bytes, as often as chance could explain the finding: an element that is the filling each time
//! was never written. Memory then holds what the first run wrote, and random generators stand where it left them.
//! See `docs/design/kernel-memory.md`.

use opsmith_core::{Backend, DType};

use super::borrows::Borrows;
use super::convert::convert_inputs;
use crate::arg::Arg;
use crate::error::{Error, Result, ShapeText};
use crate::layout::{Dims, Layout, checked_numel};
use crate::op::{Inferred, Kernel, KernelCall, OpDef, OutSpec, Outputs};
use crate::random::{self, Draws};
use crate::scratch::Scratch;
use crate::storage::Storage;
use crate::tensor::Tensor;
use crate::view::Positions;

/// How many bits of one element must repeat the filling by chance before that counts as proof.
const PROOF: usize = 48;

/// Runs a kernel; in debug builds, over filled memory.
///
/// # Safety
/// The kernel is one of the call's operator.
#[inline]
pub(crate) unsafe fn run(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    if cfg!(debug_assertions) {
        // SAFETY: the caller promises that the kernel is one of the operator.
        return unsafe { run_checked(kernel, call) };
    }
    // SAFETY: the caller promises that the kernel is one of the operator; nobody took the call's outputs.
    let result = unsafe { kernel.run(call) };
    call.make_untouched_valid();
    result
}

/// Calls the kernel of an operator over filled memory, row-major and, if callers can give outputs, with gaps.
///
/// Operators without a kernel, such as views and compositions, are left out: they write nothing themselves.
///
/// # Errors
/// If an element of an output is left unwritten or, being a `bool`, is neither true nor false; and whatever
/// inference and the kernel report.
pub fn check_written(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    check_call(op, args).map_err(|error| op.error_of_call(error, op.name, args))
}

fn check_call(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    if op.view.is_some() || op.kernels.is_none() {
        return Ok(());
    }
    let Some(inferred) = op.inferred(args) else { return Ok(()) };
    let inferred = inferred?;
    let backend = inferred.device.backend;
    if op.composite.is_some() && !op.has_kernel(backend, inferred.compute) {
        return Ok(());
    }
    let kernel = op.kernel(backend, inferred.compute)?;
    let converted = convert_inputs(op, args, inferred.compute, inferred.device)?;
    let mut args: Vec<Arg<'_>> = args.to_vec();
    converted.iter().flatten().for_each(|(index, value)| args[*index] = value.as_arg());
    for gaps in [false, true] {
        if gaps && op.forms.out.is_none() {
            continue;
        }
        let outs = inferred.outs.iter().map(|spec| allocate(spec, &inferred, gaps));
        let outs = outs.collect::<Result<Outputs>>()?;
        if outs.iter().all(|out| out.numel() == 0) {
            continue;
        }
        let _held = Borrows::acquire(&args, &[])?;
        // SAFETY: as in a call by the dispatcher: inference said what the outputs are, which are new, inputs are
        // converted, and their storages are borrowed.
        unsafe {
            let call = KernelCall::new(op, &args, &outs);
            run_checked(kernel, &call)?;
            refuse_remains(kernel, &call)?;
        }
    }
    Ok(())
}

/// Refuses results that depend on what was in the outputs' memory before.
///
/// # Safety
/// The kernel is one of the call's operator.
unsafe fn refuse_remains(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    let run = |round| -> Result<Scratch<Scratch<u8>>> {
        // SAFETY: the caller's promise.
        unsafe { run_filled(kernel, call, round)? };
        Ok(call.outs().iter().map(read).collect())
    };
    let (first, draws) = random::noted(|| run(0));
    let first = first?;
    let again = |round| random::repeated(&draws, || run(round));
    let second = again(1)?;
    let Some(index) = (0..first.len()).find(|index| first[*index][..] != second[*index][..]) else {
        return Ok(());
    };
    let third = again(0)?;
    if first.iter().zip(&third).any(|(first, third)| first[..] != third[..]) {
        // It gives other results each time, whatever the reason.
        return Ok(());
    }
    let byte =
        first[index].iter().zip(&second[index]).position(|(first, second)| first != second).unwrap_or(0);
    let out = &call.outs()[index];
    Err(Error::kernel(format!(
        "{} computes {} from what is in its memory before: the first such element is at {} of the shape {}",
        kernel_name(call),
        output_name(call, index),
        index_text(out, byte / out.dtype().size()),
        ShapeText(out.shape())
    ))
    .with_help("a kernel writes an element of an output before it reads it: memory may hold any values"))
}

/// An output; with gaps, the dimensions lie in the opposite order and every other element is unused.
fn allocate(spec: &OutSpec, inferred: &Inferred, gaps: bool) -> Result<Tensor> {
    let numel = checked_numel(&spec.sizes)?;
    if !gaps {
        return Tensor::with_memory(&spec.sizes, spec.dtype, inferred.device);
    }
    let storage = Storage::uninitialized(numel as usize * 2 * spec.dtype.size())?;
    let mut step = 2;
    let strides: Dims = spec
        .sizes
        .iter()
        .map(|size| {
            let stride = step;
            step *= size.max(&1);
            stride
        })
        .collect();
    let layout = Layout { sizes: spec.sizes.clone(), strides, offset: 0 };
    // SAFETY: the last element is the storage's last but one, and the check fills them before a kernel runs.
    Ok(unsafe { Tensor::from_parts(storage, layout, spec.dtype, inferred.device) })
}

/// Runs a kernel over filled memory, unless it reads what it writes.
///
/// # Safety
/// The kernel is one of the call's operator.
unsafe fn run_checked(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    let outs = call.outs();
    // Other devices' memory is not for the host to fill.
    let mut shared = call.device().backend != Backend::Cpu;
    call.args().iter().for_each(|arg| {
        arg.for_each_tensor(|tensor| shared |= outs.iter().any(|out| tensor.overlaps(out)));
    });
    if shared {
        // SAFETY: the caller's promise.
        return unsafe { kernel.run(call) };
    }
    let before: Scratch<Scratch<u8>> = match call.holds_elements() {
        true => outs.iter().map(read).collect(),
        false => Scratch::new(),
    };
    // SAFETY: the caller's promise.
    let (result, draws) = random::noted(|| unsafe { run_filled(kernel, call, 0) });
    if let Err(error) = result {
        // A kernel that refuses its arguments leaves a caller's tensor as it was.
        outs.iter().zip(&before).for_each(|(out, bytes)| write(out, bytes));
        return Err(error);
    }
    refuse_invalid(call)?;
    let suspects = outs.iter().map(|out| positions_of(out, filling(out.dtype(), 0)));
    let mut suspects: Scratch<Scratch<usize>> = suspects.collect();
    if suspects.iter().all(|positions| positions.is_empty()) {
        return Ok(());
    }
    let written: Scratch<Scratch<u8>> = outs.iter().map(read).collect();
    // SAFETY: the caller's promise.
    let proven = unsafe { repeat(kernel, call, &draws, &mut suspects) };
    outs.iter().zip(&written).for_each(|(out, bytes)| write(out, bytes));
    if !proven {
        return Ok(());
    }
    let first = suspects.iter().enumerate().find_map(|(index, positions)| Some((index, *positions.first()?)));
    first.map_or(Ok(()), |(index, position)| Err(unwritten(call, index, position)))
}

/// Runs a kernel over the filling of a round.
///
/// # Safety
/// The kernel is one of the call's operator.
unsafe fn run_filled(kernel: Kernel, call: &KernelCall<'_>, round: usize) -> Result<()> {
    let outs = call.outs();
    outs.iter().for_each(|out| fill(out, filling(out.dtype(), round)));
    // SAFETY: the same call, over elements of every dtype.
    unsafe { kernel.run(&KernelCall::new(call.op(), call.args(), outs).with_elements()) }
}

/// Runs a kernel over other fillings, and drops the positions that are written; says whether those that are left
/// are proven to be unwritten.
///
/// # Safety
/// The kernel is one of the call's operator.
unsafe fn repeat(
    kernel: Kernel,
    call: &KernelCall<'_>,
    draws: &Draws,
    suspects: &mut [Scratch<usize>],
) -> bool {
    let outs = call.outs();
    let rounds = |(out, positions): (&Tensor, &Scratch<usize>)| match positions.is_empty() {
        true => 0,
        false => PROOF.div_ceil(bits(out.dtype())),
    };
    let mut round = 0;
    while round < outs.iter().zip(&*suspects).map(rounds).max().unwrap_or(0) {
        round += 1;
        // SAFETY: the caller's promise.
        if random::repeated(draws, || unsafe { run_filled(kernel, call, round) }).is_err() {
            // A kernel that fails when it runs again proves nothing.
            return false;
        }
        for (out, positions) in
            outs.iter().zip(suspects.iter_mut()).filter(|(_, positions)| !positions.is_empty())
        {
            let (bytes, size) = (read(out), out.dtype().size());
            let same = |position: &usize| {
                let element = &bytes[position * size..(position + 1) * size];
                element.iter().all(|byte| *byte == filling(out.dtype(), round))
            };
            positions.retain(same);
        }
    }
    true
}

/// How many bits tell the elements of a dtype apart.
fn bits(dtype: DType) -> usize {
    if dtype == DType::Bool { 1 } else { 8 * dtype.size() }
}

/// The byte that memory is filled with in a round. Of a dtype's rounds each has another: a `bool` has two values.
fn filling(dtype: DType, round: usize) -> u8 {
    match dtype {
        DType::Bool => u8::from(round.is_multiple_of(2)),
        _ => (0xA5 + 0x3B * round) as u8,
    }
}

/// The addresses of a tensor's elements in row-major order.
fn addresses(tensor: &Tensor) -> impl Iterator<Item = *mut u8> {
    let (start, size) = (tensor.data_ptr(), tensor.dtype().size() as isize);
    let positions = Positions::new(tensor.shape(), tensor.strides());
    positions.map(move |position| start.wrapping_offset(position as isize * size))
}

fn byte_count(tensor: &Tensor) -> usize {
    tensor.numel() as usize * tensor.dtype().size()
}

/// Fills a tensor's elements with a byte.
fn fill(tensor: &Tensor, byte: u8) {
    if tensor.is_contiguous() {
        // SAFETY: these are the tensor's elements, an output's that the caller may write.
        return unsafe { tensor.data_ptr().write_bytes(byte, byte_count(tensor)) };
    }
    // SAFETY: each address is that of one element, which the caller may write.
    addresses(tensor).for_each(|address| unsafe { address.write_bytes(byte, tensor.dtype().size()) });
}

/// The bytes of a tensor's elements in row-major order.
fn read(tensor: &Tensor) -> Scratch<u8> {
    let mut bytes = Scratch::filled(0, byte_count(tensor));
    if tensor.is_contiguous() {
        // SAFETY: these are the tensor's elements, which nobody else writes, and as many bytes were made.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(tensor.data_ptr(), bytes.len()) };
        return bytes;
    }
    let size = tensor.dtype().size();
    for (address, to) in addresses(tensor).zip(bytes.chunks_exact_mut(size)) {
        // SAFETY: the address is that of one element, which nobody else writes, and the chunk is as large.
        unsafe { to.as_mut_ptr().copy_from_nonoverlapping(address, size) };
    }
    bytes
}

/// Writes bytes that were [`read`].
fn write(tensor: &Tensor, bytes: &[u8]) {
    let size = tensor.dtype().size();
    if tensor.is_contiguous() {
        // SAFETY: these are the tensor's elements, as many as were read, which the caller may write.
        return unsafe { tensor.data_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    for (address, from) in addresses(tensor).zip(bytes.chunks_exact(size)) {
        // SAFETY: the address is that of one element, which the caller may write, and the chunk is as large.
        unsafe { address.copy_from_nonoverlapping(from.as_ptr(), size) };
    }
}

/// The numbers of the elements that consist of a byte, in row-major order.
fn positions_of(tensor: &Tensor, byte: u8) -> Scratch<usize> {
    let size = tensor.dtype().size();
    if tensor.is_contiguous() {
        // SAFETY: these are the tensor's elements, whose bytes are initialised and which nobody else writes.
        let bytes = unsafe { std::slice::from_raw_parts(tensor.data_ptr(), byte_count(tensor)) };
        // Far faster than looking at each element, and most outputs have no such byte.
        if !bytes.contains(&byte) {
            return Scratch::new();
        }
    }
    let same = |address: *mut u8| {
        // SAFETY: the bytes of one element, initialised, which nobody else writes.
        unsafe { std::slice::from_raw_parts(address, size) }.iter().all(|other| *other == byte)
    };
    addresses(tensor)
        .enumerate()
        .filter(|(_, address)| same(*address))
        .map(|(position, _)| position)
        .collect()
}

/// Refuses truth values that are neither, which a kernel in C can write.
fn refuse_invalid(call: &KernelCall<'_>) -> Result<()> {
    for (index, out) in call.outs().iter().enumerate().filter(|(_, out)| out.dtype() == DType::Bool) {
        // SAFETY: each address is that of an element, a byte, which nobody else writes.
        let found =
            addresses(out).map(|address| unsafe { address.read() }).enumerate().find(|(_, byte)| *byte > 1);
        if let Some((position, byte)) = found {
            // Nobody must read it as a bool.
            fill(out, 0);
            return Err(Error::kernel(format!(
                "{} wrote the truth value {byte} at {} of {}",
                kernel_name(call),
                index_text(out, position),
                output_name(call, index)
            ))
            .with_help("a truth value is a byte that is 0 or 1"));
        }
    }
    Ok(())
}

#[cold]
fn unwritten(call: &KernelCall<'_>, index: usize, position: usize) -> Error {
    let out = &call.outs()[index];
    if !call.holds_elements() {
        fill(out, 0);
    }
    Error::kernel(format!(
        "{} did not write every element of {}: the first is at {} of the shape {}",
        kernel_name(call),
        output_name(call, index),
        index_text(out, position),
        ShapeText(out.shape())
    ))
    .with_help("a kernel writes every element of its outputs: their memory may hold any values before")
}

/// The kernel as its table calls it.
fn kernel_name(call: &KernelCall<'_>) -> String {
    let source = call.op().kernels.source(call.device().backend);
    if source.is_empty() { "the kernel".to_owned() } else { format!("the kernel `{source}`") }
}

/// The output as its signature calls it.
fn output_name(call: &KernelCall<'_>, index: usize) -> String {
    let returns = call.op().schema.returns;
    let declared = call.op().result_of(index);
    match returns.get(declared).and_then(|result| result.name) {
        Some(name) if declared == index => format!("the output `{name}`"),
        Some(name) => format!("the output `{name}[{index}]`"),
        None if call.outs().len() > 1 => format!("output {index}"),
        None => "the output".to_owned(),
    }
}

/// The index of an element by its number in row-major order.
fn index_text(tensor: &Tensor, position: usize) -> String {
    let mut rest = position as i64;
    let mut index: Vec<String> = Vec::new();
    for size in tensor.shape().iter().rev() {
        index.push((rest % size).to_string());
        rest /= size;
    }
    index.reverse();
    format!("[{}]", index.join(", "))
}
