//! Functions with a backward of their own.

use super::numeric::check_gradients;
use super::ops::*;
use super::{check_error, check_no_leak, gradient, leaf, values};
use crate::autograd::{CustomContext, Options, custom, grad, no_grad};
use crate::error::Result;
use crate::tensor::Tensor;

const CREATE: Options = Options { create_graph: true, retain_graph: true };

/// x² y, saving both inputs.
fn weighted_square(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let backward = |context: &CustomContext<'_>| {
        let Some(gradient) = context.grad(0) else { return Ok(vec![None, None]) };
        let (x, y) = (context.saved(0)?, context.saved(1)?);
        let of_x = context.needs(0).then(|| times(gradient, &times(&scaled(&x, 2.0)?, &y)?)).transpose()?;
        let of_y = context.needs(1).then(|| times(gradient, &squared(&x)?)).transpose()?;
        Ok(vec![of_x, of_y])
    };
    let forward = |inputs: &[&Tensor], saver: &mut crate::autograd::Saver| {
        inputs.iter().for_each(|input| saver.save(input));
        Ok(vec![times(&squared(inputs[0])?, inputs[1])?])
    };
    Ok(custom("weighted_square", &[x, y], forward, backward)?.swap_remove(0))
}

#[test]
fn a_custom_function_joins_the_graph() {
    let x: (&[f64], &[i64]) = (&[0.3, -0.7, 1.1, 0.9, -0.4, 0.6], &[2, 3]);
    let row: (&[f64], &[i64]) = (&[0.5, -1.2, 0.8], &[3]);
    // The gradient of the broadcast input is summed back.
    check_gradients(&[x, row], |x| exponential(&weighted_square(&x[0], &x[1]).unwrap()).unwrap());
    let (a, b) = (leaf(&[3.0]), Tensor::of(&[2.0]));
    let out = weighted_square(&a, &b).unwrap();
    assert_eq!(out.graph_node().unwrap().name(), "weighted_square");
    out.backward().unwrap();
    assert_eq!(gradient(&a), [12.0]);
    assert!(!no_grad(|| weighted_square(&a, &b)).unwrap().requires_grad());
    assert!(!weighted_square(&b, &b).unwrap().requires_grad());
}

#[test]
fn outputs_can_be_saved_and_inputs_returned() {
    check_no_leak(|| {
        let a = leaf(&[0.5]);
        let forward = |inputs: &[&Tensor], saver: &mut crate::autograd::Saver| {
            let out = exponential(inputs[0])?;
            saver.save(&out);
            Ok(vec![out, inputs[0].clone()])
        };
        let backward = |context: &CustomContext<'_>| {
            let from_first = context.grad(0).map(|grad| times(grad, &context.saved(0)?)).transpose()?;
            Ok(vec![match (from_first, context.grad(1)) {
                (Some(first), Some(second)) => Some(plus(&first, second)?),
                (first, second) => first.or(second.cloned()),
            }])
        };
        let outs = custom("pair", &[&a], forward, backward).unwrap();
        assert!(a.is_leaf() && !outs[1].is_leaf());
        let product = times(&outs[0], &outs[1]).unwrap();
        let first = grad(&[&product], &[&a], &[None], CREATE).unwrap().swap_remove(0).unwrap();
        let second = grad(&[&first], &[&a], &[None], CREATE).unwrap().swap_remove(0).unwrap();
        // The derivatives of x exp(x).
        assert!((values(&first)[0] - 1.5 * f64::exp(0.5)).abs() < 1e-12);
        assert!((values(&second)[0] - 2.5 * f64::exp(0.5)).abs() < 1e-12);
    });
}

#[test]
fn mistakes_are_named() {
    let a = leaf(&[2.0]);
    let square_saved = |inputs: &[&Tensor], saver: &mut crate::autograd::Saver| {
        let power = squared(inputs[0])?;
        saver.save(&power);
        Ok(vec![times(&power, inputs[0])?])
    };
    let three_squares = |context: &CustomContext<'_>| {
        Ok(vec![Some(times(&scaled(&context.saved(0)?, 3.0)?, context.grad(0).unwrap())?)])
    };
    let out = custom("cubed", &[&a], square_saved, three_squares).unwrap().swap_remove(0);
    check_error(
        out.backward_with(None, CREATE),
        "the backward of `cubed` cannot be differentiated: saved tensor 0 is neither an input nor an output\n  in backward of `cubed`\n  help: save inputs and outputs only, and compute the rest from them in backward",
    );
    out.backward().unwrap();
    assert_eq!(gradient(&a), [12.0]);
    check_error(
        out.backward(),
        "backward went through `cubed` a second time, but the first pass freed what the call had saved (saved tensor 0)\n  in backward of `cubed`\n  help: pass `retain_graph: true` to every pass but the last",
    );
    let out =
        custom("short", &[&a, &a], |inputs, _| Ok(vec![squared(inputs[0])?]), |_| Ok(vec![None])).unwrap();
    check_error(
        out[0].backward(),
        "the backward of `short` gave 1 gradients for 2 inputs\n  in backward of `short`",
    );
    let wide = |_: &CustomContext<'_>| Ok(vec![Some(Tensor::of(&[1.0, 2.0]))]);
    let out =
        custom("wide", &[&total(&a).unwrap()], |inputs, _| Ok(vec![squared(inputs[0])?]), wide).unwrap();
    out[0].backward().unwrap();
    let b = leaf(&[1.0, 2.0, 3.0]);
    let out = custom("wide", &[&b], |inputs, _| Ok(vec![total(inputs[0])?]), wide).unwrap();
    check_error(
        out[0].backward(),
        "the formula for input 0 of `wide` gave a gradient of shape (2), but the input has the shape (3)\n  in backward of `wide`\n  help: correct the formula: only broadcast dimensions are summed back for it",
    );
    let in_place = |inputs: &[&Tensor], _: &mut crate::autograd::Saver| {
        squared_(inputs[0])?;
        Ok(vec![inputs[0].clone()])
    };
    check_error(
        custom("hasty", &[&a], in_place, |_| Ok(vec![None])),
        "`hasty` changed its input 0 in place, which is not recorded\n  help: compute into a new tensor",
    );
    let many = custom(
        "curious",
        &[&a],
        |inputs, _| Ok(vec![squared(inputs[0])?]),
        |context| Ok(vec![Some(context.saved(1)?)]),
    );
    check_error(
        many.unwrap()[0].backward(),
        "`curious` reads saved tensor 1, but forward saved 0\n  in backward of `curious`",
    );
}

#[test]
fn a_chain_of_closures_that_own_tensors_drops() {
    check_no_leak(|| {
        let mut x = leaf(&[1.0]);
        for _ in 0..if cfg!(miri) { 50 } else { 100_000 } {
            let previous = x.clone();
            let backward = move |context: &CustomContext<'_>| {
                let _ = &previous;
                Ok(vec![context.grad(0).cloned()])
            };
            x = custom("owner", &[&x], |inputs, _| Ok(vec![squared(inputs[0])?]), backward)
                .unwrap()
                .swap_remove(0);
        }
    });
}
