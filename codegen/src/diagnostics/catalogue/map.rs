//! Messages about lists that an expression makes item by item.

use super::super::{Diagnostic, Span};
use super::article;

/// `x.map(…)` of another value than a list.
pub fn not_a_list(span: Span, found: &str, optional: bool) -> Diagnostic {
    let label = format!("this is {} `{found}`", article(found));
    let diagnostic = Diagnostic::error("E0346", "only lists have items to map", span, label);
    match optional {
        true => {
            diagnostic.with_help("it may be absent: test it with `is_some()` and take it with `unwrap()`")
        }
        false => diagnostic.with_help("map a list of tensors, numbers, texts or dtypes"),
    }
}

/// `list.map(f)`
pub fn map_without_function(span: Span) -> Diagnostic {
    Diagnostic::error("E0347", "`map` takes one function of an item", span, "not such a call").with_help(
        "write `list.map(|item| …)`, or `list.map(|item, position| …)`, with a tensor in place of the dots",
    )
}

/// `list.map(|(a, b)| …)`
pub fn item_not_a_name(span: Span) -> Diagnostic {
    Diagnostic::error("E0348", "an item has a plain name", span, "not a plain name")
        .with_help("write `|item|` or `|item, position|`, without types")
}

/// `list.map(|self| …)`, `let a = …; list.map(|a| …)`
pub fn item_name_taken(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` has another meaning here");
    Diagnostic::error("E0349", message, span, "an argument or a value of that name exists")
        .with_help("choose another name for the item")
}
