//! Symbolic inference against calls: with sizes as numbers, and with a symbol for every size that is then bound to
//! several numbers.

use opsmith::{DType, Result, Tensor, Value};
use opsmith_graph::infer_composition;
use opsmith_runtime::facts::ValueUse;
use opsmith_runtime::infer::symbolic::{
    ArgumentMeta, Bindings, Context, Inference, Meta, Origin, OutputsMeta, Shape, Size, Strides, Symbol,
    infer,
};
use opsmith_runtime::op::OpDef;

use super::sizes::Recorded;
use crate::calls::{call, reshaped};
use crate::report::Report;
use crate::samples::{arguments, exact_dtype, repeatable};

/// A value in the form of inference.
enum Known {
    Tensor(Meta),
    Tensors(Vec<Meta>),
    OptionalTensors(Vec<Option<Meta>>),
    Plain(Value),
}

impl Known {
    fn argument(&self) -> ArgumentMeta<'_> {
        match self {
            Known::Tensor(meta) => ArgumentMeta::Tensor(meta),
            Known::Tensors(metas) => ArgumentMeta::Tensors(metas),
            Known::OptionalTensors(metas) => ArgumentMeta::OptionalTensors(metas),
            Known::Plain(value) => ArgumentMeta::Plain(value.as_arg()),
        }
    }
}

/// The arguments with each tensor described by `describe`, constants where elements must be known.
fn known(op: &OpDef, values: &[Value], describe: &mut dyn FnMut(&Tensor) -> Meta) -> Vec<Known> {
    let each = |(value, value_use): (&Value, ValueUse)| {
        let mut describe = |tensor: &Tensor| {
            if value_use == ValueUse::Required { Meta::constant(tensor) } else { describe(tensor) }
        };
        match value {
            Value::Tensor(tensor) => Known::Tensor(describe(tensor)),
            Value::Tensors(tensors) => Known::Tensors(tensors.iter().map(describe).collect()),
            Value::OptionalTensors(tensors) => Known::OptionalTensors(
                tensors.iter().map(|tensor| tensor.as_ref().map(&mut describe)).collect(),
            ),
            other => Known::Plain(other.clone()),
        }
    };
    values.iter().zip(op.schema.args.iter().map(|arg| arg.value)).map(each).collect()
}

fn inferred(op: &'static OpDef, args: &[Known], context: &mut Context) -> Result<Option<OutputsMeta>> {
    let args: Vec<ArgumentMeta<'_>> = args.iter().map(Known::argument).collect();
    Ok(match infer(op, &args, context)? {
        Inference::Tensors(outputs) => Some(outputs),
        Inference::Composition => Some(infer_composition(op, &args, context)?),
        Inference::Values => None,
    })
}

/// Inference for the sizes of every sample against the results of its call.
pub fn inference(op: &'static OpDef) -> Report {
    let mut report = Report::default();
    if op.host.is_some() {
        return report;
    }
    for values in
        [DType::F32, DType::F64, DType::I64, DType::C64].into_iter().flat_map(|dtype| arguments(op, dtype))
    {
        let Ok(outs) = repeatable(op, || call(op, &values)) else { continue };
        let args = known(op, &values, &mut Meta::constant);
        let mut context = Context::new();
        let wrong = match inferred(op, &args, &mut context) {
            Ok(None) if op.composite.is_some() => continue,
            Ok(None) => Some("nothing is said of the results".to_owned()),
            Ok(Some(outputs)) => {
                let given = outputs.outs.iter().map(|out| (out.dtype, out.layout()));
                // Strides of empty tensors and of dimensions of size 1 are arbitrary.
                let real = outs.iter().map(|out| (out.dtype(), Some(out.layout().clone())));
                let same = |(a, b): ((DType, _), (DType, _))| a == b;
                if outputs.outs.len() != outs.len() || !given.zip(real).all(same) {
                    Some(format!("{values:?} gives {outputs:?}"))
                } else if !context.guards().is_empty() {
                    Some(format!("{values:?} leaves something open where all are numbers"))
                } else {
                    None
                }
            }
            Err(error) => Some(format!("{values:?}: {error}")),
        };
        report.compare(wrong.map(|wrong| format!("{} ({}), inferred: {wrong}", op.name, op.location)));
    }
    report
}

