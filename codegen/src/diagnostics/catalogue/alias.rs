//! Mistakes of aliases, and of `deprecated`.

use super::super::{Diagnostic, Span};
use super::ticked;

/// An alias of an unknown operator.
pub fn alias_target_unknown(span: Span, name: &str, near: &[&str]) -> Diagnostic {
    let help = match near {
        [] => "name an operator by its full name, overload included".into(),
        [near] => super::did_you_mean(near),
        several => format!("name one overload: {}", ticked(several.iter().copied())).into(),
    };
    Diagnostic::error("E0490", format!("there is no operator `{name}`"), span, "no such operator")
        .with_help(help)
}

/// An alias of an alias.
pub fn alias_of_alias(span: Span, name: &str, target: Span) -> Diagnostic {
    Diagnostic::error("E0491", format!("`{name}` is itself another name"), span, "no operator of its own")
        .with_secondary(target, "declared here, with `alias_of`")
        .with_help("name the operator that both stand for")
}

/// An alias with another signature.
pub fn alias_differs(span: Span, name: &str, what: &str, target: Span) -> Diagnostic {
    Diagnostic::error("E0492", format!("`{name}` cannot be another name of that operator"), span, what)
        .with_secondary(target, "this operator")
        .with_help("give it the same types and defaults, in the same order; only names may differ")
}

/// An alias with keys that belong to the operator.
pub fn alias_says_more(span: Span, key: &str, target: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0493",
        format!("`{key}` has no meaning for another name"),
        span,
        "declared by the operator",
    )
    .with_secondary(target, format!("everything is as for `{name}`"))
    .with_help(format!("remove `{key}`, or `alias_of` if this is an operator of its own"))
}

/// A form that the operator lacks.
pub fn alias_form(span: Span, form: &str, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0494",
        format!("`{name}` cannot have the form `{form}`"),
        span,
        "the operator lacks it",
    )
    .with_help("another name has the operator's forms, or some of them")
}

/// An unknown key in `deprecated`.
pub fn deprecated_key(span: Span, key: &str) -> Diagnostic {
    Diagnostic::error("E0495", format!("`deprecated` has no key `{key}`"), span, "unknown key")
        .with_help("write `deprecated: {since: 0.2, use: add.Tensor}`")
}

/// A successor that does not exist.
pub fn deprecated_use_unknown(span: Span, name: &str, near: Option<&str>) -> Diagnostic {
    let help = near.map_or_else(
        || "name the operator to use instead by its full name, or leave `use` out".into(),
        super::did_you_mean,
    );
    Diagnostic::error("E0496", format!("there is no operator `{name}`"), span, "no such operator")
        .with_help(help)
}

/// A successor that is the operator itself.
pub fn deprecated_for_itself(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0710", format!("`{name}` cannot replace itself"), span, "the same operator")
        .with_help("name another operator, or leave `use` out")
}
