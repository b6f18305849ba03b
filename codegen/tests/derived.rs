//! Gradients that are derived from pointwise expressions.

use opsmith_codegen::diagnostics::render;
use opsmith_codegen::pipeline::{Checked, check_text};

const PRELUDE: &str = r##"edition: 1
functions:
- {func: e(x), rust: "math::e", dtypes: inexact, derivative: {x: result}}
- {func: l(x), rust: "math::l", dtypes: inexact, derivative: {x: 1 / x}}
- {func: step(x), rust: "math::step", dtypes: inexact}
- {func: flat(x), rust: "math::flat", dtypes: inexact, derivative: {x: 0}}
ops:
- {func: "plus(Tensor self, Tensor other) -> Tensor", pointwise: self + other, operator: "+"}
- {func: "times(Tensor self, Tensor other) -> Tensor", pointwise: self * other, operator: "*"}
- {func: "scaled(Tensor self, Scalar other) -> Tensor", pointwise: self * other, operator: ["*", "reversed *"]}
- {func: "over(Tensor self, Tensor other) -> Tensor", pointwise: self / other, operator: "/", dtypes: inexact}
- {func: "minus(Tensor self) -> Tensor", pointwise: -self, operator: neg, dtypes: numeric}
- {func: "above(Tensor self, Scalar other) -> Tensor", pointwise: self > other, dtype: bool, dtypes: real, operator: ">"}
- {func: "e(Tensor self) -> Tensor", pointwise: e(self), dtypes: inexact}
"##;

const SELECT: &str = "\
- func: choose.Scalar(Tensor condition, Tensor self, Scalar other) -> Tensor
  pointwise: if condition { self } else { other }
  types: {condition: bool}
  role: select
- func: choose.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor
  pointwise: if condition { self } else { other }
  types: {condition: bool}
- func: choose.Tensor(Tensor condition, Tensor self, Tensor other) -> Tensor
  pointwise: if condition { self } else { other }
  types: {condition: bool}
";

fn checked(entry: &str) -> Checked {
    check_text("spec.yaml", &format!("{PRELUDE}{SELECT}{entry}\n"))
}

/// The derived formulas of the last operator, by argument.
fn formulas(entry: &str) -> Vec<(String, String)> {
    let checked = checked(entry);
    let errors: Vec<String> =
        checked.diagnostics.errors().map(|error| render(&checked.sources, error, false)).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    let op = checked.model.ops.last().expect("an operator");
    op.derivatives
        .iter()
        .map(|derivative| (op.args[derivative.arguments[0]].name.clone(), derivative.text.clone()))
        .collect()
}

fn check(entry: &str, expected: &[(&str, &str)]) {
    let found = formulas(entry);
    let found: Vec<(&str, &str)> = found.iter().map(|(arg, text)| (arg.as_str(), text.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn products_and_functions() {
    check(
        r#"- {func: "x(Tensor self, Tensor other) -> Tensor", pointwise: e(self) * other, dtypes: floating}"#,
        &[("self", "grad * result"), ("other", "grad * e(self)")],
    );
    check(
        r#"- {func: "x(Tensor self) -> Tensor", pointwise: e(self), dtypes: floating}"#,
        &[("self", "grad * result")],
    );
    check(
        r#"- {func: "x(Tensor self) -> Tensor", pointwise: l(self), dtypes: floating}"#,
        &[("self", "grad / self")],
    );
}

#[test]
fn a_choice_is_between_gradients() {
    check(
        r#"- {func: "x(Tensor self, Scalar slope) -> Tensor", pointwise: "if self > 0 { self } else { slope * self }", dtypes: floating}"#,
        &[("self", "choose(self > 0, grad, grad * slope)")],
    );
}

#[test]
fn what_is_constant_has_no_gradient() {
    check(r#"- {func: "x(Tensor self) -> Tensor", pointwise: flat(self), dtypes: floating}"#, &[]);
    check(r#"- {func: "x(Tensor self) -> Tensor", pointwise: self > 0, dtype: bool, dtypes: real}"#, &[]);
}

#[test]
fn what_cannot_be_derived_is_an_error_when_it_is_reached() {
    check(
        r#"- {func: "x(Tensor self) -> Tensor", pointwise: step(self), dtypes: floating}"#,
        &[(
            "self",
            "not_implemented(\"the scalar function `step` declares no derivative by what depends on `self`\")",
        )],
    );
}

#[test]
fn a_written_formula_wins() {
    check(
        r#"- {func: "x(Tensor self) -> Tensor", pointwise: e(self), dtypes: floating, derivatives: {self: grad * e(self)}}"#,
        &[("self", "grad * e(self)")],
    );
}

#[test]
fn an_argument_called_grad_is_not_the_gradient() {
    check(
        r#"- {func: "x(Tensor grad, Tensor self) -> Tensor", pointwise: grad * e(self), dtypes: floating}"#,
        &[("grad", "grads[0].unwrap() * e(self)"), ("self", "grads[0].unwrap() * result")],
    );
}