/// Number of bindings tried for each sample.
const ENOUGH: usize = 8;

/// The sizes of a sample to change.
#[derive(Clone, Copy)]
enum Which {
    All,
    /// The sizes with this value.
    Value(i64),
    /// The sizes of this dimension.
    Dim(usize),
}

/// The changes of sizes.
const CHANGES: [fn(i64) -> i64; 8] = [
    |size| size + 1,
    |size| size * 2,
    |size| size * 3,
    |size| size + 4,
    |size| size * 2 + 2,
    |size| size * 6,
    |size| size + 12,
    |size| (size - 1).max(2),
];

#[derive(Clone, Copy)]
struct Change(Which, fn(i64) -> i64);

impl Change {
    /// 0 and 1 are special and stay unchanged.
    fn of(self, dim: usize, size: i64) -> i64 {
        let changes = match self.0 {
            Which::All => true,
            Which::Value(value) => size == value,
            Which::Dim(wanted) => dim == wanted,
        };
        if size < 2 || !changes { size } else { self.1(size) }
    }

    fn shape(self, shape: &[i64]) -> Vec<i64> {
        shape.iter().enumerate().map(|(dim, size)| self.of(dim, *size)).collect()
    }
}

/// Every change of the present sizes; the first is no change.
fn changes(sizes: &[(Symbol, usize, i64)]) -> Vec<Change> {
    let mut which = vec![Which::All];
    which.extend((0..3).map(Which::Dim));
    let mut values: Vec<i64> = sizes.iter().map(|size| size.2).collect();
    values.sort_unstable();
    values.dedup();
    which.extend(values.into_iter().map(Which::Value));
    let each = which.into_iter().flat_map(|which| CHANGES.map(|how| Change(which, how)));
    std::iter::once(Change(Which::All, |size| size)).chain(each).collect()
}

fn changed(op: &OpDef, values: &[Value], change: Change) -> Result<Vec<Value>> {
    let tensor = |tensor: &Tensor| reshaped(tensor, &change.shape(tensor.shape()));
    let each = |(value, value_use): (&Value, ValueUse)| {
        Ok(match value {
            // Constants are unchanged.
            value if value_use == ValueUse::Required => value.clone(),
            Value::Tensor(one) => Value::Tensor(tensor(one)?),
            Value::Tensors(many) => Value::Tensors(many.iter().map(tensor).collect::<Result<_>>()?),
            Value::OptionalTensors(many) => Value::OptionalTensors(
                many.iter().map(|one| one.as_ref().map(tensor).transpose()).collect::<Result<_>>()?,
            ),
            other => other.clone(),
        })
    };
    values.iter().zip(op.schema.args.iter().map(|arg| arg.value)).map(each).collect()
}

/// The result of inference with symbols for sizes.
#[derive(Default, Debug)]
pub struct Bound {
    /// The failures. Bindings rejected by the inferred guards are excluded.
    pub report: Report,
    /// Number of accepted bindings of one sample; `None` if no sample runs.
    pub accepted: Option<usize>,
    /// A shape with a size that stays unknown.
    pub unknown: Option<String>,
    /// The reason why other sizes, which a call accepts, were rejected.
    pub narrow: Option<String>,
}

impl From<Bound> for Report {
    fn from(bound: Bound) -> Report {
        bound.report
    }
}

