//! Loops over expressions of elements, which no compiler has seen.
//!
//! In: a call of an operator with a pointwise expression. Out: its elements. The expression becomes a tree of operations on
//! blocks of elements, in the type of arithmetic of the call's dtype; constants of the call are computed once. The loops over
//! operands, their layouts and threads are those of compiled kernels, and so are the functions of numbers.

mod block;
mod function;
mod groups;
mod lane;
mod node;
mod plan;
mod run;

use opsmith_codegen::analysis::elements::is_mask;
use opsmith_codegen::model::expr::{ExprKind, Variable};
use opsmith_codegen::model::{Element as Kind, Op};
use opsmith_core::DType;
use opsmith_runtime::element::Element;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::generated::pointwise::{self, MAX_OPERANDS, map_untyped};
use opsmith_runtime::op::{KernelCall, KernelFn};
use opsmith_runtime::{Scalar, with_dtype};

use crate::operator::Operator;
use block::{Block, Row};
use lane::Lane;
use run::Environment;

/// Elements of a block: those of some intermediate results stay in the first cache.
const LENGTH: usize = 512;

/// The kernel of a dtype for the expressions of all operators.
pub fn kernel(dtype: DType) -> KernelFn {
    with_dtype!(dtype, T => run_loop::<T>)
}

/// Runs the loop of a call whose dtype is that of `T`.
fn run_loop<T: Element<Compute: Lane>>(call: &KernelCall<'_>) -> Result<()> {
    let operator = Operator::of(call.op())?;
    let op = operator.op();
    let Some(expr) = &op.body.pointwise else {
        return Err(Error::not_implemented("it has no pointwise expression"));
    };
    if let ExprKind::Variable(Variable::Arg(index)) = expr.kind
        && op.args[index].element == Kind::Any
    {
        // An expression that is just an input copies it, whatever its dtype.
        return pointwise::copy(call, index);
    }
    let inputs = op.read_tensors(expr);
    let rounded = |number: Scalar| T::from_scalar(number).to_compute();
    let tree = plan::Plan::<T::Compute>::new(operator, &inputs, call.args(), rounded).of(expr)?;
    let dtypes = dtypes::<T::Compute>(op, &inputs);
    let elements: Vec<Kind> = inputs.iter().map(|index| op.args[*index].element).collect();
    let body = |pointers: &[*mut u8; MAX_OPERANDS], length: usize| {
        let mut start = 0;
        while start < length {
            let count = LENGTH.min(length - start);
            let address = |operand: usize| pointers[operand].wrapping_add(start * dtypes[operand].size());
            let each = elements.iter().enumerate();
            let blocks = each.map(|(input, element)| {
                // SAFETY: the loop passes so many elements of each operand, in the dtypes that it was asked for.
                unsafe { load::<T::Compute>(address(input + 1), count, *element) }
            });
            let mut environment = Environment::new(blocks.collect());
            // SAFETY: as above, of the output, which no other thread writes.
            unsafe { store(&environment.value(&tree), address(0), count) };
            start += count;
        }
    };
    // SAFETY: `load` and `store` read and write so many elements in these dtypes.
    unsafe { map_untyped(call, &inputs, &dtypes, &body) }
}

/// The dtypes in which a loop that computes in `C` takes its operands, the output first.
fn dtypes<C: Lane>(op: &Op, inputs: &[usize]) -> Vec<DType> {
    let of = |element: Kind| match element {
        Kind::Real => C::Part::DTYPE,
        element if is_mask(element) => DType::Bool,
        _ => C::DTYPE,
    };
    let inputs = inputs.iter().map(|index| of(op.args[*index].element));
    std::iter::once(of(op.outputs[0].element)).chain(inputs).collect()
}

/// Elements of an input as a block.
///
/// # Safety
/// At the address lie so many elements of the dtype that [`dtypes`] has for such an argument.
unsafe fn load<C: Lane>(address: *const u8, count: usize, element: Kind) -> Block<C> {
    /// # Safety
    /// At the address lie so many elements of `V`.
    unsafe fn copied<V: Clone>(address: *const u8, count: usize) -> Row<V> {
        // SAFETY: the caller's promise.
        Row::Each(unsafe { std::slice::from_raw_parts(address.cast::<V>(), count) }.to_vec())
    }
    // SAFETY: the caller's promise.
    unsafe {
        match element {
            Kind::Real => Block::Part(copied(address, count)),
            element if is_mask(element) => Block::Bool(copied(address, count)),
            _ => Block::Element(copied(address, count)),
        }
    }
}

/// Writes a block to the elements of the output.
///
/// # Safety
/// At the address is room for so many elements of the block's type.
unsafe fn store<C: Lane>(block: &Block<C>, address: *mut u8, count: usize) {
    /// # Safety
    /// At the address is room for so many elements of `V`.
    unsafe fn write<V: Copy>(row: &Row<V>, address: *mut u8, count: usize) {
        // SAFETY: the caller's promise.
        let out = unsafe { std::slice::from_raw_parts_mut(address.cast::<V>(), count) };
        match row {
            Row::Same(value) => out.fill(*value),
            Row::Each(values) => out.copy_from_slice(values),
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        match block {
            Block::Element(row) => write(row, address, count),
            Block::Part(row) => write(row, address, count),
            Block::Bool(row) => write(row, address, count),
            Block::Int(_) | Block::Float(_) | Block::Number(_) => {
                unreachable!("the checker converts the value of an expression to its element type")
            }
        }
    }
}
