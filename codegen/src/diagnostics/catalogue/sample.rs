//! Mistakes of `samples` and `tolerance`.

use super::super::{Diagnostic, Span};
use super::{near_or_all, ticked};

/// `samples: {self: spread(2)}`
pub fn samples_not_list(span: Span) -> Diagnostic {
    Diagnostic::error("E0610", "`samples` is a list of calls", span, "not a mapping in a list")
        .with_help("write `samples: [{self: \"spread(2, 3)\", dim: 1}]`, a mapping for each call")
}

/// A value for an unknown argument.
pub fn sample_argument_unknown(span: Span, op: &str, name: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error("E0611", format!("`{op}` has no argument `{name}`"), span, "no such argument")
        .with_help(near_or_all(name, known, "arguments"))
}

/// A sample that lacks an argument.
pub fn sample_incomplete(span: Span, op: &str, missing: &[&str]) -> Diagnostic {
    let message = format!("this sample of `{op}` has no value for {}", ticked(missing.iter().copied()));
    Diagnostic::error("E0609", message, span, "incomplete")
        .with_help("give every argument without a default a value")
}

/// A value of another type.
pub fn sample_value(span: Span, name: &str, ty: &str, why: &str) -> Diagnostic {
    let (why, hint) = match why.split_once("; ") {
        Some((why, hint)) => (why, Some(hint)),
        None => (why, None),
    };
    let message = format!("this is no value for `{name}`, whose type is `{ty}`");
    let hint = match hint {
        Some(hint) => hint.to_owned(),
        None => format!("write a value of the type `{ty}`"),
    };
    Diagnostic::error("E0612", message, span, why.to_owned()).with_help(hint)
}

/// `tolerance: 0.1`
pub fn tolerance_malformed(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0613",
        "`tolerance` maps dtypes and checks to their tolerances",
        span,
        "not a mapping",
    )
    .with_help("write `tolerance: {float16: {allow: 0.02, reason: …}}`")
}

/// A tolerance of an unknown check.
pub fn tolerance_unknown(span: Span, name: &str, known: &[&str]) -> Diagnostic {
    let message = format!("`{name}` is neither a dtype nor a check");
    Diagnostic::error("E0615", message, span, "unknown").with_help(near_or_all(
        name,
        known,
        "dtypes and checks",
    ))
}

/// A tolerance or a skip without a reason.
pub fn tolerance_without_reason(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0614",
        "a tolerance needs an allowed error or a skip, and a reason",
        span,
        "incomplete",
    )
    .with_help(
        "write `{allow: 0.02, reason: why}` with a number above 0, or `{skip: why}` to leave the check out",
    )
}