/// Inference with a symbol for every size of every sample, each then bound to several numbers, against calls at those.
pub fn symbolic_inference(op: &'static OpDef) -> Bound {
    let (mut found, mut recorded) = (Bound::default(), Recorded::default());
    if op.host.is_some() {
        return found;
    }
    let knows = arguments(op, DType::F32).iter().any(|values| repeatable(op, || call(op, values)).is_ok());
    let dtype = if knows { DType::F32 } else { exact_dtype(op).unwrap_or(DType::F32) };
    for values in arguments(op, dtype) {
        if repeatable(op, || call(op, &values)).is_err() {
            continue;
        }
        let mut context = Context::new();
        let mut sizes: Vec<(Symbol, usize, i64)> = Vec::new();
        let symbols = &mut context.symbols;
        let args = known(op, &values, &mut |tensor| {
            let shape: Shape = tensor
                .shape()
                .iter()
                .enumerate()
                .map(|(dim, &size)| {
                    let symbol = symbols.fresh_like(size);
                    sizes.push((symbol, dim, size));
                    Size::from(symbol)
                })
                .collect();
            Meta { device: tensor.device(), ..Meta::new(tensor.dtype(), shape) }
        });
        match inferred(op, &args, &mut context) {
            Ok(Some(outputs)) => {
                let wrong = found.report.wrong.len();
                bind(op, &values, &sizes, &outputs, &mut context, &mut found);
                if found.report.wrong.len() == wrong {
                    let symbols: Vec<Symbol> = sizes.iter().map(|size| size.0).collect();
                    recorded.add(op, &values, &symbols, &outputs, &context);
                }
            }
            Ok(None) => {}
            // Elements decide in a composition, and symbols are of sizes alone.
            Err(error) if error.lacks_elements() => found.report.left_out += 1,
            Err(error) => {
                let wrong = format!("{} ({}), inferred: {values:?}: {error}", op.name, op.location);
                found.report.compare(Some(wrong));
            }
        }
    }
    found
}

/// Compares the inferred results with calls at other sizes.
fn bind(
    op: &'static OpDef,
    values: &[Value],
    sizes: &[(Symbol, usize, i64)],
    outputs: &OutputsMeta,
    context: &mut Context,
    found: &mut Bound,
) {
    let mut accepted = 0;
    for change in changes(sizes) {
        let Ok(values) = changed(op, values, change) else { continue };
        let Ok(outs) = repeatable(op, || call(op, &values)) else { continue };
        let pairs: Vec<(Symbol, i64)> =
            sizes.iter().map(|(symbol, dim, size)| (*symbol, change.of(*dim, *size))).collect();
        let mut bindings = context.symbols.bind(&pairs).expect("sizes are what symbols stand for");
        if let Err(error) = context.check(&bindings) {
            found.report.left_out += 1;
            found.narrow.get_or_insert(error.to_string());
            continue;
        }
        accepted += 1;
        if accepted > ENOUGH {
            break;
        }
        let mut wrong = |what| found.report.wrong.push(format!("{} ({}), {what}", op.name, op.location));
        for (out, real) in outputs.outs.iter().zip(&outs) {
            if let Err(error) = set_found(context, &mut bindings, out, real) {
                wrong(format!("inferred at {pairs:?}: {error}"));
                continue;
            }
            let all_known = out.shape.sizes().is_some_and(|sizes| !sizes.iter().any(Size::is_unknown));
            if !all_known {
                found.unknown.get_or_insert(out.shape.to_string());
            }
            let same = match out.bind(&bindings) {
                Some(layout) => layout.sizes[..] == *real.shape() && same_place(out, &layout, real),
                None => !all_known,
            };
            if !same || out.dtype != real.dtype() || outputs.outs.len() != outs.len() {
                wrong(format!("inferred at {pairs:?}: {out:?}, not {:?}", real.layout()));
            }
        }
        found.report.compared += 1;
    }
    found.accepted = Some(found.accepted.unwrap_or(0).max(accepted));
}

/// Sets data-dependent sizes to the values of the run, which must be within their bounds.
fn set_found(context: &Context, bindings: &mut Bindings, out: &Meta, real: &Tensor) -> Result<()> {
    for (size, found) in out.shape.sizes().unwrap_or_default().iter().zip(real.shape()) {
        if let Some(symbol) = size.as_symbol()
            && *context.symbols.origin(symbol) == Origin::Run
            && bindings.get(symbol).is_none()
        {
            context.symbols.set(bindings, symbol, *found)?;
        }
    }
    Ok(())
}

/// Whether strides and offset match, ignoring dimensions of size 0 or 1.
fn same_place(out: &Meta, layout: &opsmith_runtime::Layout, real: &Tensor) -> bool {
    out.strides == Strides::Unknown
        || real.numel() == 0
        || layout.offset == real.layout().offset
            && (0..real.dim()).all(|dim| real.shape()[dim] == 1 || layout.strides[dim] == real.strides()[dim])
}
