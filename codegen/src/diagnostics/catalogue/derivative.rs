//! Mistakes of `derivatives`.

use super::super::{Diagnostic, Span};
use super::near_or_all;

/// `derivatives: grad`
pub fn derivatives_not_mapping(span: Span) -> Diagnostic {
    Diagnostic::error("E0440", "`derivatives` maps arguments to formulas", span, "not a mapping")
        .with_help("write `derivatives: {self: grad}`")
}

/// A formula that is a list or a mapping.
pub fn formula_not_text(span: Span) -> Diagnostic {
    Diagnostic::error("E0440", "a formula is one expression", span, "not text")
        .with_help("text that starts with a bracket must be quoted; several gradients are written `(a, b)`")
}

/// A formula for an argument that is not there.
pub fn differentiated_unknown(span: Span, op: &str, name: &str, tensors: &[&str]) -> Diagnostic {
    Diagnostic::error("E0441", format!("`{op}` has no argument `{name}`"), span, "no such argument")
        .with_help(near_or_all(name, tensors, "tensor arguments"))
}

/// A formula for an argument that is no tensor.
pub fn differentiated_not_tensor(span: Span, name: &str, ty: &str) -> Diagnostic {
    Diagnostic::error("E0442", format!("`{name}` is a `{ty}`, which has no gradient"), span, "not a tensor")
        .with_help("only tensors have gradients; remove this line")
}

/// Two formulas for one argument.
pub fn differentiated_twice(span: Span, name: &str, first: Span) -> Diagnostic {
    Diagnostic::error("E0443", format!("`{name}` has two formulas"), span, "again here")
        .with_secondary(first, "first here")
        .with_help("remove one of them")
}

/// A formula that no gradient flows through.
pub fn formula_without_grad(span: Span) -> Diagnostic {
    Diagnostic::error("E0444", "the formula never uses `grad`", span, "a gradient is linear in `grad`")
        .with_help("multiply by `grad`, or write `non_differentiable` if nothing flows")
}

/// Formulas of an operator whose results have no gradient.
pub fn nothing_differentiable(span: Span, name: &str, why: &str) -> Diagnostic {
    Diagnostic::error("E0445", format!("no result of `{name}` has a gradient"), span, why)
        .with_help("remove `derivatives`, or say otherwise in `output_differentiability`")
}

/// The gradient of a result that has none.
pub fn gradient_of_flat_output(span: Span, output: &str) -> Diagnostic {
    let message = format!("{output} has no gradient");
    Diagnostic::error("E0446", message, span, "is never there")
        .with_help("use the gradient of another output, or say otherwise in `output_differentiability`")
}

/// An argument with the name of a gradient.
pub fn argument_hides_gradient(span: Span, name: &str) -> Diagnostic {
    let message = format!("an argument is called `{name}`, which means something else in formulas");
    Diagnostic::error("E0447", message, span, "hides the other")
        .with_help(format!("rename the argument: `{name}_output`, for instance"))
}

/// A derived gradient that does not pass the checks.
pub fn derived_unusable(span: Span, name: &str, formula: &str, problem: &Diagnostic) -> Diagnostic {
    let message = format!("the derived gradient of `{name}` is not usable: {}", problem.message);
    let mut diagnostic = Diagnostic::error("E0448", message, span, "differentiated here")
        .with_note(format!("the derived formula is `{formula}`"))
        .with_help(
            "declare the operator it needs, write `derivatives` yourself, or say `non_differentiable`",
        );
    diagnostic.notes.extend(problem.help.clone());
    diagnostic
}
