//! Checks attributes against the constraints of their operator's spec.
//!
//! In: a definition and a call's arguments. Out: nothing, or an error that names the argument, its value and the
//! allowed values. Generated code calls [`check`] for operators that have constraints; the others pay nothing. The
//! meaning of constraints is defined in `opsmith_core::constraint`.

use std::borrow::Cow;

use crate::arg::Arg;
use crate::error::{Error, Result};
use crate::lists::{AnyLists, ListItem, Lists};
use crate::op::{ArgDef, OpDef};
use crate::scalar::Scalar;

pub use opsmith_core::constraint::{Constraint, Literal, describe};

/// Rejects a call with an attribute whose value is not allowed.
///
/// # Errors
/// Of kind `Value`, for the first such attribute. An optional one that is absent is always allowed.
pub fn check(op: &OpDef, args: &[Arg<'_>]) -> Result<()> {
    for (def, arg) in op.schema.args.iter().zip(args) {
        if !def.constraints.is_empty() {
            check_argument(def, *arg)?;
        }
    }
    Ok(())
}

fn check_argument(def: &ArgDef, arg: Arg<'_>) -> Result<()> {
    match arg {
        Arg::None => Ok(()),
        Arg::Int(value) => check_value(def, Place::Whole, Literal::Int(value)),
        Arg::Float(value) => check_value(def, Place::Whole, Literal::Float(value)),
        Arg::Scalar(value) => check_value(def, Place::Whole, literal(value)),
        Arg::Str(text) if def.constraints.iter().all(|constraint| constraint.allows_text(text)) => Ok(()),
        Arg::Str(text) => Err(refusal(def, Place::Whole, &Literal::Str(Cow::Owned(text.to_owned())))),
        Arg::Ints(values) => check_list(def, arg, values.iter().map(|value| Literal::Int(*value))),
        Arg::Floats(values) => check_list(def, arg, values.iter().map(|value| Literal::Float(*value))),
        Arg::Scalars(values) => check_list(def, arg, values.iter().map(|value| literal(*value))),
        Arg::Strs(texts) => check_list(def, arg, texts.iter().map(|text| Literal::Str(text.clone()))),
        Arg::DTypes(dtypes) => check_length(def, arg, dtypes.len()),
        Arg::Lists(lists) => check_lists(def, arg, lists),
        Arg::Bools(values) => check_length(def, arg, values.len()),
        Arg::Tensors(tensors) => check_length(def, arg, tensors.len()),
        Arg::OptionalTensors(tensors) => check_length(def, arg, tensors.len()),
        _ => Ok(()),
    }
}

/// A number in the form that constraints compare. A complex one is incomparable, so every bound rejects it.
fn literal(value: Scalar) -> Literal {
    match value {
        Scalar::Bool(value) => Literal::Int(i64::from(value)),
        Scalar::Int(value) => Literal::Int(value),
        Scalar::Float(value) => Literal::Float(value),
        Scalar::Complex(_) => Literal::Float(f64::NAN),
    }
}

/// Position of a value in an argument.
#[derive(Clone, Copy)]
enum Place {
    Whole,
    Item(usize),
    Row(usize, usize),
}

fn check_value(def: &ArgDef, place: Place, value: Literal) -> Result<()> {
    match def.constraints.iter().all(|constraint| constraint.allows(&value)) {
        true => Ok(()),
        false => Err(refusal(def, place, &value)),
    }
}

#[cold]
fn refusal(def: &ArgDef, place: Place, value: &Literal) -> Error {
    let name = match place {
        Place::Whole => def.name.to_owned(),
        Place::Item(item) => format!("{}[{item}]", def.name),
        Place::Row(row, item) => format!("{}[{row}][{item}]", def.name),
    };
    let of_items: Vec<Constraint> =
        def.constraints.iter().filter(|constraint| !constraint.is_about_length()).cloned().collect();
    Error::value(format!("`{name}` must be {}, got {value}", describe(&of_items, false)))
}

fn check_list(def: &ArgDef, arg: Arg<'_>, items: impl ExactSizeIterator<Item = Literal>) -> Result<()> {
    check_length(def, arg, items.len())?;
    items.enumerate().try_for_each(|(index, item)| check_value(def, Place::Item(index), item))
}

/// The length constraint is for the whole list; all others are for each item of each row.
fn check_lists(def: &ArgDef, arg: Arg<'_>, lists: AnyLists<'_>) -> Result<()> {
    check_length(def, arg, lists.len())?;
    let item = |(row, item, value)| check_value(def, Place::Row(row, item), value);
    match lists {
        AnyLists::Int(lists) => places(lists, |value| Literal::Int(*value)).try_for_each(item),
        AnyLists::Float(lists) => places(lists, |value| Literal::Float(*value)).try_for_each(item),
        AnyLists::Scalar(lists) => places(lists, |value| literal(*value)).try_for_each(item),
        AnyLists::Str(lists) => places(lists, |text| Literal::Str(text.clone())).try_for_each(item),
        AnyLists::Bool(_) | AnyLists::DType(_) => Ok(()),
    }
}

/// Each item with its row and its position there.
fn places<T: ListItem>(
    lists: &Lists<T>,
    literal: impl Fn(&T) -> Literal,
) -> impl Iterator<Item = (usize, usize, Literal)> {
    let rows = lists.iter().enumerate();
    let items = rows.flat_map(|(row, items)| items.iter().enumerate().map(move |item| (row, item)));
    items.map(move |(row, (item, value))| (row, item, literal(value)))
}

fn check_length(def: &ArgDef, arg: Arg<'_>, len: usize) -> Result<()> {
    match def.constraints.iter().find(|constraint| !constraint.allows_len(len)) {
        None => Ok(()),
        Some(constraint) => Err(wrong_length(def, arg, len, constraint)),
    }
}

#[cold]
fn wrong_length(def: &ArgDef, arg: Arg<'_>, len: usize, constraint: &Constraint) -> Error {
    Error::value(format!("`{}` must be {} {constraint}, got {len}", def.name, arg.kind()))
}
