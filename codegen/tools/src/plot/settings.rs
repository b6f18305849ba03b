//! The arguments of a plotted operator: the one on the axis, the others at their defaults, one of them at several values.
//!
//! In: an operator. Out: [`Settings`], or the reason why it is no function of one number.

use opsmith_codegen::model::{Arg, Fill, Kind, Op, SampleValue};
use opsmith_core::{Backend, DType, DTypeSet};

use super::NoPlot;
use super::evaluate::{Value, default};

/// The arguments of a plotted operator.
pub(super) struct Settings {
    /// The argument on the axis.
    pub axis: usize,
    /// The values of all arguments; that of the axis counts for nothing.
    pub values: Vec<Value>,
    /// The argument with a curve for each of several values.
    pub varied: Option<(usize, Vec<f64>)>,
}

/// The values of the argument with several curves, if no sample has any.
const USUAL: [f64; 3] = [0.5, 1.0, 2.0];

pub(super) fn settings(op: &Op) -> Result<Settings, NoPlot> {
    let computed = op.body.dtypes_of_row(Backend::Cpu);
    let floats =
        computed == DTypeSet::EMPTY || computed.contains(DType::F64) || computed.contains(DType::F32);
    if !floats {
        return Err(NoPlot::NoRealNumbers);
    }
    let needed = |arg: &&(usize, &Arg)| arg.1.ty.holds_tensors() && !arg.1.ty.optional;
    let args: Vec<(usize, &Arg)> = op.args.iter().enumerate().collect();
    let tensors: Vec<usize> = args.iter().filter(needed).map(|(index, _)| *index).collect();
    let all_single = tensors.iter().all(|index| op.args[*index].ty.is_tensor());
    let (axis, second) = match tensors[..] {
        [axis] if all_single => (axis, None),
        [axis, second] if all_single => (axis, Some(second)),
        _ => return Err(NoPlot::Tensors(tensors.len())),
    };
    let mut varied = second.map(|second| (second, numbers(op, second)));
    let mut values = Vec::new();
    for (index, arg) in args {
        values.push(match &arg.default {
            _ if tensors.contains(&index) => Value::Number(0.0),
            Some(given) if !matches!(given, opsmith_codegen::model::Default::None) => default(given),
            given => match (sampled(op, index), given) {
                (Some(Value::Number(number)), None) if varied.is_none() && is_number(arg) => {
                    varied = Some((index, numbers(op, index)));
                    Value::Number(number)
                }
                (Some(value), _) => value,
                (None, Some(_)) => Value::None,
                (None, None) if arg.ty.optional => Value::None,
                (None, None) => return Err(NoPlot::Argument(arg.name.clone())),
            },
        });
    }
    Ok(Settings { axis, values, varied })
}

fn is_number(arg: &Arg) -> bool {
    matches!(arg.ty.kind, Kind::Scalar | Kind::Float | Kind::Int) && !arg.ty.optional
}

/// The value of an argument in the first sample that has a plain one.
fn sampled(op: &Op, index: usize) -> Option<Value> {
    op.samples.iter().find_map(|sample| plain(&sample.args.iter().find(|(at, _)| *at == index)?.1))
}

fn plain(value: &SampleValue) -> Option<Value> {
    Some(match value {
        SampleValue::None => Value::None,
        SampleValue::Bool(value) => Value::Bool(*value),
        SampleValue::Int(value) => Value::Number(*value as f64),
        SampleValue::Float(value) => Value::Number(*value),
        SampleValue::Str(text) => Value::Text(text.clone()),
        SampleValue::DType(dtype) => Value::DType(*dtype),
        SampleValue::List(items) => Value::List(items.iter().map(plain).collect::<Option<_>>()?),
        SampleValue::Complex(..) | SampleValue::Tensor(_) | SampleValue::Tensors(_) => return None,
    })
}

/// At most three numbers for an argument: those of the samples, or of the interval that a sample draws from.
fn numbers(op: &Op, index: usize) -> Vec<f64> {
    let given = op.samples.iter().filter_map(|sample| sample.args.iter().find(|(at, _)| *at == index));
    let mut found: Vec<f64> = Vec::new();
    for (_, value) in given {
        match value {
            SampleValue::Tensor(tensor) => {
                if let Fill::Between(low, high) = tensor.fill
                    && found.is_empty()
                {
                    let at = |part: f64| ((low + (high - low) * part) * 10.0).round() / 10.0;
                    found.extend([at(0.1), at(0.5), at(0.9)]);
                }
            }
            value => found.extend(plain(value).and_then(|value| value.number())),
        }
    }
    found.retain(|number| number.is_finite());
    let mut distinct: Vec<f64> = Vec::new();
    for number in found {
        if !distinct.contains(&number) {
            distinct.push(number);
        }
    }
    distinct.truncate(3);
    if distinct.is_empty() { USUAL.to_vec() } else { distinct }
}
