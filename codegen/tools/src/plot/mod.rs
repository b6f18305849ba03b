//! The plot of an operator that is a function of each element of one tensor, and of its derivative: a picture in SVG.
//!
//! In: a model and one of its operators. Out: one element `<svg>`, at most 15 kB, with colours as custom properties of CSS
//! that have fallbacks; or the reason why there is none. Expressions are evaluated in double precision, without kernels.
//! Of two tensors, the first is on the axis and the second has three values.

mod curves;
mod draw;
mod evaluate;
mod settings;
#[cfg(test)]
mod tests;

use std::fmt;

use opsmith_codegen::model::{Kind, Model, Op};

use curves::{Range, domain, grid, pieces, values, window_with_slopes};
use draw::{Curve, picture};
use evaluate::{Evaluator, Names, Value};
use settings::{Settings, settings};

/// The plot of an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plot {
    /// The picture, an element `<svg>`.
    Svg(String),
    /// No picture, with the reason.
    None(NoPlot),
}

/// The reason why an operator has no plot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoPlot {
    /// It has neither an expression of one element nor a composition.
    NoExpression,
    /// It is a function of this number of tensors, or of lists of them.
    Tensors(usize),
    /// Only gradient formulas call it.
    BackwardOnly,
    /// It copies its argument, or is constant.
    Trivial,
    /// It does not compute real numbers.
    NoRealNumbers,
    /// An argument has no default, and no sample has a value of it.
    Argument(String),
    /// Its expression cannot be evaluated, with the reason.
    Unknown(String),
    /// It has no finite values around zero.
    NoValues,
}

impl fmt::Display for NoPlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoPlot::NoExpression => f.write_str("it has no expression of one element"),
            NoPlot::Tensors(count) => write!(f, "it is a function of {count} tensors or of lists of them"),
            NoPlot::BackwardOnly => f.write_str("only gradient formulas call it"),
            NoPlot::Trivial => f.write_str("its elements are those of its argument, or all alike"),
            NoPlot::NoRealNumbers => f.write_str("its result is no real number"),
            NoPlot::Argument(name) => write!(f, "`{name}` has neither a default nor a value in a sample"),
            NoPlot::Unknown(why) => f.write_str(why),
            NoPlot::NoValues => f.write_str("it has no finite values around zero"),
        }
    }
}

/// The plot of an operator.
pub fn plot(model: &Model, op: &Op) -> Plot {
    match picture_of(model, op) {
        Ok(svg) => Plot::Svg(svg),
        Err(why) => Plot::None(why),
    }
}

fn picture_of(model: &Model, op: &Op) -> Result<String, NoPlot> {
    let target = op.alias_of.and_then(|id| model.ops.get(id.0)).unwrap_or(op);
    if target.body.pointwise.is_none() && target.body.composite.is_none() {
        return Err(NoPlot::NoExpression);
    }
    if target.facts.backward_only {
        return Err(NoPlot::BackwardOnly);
    }
    let is_one = target.outputs.len() == 1 && target.outputs[0].ty.kind == Kind::Tensor;
    if !is_one {
        return Err(NoPlot::Unknown("it has several results".to_owned()));
    }
    let settings = settings(target)?;
    let mut functions = functions(model, target, &settings)?;
    let of_values = functions.iter_mut().filter(|function| !function.is_slope);
    let range = of_values.filter_map(|function| domain(&mut function.value));
    let range = range.reduce(|a, b| Range { low: a.low.min(b.low), high: a.high.max(b.high) });
    let range = range.ok_or(NoPlot::NoValues)?;
    let mut points = |is_slope: bool| -> Vec<f64> {
        let of_kind = functions.iter_mut().filter(|function| function.is_slope == is_slope);
        of_kind.flat_map(|function| values(&mut function.value, range)).collect()
    };
    let (own, slopes) = (points(false), points(true));
    if is_trivial(&own, range, settings.varied.as_ref().map_or(1, |(_, numbers)| numbers.len())) {
        return Err(NoPlot::Trivial);
    }
    let window = window_with_slopes(&own, &slopes);
    let curves: Vec<Curve> = functions
        .iter_mut()
        .map(|function| Curve {
            pieces: pieces(&mut function.value, range, window),
            label: function.label.clone(),
            colour: function.colour,
            is_slope: function.is_slope,
        })
        .collect();
    let axis = &target.args[settings.axis].name;
    Ok(picture(&curves, (axis, range), window, &sentence(op, target, &settings, range, &curves)))
}

