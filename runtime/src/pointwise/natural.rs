//! Loops over operands whose elements lie one after the other in memory, in the same order: most calls.
//!
//! In: operands. Out: whether they lie so, and their addresses; or the loop, run over all elements, in several threads if it
//! takes long, over a copy where the output is an input. Must know no operator.

use opsmith_core::DType;

use super::MAX_OPERANDS;
use super::blocks::BLOCK;
use super::loops::Loop;
use super::rows::addresses;
use super::slots::{Block, copy_block};
use crate::arith::ZeroDivisions;
use crate::layout::{broadcasts, same_sizes};
use crate::moves::stream;
use crate::op::KernelCall;
use crate::parallel::{self, CHUNK, Shared};
use crate::tensor::Tensor;

/// The number of elements, if all operands have those of the loop's types in the same order in memory, one after the other,
/// which needs no plan; their addresses are written to `pointers`. Of tensors that the dispatcher did not compare, only those of
/// at most one dimension; [`is_natural`] has the others.
#[inline(always)]
pub(super) fn natural<const N: usize>(
    call: &KernelCall<'_>,
    inputs: &[usize],
    dtypes: &[DType; N],
    pointers: &mut [*mut u8; MAX_OPERANDS],
) -> Option<usize> {
    let alike = call.has_one_shape();
    let out = call.output_without_view()?.placed_first();
    if out.numel() == 0 || !(out.is_row_major(dtypes[0]) && (alike || out.is_line())) {
        return None;
    }
    pointers[0] = out.start();
    for ((&input, &dtype), pointer) in inputs.iter().zip(&dtypes[1..]).zip(&mut pointers[1..]) {
        let operand = call.tensor_at(input)?.placed_first();
        let follows = alike || operand.numel() == out.numel() && operand.has_no_more_dims_than(out);
        if !(operand.is_row_major(dtype) && follows) {
            return None;
        }
        *pointer = operand.start();
    }
    Some(out.numel() as usize)
}

/// Whether all operands have elements of the loop's types in the same order in memory, row-major or another, one after the other;
/// their addresses are written to `pointers`.
pub(super) fn is_natural(
    operands: &[&Tensor],
    dtypes: &[DType],
    pointers: &mut [*mut u8; MAX_OPERANDS],
) -> bool {
    let out = operands[0];
    let row_major = out.is_contiguous();
    let mut all = row_major || out.layout().is_dense();
    let follows = |tensor: &Tensor| {
        if !row_major {
            return tensor.layout().has_order_of(out.layout());
        }
        tensor.is_contiguous()
            && tensor.numel() == out.numel()
            && (same_sizes(tensor.shape(), out.shape()) || broadcasts(tensor.shape(), out.shape()))
    };
    for ((pointer, tensor), dtype) in pointers.iter_mut().zip(operands).zip(dtypes) {
        all &= tensor.dtype() == *dtype && follows(tensor);
        *pointer = tensor.data_ptr();
    }
    all
}

/// Runs a loop over elements one after the other.
///
/// # Safety
/// As [`Loop::run`], but that an input may be the elements of the output.
#[inline(always)]
pub(super) unsafe fn run_natural<const N: usize>(
    pointers: &[*mut u8; MAX_OPERANDS],
    dtypes: &[DType; N],
    length: usize,
    body: Loop<'_>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if !pointers[1..N].contains(&pointers[0]) {
            body.run(pointers, length);
        } else if let Some(body) = in_place::<N>(pointers, body) {
            body.run(pointers, length);
        } else if length * dtypes[0].size() <= LINE {
            run_line_in_place::<N>(pointers, length * dtypes[0].size(), length, body);
        } else {
            run_in_place(pointers, dtypes, length, body);
        }
    }
}

/// The loop in place, if it is compiled and the output is the first input and no other.
#[inline(always)]
fn in_place<'a, const N: usize>(pointers: &[*mut u8; MAX_OPERANDS], body: Loop<'a>) -> Option<Loop<'a>> {
    let is_first = N > 1 && pointers[1] == pointers[0] && (N == 2 || !pointers[2..N].contains(&pointers[0]));
    if is_first { body.in_place() } else { None }
}

