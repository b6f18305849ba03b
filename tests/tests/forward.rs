//! Forward mode: `jvp` and functions built on it, nested and combined with reverse mode.

use opsmith::autograd::{self, Options, hessian, hvp, jacobian, jvp, no_grad, vjp};
use opsmith::{DType, Result, Tensor, TensorOps};

fn t(values: &[f64]) -> Tensor {
    Tensor::of(values)
}

#[track_caller]
fn check(found: &Tensor, expected: &[f64]) {
    let found = found.to_vec::<f64>().unwrap();
    assert_eq!(found.len(), expected.len(), "{found:?}, expected {expected:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9, "{found:?}, expected {expected:?}");
    }
}

/// The tangent of a function of one tensor.
fn along(f: impl Fn(&Tensor) -> Result<Tensor>, x: &Tensor, v: &Tensor) -> Option<Tensor> {
    let (_, mut tangents) = jvp(|inputs| Ok(vec![f(&inputs[0])?]), &[x], &[v]).unwrap();
    tangents.swap_remove(0)
}

#[test]
fn a_tangent_goes_through_formulas_compositions_and_views() {
    let x = t(&[1.0, 2.0, 3.0, 4.0]);
    let v = t(&[1.0, 0.0, 2.0, -1.0]);
    let f = |x: &Tensor| {
        let matrix = x.reshape([2, 2])?;
        let product = opsmith::mm(&matrix, &opsmith::transpose(&matrix, 0, 1)?)?;
        opsmith::square(&opsmith::select(&product, 0, 1)?)
    };
    // With the rows (a, b) and (c, d): ((ac + bd)², (c² + d²)²).
    let (a, b, c, d) = (1.0, 2.0, 3.0, 4.0);
    let inner: f64 = 1.0 * c + a * 2.0 + 0.0 * d - b;
    let lower: f64 = 2.0 * c * 2.0 - 2.0 * d;
    let expected = [2.0 * (a * c + b * d) * inner, 2.0 * (c * c + d * d) * lower];
    check(&along(f, &x, &v).unwrap(), &expected);
}

#[test]
fn derivatives_inside_derivatives_do_not_mix() {
    // d/dx (x · d/dy (x + y)) is 1; a tangent that is taken for the other's would give 2.
    let one = t(&[1.0]);
    let outer = |x: &Tensor| {
        let inner = |y: &Tensor| opsmith::add(x, y);
        let derivative = along(inner, &t(&[1.0]), &one).unwrap();
        opsmith::mul(x, &derivative)
    };
    check(&along(outer, &t(&[1.0]), &one).unwrap(), &[1.0]);
    // d/dx (x · d/dy (x · y)) is 2x.
    let outer = |x: &Tensor| {
        let derivative = along(|y: &Tensor| opsmith::mul(x, y), &t(&[5.0]), &one).unwrap();
        opsmith::mul(x, &derivative)
    };
    check(&along(outer, &t(&[3.0]), &one).unwrap(), &[6.0]);
}

#[test]
fn forward_over_forward_gives_second_derivatives() {
    let one = t(&[1.0]);
    for f in [
        |x: &Tensor| opsmith::mul(&opsmith::mul(x, x)?, x),
        |x: &Tensor| opsmith::pow(x, 3i64),
        |x: &Tensor| opsmith::mul(x, &opsmith::square(x)?),
    ] {
        let first = |x: &Tensor| Ok(along(f, x, &one).unwrap());
        check(&along(first, &t(&[2.0]), &one).unwrap(), &[12.0]);
        let second = |x: &Tensor| Ok(along(first, x, &one).unwrap());
        check(&along(second, &t(&[2.0]), &one).unwrap(), &[6.0]);
    }
    // Through a formula that reads the result, and one that is transposed.
    let first = |x: &Tensor| Ok(along(opsmith::tanh, x, &one).unwrap());
    let y = 0.5f64.tanh();
    check(&along(first, &t(&[0.5]), &one).unwrap(), &[-2.0 * y * (1.0 - y * y)]);
    let cumulated = |x: &Tensor| opsmith::cumsum(&opsmith::square(x)?, 0);
    let v = t(&[1.0, 2.0]);
    let first = |x: &Tensor| Ok(along(cumulated, x, &v).unwrap());
    check(&along(first, &t(&[3.0, 4.0]), &v).unwrap(), &[2.0, 10.0]);
}