/// Whether every curve is the identity, or a constant.
fn is_trivial(values: &[f64], range: Range, curves: usize) -> bool {
    let of_each = values.chunks((values.len() / curves.max(1)).max(1));
    let of_one = |values: &[f64]| {
        let is_identity = grid(range).zip(values).all(|(x, y)| (x - y).abs() <= 1e-9 * x.abs());
        is_identity || values.iter().all(|value| *value == values[0])
    };
    of_each.into_iter().all(of_one)
}

/// A function that is drawn.
struct Drawn<'a> {
    value: Box<dyn FnMut(f64) -> f64 + 'a>,
    label: String,
    colour: usize,
    is_slope: bool,
}

/// The functions of an operator: the values for each setting, then the slopes.
fn functions<'a>(model: &'a Model, op: &'a Op, settings: &Settings) -> Result<Vec<Drawn<'a>>, NoPlot> {
    let axis = settings.axis;
    let variants: Vec<Option<f64>> = match &settings.varied {
        Some((_, numbers)) => numbers.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let (mut drawn, mut slopes) = (Vec::new(), Vec::new());
    for (colour, number) in variants.into_iter().enumerate() {
        let mut args = settings.values.clone();
        let mut of = String::new();
        if let (Some((index, _)), Some(number)) = (&settings.varied, number) {
            args[*index] = Value::Number(number);
            of = format!(", {} = {number}", op.args[*index].name);
        }
        probe(model, op, axis, &args)?;
        let label = |text: &str| format!("{text}{of}");
        let name = if op.args[axis].name == "y" { "result" } else { "y" };
        let function = |args: Vec<Value>| move |x: f64| value(model, op, axis, &args, x).unwrap_or(f64::NAN);
        drawn.push(Drawn {
            value: Box::new(function(args.clone())),
            label: label(name),
            colour,
            is_slope: false,
        });
        if let Some(formula) = formula(op, axis)
            && slope(model, op, formula, axis, &args, 0.31)
                .or_else(|| slope(model, op, formula, axis, &args, 1.7))
                .is_some()
        {
            slopes.push(Drawn {
                value: Box::new(move |x| slope(model, op, formula, axis, &args, x).unwrap_or(f64::NAN)),
                label: label(&format!("∂{name}/∂{}", op.args[axis].name)),
                // One curve and its slope have colours of their own, several curves share one each.
                colour: if settings.varied.is_some() { colour } else { 1 },
                is_slope: true,
            });
        }
    }
    drawn.extend(slopes);
    Ok(drawn)
}

/// Whether an operator has a value somewhere that is a number.
fn probe(model: &Model, op: &Op, axis: usize, args: &[Value]) -> Result<(), NoPlot> {
    let mut args = args.to_vec();
    args[axis] = Value::Number(0.31);
    let value = Evaluator::new(model).operator(op, &Names { args, ..Names::default() }, 0);
    match value.map_err(NoPlot::Unknown)? {
        Value::Number(_) => Ok(()),
        _ => Err(NoPlot::NoRealNumbers),
    }
}

fn value(model: &Model, op: &Op, axis: usize, args: &[Value], x: f64) -> Option<f64> {
    let mut args = args.to_vec();
    args[axis] = Value::Number(x);
    Evaluator::new(model).operator(op, &Names { args, ..Names::default() }, 0).ok()?.number()
}

type Formula = opsmith_codegen::model::expr::Expr;

/// The gradient formula of an argument alone.
fn formula(op: &Op, argument: usize) -> Option<&Formula> {
    let alone = |derivative: &&opsmith_codegen::model::Derivative| derivative.arguments == [argument];
    op.derivatives.iter().find(alone).map(|derivative| &derivative.formula)
}

fn slope(model: &Model, op: &Op, formula: &Formula, axis: usize, args: &[Value], x: f64) -> Option<f64> {
    let result = value(model, op, axis, args, x).filter(|result| result.is_finite())?;
    let mut args = args.to_vec();
    args[axis] = Value::Number(x);
    let names = Names { args, grad: Some(1.0), result: Some(result) };
    Evaluator::new(model).expression(formula, &names, &mut Vec::new(), 0).ok()?.number()
}

/// The content of the picture, for readers who do not see it.
fn sentence(op: &Op, target: &Op, settings: &Settings, range: Range, curves: &[Curve]) -> String {
    let round = |value: f64| format!("{}", (value * 100.0).round() / 100.0);
    let axis = &target.args[settings.axis].name;
    let slopes = if curves.iter().any(|curve| curve.is_slope) { " and its derivative" } else { "" };
    let of = match &settings.varied {
        Some((index, numbers)) => {
            let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
            format!(", for {} = {}", target.args[*index].name, numbers.join(", "))
        }
        None => String::new(),
    };
    format!("Plot of {}{slopes} for {axis} from {} to {}{of}.", op.name, round(range.low), round(range.high))
}
