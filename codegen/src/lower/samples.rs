//! `samples`: argument values for tests and documents.
//!
//! In: a list of calls, each a mapping from arguments to values. Out: values of the arguments' types. Tensors are
//! written as makers: `spread(2, 3)`, `places([0, 2])`.

use opsmith_core::DType;

use super::Context;
use crate::diagnostics::catalogue;
use crate::expr::parse::{self, ParseError};
use crate::model::{Arg, Fill, Kind, Op, Sample, SampleTensor, SampleValue};
use crate::spec::document::RawOp;
use crate::spec::document::keys::KeyName;
use crate::spec::yaml::{Key, Node};

/// The makers of tensors, with their meaning, for messages.
const MAKERS: [(&str, &str); 7] = [
    ("spread", "spread(2, 3): numbers between -1 and 1"),
    ("unit", "unit(2, 3): numbers between 0 and 1"),
    ("between", "between(1, 2, [2, 3]): numbers between two"),
    ("tensor", "tensor([[1.5, 2], [3, 4]]): these numbers"),
    ("integers", "integers(0, 5, [2, 3]): integers from 0 to below 5"),
    ("places", "places([0, 2]): these integers"),
    ("mask", "mask(2, 3): truth values"),
];

/// Limit of elements per tensor: checks that vary each element get slow beyond it.
const MOST_ELEMENTS: i64 = 4096;

pub(super) fn lower(context: &mut Context<'_>, op: &Op, raw: &RawOp) -> Vec<Sample> {
    let Some(node) = raw.get(KeyName::Samples) else { return Vec::new() };
    let Some(items) = node.as_seq() else {
        context.push(catalogue::samples_not_list(node.span));
        return Vec::new();
    };
    items.iter().filter_map(|item| sample(context, op, item)).collect()
}

fn sample(context: &mut Context<'_>, op: &Op, item: &Node) -> Option<Sample> {
    let Some(entries) = item.as_map() else {
        context.push(catalogue::samples_not_list(item.span));
        return None;
    };
    let values: Vec<Option<(usize, SampleValue)>> =
        entries.iter().map(|(key, value)| argument(context, op, key, value)).collect();
    let mut args = values.into_iter().collect::<Option<Vec<_>>>()?;
    let missing: Vec<&str> = op
        .args
        .iter()
        .enumerate()
        .filter(|(index, arg)| {
            arg.default.is_none() && !arg.ty.optional && !args.iter().any(|(given, _)| given == index)
        })
        .map(|(_, arg)| arg.name.as_str())
        .collect();
    if !missing.is_empty() {
        context.push(catalogue::sample_incomplete(item.span, &op.name, &missing));
        return None;
    }
    args.sort_by_key(|(index, _)| *index);
    let part = |(key, value): &(Key, Node)| format!("{}: {}", key.text, written(value));
    Some(Sample { args, text: entries.iter().map(part).collect::<Vec<_>>().join(", ") })
}

fn argument(context: &mut Context<'_>, op: &Op, key: &Key, value: &Node) -> Option<(usize, SampleValue)> {
    let Some(index) = op.arg_index(&key.text) else {
        let known: Vec<&str> = op.args.iter().map(|arg| arg.name.as_str()).collect();
        context.push(catalogue::sample_argument_unknown(key.span, &op.name, &key.text, &known));
        return None;
    };
    let arg = &op.args[index];
    match read(arg, &written(value)) {
        Ok(value) => Some((index, value)),
        Err(Unreadable::TooDeep(what)) => {
            context.push(catalogue::expression_too_deep(value.span, &what));
            None
        }
        Err(Unreadable::Other(why)) => {
            let ty = arg.ty.to_string();
            context.push(catalogue::sample_value(value.span, &arg.name, &ty, &why));
            None
        }
    }
}

/// A value as text; a list of the file as one in brackets.
fn written(node: &Node) -> String {
    match (node.as_text(), node.as_seq()) {
        (Some(text), _) => text.to_owned(),
        (_, Some(items)) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        _ => "None".to_owned(),
    }
}

/// The reason why a text is not a value.
enum Unreadable {
    /// It has more than the text names.
    TooDeep(String),
    /// The mistake in the value, perhaps with a hint after `; `.
    Other(String),
}

fn read(arg: &Arg, text: &str) -> Result<SampleValue, Unreadable> {
    if arg.ty.optional && text.trim() == "None" {
        return Ok(SampleValue::None);
    }
    if arg.ty.kind == Kind::Str {
        return Ok(SampleValue::Str(text.to_owned()));
    }
    let expr = parse::parse(text, &parse::Places::new(text)).map_err(|error| match error {
        ParseError::TooDeep(what) => Unreadable::TooDeep(what),
        ParseError::Bracket(..) | ParseError::Syntax { .. } => Unreadable::Other("cannot be read".to_owned()),
    })?;
    of_type(arg, &expr).map_err(Unreadable::Other)
}

