//! `tolerance`: allowed errors of generated checks, and skipped checks, each with a reason.

use opsmith_core::{Check, DType};

use super::Context;
use crate::diagnostics::catalogue;
use crate::model::{Tolerance, ToleranceOf};
use crate::spec::document::RawOp;
use crate::spec::document::keys::KeyName;
use crate::spec::yaml::{Key, Node};

pub(super) fn lower(context: &mut Context<'_>, raw: &RawOp) -> Vec<Tolerance> {
    let Some(node) = raw.get(KeyName::Tolerance) else { return Vec::new() };
    let Some(entries) = node.as_map() else {
        context.push(catalogue::tolerance_malformed(node.span));
        return Vec::new();
    };
    entries.iter().filter_map(|(key, value)| entry(context, key, value)).collect()
}

fn entry(context: &mut Context<'_>, key: &Key, value: &Node) -> Option<Tolerance> {
    let of = match (DType::from_name(&key.text), Check::from_name(&key.text)) {
        (Some(dtype), _) => ToleranceOf::DType(dtype),
        (_, Some(check)) => ToleranceOf::Check(check),
        _ => {
            let checks = Check::ALL.iter().map(|check| check.name());
            let known: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).chain(checks).collect();
            context.push(catalogue::tolerance_unknown(key.span, &key.text, &known));
            return None;
        }
    };
    let parts = value.as_map().unwrap_or_default();
    let text = |name: &str| {
        let (_, node) = parts.iter().find(|(part, _)| part.text == name)?;
        node.as_text().map(str::trim).filter(|text| !text.is_empty())
    };
    let known = parts.iter().all(|(part, _)| ["allow", "reason", "skip"].contains(&part.text.as_str()));
    let (allow, reason) = match (text("allow"), text("reason"), text("skip")) {
        (Some(allow), Some(reason), None) => (Some(allow), reason),
        (None, None, Some(reason)) => (None, reason),
        _ => {
            context.push(catalogue::tolerance_without_reason(if value.is_null() {
                key.span
            } else {
                value.span
            }));
            return None;
        }
    };
    let number =
        allow.map(|text| text.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite()));
    if !known || number == Some(None) {
        context.push(catalogue::tolerance_without_reason(value.span));
        return None;
    }
    Some(Tolerance { of, allow: number.flatten(), reason: reason.to_owned().into() })
}
