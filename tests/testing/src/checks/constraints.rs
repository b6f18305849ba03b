//! Every constraint of an operator's attributes, violated: calls with disallowed values are derived from the spec's
//! constraints.

use opsmith::{DType, ErrorKind, Generator, Result, Scalar, Tensor, Text, Value};
use opsmith_runtime::constraint::{Constraint, Literal};

use opsmith_runtime::op::{ArgDef, ArgKind, ItemKind, OpDef};
use opsmith_runtime::{Arg, Device, MemoryFormat, MemoryLayout, boxed};

use crate::report::Report;

/// A value of an argument's type that satisfies all its constraints.
fn fine(def: &ArgDef) -> Value {
    if let Some(default) = def.default {
        return default.as_arg(def.ty).to_value();
    }
    if def.ty.optional {
        return Value::None;
    }
    let number = allowed_number(def);
    let len = def.constraints.iter().find_map(|constraint| match constraint {
        Constraint::Len(lengths) => Some(lengths[0] as usize),
        Constraint::MinLen(least) => Some(*least as usize),
        _ => None,
    });
    let len = len.unwrap_or(1);
    let tensor = || Tensor::of(&[1.0f32, 2.0]);
    match def.ty.kind {
        ArgKind::Tensor => Value::Tensor(tensor()),
        ArgKind::Tensors => Value::Tensors(vec![tensor(); len]),
        ArgKind::OptionalTensors => Value::OptionalTensors(vec![Some(tensor()); len]),
        ArgKind::Bool => Value::Bool(false),
        ArgKind::Int => Value::Int(number as i64),
        ArgKind::Float => Value::Float(number),
        ArgKind::Scalar => Value::Scalar(Scalar::Float(number)),
        ArgKind::Str => Value::Str(allowed_text(def)),
        ArgKind::Ints(_) => Value::Ints(vec![number as i64; len]),
        ArgKind::Floats => Value::Floats(vec![number; len]),
        ArgKind::Bools(_) => Value::Bools(vec![false; len]),
        ArgKind::Scalars => Value::Scalars(vec![Scalar::Float(number); len]),
        ArgKind::Strs => Value::Strs(vec![allowed_text(def).into(); len]),
        ArgKind::DTypes => Value::DTypes(vec![DType::F32; len]),
        ArgKind::Lists(kind) => lists(kind, number, &allowed_text(def), len),
        ArgKind::DType => Value::DType(DType::F32),
        ArgKind::Device => Value::Device(Device::CPU),
        ArgKind::MemoryFormat => Value::MemoryFormat(MemoryFormat::Contiguous),
        ArgKind::MemoryLayout => Value::MemoryLayout(MemoryLayout::Strided),
        ArgKind::Generator => Value::Generator(Generator::new(1)),
    }
}

/// As many rows with one item each.
fn lists(kind: ItemKind, number: f64, text: &str, len: usize) -> Value {
    match kind {
        ItemKind::Bool => vec![vec![false]; len].into(),
        ItemKind::Int => vec![vec![number as i64]; len].into(),
        ItemKind::Float => vec![vec![number]; len].into(),
        ItemKind::Scalar => vec![vec![Scalar::Float(number)]; len].into(),
        ItemKind::Str => vec![vec![Text::Owned(text.to_owned())]; len].into(),
        ItemKind::DType => vec![vec![DType::F32]; len].into(),
    }
}

/// Numbers near every limit, some allowed and some not.
fn candidates(def: &ArgDef) -> Vec<Literal> {
    let mut numbers = vec![0.0, 1.0, 2.0];
    for constraint in def.constraints {
        let limits: Vec<f64> = match constraint {
            Constraint::Min(limit)
            | Constraint::Max(limit)
            | Constraint::Above(limit)
            | Constraint::Below(limit) => limit.number().into_iter().collect(),
            Constraint::OneOf(choices) => choices.iter().filter_map(Literal::number).collect(),
            Constraint::MultipleOf(step) => vec![*step as f64],
            Constraint::Named(names) => names.iter().map(|(_, value)| *value as f64).collect(),
            Constraint::Len(_) | Constraint::MinLen(_) => Vec::new(),
        };
        numbers.extend(limits.into_iter().flat_map(|limit| [limit - 1.0, limit, limit + 1.0]));
    }
    let integer = matches!(def.ty.kind, ArgKind::Int | ArgKind::Ints(_) | ArgKind::Lists(ItemKind::Int));
    numbers
        .into_iter()
        .map(|number| if integer { Literal::Int(number as i64) } else { Literal::Float(number) })
        .collect()
}

fn allowed_number(def: &ArgDef) -> f64 {
    let found = candidates(def)
        .into_iter()
        .find(|value| def.constraints.iter().all(|constraint| constraint.allows(value)));
    found.and_then(|value| value.number()).unwrap_or(1.0)
}

