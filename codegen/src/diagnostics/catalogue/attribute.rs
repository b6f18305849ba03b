//! Mistakes in declarations about arguments: constraints, aliases, use of values.

use super::super::{Diagnostic, Span};
use super::{near_or_all, ticked};

/// An example of `attributes`.
const EXAMPLE: &str = "attributes: {p: {min: 0, max: 1}, reduction: {one_of: [none, mean, sum]}}";

/// An argument whose constraints are not a mapping.
pub fn constraints_not_mapping(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0480", format!("the constraints of `{name}` are a mapping"), span, "not a mapping")
        .with_help(format!("write `{EXAMPLE}`"))
}

/// A constraint that does not exist; `synonym` is the constraint with that meaning.
pub fn constraint_unknown(span: Span, key: &str, synonym: Option<&str>, known: &[&str]) -> Diagnostic {
    let help = synonym.map_or_else(|| near_or_all(key, known, "constraints"), super::did_you_mean);
    Diagnostic::error("E0704", format!("there is no constraint `{key}`"), span, "unknown constraint")
        .with_help(help)
}

/// A constraint that does not apply to the argument's type.
pub fn constraint_misfit(span: Span, key: &str, name: &str, ty: &str, wants: &str) -> Diagnostic {
    let message = format!("`{key}` does not apply to `{name}`, which has the type `{ty}`");
    Diagnostic::error("E0481", message, span, format!("for {wants}")).with_help(
        "constraints are for attributes; conditions on shapes and dtypes are written after `check:`",
    )
}

/// A limit, step or choice that is not a value of the argument's type.
pub fn constraint_value(span: Span, key: &str, wants: &str) -> Diagnostic {
    Diagnostic::error("E0482", format!("`{key}` takes {wants}"), span, format!("not {wants}"))
        .with_help(format!("write for instance `{EXAMPLE}`"))
}

/// The same choice, name or value twice.
pub fn constraint_value_twice(span: Span, key: &str, value: &str, first: Span) -> Diagnostic {
    Diagnostic::error("E0705", format!("`{key}` has `{value}` twice"), span, "again here")
        .with_secondary(first, "first here")
        .with_help("remove one of them")
}

/// Constraints without a valid value.
pub fn constraints_empty(span: Span, name: &str, words: &str) -> Diagnostic {
    Diagnostic::error("E0483", format!("no value of `{name}` is allowed"), span, format!("must be {words}"))
        .with_help("loosen one of the constraints")
}

/// A default that violates the constraints.
pub fn default_refused(span: Span, constraints: Span, name: &str, words: &str) -> Diagnostic {
    let message = format!("the default of `{name}` is not allowed");
    Diagnostic::error("E0484", message, span, format!("must be {words}"))
        .with_secondary(constraints, "by these constraints")
        .with_help("change the default or the constraints")
}

/// One name for two sets of values, where the name becomes a Rust enum.
pub fn enum_differs(span: Span, rust: &str, first: Span) -> Diagnostic {
    let message = format!("the Rust enum `{rust}` would have two sets of values");
    Diagnostic::error("E0485", message, span, "other values here")
        .with_secondary(first, "than here")
        .with_help("give both arguments the same names and values, or one of the arguments another name")
}

/// A Rust enum that would hide something of the generated library.
pub fn enum_reserved(span: Span, rust: &str) -> Diagnostic {
    Diagnostic::error(
        "E0706",
        format!("the Rust enum cannot be called `{rust}`"),
        span,
        "taken by generated code",
    )
    .with_help("rename the argument; the enum is called as it is")
}

/// A name of an enum's value that is not an identifier.
pub fn enum_name(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0707", format!("`{name}` cannot name a value"), span, "not a word")
        .with_help("use letters, digits and `_`, starting with a letter: `{none: 0, mean: 1, sum: 2}`")
}

/// An alias of an argument that is taken.
pub fn argument_alias_taken(span: Span, alias: &str, of: &str) -> Diagnostic {
    let message = format!("`{alias}` cannot stand for `{of}`");
    Diagnostic::error("E0486", message, span, "names an argument already").with_help("choose another name")
}

/// An alias that no call by name could use.
pub fn argument_alias_malformed(span: Span, alias: &str) -> Diagnostic {
    Diagnostic::error("E0708", format!("`{alias}` cannot name an argument"), span, "not a word")
        .with_help("use letters, digits and `_`, starting with a letter or `_`")
}

/// A word of `numbers` that does not exist.
pub fn number_use_unknown(span: Span, word: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error("E0487", format!("`{word}` is no use of a number"), span, "unknown word").with_help(
        format!(
            "write one of {}: whether elements are computed with it, consist of it, or are bounded by it",
            ticked(known.iter().copied())
        ),
    )
}

/// A word of `value_depends` that does not exist.
pub fn value_use_unknown(span: Span, word: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error("E0709", format!("`{word}` is no use of a value"), span, "unknown word").with_help(
        format!(
            "write one of {}: whether the result's shape or dtype can be told without the elements",
            ticked(known.iter().copied())
        ),
    )
}