#[test]
fn forward_over_reverse_and_reverse_over_forward_agree() {
    let f = |x: &Tensor| opsmith::sum(&opsmith::mul(&opsmith::sin(x)?, &opsmith::exp(x)?)?);
    let (x, v) = (t(&[0.3, -0.7]), t(&[2.0, 1.0]));
    // (sin · exp)'' = 2 cos · exp
    let expected: Vec<f64> =
        [(0.3f64, 2.0), (-0.7, 1.0)].iter().map(|(x, v)| 2.0 * x.cos() * x.exp() * v).collect();
    check(&hvp(f, &x, &v).unwrap(), &expected);
    let tracked = t(&[0.3, -0.7]).requires_grad_(true).unwrap();
    let tangent = along(f, &tracked, &v).unwrap();
    let gradient = autograd::grad(&[&tangent], &[&tracked], &[None], Options::default()).unwrap();
    check(gradient[0].as_ref().unwrap(), &expected);
    check(&no_grad(|| hvp(f, &x, &v)).unwrap(), &expected);
    check(&autograd::inference(|| hvp(f, &x, &v)).unwrap(), &expected);
}

#[test]
fn every_route_sees_a_change_in_place() {
    let x = t(&[1.0, 2.0, 3.0]);
    let v = t(&[1.0, 10.0, 100.0]);
    let f = |x: &Tensor| {
        let y = opsmith::mul(x, x)?;
        let part = opsmith::narrow(&y, 0, 1, 2)?;
        let other = opsmith::narrow(&y, 0, 0, 2)?;
        part.mul_(&opsmith::narrow(x, 0, 0, 2)?)?;
        opsmith::cat(&[y, other, part])
    };
    // y = (a², b²·a, c²·b), and the parts of it.
    let (a, b, c) = (1.0, 2.0, 3.0);
    let (da, db, dc) = (1.0, 10.0, 100.0);
    let first = 2.0 * a * da;
    let second = 2.0 * b * db * a + b * b * da;
    let third = 2.0 * c * dc * b + c * c * db;
    let expected = [first, second, third, first, second, second, third];
    check(&along(f, &x, &v).unwrap(), &expected);
    check(&no_grad(|| along(f, &x, &v)).unwrap(), &expected);
}

#[test]
fn what_does_not_depend_on_the_input_has_no_tangent() {
    let (x, v) = (t(&[1.0, 2.0]), t(&[1.0, 1.0]));
    assert!(along(|_| Ok(t(&[3.0])), &x, &v).is_none());
    assert!(along(|x| Ok(x.detach()), &x, &v).is_none());
    assert!(along(opsmith::detach, &x, &v).is_none());
    assert!(along(|x| opsmith::gt(x, &t(&[0.0, 5.0])), &x, &v).is_none());
    let gone = std::cell::RefCell::new(None);
    let keep = |x: &Tensor| {
        *gone.borrow_mut() = Some(x.clone());
        Ok(x.clone())
    };
    along(keep, &x, &v).unwrap();
    let kept = gone.borrow_mut().take().unwrap();
    assert!(along(|x| opsmith::mul(&kept, &opsmith::detach(x)?), &x, &v).is_none(), "the level is closed");
}

#[test]
fn custom_functions_have_tangents_by_their_backward() {
    // A custom backward determines the derivative, even if it differs from the function's.
    let doubled = |x: &Tensor| -> Result<Tensor> {
        let outs = autograd::custom(
            "rounded",
            &[x],
            |inputs, _| Ok(vec![opsmith::round(inputs[0])?]),
            |context| Ok(vec![context.grad(0).map(|grad| opsmith::mul(grad, &t(&[3.0]))).transpose()?]),
        )?;
        Ok(outs[0].clone())
    };
    check(&along(doubled, &t(&[1.2, 2.7]), &t(&[1.0, 2.0])).unwrap(), &[3.0, 6.0]);
}