fn allowed_text(def: &ArgDef) -> String {
    let choice = def.constraints.iter().find_map(|constraint| match constraint {
        Constraint::OneOf(choices) => Some(choices[0].clone()),
        _ => None,
    });
    match choice {
        Some(Literal::Str(text)) => text.into_owned(),
        _ => "text".to_owned(),
    }
}

/// A value of an argument's type that violates one constraint, with the expected error.
fn violations(def: &ArgDef, constraint: &Constraint) -> Vec<Value> {
    if constraint.is_about_length() {
        let lengths = (0..8).filter(|len| !constraint.allows_len(*len));
        let of = |len: usize| match def.ty.kind {
            ArgKind::Ints(_) => Value::Ints(vec![allowed_number(def) as i64; len]),
            ArgKind::Floats => Value::Floats(vec![allowed_number(def); len]),
            ArgKind::Bools(_) => Value::Bools(vec![true; len]),
            ArgKind::Scalars => Value::Scalars(vec![Scalar::Float(allowed_number(def)); len]),
            ArgKind::Strs => Value::Strs(vec![allowed_text(def).into(); len]),
            ArgKind::DTypes => Value::DTypes(vec![DType::F32; len]),
            ArgKind::Lists(kind) => lists(kind, allowed_number(def), &allowed_text(def), len),
            ArgKind::Tensors => Value::Tensors(vec![Tensor::scalar(Scalar::Int(1), DType::F32); len]),
            _ => panic!("`{}` has no length", def.name),
        };
        return lengths.map(of).collect();
    }
    const NO_CHOICE: &str = "no such choice";
    match def.ty.kind {
        ArgKind::Str => return vec![Value::Str(NO_CHOICE.to_owned())],
        ArgKind::Strs => return vec![Value::Strs(vec![NO_CHOICE.into()])],
        ArgKind::Lists(ItemKind::Str) => return vec![vec![vec![Text::Borrowed(NO_CHOICE)]].into()],
        _ => {}
    }
    let refused = candidates(def).into_iter().filter(|value| !constraint.allows(value));
    let mut values: Vec<Value> = Vec::new();
    for value in refused {
        let Some(number) = value.number() else { continue };
        values.push(match def.ty.kind {
            ArgKind::Int => Value::Int(number as i64),
            ArgKind::Float => Value::Float(number),
            ArgKind::Scalar => Value::Scalar(Scalar::Float(number)),
            ArgKind::Lists(kind) => lists(kind, number, NO_CHOICE, 1),
            ArgKind::Ints(_) | ArgKind::Floats | ArgKind::Scalars => with_item(fine(def), number),
            _ => panic!("`{}` is no number", def.name),
        });
    }
    if matches!(def.ty.kind, ArgKind::Float | ArgKind::Scalar) {
        values.push(Value::Float(f64::NAN));
    }
    values
}

/// A list with its last item replaced.
fn with_item(list: Value, number: f64) -> Value {
    match list {
        Value::Ints(mut items) => {
            items.pop();
            items.push(number as i64);
            Value::Ints(items)
        }
        Value::Floats(mut items) => {
            items.pop();
            items.push(number);
            Value::Floats(items)
        }
        Value::Scalars(mut items) => {
            items.pop();
            items.push(Scalar::Float(number));
            Value::Scalars(items)
        }
        other => panic!("{other:?} is no list of numbers"),
    }
}

/// Calls an operator with one argument replaced.
fn call_with(op: &'static OpDef, position: usize, value: &Value) -> Result<Vec<Value>> {
    let mut values: Vec<Value> = op.schema.args.iter().map(fine).collect();
    values[position] = match (op.schema.args[position].ty.kind, value) {
        (ArgKind::Scalar, Value::Float(number)) => Value::Scalar(Scalar::Float(*number)),
        _ => value.clone(),
    };
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    boxed::functional(op, &args)
}

/// Whether every violation is rejected, with the argument, its value and the allowed values.
pub fn constraints(op: &'static OpDef) -> Report {
    let mut report = Report::default();
    for (position, def) in op.schema.args.iter().enumerate() {
        for constraint in def.constraints {
            let values = violations(def, constraint);
            if values.is_empty() {
                report.wrong.push(format!(
                    "{} ({}): nothing violates `{}`: {constraint}",
                    op.name, op.location, def.name
                ));
            }
            for value in values {
                let wrong = match call_with(op, position, &value) {
                    Ok(_) => Some("was accepted".to_owned()),
                    Err(error) => {
                        let text = error.to_string();
                        let parts = [format!("`{}", def.name), constraint.to_string(), ", got ".to_owned()];
                        let says = text.starts_with(op.name) && parts.iter().all(|part| text.contains(part));
                        (error.kind() != ErrorKind::Value || !says)
                            .then(|| format!("was refused with: {text}"))
                    }
                };
                let what = |wrong| {
                    format!(
                        "{} ({}): `{}` = {value:?} {wrong}; it must be {constraint}",
                        op.name, op.location, def.name
                    )
                };
                report.compare(wrong.map(what));
            }
        }
    }
    report
}