fn of_type(arg: &Arg, expr: &syn::Expr) -> Result<SampleValue, String> {
    match &arg.ty.kind {
        Kind::Tensor => tensor(expr).map(SampleValue::Tensor),
        Kind::Tensors => {
            let tensors = items(expr)?.map(|item| tensor(item).map(Some));
            tensors.collect::<Result<_, _>>().map(SampleValue::Tensors)
        }
        Kind::OptionalTensors => {
            let one = |item| if is_none(item) { Ok(None) } else { tensor(item).map(Some) };
            items(expr)?.map(one).collect::<Result<_, _>>().map(SampleValue::Tensors)
        }
        // One number is repeated to the declared length.
        Kind::Ints(Some(length)) if integer(expr).is_ok() => {
            integer(expr).map(|value| SampleValue::List(vec![SampleValue::Int(value); *length as usize]))
        }
        kind => {
            let value = plain(kind, expr)?;
            match (kind, &value) {
                (Kind::Ints(Some(length)), SampleValue::List(items))
                    if *length > 1 && items.len() != *length as usize =>
                {
                    Err(format!("has {} numbers, not {length}", items.len()))
                }
                _ => Ok(value),
            }
        }
    }
}

/// A value of a kind without tensors.
fn plain(kind: &Kind, expr: &syn::Expr) -> Result<SampleValue, String> {
    match kind {
        Kind::Bool => truth(expr).map(SampleValue::Bool),
        Kind::Int => integer(expr).map(SampleValue::Int),
        Kind::Float => number(expr).map(SampleValue::Float),
        Kind::Scalar => match (truth(expr), integer(expr)) {
            (Ok(value), _) => Ok(SampleValue::Bool(value)),
            (_, Ok(value)) => Ok(SampleValue::Int(value)),
            _ => match complex(expr)? {
                Some((re, im)) => Ok(SampleValue::Complex(re, im)),
                None => number(expr).map(SampleValue::Float),
            },
        },
        Kind::Str => match expr {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                Ok(SampleValue::Str(text.value()))
            }
            syn::Expr::Path(path) => path
                .path
                .get_ident()
                .map(|word| SampleValue::Str(word.to_string()))
                .ok_or_else(|| "is no text".to_owned()),
            _ => Err("is no text; write it in quotes".to_owned()),
        },
        Kind::DType => match expr {
            syn::Expr::Path(path) => path
                .path
                .get_ident()
                .and_then(|name| DType::from_name(&name.to_string()))
                .map(SampleValue::DType)
                .ok_or_else(|| "is no dtype".to_owned()),
            _ => Err("is no dtype".to_owned()),
        },
        // Calls by name take devices as text, and the host is the device that every program has.
        Kind::Device => match expr {
            syn::Expr::Path(path) if path.path.is_ident("cpu") => Ok(SampleValue::Str("cpu".to_owned())),
            _ => Err("is not `cpu`, the device that samples can give".to_owned()),
        },
        list => match list.item().filter(|item| !item.holds_tensors()) {
            Some(item) => {
                let items = items(expr)?.map(|value| plain(&item.kind, value));
                items.collect::<Result<_, _>>().map(SampleValue::List)
            }
            None => Err("has a type that samples cannot give; leave it out".to_owned()),
        },
    }
}

fn items(expr: &syn::Expr) -> Result<impl Iterator<Item = &syn::Expr>, String> {
    match expr {
        syn::Expr::Array(array) => Ok(array.elems.iter()),
        _ => Err("is no list in brackets".to_owned()),
    }
}

fn is_none(expr: &syn::Expr) -> bool {
    matches!(expr, syn::Expr::Path(path) if path.path.is_ident("None"))
}

fn truth(expr: &syn::Expr) -> Result<bool, String> {
    match expr {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(value), .. }) => Ok(value.value),
        syn::Expr::Path(path) if path.path.is_ident("True") => Ok(true),
        syn::Expr::Path(path) if path.path.is_ident("False") => Ok(false),
        _ => Err("is neither `true` nor `false`".to_owned()),
    }
}

fn integer(expr: &syn::Expr) -> Result<i64, String> {
    match expr {
        syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => integer(expr).map(|n| -n),
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(value), .. }) => {
            value.base10_parse().map_err(|_| "does not fit 64 bits".to_owned())
        }
        _ => Err("is no integer".to_owned()),
    }
}

