//! Mistakes of `derivatives`.

use super::super::{Diagnostic, Span, nearest};
use super::{did_you_mean, near_or_all};

/// `derivatives: grad`
pub fn derivatives_not_mapping(span: Span) -> Diagnostic {
    Diagnostic::error("E0440", "`derivatives` maps arguments to formulas", span, "not a mapping")
        .with_help("write `derivatives: {self: grad}`")
}

/// A formula that is a list or a mapping.
pub fn formula_not_text(span: Span) -> Diagnostic {
    Diagnostic::error("E0438", "a formula is one expression", span, "not text")
        .with_help("text that starts with a bracket must be quoted; several gradients are written `(a, b)`")
}

/// A formula for an unknown argument.
pub fn differentiated_unknown(span: Span, op: &str, name: &str, tensors: &[&str]) -> Diagnostic {
    Diagnostic::error("E0441", format!("`{op}` has no argument `{name}`"), span, "no such argument")
        .with_help(near_or_all(name, tensors, "tensor arguments"))
}

/// A formula for an argument that is not a tensor.
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

/// A formula that does not depend on a gradient.
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

/// A derived gradient that fails the checks.
pub fn derived_unusable(span: Span, name: &str, formula: &str, problem: &Diagnostic) -> Diagnostic {
    let message = format!("the derived gradient of `{name}` is not usable: {}", problem.message);
    let mut diagnostic = Diagnostic::error("E0448", message, span, "differentiated here")
        .with_note(format!("the derived formula is `{formula}`"))
        .with_help(
            "declare the operator it needs, write `derivatives` yourself, or say `non_differentiable`",
        );
    diagnostic.notes.extend(problem.help.iter().map(|help| help.text.clone()));
    diagnostic
}

/// `self: {CPU: grad}`
pub fn formula_without_default(span: Span, name: &str) -> Diagnostic {
    let message = format!("there is no formula of `{name}` for the other backends");
    Diagnostic::error("E0603", message, span, "no `default`")
        .with_help("add `default: …`, the formula of every backend that has none of its own")
}

/// A formula of one backend that is not an expression.
pub fn formula_of_backend(span: Span) -> Diagnostic {
    Diagnostic::error("E0608", "the formula of a backend is one expression", span, "not an expression")
        .with_help("write a formula, or `non_differentiable` for the argument instead of the mapping")
}

/// `forward: linear`
pub fn forward_malformed(span: Span, text: Option<&str>, rules: &[&str]) -> Diagnostic {
    let help = match text.and_then(|text| nearest(text, rules.iter().copied())) {
        Some(near) => did_you_mean(near),
        None => {
            "write `auto_linear`, `auto_element_wise`, or a formula of each output: `{result: self_t * 2}`"
                .into()
        }
    };
    Diagnostic::error("E0600", "`forward` is a rule for tangents", span, "neither a rule nor formulas")
        .with_help(help)
}

/// `forward` of an operator without a derivative.
pub fn forward_without_derivatives(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` has tangents but no gradients");
    Diagnostic::error("E0604", message, span, "there is no `derivatives`")
        .with_help("add `derivatives`; a composition needs neither, its operators have both")
}

/// `auto_element_wise` where elements do not correspond.
pub fn element_wise_impossible(span: Span, name: &str, why: &str) -> Diagnostic {
    Diagnostic::error("E0605", format!("`{name}` is not element-wise"), span, why)
        .with_help("write a formula of each output, or nothing: then the backward formulas are transposed")
}

/// A tangent of an unknown output.
pub fn tangent_unknown(span: Span, op: &str, name: &str, outputs: &[&str]) -> Diagnostic {
    Diagnostic::error("E0601", format!("`{op}` has no output `{name}`"), span, "no such output")
        .with_help(near_or_all(name, outputs, "outputs"))
}

/// A tangent of an output that cannot have one.
pub fn tangent_impossible(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0606", format!("`{name}` has no tangent"), span, "not one differentiable tensor")
        .with_help("remove this line; the tangents of a list of tensors are found without it")
}

/// A missing tangent of an output that can have one.
pub fn tangent_missing(span: Span, op: &str, name: &str) -> Diagnostic {
    Diagnostic::error("E0607", format!("the tangent of `{name}` of `{op}` is missing"), span, "only these")
        .with_help(format!(
            "add `{name}: …`, or say in `output_differentiability` that nothing flows through it"
        ))
}

/// A term of a forward formula that is not linear in tangents.
pub fn term_without_tangent(span: Span) -> Diagnostic {
    let message = "this part of the formula uses no tangent";
    Diagnostic::error("E0602", message, span, "a tangent is linear in tangents")
        .with_help("the tangent of the argument `self` is `self_t`, the argument is `self` or `self_p`")
}
