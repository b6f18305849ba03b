//! Operators that show the memory of their argument.

use smallvec::{SmallVec, smallvec};

use super::ops::{Formulas, ONE, UNARY, WITH_SIZES, arg, blank, formula, same_gradient};
use crate::arg::Arg;
use crate::autograd::GradContext;
use crate::call::invoke_single;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout};
use crate::op::*;
use crate::tensor::Tensor;

// widen(self, sizes), a view that shows elements several times

fn view_widen(args: &[Arg<'_>]) -> Result<SmallVec<[Layout; 1]>> {
    let (tensor, sizes) = (args[0].tensor(), args[1].ints());
    let missing = sizes.len() - tensor.dim();
    let mut strides = Dims::from_elem(0, sizes.len());
    for dim in missing..sizes.len() {
        if tensor.shape()[dim - missing] != 1 || sizes[dim] == 1 {
            strides[dim] = tensor.strides()[dim - missing];
        }
    }
    Ok(smallvec![Layout { sizes: sizes.into(), strides, offset: tensor.layout().offset }])
}

pub static WIDEN: OpDef = OpDef {
    view: Some(ViewFn::List(view_widen)),
    // The engine sums the gradient back.
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 0, 0, 0, same_gradient)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("widen", WITH_SIZES, ONE)
};

pub fn widen(a: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    invoke_single(&WIDEN, &[a.into(), sizes.into()])
}

// swap(self), a view with the last two dimensions exchanged

fn view_swap(args: &[Arg<'_>]) -> Result<SmallVec<[Layout; 1]>> {
    let mut layout = args[0].tensor().layout().clone();
    let rank = layout.dim();
    if rank < 2 {
        return Err(Error::shape("swap needs two dimensions"));
    }
    layout.sizes.swap(rank - 1, rank - 2);
    layout.strides.swap(rank - 1, rank - 2);
    Ok(smallvec![layout])
}

fn swap_self(context: &GradContext<'_>) -> Formulas {
    Ok(smallvec![context.grad(0).map(swap).transpose()?.into()])
}

pub static SWAP: OpDef = OpDef {
    view: Some(ViewFn::List(view_swap)),
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 0, 0, 0, swap_self)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("swap", UNARY, ONE)
};

pub fn swap(a: &Tensor) -> Result<Tensor> {
    invoke_single(&SWAP, &[a.into()])
}

// row(self, index), a view of one row, without a formula: the engine knows how views work

fn view_row(args: &[Arg<'_>]) -> Result<SmallVec<[Layout; 1]>> {
    let mut layout = args[0].tensor().layout().clone();
    layout.offset += layout.strides[0] * args[1].int();
    layout.sizes.remove(0);
    layout.strides.remove(0);
    Ok(smallvec![layout])
}

pub static ROW: OpDef = OpDef {
    view: Some(ViewFn::List(view_row)),
    ..blank("row", &[arg("self", ArgKind::Tensor), arg("index", ArgKind::Int)], ONE)
};

pub fn row(a: &Tensor, index: i64) -> Result<Tensor> {
    invoke_single(&ROW, &[a.into(), index.into()])
}

// windows(self) -> every pair of neighbours, an overlapping view without a formula

pub static WINDOWS: OpDef = OpDef {
    view: Some(ViewFn::List(|args| {
        let layout = args[0].tensor().layout();
        let (length, stride) = (layout.sizes[0], layout.strides[0]);
        let (sizes, strides) = (smallvec![length - 1, 2], smallvec![stride, stride]);
        Ok(smallvec![Layout { sizes, strides, offset: layout.offset }])
    })),
    ..blank("windows", UNARY, ONE)
};

pub fn windows(a: &Tensor) -> Result<Tensor> {
    invoke_single(&WINDOWS, &[a.into()])
}

// pairs(self) -> the elements two to a row, a view without a formula

pub static PAIRS: OpDef = OpDef {
    view: Some(ViewFn::List(|args| {
        let layout = args[0].tensor().layout();
        let (length, stride) = (layout.sizes[0], layout.strides[0]);
        let (sizes, strides) = (smallvec![length / 2, 2], smallvec![2 * stride, stride]);
        Ok(smallvec![Layout { sizes, strides, offset: layout.offset }])
    })),
    ..blank("pairs", UNARY, ONE)
};

pub fn pairs(a: &Tensor) -> Result<Tensor> {
    invoke_single(&PAIRS, &[a.into()])
}
