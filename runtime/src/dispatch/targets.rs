//! Checks of the tensors that in-place and out forms write.
//!
//! In: given outputs and their inferred specs. Out: nothing, or an error before anything is written.

use std::borrow::Cow;

use opsmith_core::{DType, can_cast};

use crate::arg::Arg;
use crate::error::{Error, Result, ShapeText};
use crate::op::{Inferred, OpDef, OutSpec};
use crate::tensor::Tensor;

/// Number of elements from which on a tensor expanded beyond its memory is refused: summing that many takes seconds; the
/// next typical size would take hours or years.
const ENDLESS: i64 = 1 << 32;

/// Description of a tensor too large for any kernel to traverse: expanded far beyond its memory, or with as many rows
/// without elements. `None` for others.
#[inline]
pub(crate) fn endless(tensor: &Tensor) -> Option<String> {
    let numel = tensor.numel();
    let is_endless = match numel {
        0 => rows(tensor) >= ENDLESS,
        _ => numel >= ENDLESS && ((tensor.storage().bytes() / tensor.dtype().size()) as i64) < numel,
    };
    is_endless.then(|| match numel {
        0 => format!("has {} places along its dimensions and no element at any", rows(tensor)),
        _ => format!("shows {numel} elements, of which its memory holds few again and again"),
    })
}

/// Number of elements of a tensor if sizes of 0 counted as 1.
fn rows(tensor: &Tensor) -> i64 {
    tensor.shape().iter().filter(|size| **size > 0).fold(1, |rows, size| rows.saturating_mul(*size))
}

/// Rejects an input expanded to an endless number of elements, if the outputs have fewer, and an output with that many
/// rows without elements.
pub(super) fn refuse_endless(op: &OpDef, args: &[Arg<'_>], outs: &[Tensor]) -> Result<()> {
    for (arg, def) in args.iter().zip(op.schema.args) {
        let mut found = None;
        arg.for_each_tensor(|tensor| {
            if let Some(what) = endless(tensor)
                && (tensor.numel() == 0 || outs.iter().all(|out| out.numel() < tensor.numel()))
            {
                found = Some(what);
            }
        });
        if let Some(what) = found {
            return Err(Error::value(format!("`{}` {what}", def.name))
                .with_help("do this before the tensor is expanded"));
        }
    }
    match outs.iter().filter(|out| out.numel() == 0).find_map(endless) {
        Some(what) => Err(Error::value(format!("the result {what}")).with_help("ask for smaller sizes")),
        None => Ok(()),
    }
}

/// Whether an argument shares the target's storage.
#[inline]
pub(super) fn shares(args: &[Arg<'_>], target: &Tensor) -> bool {
    let mut shares = false;
    for arg in args {
        arg.for_each_tensor(|tensor| shares |= tensor.shares_storage(target));
    }
    shares
}

pub(crate) fn check_inplace(target: &Tensor, sizes: &[i64], dtype: DType) -> Result<()> {
    check_written(target, "self", sizes, dtype)
}

/// Checks that an argument can hold the result that an in-place form writes into it.
pub(crate) fn check_written(target: &Tensor, name: &str, sizes: &[i64], dtype: DType) -> Result<()> {
    if target.shape() != sizes {
        return Err(Error::shape(format!(
            "the result has the shape {}, which {name} of shape {} cannot hold in place",
            ShapeText(sizes),
            ShapeText(target.shape())
        ))
        .with_help(format!("an in-place form never broadcasts {name}; use the functional form")));
    }
    check_castable(dtype, target.dtype(), name)
        .map_err(|error| error.with_help(format!("use the functional form, or convert {name} first")))
}

#[inline]
fn check_castable(from: DType, to: DType, name: &str) -> Result<()> {
    if can_cast(from, to) {
        return Ok(());
    }
    Err(Error::dtype(format!("the result is {from}, which cannot be written into {name} of dtype {to}")))
}

pub(super) fn check_out(
    op: &OpDef,
    index: usize,
    spec: &OutSpec,
    inferred: &Inferred,
    out: &Tensor,
) -> Result<()> {
    let name = match op.schema.returns.get(index).and_then(|result| result.name) {
        Some(name) => Cow::Borrowed(name),
        None if op.schema.returns.len() > 1 => Cow::Owned(format!("out[{index}]")),
        None => Cow::Borrowed("out"),
    };
    check_castable(spec.dtype, out.dtype(), &name)
        .map_err(|error| error.with_help(format!("give an `{name}` of dtype {}", spec.dtype)))?;
    if out.device() != inferred.device {
        return Err(Error::device(format!(
            "{name} is on {}, the inputs are on {}",
            out.device(),
            inferred.device
        ))
        .with_help("move one of them"));
    }
    if out.shape() != &spec.sizes[..] && out.numel() != 0 {
        return Err(Error::shape(format!(
            "{name} has the shape {}, the result {}",
            ShapeText(out.shape()),
            ShapeText(&spec.sizes)
        ))
        .with_help(format!("give an `{name}` of that shape, or one without elements, which is replaced")));
    }
    refuse_overlapping_target(out, &name)
}

pub(crate) fn refuse_overlapping_target(target: &Tensor, name: &str) -> Result<()> {
    if target.layout().has_internal_overlap() {
        return Err(Error::aliasing(format!(
            "{name} shows one memory location at several indices (strides {:?})",
            target.strides()
        ))
        .with_help("an expanded tensor cannot be written to; make a copy of it first"));
    }
    Ok(())
}

pub(super) fn same_elements(a: &Tensor, b: &Tensor) -> bool {
    a.dtype() == b.dtype() && a.layout() == b.layout()
}

pub(crate) fn refuse_overlap_with_inputs(op: &OpDef, args: &[Arg<'_>], out: &Tensor) -> Result<()> {
    for (number, (arg, def)) in args.iter().zip(op.schema.args).enumerate() {
        let may_be_same = op.forms.elementwise || op.forms.updates && number == 0;
        let mut clash = false;
        arg.for_each_tensor(|tensor| {
            clash |= tensor.overlaps(out) && !(may_be_same && same_elements(tensor, out));
        });
        if clash {
            return Err(Error::aliasing(format!("out shares memory with the input `{}`", def.name)).with_help(
                if may_be_same {
                    "out may be an input itself, but not overlap one at other positions; give it its own memory"
                } else {
                    "this kernel reads inputs after it starts writing; give out its own memory"
                },
            ));
        }
    }
    Ok(())
}

pub(super) fn refuse_partial_overlap(op: &OpDef, args: &[Arg<'_>], target: &Tensor) -> Result<()> {
    for (arg, def) in args.iter().zip(op.schema.args).skip(1) {
        let mut clash = false;
        arg.for_each_tensor(|tensor| {
            clash |= !tensor.same(target) && tensor.overlaps(target) && !same_elements(tensor, target);
        });
        if clash {
            return Err(Error::aliasing(format!(
                "self shares memory with the input `{}` at other positions",
                def.name
            ))
            .with_help("copy one of them first"));
        }
    }
    Ok(())
}