#[test]
fn jacobians_and_hessians() {
    let x = t(&[1.0, 2.0, 3.0]);
    let squares = |x: &Tensor| opsmith::mul(x, x);
    let found = jacobian(squares, &x).unwrap();
    assert_eq!(found.shape(), [3, 3]);
    check(&found, &[2.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 6.0]);
    // More results than inputs, so columns are computed.
    let wide = |x: &Tensor| opsmith::cat(&[opsmith::mul(x, x)?, x.clone()]);
    let found = jacobian(wide, &t(&[1.0, 2.0])).unwrap();
    assert_eq!(found.shape(), [4, 2]);
    check(&found, &[2.0, 0.0, 0.0, 4.0, 1.0, 0.0, 0.0, 1.0]);
    let cubes = |x: &Tensor| opsmith::sum(&opsmith::pow(x, 3i64)?);
    let found = hessian(cubes, &t(&[1.0, 2.0])).unwrap();
    check(&found, &[6.0, 0.0, 0.0, 12.0]);
    // The Jacobian of a Jacobian: d²(x²)/dx² is 2 where all three indices agree.
    let twice = jacobian(|x| jacobian(squares, x), &t(&[1.0, 2.0])).unwrap();
    assert_eq!(twice.shape(), [2, 2, 2]);
    check(&twice, &[2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
}

#[test]
fn vjp_changes_nothing_of_the_caller() {
    let x = t(&[1.0, 2.0]).requires_grad_(true).unwrap();
    let (outs, found) =
        vjp(|inputs| Ok(vec![opsmith::mul(&inputs[0], &inputs[0])?]), &[&x], &[&t(&[1.0, 10.0])]).unwrap();
    check(&outs[0], &[1.0, 4.0]);
    check(found[0].as_ref().unwrap(), &[2.0, 40.0]);
    assert!(x.grad().is_none());
    let (_, found) = vjp(|_| Ok(vec![t(&[1.0])]), &[&x], &[&t(&[1.0])]).unwrap();
    assert!(found[0].is_none());
}

#[test]
fn mistakes_are_explained() {
    let x = t(&[1.0, 2.0]);
    let same = |inputs: &[Tensor]| Ok(vec![inputs[0].clone()]);
    let message = |result: Result<_>| -> String {
        let result: Result<(Vec<Tensor>, Vec<Option<Tensor>>)> = result;
        result.expect_err("a mistake").to_string()
    };
    assert_eq!(
        message(jvp(same, &[&x], &[])),
        "0 tangents were given for 1 inputs\n  help: give one of the tangents for each of the inputs"
    );
    assert_eq!(message(jvp(same, &[&x], &[&t(&[1.0])])), "the tangent has the shape (1), the input (2)");
    let places = Tensor::of(&[1i64]);
    assert_eq!(
        message(jvp(same, &[&places], &[&places])),
        "input 0 is int64, which has no derivative\n  help: only floating-point and complex tensors have; use the others from the function's surroundings"
    );
    let out = |inputs: &[Tensor]| {
        let mut out = opsmith::zeros_like(&inputs[0])?;
        opsmith::exp_out(&inputs[0], &mut out)?;
        Ok(vec![out])
    };
    let text = no_grad(|| message(jvp(out, &[&x], &[&x])));
    assert!(
        text.contains("a tensor has a tangent, and the out form does not compute with tangents"),
        "{text}"
    );
    let complex = opsmith::to_dtype(&x, DType::C128).unwrap();
    assert!(jacobian(|x| opsmith::mul(x, x), &complex).is_err());
}

#[test]
fn results_belong_to_a_graph_if_the_callers_tensors_do() -> Result<()> {
    let square = |inputs: &[Tensor]| Ok(vec![opsmith::square(&inputs[0])?]);
    let cube = |x: &Tensor| opsmith::sum(&opsmith::pow(x, 3i64)?);
    let (x, v) = (t(&[3.0, 2.0]), t(&[1.0, 1.0]));
    for tracked in [false, true] {
        let x = x.detach().requires_grad_(tracked)?;
        let check = |result: &Tensor, name: &str| assert_eq!(result.requires_grad(), tracked, "{name}");
        let (values, tangents) = jvp(square, &[&x], &[&v])?;
        check(&values[0], "the value of jvp");
        check(tangents[0].as_ref().unwrap(), "the tangent");
        let (values, gradients) = vjp(square, &[&x], &[&v])?;
        check(&values[0], "the value of vjp");
        check(gradients[0].as_ref().unwrap(), "the gradient");
        check(&autograd::jacobian(|x| opsmith::square(x), &x)?, "jacobian, of rows");
        check(
            &autograd::jacobian(|x| opsmith::cat(&[opsmith::square(x)?, x.clone()]), &x)?,
            "jacobian, of columns",
        );
        check(&hvp(cube, &x, &v)?, "hvp");
        check(&hessian(cube, &x)?, "hessian");
    }
    // A weight that the function has from its surroundings is the caller's, too.
    let weight = t(&[5.0, 7.0]).requires_grad_(true)?;
    let (_, gradients) = vjp(|inputs| Ok(vec![inputs[0].mul(&weight)?]), &[&x], &[&v])?;
    gradients[0].as_ref().unwrap().backward_with(Some(&v), Options::default())?;
    assert_eq!(weight.grad().unwrap().to_vec::<f64>()?, [1.0, 1.0]);
    Ok(())
}
