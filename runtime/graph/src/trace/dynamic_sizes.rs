//! Data-dependent sizes: calls whose result sizes depend on elements, in a traced function.
//!
//! In: a call with meta tensors. Out: its results, with a placeholder for each data-dependent size. Those sizes, their
//! equalities and their bounds are declared in `run_sizes` of the operator's spec; no kernel runs.

use opsmith_core::DType;
use opsmith_runtime::arg::Arg;
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::facts::ValueUse;
use opsmith_runtime::infer::symbolic::{ArgumentMeta, Context, Inference, Meta, Origin, Size, Symbol, infer};
use opsmith_runtime::internals::{self, Owned, TensorInternals as _};
use opsmith_runtime::op::{ArgDef, OpDef, Outputs};
use opsmith_runtime::tensor::Tensor;

use super::recorder;

/// A data-dependent size in a function that is traced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placeholder {
    /// The number that stands for it in shapes.
    pub size: i64,
    /// Its upper bound; `i64::MAX` if there is none. The lower one is 0.
    pub most: i64,
}

/// The data-dependent sizes of the function that this thread traces, so far; none outside of a trace. A decision by such a
/// number, in the function, is one by its placeholder.
///
/// ```
/// use opsmith_graph::{Graph, InputSpec, data_dependent_sizes};
/// use opsmith_runtime::DType;
/// let function = |x: &[opsmith_runtime::Tensor]| {
///     assert!(data_dependent_sizes().is_empty());
///     Ok(x[0].clone())
/// };
/// Graph::trace(function, [InputSpec::new(DType::F32, ["n".into()])])?;
/// # Ok::<(), opsmith_runtime::Error>(())
/// ```
pub fn data_dependent_sizes() -> Vec<Placeholder> {
    if !internals::is_tracing() {
        return Vec::new();
    }
    recorder::data_dependent_sizes(|size| Placeholder { size: size.example, most: size.most })
}