/// Bytes of an output that are copied at once, without a block.
const LINE: usize = 64;

/// As [`run_in_place`], of an output that has so many bytes, at most [`LINE`].
///
/// # Safety
/// As [`run_natural`].
#[inline(never)]
unsafe fn run_line_in_place<const N: usize>(
    pointers: &[*mut u8; MAX_OPERANDS],
    bytes: usize,
    length: usize,
    body: Loop<'_>,
) {
    let line = Block::<LINE>::new();
    let mut read = [pointers[0]; MAX_OPERANDS];
    for (own, given) in read[1..N].iter_mut().zip(&pointers[1..N]) {
        // SAFETY: a reference is valid for reads. The addresses were just written one by one, and a load of several at once would
        // wait until these stores are in the cache; volatile ones are not joined.
        let given = unsafe { std::ptr::read_volatile(given) };
        *own = if given == pointers[0] { line.pointer() } else { given };
    }
    // SAFETY: as many bytes lie there, and the line has room for them. By the caller's promise the loop may run; inputs and
    // output are disjoint.
    unsafe {
        copy_block(pointers[0], line.pointer(), bytes);
        body.run(&read, length);
    }
}

/// As [`run_natural`], of an output that is an input, too: the loop reads a copy, block by block.
///
/// # Safety
/// As [`run_natural`].
#[inline(never)]
unsafe fn run_in_place<const N: usize>(
    pointers: &[*mut u8; MAX_OPERANDS],
    dtypes: &[DType; N],
    length: usize,
    body: Loop<'_>,
) {
    let block = Block::<BLOCK>::new();
    for_each_block::<N, BLOCK>(pointers, dtypes, length, |operands, count| {
        let target = operands[0];
        let mut read = *operands;
        for pointer in read[1..N].iter_mut().filter(|pointer| **pointer == target) {
            *pointer = block.pointer();
        }
        // SAFETY: as many elements lie there, and the block has room for them. By the caller's promise the loop may run;
        // inputs and output are disjoint.
        unsafe {
            copy_block(target, block.pointer(), count * dtypes[0].size());
            body.run(&read, count);
        }
    });
}

/// As [`run_natural`], of an output that is larger than the caches: the loop writes a block, and so reads all operands from
/// memory at once. An output that is no input goes to memory past the caches.
///
/// # Safety
/// As [`run_natural`].
#[inline(never)]
pub(super) unsafe fn run_by_blocks<const N: usize>(
    pointers: &[*mut u8; MAX_OPERANDS],
    dtypes: &[DType; N],
    length: usize,
    body: Loop<'_>,
) {
    let streams = !pointers[1..N].contains(&pointers[0]);
    let block = Block::<FEW>::new();
    for_each_block::<N, FEW>(pointers, dtypes, length, |operands, count| {
        let (target, bytes) = (operands[0], count * dtypes[0].size());
        let mut written = *operands;
        written[0] = block.pointer();
        // SAFETY: the caller's promise; the block has room for the elements, and is no operand.
        unsafe {
            body.run(&written, count);
            if streams {
                stream::store(block.pointer(), target, bytes);
            } else {
                copy_block(block.pointer(), target, bytes);
            }
        }
    });
    if streams {
        stream::finish();
    }
}

/// Bytes of a block of a loop over memory: so few that the processor requests elements of the next one while it stores those of this.
const FEW: usize = 1024;

/// Calls a function for as many elements as `BYTES` are of the output's, and for the rest, with their addresses.
#[inline(always)]
fn for_each_block<const N: usize, const BYTES: usize>(
    pointers: &[*mut u8; MAX_OPERANDS],
    dtypes: &[DType; N],
    length: usize,
    mut run: impl FnMut(&[*mut u8; MAX_OPERANDS], usize),
) {
    let mut moved = *pointers;
    let mut left = length;
    while left > 0 {
        let count = left.min(BYTES / dtypes[0].size());
        run(&moved, count);
        left -= count;
        advance(&mut moved, dtypes, count);
    }
}

