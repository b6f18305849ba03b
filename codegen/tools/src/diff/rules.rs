//! The kinds of changes and their classes.

use super::Class;

/// A kind of change.
#[derive(Clone, Copy, Debug)]
pub struct DiffRule {
    /// Its name.
    pub name: &'static str,
    /// Its effect on callers.
    pub class: Class,
    /// The reason.
    pub reason: &'static str,
}

const fn rule(name: &'static str, class: Class, reason: &'static str) -> DiffRule {
    DiffRule { name, class, reason }
}

use Class::{Additive, Breaking, Internal};

/// Every kind of change.
pub const RULES: &[DiffRule] = &[
    rule("operator-removed", Breaking, "calls of it do not compile"),
    rule("operator-renamed", Breaking, "calls by the old name do not compile"),
    rule("operator-added", Additive, "nobody calls it yet"),
    rule("function-removed", Breaking, "expressions of other specs may call the scalar function"),
    rule("function-changed", Internal, "only expressions call it"),
    rule("function-added", Additive, "nobody calls it yet"),
    rule("argument-removed", Breaking, "calls that give it do not compile"),
    rule("argument-added", Breaking, "calls do not give it"),
    rule("option-added", Additive, "calls that do not give it get its default"),
    rule("argument-reordered", Breaking, "calls by position give values to the wrong arguments"),
    rule("argument-renamed", Breaking, "calls that name it fail"),
    rule("argument-renamed-with-alias", Additive, "the old name still works"),
    rule("argument-alias-added", Additive, "calls may use another name"),
    rule("argument-alias-removed", Breaking, "calls that use the other name fail"),
    rule("type-changed", Breaking, "values of the old type are refused"),
    rule("type-widened", Additive, "values of the old type are accepted as before"),
    rule("default-changed", Breaking, "calls that leave it out mean something else"),
    rule("default-added", Breaking, "in Rust the argument becomes an option of a struct"),
    rule("default-removed", Breaking, "calls that leave it out do not compile"),
    rule("keyword-only", Breaking, "calls that give it by position fail"),
    rule("positional", Additive, "calls may give it by position"),
    rule("constraint-changed", Breaking, "values that were allowed may be refused"),
    rule("constraint-removed", Additive, "more values are allowed"),
    rule("argument-dtypes-narrowed", Breaking, "tensors of some dtypes are refused"),
    rule("argument-dtypes-widened", Additive, "tensors of more dtypes are accepted"),
    rule("return-changed", Breaking, "the result has another type"),
    rule("return-renamed", Breaking, "the out form's parameters have other names"),
    rule("output-not-differentiable", Breaking, "gradients end where they went on"),
    rule("output-differentiable", Additive, "gradients go on where they ended"),
    rule("form-removed", Breaking, "calls of the form do not compile"),
    rule("form-renamed", Breaking, "calls by the form's old name fail"),
    rule("form-writes", Breaking, "the in-place form leaves other arguments changed"),
    rule("form-added", Additive, "nobody calls it yet"),
    rule("method-removed", Breaking, "calls as a method do not compile"),
    rule("method-moved", Breaking, "calls as a method give another argument"),
    rule("method-added", Additive, "nobody calls it yet"),
    rule("known-name-removed", Breaking, "calls by the other library's name fail"),
    rule("known-name-added", Additive, "nobody calls it by that name yet"),
    rule("namespace-removed", Breaking, "calls by names of the other library fail"),
    rule("namespace-added", Additive, "names of the other library are found"),
    rule("unlike-added", Breaking, "calls by the other library's name are refused with advice"),
    rule("unlike-removed", Additive, "nobody could call it by that name"),
    rule("rust-name-changed", Breaking, "calls of the Rust function do not compile"),
    rule("symbol-removed", Breaking, "expressions with the Rust operator do not compile"),
    rule("symbol-added", Additive, "nobody uses it yet"),
    rule("dtypes-narrowed", Breaking, "calls with some dtypes fail"),
    rule("dtypes-widened", Additive, "calls with more dtypes work"),
    rule("derivative-removed", Breaking, "the gradient of an argument is gone"),
    rule("derivative-added", Additive, "there is one more gradient"),
    rule("derivative-changed", Internal, "the gradient is computed in another way"),
    rule("forward-removed", Breaking, "forward mode refuses the operator"),
    rule("forward-added", Additive, "forward mode goes through the operator"),
    rule("shape-changed", Breaking, "the result may have another shape"),
    rule("dtype-changed", Breaking, "the result may have another dtype"),
    rule("inference-changed", Breaking, "another function says shapes and dtypes"),
    rule("run-shape-changed", Breaking, "graphs know other things of a shape before a run"),
    rule("run-shape-removed", Breaking, "graphs do not know what they knew of a shape"),
    rule("run-shape-added", Additive, "graphs know more of a shape before a run"),
    rule("combination-removed", Breaking, "dtypes that went together are refused"),
    rule("combination-added", Additive, "more dtypes go together"),
    rule("presence-changed", Breaking, "a result may be absent where it was there"),
    rule("presence-removed", Additive, "a result is always there"),
    rule("compute-changed", Internal, "the kernel may compute in another dtype"),
    rule("check-added", Breaking, "calls that worked may be refused"),
    rule("check-removed", Additive, "more calls are accepted"),
    rule("view-changed", Breaking, "the result shares memory where it did not, or no longer does"),
    rule("kernel-changed", Internal, "another function computes the same"),
    rule("expression-changed", Internal, "the result is computed in another way"),
    rule("determinism-lost", Breaking, "equal inputs may give other bits"),
    rule("determinism-gained", Internal, "equal inputs give equal bits"),
    rule("value-dependence-changed", Breaking, "graphs may not know a shape that they knew"),
    rule("deprecated", Additive, "it works, and the compiler warns"),
    rule("not-deprecated", Internal, "the compiler warns no more"),
    rule("alias-changed", Breaking, "the name stands for another operator"),
    rule("documentation", Internal, "nothing is computed from it"),
    rule("operations-changed", Internal, "only profiles show them"),
    rule("implementation", Internal, "callers do not see it"),
    rule("other", Breaking, "no rule knows this key of the model, so the worst is assumed"),
];

/// The class of a kind of change. A name without a rule is a defect, and is classed as breaking.
pub(super) fn class_of(name: &str) -> Class {
    RULES.iter().find(|rule| rule.name == name).map_or(Breaking, |rule| rule.class)
}