/// Whether inference of a call needs elements that a traced function does not have.
pub(crate) fn depends_on_values(op: &OpDef, args: &[Arg<'_>]) -> bool {
    let by_run = op.rules.is_some_and(|rules| !rules.run_sizes.is_empty());
    op.schema.args.iter().zip(args).any(|(def, arg)| {
        // Where elements are useful but not required, inference runs without them.
        let wants = match def.value {
            ValueUse::None => false,
            ValueUse::Optional => by_run,
            ValueUse::Masks | ValueUse::Required => true,
        };
        wants && lacks_elements(def, arg)
    })
}

/// Whether elements that determine results are missing.
fn lacks_elements(def: &ArgDef, arg: &Arg<'_>) -> bool {
    let mut lacks = false;
    arg.for_each_tensor(|tensor| lacks |= def.value.counts(tensor.dtype()) && tensor.storage().is_meta());
    lacks
}

/// Records a call for which [`depends_on_values`] holds.
///
/// # Errors
/// If the elements must be known when the graph is made.
pub(crate) fn call(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let mut defined = op.schema.args.iter().zip(args);
    if defined.any(|(def, arg)| def.value == ValueUse::Required && lacks_elements(def, arg)) {
        return Err(must_be_known(op, args));
    }
    let mut device = None;
    args.iter().for_each(|arg| arg.for_each_tensor(|tensor| device = device.or(Some(tensor.device()))));
    if let (Some(composite), Some(device)) = (op.composite, device)
        && op.kernels.dtypes(device.backend).iter().next().is_none()
    {
        return composite(args);
    }
    let owned: Vec<Owned> = args.iter().map(|arg| described(*arg)).collect();
    let arguments: Vec<ArgumentMeta<'_>> = owned.iter().map(Owned::as_argument).collect();
    let mut context = Context::new();
    let Inference::Tensors(outputs) = infer(op, &arguments, &mut context)? else {
        return Err(must_be_known(op, args));
    };
    let symbols = &context.symbols;
    let mut outs = Vec::with_capacity(outputs.outs.len());
    for meta in &outputs.outs {
        let sizes = meta.shape.sizes().ok_or_else(|| must_be_known(op, args))?;
        let size = |size: &Size| match size {
            Size::Const(size) => Some(RunSize::Known(*size)),
            Size::Unknown => None,
            formula => Some(RunSize::Found {
                symbol: formula.as_symbol().filter(|symbol| *symbols.origin(*symbol) == Origin::Run),
                most: formula.upper_bound(symbols).unwrap_or(i64::MAX),
            }),
        };
        let sizes =
            sizes.iter().map(size).collect::<Option<Vec<_>>>().ok_or_else(|| must_be_known(op, args))?;
        outs.push((sizes, meta.dtype));
    }
    let compute = outputs.compute.ok_or_else(|| must_be_known(op, args))?;
    let device = outputs.outs.first().map_or(Device::CPU, |out| out.device);
    record(op, (compute, device), args, &outs)
}

/// A size of a result.
enum RunSize {
    /// A number.
    Known(i64),
    /// A data-dependent size, known when the node has run.
    Found {
        /// Its symbol in the operator's spec; sizes with one symbol are equal. `None` if it is computed from a symbol.
        symbol: Option<Symbol>,
        /// Its upper bound, as far as known.
        most: i64,
    },
}

/// Records the kernel; its results get placeholders for data-dependent sizes.
fn record(
    op: &'static OpDef,
    (compute, device): (DType, Device),
    args: &[Arg<'_>],
    results: &[(Vec<RunSize>, DType)],
) -> Result<Outputs> {
    if recorder::is_inside_region() {
        return Err(Error::without_elements(
            "the size of the result depends on elements, which a branch or loop of a graph cannot have",
        )
        .with_help("compute it outside, or keep the size with `where` or a mask"));
    }
    let mut outs = Outputs::new();
    let mut unknown: Vec<(usize, usize, i64, i64)> = Vec::new();
    let mut named: Vec<(Symbol, i64)> = Vec::new();
    for (number, (sizes, dtype)) in results.iter().enumerate() {
        let mut found = |dim: usize, symbol: Option<Symbol>, most: i64| {
            if let Some((_, example)) = named.iter().find(|(known, _)| Some(*known) == symbol) {
                return *example;
            }
            let example = recorder::example(unknown.len());
            named.extend(symbol.map(|symbol| (symbol, example)));
            unknown.push((number, dim, example, most));
            example
        };
        let sizes = sizes.iter().enumerate().map(|(dim, size)| match size {
            RunSize::Known(size) => *size,
            RunSize::Found { symbol, most } => found(dim, *symbol, *most),
        });
        let sizes: Vec<i64> = sizes.collect();
        // SAFETY: this thread traces, so the tensor is a meta tensor.
        outs.push(unsafe { Tensor::uninitialized(&sizes, *dtype, device)? });
    }
    recorder::call(op, compute, args, &outs, false)?;
    for (number, dim, example, most) in unknown {
        recorder::size_depends_on_data(&outs[number], dim, example, most);
    }
    Ok(outs)
}

/// The description of an argument: a tensor without its elements, except those of a constant.
fn described(arg: Arg<'_>) -> Owned {
    let meta = |tensor: &Tensor| match tensor.storage().is_meta() {
        true => Meta::describe(tensor),
        false => Meta::constant(tensor),
    };
    match arg {
        Arg::Tensor(tensor) => Owned::Tensor(meta(tensor)),
        Arg::Tensors(tensors) => Owned::Tensors(tensors.iter().map(meta).collect()),
        Arg::OptionalTensors(tensors) => {
            Owned::OptionalTensors(tensors.iter().map(|tensor| tensor.as_ref().map(meta)).collect())
        }
        other => Owned::Plain(other.to_value()),
    }
}

fn must_be_known(op: &OpDef, args: &[Arg<'_>]) -> Error {
    let names = op.schema.args.iter().zip(args).filter(|(def, arg)| lacks_elements(def, arg));
    let names: Vec<String> = names.map(|(def, _)| format!("`{}`", def.name)).collect();
    Error::without_elements(format!(
        "the elements of {} decide the shape of the result, so they must be known when the graph is made",
        names.join(" and ")
    ))
    .with_help("make the tensor outside the traced function, so that it is a constant of the graph")
}