/// The addresses so many elements further on.
#[inline(always)]
fn advance<const N: usize>(pointers: &mut [*mut u8; MAX_OPERANDS], dtypes: &[DType; N], elements: usize) {
    for (pointer, dtype) in pointers.iter_mut().zip(dtypes) {
        *pointer = pointer.wrapping_add(elements * dtype.size());
    }
}

/// As [`run_natural`], in several threads if the loop takes long.
///
/// # Safety
/// As [`run_natural`].
#[inline(never)]
pub(super) unsafe fn run_in_threads<const N: usize>(
    pointers: &[*mut u8; MAX_OPERANDS],
    dtypes: &[DType; N],
    length: usize,
    body: Loop<'_>,
) {
    let start = pointers.map(Shared);
    // A loop that reads nothing stores as usual: no memory is read before lines are written whole one after the other.
    let is_large = N > 1 && stream::is_streamed(length * dtypes[0].size());
    let divisions = ZeroDivisions::default();
    parallel::for_each_range(length, CHUNK, |range| {
        let mut pointers = addresses(&start);
        advance(&mut pointers, dtypes, range.start);
        // SAFETY: the range lies in the caller's, and no other thread has one of its elements.
        divisions.watch(|| unsafe {
            if is_large {
                run_by_blocks(&pointers, dtypes, range.len(), body);
            } else {
                run_natural(&pointers, dtypes, range.len(), body);
            }
        });
    });
    divisions.raise();
}

#[cfg(test)]
mod tests {
    use crate::arg::Arg;
    use crate::library::Library;
    use crate::op::{KernelCall, OpDef, Schema};
    use crate::pointwise::map2;
    use crate::tensor::Tensor;

    static OP: OpDef =
        OpDef::new("op", Schema { text: "", args: &[], returns: &[] }, "tests.yaml:1", &Library::EMPTY);

    fn add(a: &Tensor, b: &Tensor, out: &Tensor) -> crate::error::Result<()> {
        let args = [Arg::Tensor(a), Arg::Tensor(b)];
        // SAFETY: the arguments and the output live as long as the call, and nothing else uses them; those that share memory
        // are one tensor.
        let call = unsafe { KernelCall::new(&OP, &args, std::slice::from_ref(out)) };
        map2(&call, [0, 1], |a: f32, b: f32| a + b)
    }

    #[test]
    fn a_result_in_place_is_that_of_another_tensor_for_any_length() {
        // Around the bytes of a line, those of a block, and the elements of a thread.
        for length in [1, 2, 15, 16, 17, 1023, 1025, 9000] {
            let elements: Vec<f32> = (0..length).map(|at| at as f32).collect();
            let [a, b, out] = [(); 3].map(|()| Tensor::of(&elements));
            add(&a, &b, &out).unwrap();
            for (left, right, target) in [(&a, &b, &a), (&a, &b, &b), (&out, &out, &out)] {
                let before = [left, right].map(|tensor| tensor.to_vec::<f32>().unwrap());
                add(left, right, target).unwrap();
                let sums: Vec<f32> = std::iter::zip(&before[0], &before[1]).map(|(a, b)| a + b).collect();
                assert_eq!(target.to_vec::<f32>().unwrap(), sums);
            }
        }
    }

    #[test]
    fn as_many_elements_of_another_shape_are_refused() {
        let tensor = |shape: &[i64]| Tensor::from_slice(&[1.0f32; 6], shape).unwrap();
        for (input, out) in [(&[3, 2][..], &[2, 3][..]), (&[2, 3], &[6]), (&[1, 6], &[6])] {
            assert!(add(&tensor(out), &tensor(input), &tensor(out)).is_err(), "{input:?} {out:?}");
        }
        let one = |shape: &[i64]| Tensor::from_slice(&[1.0f32], shape).unwrap();
        assert!(add(&one(&[]), &one(&[1]), &one(&[])).is_err());
        for (input, out) in [(&[6][..], &[1, 6][..]), (&[2, 3], &[2, 3]), (&[6], &[6])] {
            let target = tensor(out);
            add(&tensor(out), &tensor(input), &target).unwrap();
            assert_eq!(target.to_vec::<f32>().unwrap(), [2.0; 6]);
        }
    }
}