fn number(expr: &syn::Expr) -> Result<f64, String> {
    match expr {
        syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => number(expr).map(|n| -n),
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Float(value), .. }) => {
            value.base10_parse().map_err(|_| "is no number".to_owned())
        }
        syn::Expr::Path(path) if path.path.is_ident("inf") => Ok(f64::INFINITY),
        syn::Expr::Path(path) if path.path.is_ident("nan") => Ok(f64::NAN),
        other => integer(other).map(|n| n as f64).map_err(|_| "is no number".to_owned()),
    }
}

/// The parts of `complex(0.5, -1)`; `None` for other expressions.
fn complex(expr: &syn::Expr) -> Result<Option<(f64, f64)>, String> {
    let syn::Expr::Call(call) = expr else { return Ok(None) };
    match (&*call.func, &call.args.iter().collect::<Vec<_>>()[..]) {
        (syn::Expr::Path(path), [re, im]) if path.path.is_ident("complex") => {
            Ok(Some((number(re)?, number(im)?)))
        }
        _ => Err("is no number; a complex one is written `complex(0.5, -1)`".to_owned()),
    }
}

/// A tensor by its maker.
fn tensor(expr: &syn::Expr) -> Result<SampleTensor, String> {
    let ways = || MAKERS.iter().map(|(_, doc)| *doc).collect::<Vec<_>>().join("; ");
    let syn::Expr::Call(call) = expr else { return Err(format!("is no tensor; write {}", ways())) };
    let name = match &*call.func {
        syn::Expr::Path(path) => path.path.get_ident().map(ToString::to_string).unwrap_or_default(),
        _ => String::new(),
    };
    let args: Vec<&syn::Expr> = call.args.iter().collect();
    let tensor = match (name.as_str(), &args[..]) {
        ("spread", sizes) => SampleTensor { shape: shape(sizes)?, fill: Fill::Between(-1.0, 1.0) },
        ("unit", sizes) => SampleTensor { shape: shape(sizes)?, fill: Fill::Between(0.0, 1.0) },
        ("mask", sizes) => SampleTensor { shape: shape(sizes)?, fill: Fill::Mask },
        ("between", [low, high, sizes]) => {
            SampleTensor { shape: shape(&[sizes])?, fill: Fill::Between(number(low)?, number(high)?) }
        }
        ("integers", [low, high, sizes]) => {
            let (low, high) = (integer(low)?, integer(high)?);
            if low >= high {
                return Err(format!("has no integer from {low} to below {high}"));
            }
            SampleTensor { shape: shape(&[sizes])?, fill: Fill::Integers(low, high) }
        }
        ("tensor", [values]) => {
            let (mut shape, mut flat) = (Vec::new(), Vec::new());
            nested(values, 0, &mut shape, &mut |value| number(value).map(|number| flat.push(number)))?;
            SampleTensor { shape, fill: Fill::Numbers(flat) }
        }
        ("places", [values]) => {
            let (mut shape, mut flat) = (Vec::new(), Vec::new());
            nested(values, 0, &mut shape, &mut |value| integer(value).map(|number| flat.push(number)))?;
            SampleTensor { shape, fill: Fill::Places(flat) }
        }
        _ => return Err(format!("is no way to fill a tensor; write {}", ways())),
    };
    let elements: i64 = tensor.shape.iter().product();
    if elements > MOST_ELEMENTS {
        return Err(format!("has {elements} elements, more than the {MOST_ELEMENTS} that checks can move"));
    }
    Ok(tensor)
}

/// Sizes, as separate arguments or one list.
fn shape(sizes: &[&syn::Expr]) -> Result<Vec<i64>, String> {
    let sizes: Vec<i64> = match sizes {
        [syn::Expr::Array(list)] => list.elems.iter().map(integer).collect::<Result<_, _>>()?,
        sizes => sizes.iter().map(|size| integer(size)).collect::<Result<_, _>>()?,
    };
    match sizes.iter().find(|size| **size < 0 || **size > MOST_ELEMENTS) {
        Some(size) => Err(format!("has the size {size}")),
        None => Ok(sizes),
    }
}

/// The values of nested lists in order; `shape` receives their lengths.
fn nested(
    expr: &syn::Expr,
    depth: usize,
    shape: &mut Vec<i64>,
    visit: &mut dyn FnMut(&syn::Expr) -> Result<(), String>,
) -> Result<(), String> {
    let syn::Expr::Array(array) = expr else {
        return if depth == shape.len() { visit(expr) } else { Err("has lists beside numbers".to_owned()) };
    };
    let length = array.elems.len() as i64;
    match shape.get(depth) {
        None => shape.push(length),
        Some(known) if *known == length => {}
        Some(_) => return Err("has lists of different lengths".to_owned()),
    }
    array.elems.iter().try_for_each(|item| nested(item, depth + 1, shape, visit))
}
