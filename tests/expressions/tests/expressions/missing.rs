//! Gradients missing in a spec: a request for one is an error that names the operator, never a silent `None`.

use crate as ops;
use opsmith::autograd::{Options, grad, hvp, jvp};
use opsmith::{Result, Tensor};
use opsmith_runtime::Value;
use opsmith_runtime::op::OpDef;
use opsmith_testing::checks::{Call, forward_mode, gradient, second_order};

fn x() -> Tensor {
    Tensor::of(&[0.3f64, -0.7, 1.1])
}

fn tracked() -> Tensor {
    x().requires_grad_(true).unwrap()
}

fn op(name: &str) -> &'static OpDef {
    ops::LIBRARY.find(name).unwrap().0
}

fn call(name: &str) -> Call {
    Call { op: op(name), args: vec![Value::Tensor(x())] }
}

/// The error of a backward pass from the sum of a result.
#[track_caller]
fn refusal(out: Result<Tensor>) -> String {
    let total = opsmith::sum(&out.unwrap()).unwrap();
    assert!(total.requires_grad(), "the result is not part of the graph");
    total.backward().unwrap_err().to_string()
}

#[test]
fn a_kernel_without_derivatives_refuses() {
    let index = Tensor::of(&[1i64, 2, 0]);
    let text = refusal(ops::no_word(&tracked(), &index));
    assert!(text.contains("`no_word` declares no gradient of `self`"), "{text}");
    let integers = ops::no_word(&Tensor::of(&[1i64]), &index).unwrap();
    assert!(!integers.requires_grad());
}

#[test]
fn a_gradient_that_is_not_declared_beside_one_that_is_refuses() {
    let out = ops::half_a_word(&tracked(), &x());
    opsmith::sum(&out.unwrap()).unwrap().backward().unwrap();
    let text = refusal(ops::half_a_word(&x(), &tracked()));
    assert!(text.contains("`half_a_word` declares no gradient of `weight`"), "{text}");
    let text = refusal(ops::composed(&x(), &tracked()));
    assert!(text.contains("`composed` declares no gradient of `weight`"), "{text}");
}

#[test]
fn an_expression_that_cannot_be_differentiated_refuses() {
    let out = ops::stepped(&tracked(), &x());
    opsmith::sum(&out.unwrap()).unwrap().backward().unwrap();
    let text = refusal(ops::stepped(&x(), &tracked()));
    assert!(text.contains("stepped") && text.contains("`steps` declares no derivative"), "{text}");
}

#[test]
fn tangents_that_are_not_declared_refuse() {
    let weighted = |inputs: &[Tensor]| Ok(vec![ops::half_a_word(&x(), &inputs[0])?]);
    let text = jvp(weighted, &[&x()], &[&x()]).unwrap_err().to_string();
    assert!(text.contains("`half_a_word` declares no gradient of `weight`"), "{text}");
}

const READS_RSTD: &str = "reads result `rstd`, which is declared to have no gradient";

/// The first derivative is right, and the second an error.
#[test]
fn a_formula_that_reads_a_result_without_a_gradient_is_not_differentiated_again() {
    for name in ["scale_norm", "scale_norm.tangents"] {
        gradient(&call(name)).unwrap();
        forward_mode(&call(name)).unwrap();
        let text = second_order(&call(name)).unwrap_err();
        assert!(text.contains(READS_RSTD), "{name}: {text}");
    }
}

#[test]
fn both_modes_through_each_other_refuse_as_well() {
    let squared = |out: Tensor| opsmith::sum(&opsmith::mul(&out, &x())?);
    let by_formula = |inputs: &[Tensor]| squared(ops::scale_norm_tangents(&inputs[0])?.0);
    let by_transpose = |inputs: &[Tensor]| squared(ops::scale_norm(&inputs[0])?.0);
    type Function<'a> = &'a dyn Fn(&[Tensor]) -> Result<Tensor>;
    let functions: [Function<'_>; 2] = [&by_formula, &by_transpose];
    for (number, function) in functions.into_iter().enumerate() {
        let direction = x();
        let tangent = |inputs: &[Tensor]| -> Result<Vec<Tensor>> {
            let (_, found) =
                jvp(|inputs: &[Tensor]| Ok(vec![function(inputs)?]), &[&inputs[0]], &[&direction])?;
            Ok(found.into_iter().flatten().collect())
        };
        // Tangents of tangents, gradients of tangents, tangents of gradients.
        let twice = jvp(tangent, &[&x()], &[&direction]).map(|_| ());
        let of_tangent = {
            let x = tracked();
            tangent(std::slice::from_ref(&x))
                .and_then(|found| grad(&[&found[0]], &[&x], &[None], Options::default()).map(|_| ()))
        };
        let of_gradient = jvp(
            |inputs: &[Tensor]| {
                let x = inputs[0].clone();
                let total = function(std::slice::from_ref(&x))?;
                let options = Options { create_graph: true, ..Options::default() };
                Ok(grad(&[&total], &[&x], &[None], options)?.into_iter().flatten().collect())
            },
            &[&tracked()],
            &[&direction],
        )
        .map(|_| ());
        for (way, found) in [twice, of_tangent, of_gradient].into_iter().enumerate() {
            let text = found.map_or_else(|error| error.to_string(), |()| "no error".to_owned());
            assert!(text.contains(READS_RSTD), "function {number}, way {way}: {text}");
        }
    }
    let text =
        hvp(|input: &Tensor| by_transpose(std::slice::from_ref(input)), &x(), &x()).unwrap_err().to_string();
    assert!(text.contains(READS_RSTD), "{text}");
}

#[test]
fn a_result_whose_gradient_is_given_or_zero_is_followed() {
    for name in ["scale_norm.followed", "scale_norm.constant"] {
        gradient(&call(name)).unwrap();
        second_order(&call(name)).unwrap();
        forward_mode(&call(name)).unwrap();
    }
}
