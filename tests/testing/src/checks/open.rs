//! Inference for inputs of unknown ranks and sizes: its statements before the inputs are known must hold for the call.

use opsmith::{DType, Result, Tensor, Value};
use opsmith_graph::{BuilderArg, Dim, GraphBuilder, Handle, InputSpec, OpenGraph};
use opsmith_runtime::facts::ValueUse;
use opsmith_runtime::op::OpDef;

use crate::calls::call;
use crate::report::Report;
use crate::samples::{exact_dtype, repeatable, samples};

/// Inferred facts about results before ranks and sizes of inputs are known.
#[derive(Default, Debug)]
pub struct Open {
    /// Failures. Calls that a graph cannot represent for unknown sizes are excluded.
    pub report: Report,
    /// Number of results with a known rank.
    pub ranked: usize,
    /// The reason why a graph cannot represent the call.
    pub refused: Option<String>,
    /// Whether a shape was found for some sizes only, and a condition states that.
    pub narrow: bool,
    /// Whether a dimension that should stay vanishes if its size is 1, and a condition states that.
    pub vanishing: bool,
}

impl From<Open> for Report {
    fn from(open: Open) -> Report {
        open.report
    }
}

/// The first sample as a graph of one call, for inputs of any rank, then of unknown sizes, against the call.
pub fn open_inference(op: &'static OpDef) -> Open {
    let mut found = Open::default();
    if op.host.is_some() {
        return found;
    }
    let run = |values: &[Value]| repeatable(op, || call(op, values)).ok();
    // One sample determines the form of the call.
    let first = |dtype| {
        samples(op, dtype).into_iter().next().and_then(|values| run(&values).map(|outs| (values, outs)))
    };
    let sample = first(DType::F32).or_else(|| exact_dtype(op).and_then(first));
    let Some((values, real)) = sample else { return found };
    let of_any_rank = |_: &Tensor| vec![Dim::AnyRank];
    let of_unknown_sizes = |tensor: &Tensor| vec![Dim::Unknown; tensor.dim()];
    for dims in [&of_any_rank as &dyn Fn(&Tensor) -> Vec<Dim>, &of_unknown_sizes] {
        match graph_of(op, &values, real.len(), dims) {
            Ok(graph) => compare(op, &values, &graph, &real, &mut found),
            Err(error) => {
                found.report.left_out += 1;
                found.refused.get_or_insert(error.to_string());
            }
        }
    }
    found
}

fn compare(op: &'static OpDef, values: &[Value], graph: &OpenGraph, real: &[Tensor], found: &mut Open) {
    for (known, real) in graph.outputs().into_iter().zip(real) {
        let fits = known.shape.sizes().is_none_or(|sizes| {
            found.ranked += 1;
            let same = sizes
                .iter()
                .zip(real.shape())
                .all(|(size, real)| size.known().is_none_or(|size| size == *real));
            sizes.len() == real.dim() && same
        });
        // A result that holds for some numbers only has a condition on a number.
        let is_number = |text: &str| text.parse::<i64>().is_ok();
        let asks = |sign: &str| {
            let of_number = |condition: &str| condition.rsplit_once(sign).is_some_and(|(_, n)| is_number(n));
            graph.check().requirements.iter().any(|asked| of_number(&asked.condition))
        };
        let same_dtype = known.dtype == real.dtype();
        let mut wrong = None;
        match (fits, same_dtype) {
            (true, true) => {}
            (false, true) if asks(" == ") => found.narrow = true,
            (false, true) if asks(" != ") => found.vanishing = true,
            _ => {
                let layout = real.layout();
                wrong = Some(format!(
                    "{} ({}), open: {values:?}: {known:?}, not {layout:?}",
                    op.name, op.location
                ));
            }
        }
        found.report.compare(wrong);
    }
}

/// A graph of one call, whose tensors are inputs with unknown sizes. Tensors whose elements must be known are
/// constants.
fn graph_of(
    op: &'static OpDef,
    values: &[Value],
    results: usize,
    dims: &dyn Fn(&Tensor) -> Vec<Dim>,
) -> Result<OpenGraph> {
    let mut builder = GraphBuilder::new();
    let (mut args, mut named) = (Vec::new(), Vec::new());
    for (def, value) in op.schema.args.iter().zip(values) {
        let mut input = |tensor: &Tensor| builder.input(InputSpec::new(tensor.dtype(), dims(tensor)));
        let arg = match value {
            value if def.value == ValueUse::Required => BuilderArg::Value(value.clone()),
            Value::Tensor(tensor) => BuilderArg::Tensor(input(tensor)),
            Value::Tensors(tensors) => BuilderArg::Tensors(tensors.iter().map(input).collect()),
            Value::OptionalTensors(tensors) => {
                let each = tensors.iter().map(|tensor| tensor.as_ref().map(&mut input));
                BuilderArg::OptionalTensors(each.collect())
            }
            other => BuilderArg::Value(other.clone()),
        };
        match def.keyword_only {
            true => named.push((def.name, arg)),
            false => args.push(arg),
        }
    }
    let call = builder.call_with(op.name, args, named);
    let outputs: Vec<Handle> = (0..results).map(|position| call.result(position)).collect();
    builder.open(outputs).map_err(|errors| errors.into_error())
}
