//! Inference of operators that were declared at run time, where sizes or ranks are unknown.
//!
//! In: a call whose sizes cannot be replaced by numbers. Out: the result of the operator's own inference, which has −1
//! for an unknown size and [−2] for an unknown rank.

use smallvec::SmallVec;

use super::infer::OutputsMeta;
use super::shape::Shape;
use super::size::Size;
use super::tensor_meta::{ArgumentMeta, Meta, Strides};
use crate::arg::{Arg, Value};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout};
use crate::op::{CustomOp, OpDef, UNKNOWN_DIM, UNKNOWN_RANK};
use crate::tensor::Tensor;

/// Infers a call.
///
/// # Errors
/// Errors of the operator's inference about dtypes; if an attribute depends on unknown sizes.
pub(super) fn infer(
    op: &OpDef,
    custom: &dyn CustomOp,
    args: &[ArgumentMeta<'_>],
    device: Device,
) -> Result<OutputsMeta> {
    let mut sizes: Vec<Dims> = Vec::new();
    let mut stand_in = |meta: &Meta| {
        sizes.push(match meta.shape.sizes() {
            Some(sizes) => sizes.iter().map(|size| size.known().unwrap_or(UNKNOWN_DIM)).collect(),
            None => Dims::from_slice(&[UNKNOWN_RANK]),
        });
        // Only its dtype is read.
        Tensor::described(Layout::contiguous(&[]), meta.dtype, meta.device)
    };
    let number = |size: &Size| {
        size.known().ok_or_else(|| {
            Error::value("an attribute depends on sizes that are not known").with_help("give it as a number")
        })
    };
    let mut values: SmallVec<[Value; 8]> = SmallVec::new();
    for arg in args {
        values.push(match *arg {
            ArgumentMeta::Tensor(meta) => Value::Tensor(stand_in(meta)),
            ArgumentMeta::Tensors(metas) => Value::Tensors(metas.iter().map(&mut stand_in).collect()),
            ArgumentMeta::OptionalTensors(metas) => {
                Value::OptionalTensors(metas.iter().map(|meta| meta.as_ref().map(&mut stand_in)).collect())
            }
            ArgumentMeta::Int(size) => Value::Int(number(size)?),
            ArgumentMeta::Ints(sizes) => Value::Ints(sizes.iter().map(number).collect::<Result<_>>()?),
            ArgumentMeta::Plain(arg) => {
                let mut metas = Vec::new();
                arg.for_each_tensor(|tensor| metas.push(Meta::describe(tensor)));
                metas.iter().for_each(|meta| drop(stand_in(meta)));
                arg.to_value()
            }
        });
    }
    let args: SmallVec<[Arg<'_>; 8]> = values.iter().map(Value::as_arg).collect();
    let outs = custom.infer_open(op, &args, sizes)?.into_iter().map(|(sizes, dtype)| {
        let shape = match sizes.as_slice() {
            [UNKNOWN_RANK] => Shape::UnknownRank,
            sizes => {
                sizes.iter().map(|size| if *size < 0 { Size::Unknown } else { Size::Const(*size) }).collect()
            }
        };
        Meta { dtype, shape, strides: Strides::Contiguous, device, value: None }
    });
    // As in the kernel's own inference: one kernel serves every dtype.
    Ok(OutputsMeta { outs: outs.collect(), compute: Some(crate::infer::DEFAULT_FLOAT), present: u64::MAX })
}
