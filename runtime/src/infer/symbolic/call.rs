//! Runs of compiled inference, as in eager calls, with numbers for symbolic sizes.
//!
//! In: an operator, arguments, and the values of their sizes. Out: the results of compiled inference. Its tensors are
//! meta tensors.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use opsmith_core::DType;
use smallvec::SmallVec;

use super::shape::Shape;
use super::size::Size;
use super::tensor_meta::{ArgumentMeta, Meta, Strides};
use crate::arg::{Arg, Value};
use crate::device::Device;
use crate::error::Result;
use crate::layout::{Dims, Layout};
use crate::op::OpDef;
use crate::storage::Storage;
use crate::tensor::Tensor;

impl Tensor {
    /// A meta tensor with a layout and dtype, for inference. Access to its elements is an error.
    pub(crate) fn described(layout: Layout, dtype: DType, device: Device) -> Tensor {
        // Views of it lie inside its layout's extent.
        let elements = layout.extent().map_or(0, |(_, high)| high.max(0) as usize);
        // A header alone is a hundred bytes; without memory for it no program can continue.
        let nothing = Storage::meta(elements.saturating_mul(dtype.size()))
            .unwrap_or_else(|_| std::alloc::handle_alloc_error(std::alloc::Layout::new::<Storage>()));
        // SAFETY: such a storage cannot be borrowed, so no element is ever read or written.
        unsafe { Tensor::from_parts(nothing, layout, dtype, device) }
    }
}

/// The result of compiled inference.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Layout and dtype of each result.
    pub outs: SmallVec<[(Layout, DType); 1]>,
    /// The dtype that selects the kernel; `None` for a composition.
    pub compute: Option<DType>,
    /// The device of the results.
    pub device: Device,
    /// The results that are present, a bit each.
    pub present: u64,
}

/// An argument with numbers for sizes.
enum Held<'a> {
    Given(Arg<'a>),
    Tensor(Tensor),
    Tensors(Vec<Tensor>),
    OptionalTensors(Vec<Option<Tensor>>),
    Ints(Dims),
}

/// A function that runs a call with numbers for sizes. `None` if a size has no value, or the call cannot be run this
/// way.
pub type Run =
    fn(&'static OpDef, &[ArgumentMeta<'_>], &dyn Fn(&Size) -> Option<i64>) -> Option<Result<Outcome>>;

/// Runs the compiled inference of an operator. `None` if a size has no value, or the operator has no such
/// inference.
///
/// # Errors
/// Errors of inference.
pub(super) fn run(
    op: &'static OpDef,
    args: &[ArgumentMeta<'_>],
    value_of: &dyn Fn(&Size) -> Option<i64>,
) -> Option<Result<Outcome>> {
    let held = hold_all(args, value_of)?;
    let args: SmallVec<[Arg<'_>; 8]> = held.iter().map(Held::as_arg).collect();
    if let Some(view) = op.view {
        let first = args.first().filter(|arg| matches!(arg, Arg::Tensor(_)))?.tensor();
        return Some(view.layouts(&args).map(|layouts| Outcome {
            outs: layouts.into_iter().map(|layout| (layout, first.dtype())).collect(),
            compute: None,
            device: first.device(),
            present: u64::MAX,
        }));
    }
    Some(op.inferred(&args)?.and_then(|inferred| {
        let outs = inferred.outs.iter().map(|out| (Layout::contiguous(&out.sizes), out.dtype)).collect();
        let present = op.present_results(&args)?;
        Ok(Outcome { outs, compute: Some(inferred.compute), device: inferred.device, present })
    }))
}

/// Calls a function with arguments that have numbers for sizes, and meta tensors. `None` if a size has no value.
pub fn with_numbers<R>(
    args: &[ArgumentMeta<'_>],
    value_of: &dyn Fn(&Size) -> Option<i64>,
    function: impl FnOnce(&[Arg<'_>]) -> R,
) -> Option<R> {
    let held = hold_all(args, value_of)?;
    let args: SmallVec<[Arg<'_>; 8]> = held.iter().map(Held::as_arg).collect();
    Some(function(&args))
}

type HeldArgs<'a> = SmallVec<[Held<'a>; 8]>;

fn hold_all<'a>(
    args: &'a [ArgumentMeta<'a>],
    value_of: &dyn Fn(&Size) -> Option<i64>,
) -> Option<HeldArgs<'a>> {
    args.iter().map(|arg| hold(*arg, value_of)).collect()
}

impl Held<'_> {
    fn as_arg(&self) -> Arg<'_> {
        match self {
            Held::Given(arg) => *arg,
            Held::Tensor(tensor) => Arg::Tensor(tensor),
            Held::Tensors(tensors) => Arg::Tensors(tensors),
            Held::OptionalTensors(tensors) => Arg::OptionalTensors(tensors),
            Held::Ints(values) => Arg::Ints(values),
        }
    }
}

