//! `combinations`: allowed combinations of dtypes of arguments and results.
//!
//! In: rows such as `{x: float16, y: float32, out: float32}`. Out: the rows by position, and the dtype of
//! each result as an expression over the dtypes of the arguments.

use opsmith_core::{DType, DTypeSet};

use super::Context;
use crate::diagnostics::{Span, catalogue};
use crate::model::expr::{Expr, ExprKind, Query, Variable};
use crate::model::{Combination, Kind, Op, Operation, Ty};
use crate::spec::document::RawOp;
use crate::spec::document::keys::KeyName;
use crate::spec::yaml::{Key, Node};

/// Whether the rows have a column for an argument; kernels then receive its dtype unconverted.
pub(super) fn names(raw: &RawOp, argument: &str) -> bool {
    let rows = raw.get(KeyName::Combinations).and_then(Node::as_seq).unwrap_or_default();
    rows.iter().filter_map(Node::as_map).flatten().any(|(key, _)| key.text == argument)
}

/// The rows; empty if there are none or one has a mistake.
pub(super) fn lower(context: &mut Context<'_>, op: &Op, raw: &RawOp) -> Vec<Combination> {
    let (Some(node), Some(entry)) = (raw.get(KeyName::Combinations), raw.entry(KeyName::Combinations)) else {
        return Vec::new();
    };
    for key in [KeyName::Dtype, KeyName::Compute, KeyName::Dtypes, KeyName::Pointwise, KeyName::Types] {
        if let Some(other) = raw.entry(key) {
            context.push(catalogue::combinations_exclude(other.key.span, key.name(), entry.key.span));
        }
    }
    let Some(items) = node.as_seq().filter(|items| !items.is_empty()) else {
        context.push(catalogue::combinations_not_rows(node.span));
        return Vec::new();
    };
    let mut rows: Vec<(Combination, Span)> = Vec::new();
    let mut fine = true;
    for item in items {
        let Some(entries) = item.as_map() else {
            context.push(catalogue::combinations_not_rows(item.span));
            fine = false;
            continue;
        };
        let Some(row) = row(context, op, entries, item.span) else {
            fine = false;
            continue;
        };
        if let Some((_, first)) = rows.iter().find(|(known, _)| known.inputs == row.inputs) {
            context.push(catalogue::combination_twice(item.span, *first));
            fine = false;
        }
        rows.push((row, item.span));
    }
    if fine { rows.into_iter().map(|(row, _)| row).collect() } else { Vec::new() }
}

/// One row: a dtype for each tensor argument and each result.
fn row(context: &mut Context<'_>, op: &Op, entries: &[(Key, Node)], place: Span) -> Option<Combination> {
    let inputs: Vec<usize> = (0..op.args.len()).filter(|&index| op.args[index].ty.holds_tensors()).collect();
    let result = |index: usize| match (&op.outputs[index].name, op.outputs.len()) {
        (Some(name), _) => name.clone(),
        (None, 1) => "out".to_owned(),
        (None, _) => index.to_string(),
    };
    let results: Vec<String> = (0..op.outputs.len()).map(result).collect();
    let known: Vec<&str> = inputs
        .iter()
        .map(|&index| op.args[index].name.as_str())
        .chain(results.iter().map(String::as_str))
        .collect();
    let mut dtypes: Vec<Option<DType>> = vec![None; known.len()];
    let mut fine = Some(());
    for (key, value) in entries {
        let Some(column) = known.iter().position(|name| *name == key.text) else {
            context.push(catalogue::combination_column(key.span, &key.text, &op.name, &known));
            fine = None;
            continue;
        };
        dtypes[column] = value.as_text().and_then(DType::from_name);
        if dtypes[column].is_none() {
            let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            let text = value.as_text().unwrap_or_default();
            context.push(catalogue::dtype_unknown(value.span, text, &names, "each column holds one dtype"));
            fine = None;
        }
    }
    fine?;
    let optional = inputs.iter().find(|&&index| !op.args[index].ty.is_tensor());
    if let Some(&index) = optional {
        let arg = &op.args[index];
        context.push(catalogue::combination_optional(place, &arg.name, &arg.ty.to_string()));
        return None;
    }
    let missing: Vec<&str> =
        known.iter().zip(&dtypes).filter(|(_, dtype)| dtype.is_none()).map(|(name, _)| *name).collect();
    if !missing.is_empty() || inputs.is_empty() {
        context.push(catalogue::combination_incomplete(place, &missing));
        return None;
    }
    let found: Vec<DType> = dtypes.into_iter().flatten().collect();
    let (given, computed) = found.split_at(inputs.len());
    let inputs = inputs.into_iter().zip(given.iter().copied()).collect();
    Some(Combination { inputs, outputs: computed.to_vec().into() })
}

/// The dtypes that a table of kernels is indexed by: those of the first column.
pub(super) fn chosen_by(rows: &[Combination]) -> DTypeSet {
    rows.iter().fold(DTypeSet::EMPTY, |set, row| set.union(DTypeSet::of(row.inputs[0].1)))
}

/// The dtype of each result, by the dtypes of the arguments. That some row matches is checked before.
pub(super) fn dtypes(op: &Op, rows: &[Combination]) -> Vec<Expr> {
    let plain = |kind: ExprKind, ty: Kind| Expr { kind, ty: Ty::new(ty), range: 0..0 };
    let dtype = |dtype: DType| plain(ExprKind::DType(dtype), Kind::DType);
    let is = |(argument, wanted): &(usize, DType)| {
        let tensor = plain(ExprKind::Variable(Variable::Arg(*argument)), Kind::Tensor);
        let given = plain(ExprKind::Query(Query::DType, Box::new(tensor), Vec::new()), Kind::DType);
        plain(ExprKind::Binary(Operation::Eq, Box::new(given), Box::new(dtype(*wanted))), Kind::Bool)
    };
    let both = |a: Expr, b: Expr| plain(ExprKind::Logical(true, Box::new(a), Box::new(b)), Kind::Bool);
    let of_result = |output: usize| {
        let (last, others) = rows.split_last()?;
        let otherwise = dtype(last.outputs[output]);
        if rows.iter().all(|row| row.outputs[output] == last.outputs[output]) {
            return Some(otherwise);
        }
        Some(others.iter().rev().fold(otherwise, |otherwise, row| {
            let Some(fits) = row.inputs.iter().map(is).reduce(both) else { return otherwise };
            let parts = (Box::new(fits), Box::new(dtype(row.outputs[output])), Box::new(otherwise));
            plain(ExprKind::If(parts.0, parts.1, parts.2), Kind::DType)
        }))
    };
    (0..op.outputs.len()).filter_map(of_result).collect()
}
