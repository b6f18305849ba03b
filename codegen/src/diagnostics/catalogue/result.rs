//! Mistakes in declarations about results: hidden ones, in-place pairs, lengths, `follow`.

use super::super::{Diagnostic, Span};
use super::near_or_all;

/// An unknown result.
pub fn result_unknown(span: Span, op: &str, name: &str, known: &[&str], count: usize) -> Diagnostic {
    let help = match known {
        [] if count == 1 => "write `0`, or name the result in the signature: `-> (Tensor out)`".into(),
        [] => format!("name the results in the signature, or write a number below {count}").into(),
        known => near_or_all(name, known, "results"),
    };
    Diagnostic::error("E0520", format!("`{op}` has no result `{name}`"), span, "no such result")
        .with_help(help)
}

/// Hidden results before visible ones.
pub fn intermediate_order(span: Span, result: Span) -> Diagnostic {
    Diagnostic::error("E0521", "hidden results stand last", span, "hidden")
        .with_secondary(result, "users get this one, after a hidden one")
        .with_help("put the intermediate results at the end of the signature")
}

/// No visible result left.
pub fn intermediate_all(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0501", format!("`{name}` would return nothing"), span, "every result is hidden")
        .with_help("leave at least one result out of `intermediate`")
}

/// Two arguments for one result.
pub fn inplace_twice(span: Span, name: &str, first: Span) -> Diagnostic {
    Diagnostic::error("E0522", format!("`{name}` is written into two arguments"), span, "again here")
        .with_secondary(first, "first here")
        .with_help("name each result once")
}

/// A result that cannot be written into an argument.
pub fn inplace_result(span: Span, name: &str, why: &str) -> Diagnostic {
    Diagnostic::error("E0502", format!("`{name}` cannot be written into an argument"), span, why)
        .with_help("pair arguments with results that users get, a `Tensor` with one, a list with a list")
}

/// In-place pairs without the in-place form.
pub fn inplace_not_asked_for(span: Span) -> Diagnostic {
    Diagnostic::error("E0523", "the in-place form is not in `variants`", span, "pairs for an in-place form")
        .with_help("add `variants: [functional, inplace]`")
}

/// A formula that reads an argument declared in `no_buffer`.
pub fn buffer_read(span: Span, name: &str, promise: Span, formula: &str) -> Diagnostic {
    let message = format!("a gradient needs the elements of `{name}`");
    Diagnostic::error("E0524", message, span, "read here")
        .with_secondary(promise, "said to be needed for its shape and dtype only")
        .with_help(format!(
            "ask for `{name}.sizes()`, `{name}.dtype()` and the like, or remove it from `no_buffer`"
        ))
        .with_note(format!("the formula is `{formula}`"))
}

/// A length of a result that is not a list.
pub fn length_not_here(span: Span, result: &str) -> Diagnostic {
    Diagnostic::error(
        "E0525",
        "`length` is for an operator that returns one list",
        span,
        format!("this one returns `{result}`"),
    )
    .with_help("return `Tensor[]`, or remove `length`")
}

/// An argument that hides the position in a list.
pub fn length_position(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` is the position in the list of results");
    Diagnostic::error("E0503", message, span, "an argument of that name").with_help("rename the argument")
}

/// Results that follow each other in a cycle.
pub fn follow_ring(span: Span, names: &str) -> Diagnostic {
    Diagnostic::error("E0526", "results that follow each other have no shape", span, names.to_owned())
        .with_help("let one of them follow an argument")
}

/// A result that follows something that is neither an argument nor a result.
pub fn follow_source_missing(span: Span, name: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error(
        "E0527",
        format!("there is nothing called `{name}` to follow"),
        span,
        "no such argument or result",
    )
    .with_help(near_or_all(name, known, "tensor arguments and results"))
}

/// A result that follows a name which both an argument and a result have.
pub fn follow_ambiguous(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` is an argument and a result");
    Diagnostic::error("E0534", message, span, "follows which of them?")
        .with_help("give the result another name in the signature")
}

/// A present result that follows a possibly absent one.
pub fn follow_absent(span: Span, follower: &str, source: &str) -> Diagnostic {
    let message = format!("`{follower}` follows `{source}`, which may be absent where `{follower}` is there");
    Diagnostic::error("E0535", message, span, format!("`{source}` is a `Tensor?`"))
        .with_help("follow what it follows instead, or give both the same condition in `present`")
}

/// A result that follows another in calls but not before a run.
pub fn follow_changed(span: Span, (follower, source): (&str, &str), shape: Span) -> Diagnostic {
    let message = format!("`{follower}` follows `{source}` in `shape`, and not in `run_shape`");
    Diagnostic::error("E0536", message, span, "does not follow it")
        .with_secondary(shape, "follows here")
        .with_help(format!("write `follow({source})` here, too"))
}

/// A condition for the presence of a result that is never absent.
pub fn present_always(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0528", format!("`{name}` is always there"), span, "its type is not `Tensor?`")
        .with_help("write its type as `Tensor?` in the signature, or remove the condition")
}

/// A result that may be absent, without a condition.
pub fn present_missing(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0504",
        format!("`present` does not say when `{name}` is there"),
        span,
        "lists other results only",
    )
    .with_help("name the result in the signature and add its condition: `present: {mask: train}`")
}

/// A formula that reads a possibly absent result.
pub fn present_read(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0529", format!("the result `{name}` may be absent"), span, "read by a gradient")
        .with_help("read a result that is always there; `intermediate` hides one that only gradients need")
}

/// `combinations` that are not a list of rows.
pub fn combinations_not_rows(span: Span) -> Diagnostic {
    Diagnostic::error("E0530", "`combinations` is a list of rows", span, "not rows")
        .with_help("write one `- {x: float16, y: float32, out: float32}` a line")
}

/// A key that repeats information of the rows.
pub fn combinations_exclude(span: Span, key: &str, combinations: Span) -> Diagnostic {
    Diagnostic::error("E0531", format!("`{key}` and `combinations` exclude each other"), span, "said twice")
        .with_secondary(combinations, "the rows say it")
        .with_help(format!("remove `{key}`, or the rows"))
}

/// A column that is neither a tensor argument nor a result.
pub fn combination_column(span: Span, name: &str, op: &str, known: &[&str]) -> Diagnostic {
    let message = format!("`{op}` has no tensor argument or result `{name}`");
    Diagnostic::error("E0532", message, span, "no such column").with_help(near_or_all(name, known, "columns"))
}

/// A row without some column.
pub fn combination_incomplete(span: Span, missing: &[&str]) -> Diagnostic {
    let message = "a row has the dtype of every tensor argument and every result";
    let label = match missing {
        [] => "there is no tensor argument to choose a row by".to_owned(),
        missing => format!("{} missing", missing.join(", ")),
    };
    Diagnostic::error("E0505", message, span, label).with_help("add the columns to each row")
}

/// A row with an optional tensor or a list.
pub fn combination_optional(span: Span, name: &str, ty: &str) -> Diagnostic {
    let message = format!("`{name}` has no dtype to choose a row by");
    Diagnostic::error("E0506", message, span, format!("it is a `{ty}`"))
        .with_help("combinations are for operators whose tensors are always there, each a `Tensor`")
}

/// Two rows for the same arguments.
pub fn combination_twice(span: Span, first: Span) -> Diagnostic {
    Diagnostic::error("E0533", "two rows have the same dtypes of arguments", span, "again here")
        .with_secondary(first, "first here")
        .with_help("remove one of them")
}
