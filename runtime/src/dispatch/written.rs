//! Whether kernels write every element of their outputs.
//!
//! In: a kernel and a call of it. Out: the kernel's result, or an error that names the first unwritten element. Debug
//! builds run every kernel this way; release builds only on request ([`check_written`]). The outputs' memory is filled
//! with a byte before the run. If an element consists of that byte afterwards, the kernel runs again over other
//! fillings, often enough to exclude coincidence: an element equal to the filling each time was never written.
//! Afterwards the memory holds the results of the first run, and random generators have the state after it. See
//! `docs/design/kernel-memory.md`.

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

/// Number of bits of one element that must repeat the filling to count as proof.
const PROOF: usize = 48;

/// Runs a kernel; in debug builds, over filled memory.
///
/// # Safety
/// The kernel is one of the call's operator.
#[inline]
pub(crate) unsafe fn run(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    // The result of an operator that updates holds a copy before its kernel runs.
    if cfg!(debug_assertions) && !call.op().forms.updates {
        // SAFETY: the caller promises that the kernel is one of the operator.
        return unsafe { run_checked(kernel, call) };
    }
    // SAFETY: the caller promises that the kernel is one of the operator; the call's outputs were not handed out.
    let result = unsafe { kernel.run(call) };
    call.make_untouched_valid();
    result
}

/// As [`run`], of one kernel of several, as [`Kernel::run_in_turn`] runs it. Results that it does not write stay as they are.
///
/// # Safety
/// As of [`run`]; and no output is `bool`, whose memory may hold other bytes.
#[inline]
pub(crate) unsafe fn run_in_turn(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    if cfg!(debug_assertions) {
        // SAFETY: the caller's promise.
        return unsafe { run(kernel, call) };
    }
    // SAFETY: as in `run`.
    unsafe { kernel.run_in_turn(call) }
}

/// Calls the kernel of an operator over filled memory, row-major and, if callers can give outputs, with gaps.
///
/// Operators without a kernel, such as views and compositions, are skipped: they write nothing themselves. So are those
/// that update a copy.
///
/// # Errors
/// If an element of an output is left unwritten or, being a `bool`, is neither true nor false; and errors of inference
/// and the kernel.
pub fn check_written(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    check_call(op, args).map_err(|error| op.error_of_call(error, op.name, args))
}

fn check_call(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    if op.view.is_some() || op.kernels.is_none() || op.forms.updates {
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
        // SAFETY: as in a call by the dispatcher: the outputs are new and match inference, inputs are converted, and
        // their storages are borrowed.
        unsafe {
            let call = KernelCall::new(op, &args, &outs);
            run_checked(kernel, &call)?;
            refuse_remains(kernel, &call)?;
        }
    }
    Ok(())
}

/// Rejects results that depend on the former contents of the outputs' memory.
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
        // The results differ between runs for another reason.
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

/// A new output; with gaps, the dimensions have the opposite order in memory and every other element is unused.
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

/// Runs a kernel over filled memory, unless its outputs share memory with its inputs.
///
/// # Safety
/// The kernel is one of the call's operator.
unsafe fn run_checked(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    let outs = call.outs();
    // The host cannot fill the memory of other devices.
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
        // A kernel that rejects its arguments must leave a caller's tensor unchanged.
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

/// Runs a kernel over other fillings, and drops the positions that change. Returns whether the remaining ones are
/// proven to be unwritten.
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
            // A kernel that fails in a repetition proves nothing.
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

/// Number of significant bits of an element of a dtype.
fn bits(dtype: DType) -> usize {
    if dtype == DType::Bool { 1 } else { 8 * dtype.size() }
}

/// The byte that fills memory in a round. The rounds of a dtype have distinct bytes; a `bool` has two valid values.
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
        // SAFETY: these are the tensor's elements, which no other code writes, and the buffer has the same number of
        // bytes.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(tensor.data_ptr(), bytes.len()) };
        return bytes;
    }
    let size = tensor.dtype().size();
    for (address, to) in addresses(tensor).zip(bytes.chunks_exact_mut(size)) {
        // SAFETY: the address is that of one element, which no other code writes, and the chunk has its size.
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

/// The row-major numbers of the elements that consist of a byte.
fn positions_of(tensor: &Tensor, byte: u8) -> Scratch<usize> {
    let size = tensor.dtype().size();
    if tensor.is_contiguous() {
        // SAFETY: these are the tensor's elements, whose bytes are initialised and which no other code writes.
        let bytes = unsafe { std::slice::from_raw_parts(tensor.data_ptr(), byte_count(tensor)) };
        // Far faster than a test of each element, and most outputs have no such byte.
        if !bytes.contains(&byte) {
            return Scratch::new();
        }
    }
    let same = |address: *mut u8| {
        // SAFETY: the bytes of one element, initialised, which no other code writes.
        unsafe { std::slice::from_raw_parts(address, size) }.iter().all(|other| *other == byte)
    };
    addresses(tensor)
        .enumerate()
        .filter(|(_, address)| same(*address))
        .map(|(position, _)| position)
        .collect()
}

/// Rejects `bool`s that are neither true nor false, which a kernel in C can write.
fn refuse_invalid(call: &KernelCall<'_>) -> Result<()> {
    for (index, out) in call.outs().iter().enumerate().filter(|(_, out)| out.dtype() == DType::Bool) {
        // SAFETY: each address is that of an element, a byte, which no other code writes.
        let found =
            addresses(out).map(|address| unsafe { address.read() }).enumerate().find(|(_, byte)| *byte > 1);
        if let Some((position, byte)) = found {
            // An invalid byte must never be read as a `bool`.
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

/// The kernel's name in its table.
fn kernel_name(call: &KernelCall<'_>) -> String {
    let source = call.op().kernels.source(call.device().backend);
    if source.is_empty() { "the kernel".to_owned() } else { format!("the kernel `{source}`") }
}

/// The output's name in its signature.
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

/// The index of an element, from its row-major number.
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
