//! Constraints of attributes: each is checked and described; a violation is an error with the allowed values.

use opsmith::{Error, LIBRARY, Reduction, Scalar, Tensor, Value, call};
use opsmith_testing::{checks, report};

#[test]
fn every_violation_is_refused_with_the_argument_its_value_and_what_is_allowed() {
    let report = report(&LIBRARY, checks::constraints);
    report.assert_right();
    let constrained = LIBRARY.ops.iter().flat_map(|op| op.schema.args).map(|arg| arg.constraints.len());
    let constrained: usize = constrained.sum();
    assert!(constrained >= 20, "only {constrained} constraints were found");
    assert!(report.compared > constrained, "{} violations of {constrained} constraints", report.compared);
}

#[test]
fn documents_name_every_constraint() {
    let source = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../ops/random.yaml"));
    assert!(source.contains("attributes: {p: {min: 0, max: 1}}"));
    let op = LIBRARY.find("dropout").unwrap().0;
    let p = &op.schema.args[op.argument("p").unwrap()];
    assert_eq!(opsmith::runtime::constraint::describe(p.constraints, false), "at least 0 and at most 1");
}

#[track_caller]
fn message(result: Result<Vec<Value>, Error>) -> String {
    result.expect_err("the mistake was accepted").to_string()
}

#[test]
fn the_whole_text_of_some() {
    let x = Tensor::from_slice(&[1.0f32, 2.0], &[2]).unwrap();
    let error = opsmith::dropout(&x, 1.5, true).unwrap_err();
    let expected = "dropout: `p` must be at least 0 and at most 1, got 1.5\n  input: float32 (2)";
    assert_eq!(error.to_string(), expected);
    let gelu = call("gelu", &[(&x).into()], &[("approximate", "tan".into())]);
    let expected = "gelu: `approximate` must be \"none\" or \"tanh\", got \"tan\"\n  self: float32 (2)";
    assert_eq!(message(gelu), expected);
    let loss = call("mse_loss", &[(&x).into(), (&x).into(), 3.into()], &[]);
    assert!(message(loss).starts_with("mse_loss: `reduction` must be 0 (none), 1 (mean) or 2 (sum), got 3"));
}

#[test]
fn named_values_are_a_rust_enum_and_names_in_calls_by_name() {
    let (x, y) = (Tensor::of(&[1.0f32, 2.0]), Tensor::of(&[3.0f32, 5.0]));
    let options = opsmith::MseLossOptions::new().reduction(Reduction::Sum);
    let typed = opsmith::mse_loss_with(&x, &y, &options).unwrap();
    let named = call("mse_loss", &[(&x).into(), (&y).into()], &[("reduction", "sum".into())]).unwrap();
    let Value::Tensor(named) = &named[0] else { panic!("a tensor") };
    assert_eq!((typed.item().unwrap(), named.item().unwrap()), (Scalar::Float(13.0), Scalar::Float(13.0)));
    let wrong = call("mse_loss", &[(&x).into(), (&y).into()], &[("reduction", "max".into())]);
    assert!(
        message(wrong)
            .starts_with("mse_loss: `reduction` must be 0 (none), 1 (mean) or 2 (sum), got \"max\"")
    );
}