fn hold<'a>(arg: ArgumentMeta<'a>, value_of: &dyn Fn(&Size) -> Option<i64>) -> Option<Held<'a>> {
    let tensor = |meta: &Meta| match &meta.value {
        Some(value) => Some(value.clone()),
        None => Some(Tensor::described(meta.evaluate(value_of)?, meta.dtype, meta.device)),
    };
    Some(match arg {
        ArgumentMeta::Plain(arg) => Held::Given(arg),
        ArgumentMeta::Int(size) => Held::Given(Arg::Int(value_of(size)?)),
        ArgumentMeta::Ints(sizes) => Held::Ints(sizes.iter().map(value_of).collect::<Option<_>>()?),
        ArgumentMeta::Tensor(meta) => Held::Tensor(tensor(meta)?),
        ArgumentMeta::Tensors(metas) => Held::Tensors(metas.iter().map(tensor).collect::<Option<_>>()?),
        ArgumentMeta::OptionalTensors(metas) => Held::OptionalTensors(
            metas
                .iter()
                .map(|meta| meta.as_ref().map_or(Some(None), |meta| tensor(meta).map(Some)))
                .collect::<Option<_>>()?,
        ),
    })
}

/// An owned argument.
#[derive(Clone, Debug)]
pub enum Owned {
    /// A tensor.
    Tensor(Meta),
    /// A list of tensors.
    Tensors(Vec<Meta>),
    /// A list of tensors of which some may be absent.
    OptionalTensors(Vec<Option<Meta>>),
    /// A size.
    Int(Size),
    /// A list of sizes.
    Ints(Vec<Size>),
    /// Anything else.
    Plain(Value),
}

impl Owned {
    /// A copy of an argument.
    pub fn of(arg: ArgumentMeta<'_>) -> Owned {
        match arg {
            ArgumentMeta::Tensor(meta) => Owned::Tensor(meta.clone()),
            ArgumentMeta::Tensors(metas) => Owned::Tensors(metas.to_vec()),
            ArgumentMeta::OptionalTensors(metas) => Owned::OptionalTensors(metas.to_vec()),
            ArgumentMeta::Int(size) => Owned::Int(size.clone()),
            ArgumentMeta::Ints(sizes) => Owned::Ints(sizes.to_vec()),
            ArgumentMeta::Plain(arg) => Owned::Plain(arg.to_value()),
        }
    }

    /// The argument, borrowed.
    pub fn as_argument(&self) -> ArgumentMeta<'_> {
        match self {
            Owned::Tensor(meta) => ArgumentMeta::Tensor(meta),
            Owned::Tensors(metas) => ArgumentMeta::Tensors(metas),
            Owned::OptionalTensors(metas) => ArgumentMeta::OptionalTensors(metas),
            Owned::Int(size) => ArgumentMeta::Int(size),
            Owned::Ints(sizes) => ArgumentMeta::Ints(sizes),
            Owned::Plain(value) => ArgumentMeta::Plain(value.as_arg()),
        }
    }

    /// Calls `visit` with each tensor, to read or to change.
    pub fn for_each_meta(&mut self, visit: &mut dyn FnMut(&mut Meta)) {
        match self {
            Owned::Tensor(only) => visit(only),
            Owned::Tensors(metas) => metas.iter_mut().for_each(visit),
            Owned::OptionalTensors(metas) => metas.iter_mut().flatten().for_each(visit),
            Owned::Int(_) | Owned::Ints(_) | Owned::Plain(_) => {}
        }
    }

    /// Calls `visit` with each size, to read or to change.
    pub(super) fn for_each_size(&mut self, visit: &mut dyn FnMut(&mut Size)) {
        self.for_each_meta(&mut |meta| {
            if let Shape::Known(sizes) = &mut meta.shape {
                sizes.iter_mut().for_each(&mut *visit);
            }
            if let Strides::Given { strides, offset } = &mut meta.strides {
                strides.iter_mut().for_each(&mut *visit);
                visit(offset);
            }
        });
        match self {
            Owned::Int(size) => visit(size),
            Owned::Ints(sizes) => sizes.iter_mut().for_each(visit),
            _ => {}
        }
    }
}

/// A call inferred for symbolic sizes, with its results, to be verified when the sizes are known.
#[derive(Clone)]
pub struct Call(Arc<Inferred>);

struct Inferred {
    op: &'static OpDef,
    args: Vec<Owned>,
    outs: Vec<Meta>,
    run: Run,
}

impl Call {
    pub(super) fn new(op: &'static OpDef, args: Vec<Owned>, outs: Vec<Meta>, run: Run) -> Call {
        Call(Arc::new(Inferred { op, args, outs, run }))
    }

    /// The operator's full name.
    pub fn name(&self) -> &'static str {
        self.0.op.name
    }

    /// Whether compiled inference, with numbers for symbols, gives the same results; `None` if a size stays unknown.
    pub(super) fn is_confirmed(&self, value_of: &dyn Fn(&Size) -> Option<i64>) -> Option<bool> {
        let Inferred { op, args, outs, run } = &*self.0;
        let args: Vec<ArgumentMeta<'_>> = args.iter().map(Owned::as_argument).collect();
        let Ok(outcome) = run(op, &args, value_of)? else { return Some(false) };
        let same = |(meta, (layout, dtype)): (&Meta, &(Layout, DType))| {
            let sizes = meta.shape.sizes().is_none_or(|sizes| {
                sizes.len() == layout.sizes.len()
                    && sizes
                        .iter()
                        .zip(&layout.sizes)
                        .all(|(size, real)| value_of(size).is_none_or(|size| size == *real))
            });
            sizes && meta.dtype == *dtype
        };
        Some(outs.len() == outcome.outs.len() && outs.iter().zip(&outcome.outs).all(same))
    }
}

/// Calls are equal if they come from one inference.
impl PartialEq for Call {
    fn eq(&self, other: &Call) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Call {}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Call({})", self.name())
    }
}
