//! Mistakes of entries of `functions:`.

use super::super::{Diagnostic, Span};
use super::near_or_all;

/// A head that cannot be read.
pub fn function_head(span: Span, label: &str) -> Diagnostic {
    Diagnostic::error("E0420", "this is not the head of a scalar function", span, label)
        .with_help("write `exp(x)`, `is_nan(x) -> bool` or `abs(x) -> real`")
}

/// One name twice.
pub fn function_twice(span: Span, name: &str, first: Span) -> Diagnostic {
    Diagnostic::error(
        "E0421",
        format!("the function `{name}` is declared twice"),
        span,
        "declared again here",
    )
    .with_secondary(first, "first declared here")
    .with_help("remove one of them, or rename it")
}

/// A function without a body.
pub fn function_without_body(span: Span, name: &str) -> Diagnostic {
    let message = format!("the function `{name}` has no `rust` body");
    Diagnostic::error("E0422", message, span, "nothing to call")
        .with_help("add the path of a Rust function of the kernels crate: `rust: \"math::exp\"`")
}

/// A derivative with respect to an unknown parameter.
pub fn function_parameter_unknown(span: Span, function: &str, name: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error("E0423", format!("`{function}` has no parameter `{name}`"), span, "no such parameter")
        .with_help(near_or_all(name, known, "parameters"))
}

/// `wirtinger` with a number of derivatives other than two.
pub fn wirtinger_malformed(span: Span, function: &str, parameter: &str, found: usize) -> Diagnostic {
    let message = format!("`{function}` has two derivatives by a complex `{parameter}`, not {found}");
    Diagnostic::error("E0424", message, span, "by the parameter and by its conjugate").with_help(format!(
        "write `wirtinger: {{{parameter}: [0.5, 0.5]}}`, or only `derivative` if the function is holomorphic"
    ))
}
