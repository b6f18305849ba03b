//! Warnings: valid declarations that are probably mistakes.

use super::super::{Diagnostic, Span};
use super::ticked;

/// An argument that is never read.
pub fn argument_unused(span: Span, name: &str) -> Diagnostic {
    Diagnostic::warning("W0501", format!("nothing uses the argument `{name}`"), span, "never read").with_help(
        format!("use it in an expression, remove it, or say that it has no effect: `ignored: [{name}]`"),
    )
}

/// An argument declared as ignored that is read.
pub fn ignored_used(span: Span, name: &str) -> Diagnostic {
    Diagnostic::warning(
        "W0507",
        format!("the ignored argument `{name}` is used"),
        span,
        "said to change nothing",
    )
    .with_help("remove it from `ignored`")
}

/// A key that other keys make ineffective.
pub fn key_unused(span: Span, key: &str, why: &str) -> Diagnostic {
    Diagnostic::warning("W0502", format!("`{key}` has no effect here"), span, why)
        .with_help(format!("remove `{key}`"))
}

/// Tensors whose gradient is missing.
pub fn derivative_missing(span: Span, name: &str, arguments: &[&str], reason: &str) -> Diagnostic {
    let of = ticked(arguments.iter().copied());
    let message = format!("`{name}` has no gradient of {of}");
    let label = "asking for it is an error";
    Diagnostic::warning("W0508", message, span, label).with_note(reason).with_help(format!(
        "add a formula: `derivatives: {{{0}: …}}`, or say that there is none: `derivatives: {{{0}: non_differentiable}}`",
        arguments[0]
    ))
}

/// A formula that reads a result without a gradient.
pub fn result_without_gradient_read(span: Span, name: &str, result: &str) -> Diagnostic {
    let message = format!("the gradients of `{name}` cannot be differentiated again");
    let label = format!("reads `{result}`, which has no gradient of its own");
    Diagnostic::warning("W0512", message, span, label).with_help(format!(
        "give `{result}` a gradient (`grads[…]`, and `true` in `output_differentiability`), compute it in the formula, \
         or write `constant` there if no input changes it"
    ))
}

/// A kernel that no build compiles.
pub fn backend_not_built(span: Span, key: &str) -> Diagnostic {
    let message = format!("`{key}` is never chosen");
    Diagnostic::warning("W0509", message, span, "no module of Rust has kernels for this backend").with_help(format!(
        "name the module in the build script (`Config.backends`), or remove `{key}` until this library is built for it"
    ))
}

/// A CUDA source given like a C++ source, which the build does not compile.
pub fn device_file(span: Span, key: &str, file: &str, symbol: &str) -> Diagnostic {
    let message = format!("`{key}` is never chosen: no build compiles {file}");
    Diagnostic::warning("W0513", message, span, "a source of CUDA").with_help(format!(
        "write \"aot:{file}:{symbol}\": a custom kernel, with the interface of custom_aot_extra.h, is compiled when it is \
         first called; or a function of a module of Rust that launches it (`Config.backends`)"
    ))
}

/// An alias of a parent's operator with a renamed argument, for which calls by name use the operator's name.
pub fn alias_argument_renamed(span: Span, name: &str, target: &str, known: &str) -> Diagnostic {
    let message = format!("calls by name know `{name}` as `{known}` only");
    let label = format!("`{known}` in `{target}`, which another library defines");
    Diagnostic::warning("W0510", message, span, label).with_help(format!("call the argument `{known}`"))
}

/// An operator without documentation.
pub fn doc_missing(span: Span, name: &str) -> Diagnostic {
    Diagnostic::warning("W0503", format!("`{name}` has no documentation"), span, "no `doc`")
        .with_help("add `doc:` with a description of its result, a sentence in Markdown")
}

/// Some roles without the others.
pub fn roles_incomplete(span: Span, missing: &[&str]) -> Diagnostic {
    let message = "a library that has one role needs all of them";
    Diagnostic::warning("W0506", message, span, "without the others, gradients cannot be computed")
        .with_help(format!("give the operators that do it the roles {}", ticked(missing.iter().copied())))
}
