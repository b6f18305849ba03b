//! The gradient formulas of the stock operators against differences, first and second order.

use opsmith::{Tensor, Value};
use opsmith_tests::gradcheck::{Call, first_order, second_order, weights};

/// Numbers between -1 and 1.
fn t(shape: &[i64]) -> Value {
    Value::Tensor(weights(shape, 3))
}

/// Other numbers between -1 and 1.
fn u(shape: &[i64]) -> Value {
    Value::Tensor(weights(shape, 5))
}

/// Numbers between 0.5 and 1.5.
fn positive(shape: &[i64]) -> Value {
    let numbers: Vec<f64> =
        weights(shape, 3).to_vec::<f64>().unwrap().iter().map(|x| 1.0 + x / 2.0).collect();
    Value::Tensor(Tensor::from_slice(&numbers, shape).unwrap())
}

/// Numbers between 0.1 and 0.9.
fn probabilities(shape: &[i64]) -> Value {
    let numbers: Vec<f64> =
        weights(shape, 9).to_vec::<f64>().unwrap().iter().map(|x| 0.5 + x * 0.4).collect();
    Value::Tensor(Tensor::from_slice(&numbers, shape).unwrap())
}

fn ints(numbers: &[i64]) -> Value {
    Value::Ints(numbers.to_vec())
}

fn places(numbers: &[i64], shape: &[i64]) -> Value {
    Value::Tensor(Tensor::from_slice(numbers, shape).unwrap())
}

fn mask(values: &[bool], shape: &[i64]) -> Value {
    Value::Tensor(Tensor::from_slice(values, shape).unwrap())
}

fn call<'a>(name: &'a str, args: Vec<Value>) -> Call<'a> {
    Call::new(name, args)
}

/// Which orders of gradients a call has.
#[derive(Clone, Copy, PartialEq)]
enum Orders {
    One,
    Two,
}
use Orders::{One, Two};

fn check(calls: Vec<(Orders, Call<'_>)>) {
    let mut failures = Vec::new();
    for (orders, call) in &calls {
        failures.extend(first_order(call).err());
        if *orders == Two {
            failures.extend(second_order(call).err());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn arithmetic() {
    check(vec![
        (Two, call("add.Tensor", vec![t(&[2, 3]), u(&[3])]).with("alpha", 0.5)),
        (Two, call("sub.Tensor", vec![t(&[3]), u(&[2, 3])]).with("alpha", 2i64)),
        (Two, call("rsub.Scalar", vec![t(&[3]), 2.0.into(), 3.0.into()])),
        (Two, call("mul.Tensor", vec![t(&[2, 1]), u(&[3])])),
        (Two, call("div.Tensor", vec![t(&[2, 3]), positive(&[3])])),
        (Two, call("div.Scalar", vec![t(&[3]), 3.0.into()])),
        (Two, call("remainder.Tensor", vec![t(&[3]), positive(&[3])])),
        (Two, call("fmod.Tensor", vec![t(&[3]), positive(&[3])])),
        (Two, call("pow.Tensor_Tensor", vec![positive(&[3]), u(&[3])])),
        (Two, call("pow.Tensor_Scalar", vec![t(&[4]), 3i64.into()])),
        (Two, call("pow.Tensor_Scalar", vec![positive(&[4]), (-1.5).into()])),
        (Two, call("pow.Scalar", vec![2.5.into(), t(&[4])])),
        (Two, call("addcmul", vec![t(&[3]), u(&[2, 3]), positive(&[3])]).with("value", 2.0)),
        (Two, call("addcdiv", vec![t(&[3]), u(&[2, 3]), positive(&[3])]).with("value", 2.0)),
        (Two, call("lerp.Scalar", vec![t(&[3]), u(&[3]), 0.3.into()])),
        (Two, call("lerp.Tensor", vec![t(&[3]), u(&[2, 3]), positive(&[3])])),
        (Two, call("abs", vec![t(&[4])])),
        (Two, call("square", vec![t(&[4])])),
        (Two, call("hypot", vec![t(&[4]), positive(&[4])])),
        (Two, call("atan2", vec![t(&[4]), positive(&[2, 4])])),
        (Two, call("logaddexp", vec![t(&[4]), u(&[4])])),
        (Two, call("xlogy.Tensor", vec![t(&[4]), positive(&[4])])),
        (Two, call("frac", vec![positive(&[4])])),
    ]);
}

#[test]
fn elementary_functions() {
    let everywhere = [
        "exp",
        "exp2",
        "expm1",
        "sin",
        "cos",
        "tan",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "sigmoid",
        "erf",
        "erfc",
        "relu",
        "relu6",
        "leaky_relu",
        "elu",
        "selu",
        "celu",
        "gelu",
        "silu",
        "mish",
        "softplus",
        "softsign",
        "hardtanh",
        "hardsigmoid",
        "hardswish",
        "log_sigmoid",
        "neg",
        "asin",
        "acos",
        "atanh",
        "erfinv",
    ];
    let above_zero = ["log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal"];
    let mut calls: Vec<_> = everywhere.iter().map(|name| (Two, call(name, vec![t(&[5])]))).collect();
    calls.extend(above_zero.iter().map(|name| (Two, call(name, vec![positive(&[5])]))));
    let beyond_one = Value::Tensor(Tensor::of(&[1.1f64, 1.5, 3.0]));
    calls.push((Two, call("acosh", vec![beyond_one])));
    calls.push((One, call("lgamma", vec![positive(&[5])])));
    calls.push((Two, call("gelu", vec![t(&[5])]).with("approximate", "tanh")));
    calls.push((Two, call("elu", vec![t(&[5]), 1.5.into(), 0.7.into(), 2.0.into()])));
    calls.push((Two, call("softplus", vec![t(&[5]), 2.0.into(), 1.0.into()])));
    calls.push((Two, call("logit", vec![probabilities(&[5])])));
    calls.push((Two, call("logit", vec![probabilities(&[5]), 0.3.into()])));
    calls.push((Two, call("threshold", vec![t(&[5]), 0.1.into(), 3.0.into()])));
    check(calls);
}

#[test]
fn choices() {
    let half = || mask(&[true, false, true], &[3]);
    check(vec![
        (Two, call("maximum", vec![t(&[5]), u(&[2, 5])])),
        (Two, call("minimum", vec![t(&[5]), u(&[2, 5])])),
        (Two, call("fmax", vec![t(&[5]), u(&[5])])),
        (Two, call("fmin", vec![t(&[5]), u(&[5])])),
        (Two, call("clamp", vec![t(&[5]), (-0.3).into(), 0.4.into()])),
        (Two, call("clamp", vec![t(&[5]), Value::None, 0.4.into()])),
        (Two, call("clamp.Tensor", vec![t(&[5]), u(&[5]), positive(&[5])])),
        (Two, call("clamp_min", vec![t(&[5]), 0.2.into()])),
        (Two, call("where.self", vec![half(), t(&[3]), u(&[2, 3])])),
        (Two, call("masked_fill.Scalar", vec![t(&[2, 3]), half(), 2.0.into()])),
        (Two, call("masked_fill.Tensor", vec![t(&[2, 3]), half(), t(&[])])),
        (Two, call("fill.Tensor", vec![t(&[3]), t(&[])])),
        (Two, call("masked_scatter", vec![t(&[2, 3]), half(), u(&[4])])),
        (Two, call("masked_select", vec![t(&[2, 3]), half()])),
    ]);
}

#[test]
fn views() {
    check(vec![
        (Two, call("transpose.int", vec![t(&[2, 3]), 0i64.into(), 1i64.into()])),
        (Two, call("t", vec![t(&[2, 3])])),
        (Two, call("permute", vec![t(&[2, 3, 2]), ints(&[2, 0, 1])])),
        (Two, call("movedim.int", vec![t(&[2, 3, 2]), 0i64.into(), 2i64.into()])),
        (Two, call("expand", vec![t(&[3, 1]), ints(&[2, -1, 4])])),
        (Two, call("view", vec![t(&[2, 3]), ints(&[3, -1])])),
        (Two, call("reshape", vec![t(&[2, 3]), ints(&[6])])),
        (Two, call("flatten.using_ints", vec![t(&[2, 3, 2]), 1i64.into()])),
        (Two, call("unflatten.int", vec![t(&[2, 6]), 1i64.into(), ints(&[2, 3])])),
        (Two, call("squeeze.dim", vec![t(&[2, 1, 3]), 1i64.into()])),
        (Two, call("unsqueeze", vec![t(&[2, 3]), (-1i64).into()])),
        (Two, call("select.int", vec![t(&[2, 3]), 1i64.into(), (-1i64).into()])),
        (Two, call("slice.Tensor", vec![t(&[2, 5]), 1i64.into(), 1i64.into(), Value::None, 2i64.into()])),
        (Two, call("narrow", vec![t(&[2, 5]), 1i64.into(), (-2i64).into(), 2i64.into()])),
        (Two, call("diagonal", vec![t(&[3, 3]), 1i64.into()])),
        (One, call("as_strided", vec![t(&[6]), ints(&[2, 3]), ints(&[1, 2])])),
        (Two, call("unfold", vec![t(&[5]), 0i64.into(), 3i64.into(), 1i64.into()])),
        (Two, call("split_with_sizes", vec![t(&[5, 2]), ints(&[2, 3])])),
        (Two, call("split.Tensor", vec![t(&[5, 2]), 2i64.into()])),
        (Two, call("chunk", vec![t(&[5, 2]), 2i64.into()])),
        (Two, call("unbind.int", vec![t(&[2, 3]), 1i64.into()])),
        (Two, call("contiguous", vec![t(&[2, 3])])),
        (Two, call("clone", vec![t(&[2, 3])])),
    ]);
}

#[test]
fn reductions() {
    let zeros = || Value::Tensor(Tensor::from_slice(&[0.0, 2.0, 3.0, 1.5, 0.0, 0.0], &[2, 3]).unwrap());
    check(vec![
        (Two, call("sum", vec![t(&[2, 3])])),
        (Two, call("sum.dim_IntList", vec![t(&[2, 3, 2]), ints(&[0, -1])])),
        (Two, call("sum_to_size", vec![t(&[2, 3, 2]), ints(&[3, 1])])),
        (Two, call("mean", vec![t(&[2, 3])])),
        (Two, call("mean.dim", vec![t(&[2, 3]), ints(&[1]), true.into()])),
        (Two, call("prod", vec![t(&[2, 3])])),
        (One, call("prod", vec![zeros()])),
        (Two, call("prod.dim_int", vec![t(&[2, 3]), 0i64.into()])),
        (One, call("prod.dim_int", vec![zeros(), 1i64.into(), true.into()])),
        (Two, call("amax", vec![t(&[2, 3]), ints(&[1])])),
        (Two, call("amin", vec![t(&[2, 3])])),
        (Two, call("max", vec![t(&[2, 3])])),
        (Two, call("min", vec![t(&[2, 3])])),
        (Two, call("max.dim", vec![t(&[2, 3]), 0i64.into()])),
        (Two, call("min.dim", vec![t(&[2, 3]), 1i64.into(), true.into()])),
        (Two, call("var", vec![t(&[2, 3])])),
        (Two, call("var.correction", vec![t(&[2, 3]), ints(&[1])]).with("correction", 0i64)),
        (Two, call("std", vec![t(&[2, 3]), false.into()])),
        (Two, call("std.correction", vec![t(&[2, 3]), ints(&[1])])),
        (Two, call("var_mean.correction", vec![t(&[2, 3]), ints(&[1])])),
        (Two, call("cumsum", vec![t(&[2, 3]), 1i64.into()])),
        (One, call("cumprod", vec![t(&[2, 3]), 1i64.into()])),
        (One, call("cumprod", vec![zeros(), 1i64.into()])),
        (Two, call("logsumexp", vec![t(&[2, 3]), ints(&[1])])),
        (Two, call("linalg_vector_norm", vec![t(&[2, 3])])),
        (Two, call("linalg_vector_norm", vec![t(&[2, 3]), 1i64.into(), ints(&[1])])),
        (Two, call("linalg_vector_norm", vec![t(&[2, 3]), 3.5.into(), ints(&[1]), true.into()])),
        (One, call("linalg_vector_norm", vec![t(&[2, 3]), f64::INFINITY.into(), ints(&[1])])),
        (Two, call("trace", vec![t(&[3, 3])])),
    ]);
}

#[test]
fn products() {
    check(vec![
        (Two, call("mm", vec![t(&[2, 3]), u(&[3, 2])])),
        (Two, call("bmm", vec![t(&[2, 2, 3]), u(&[2, 3, 2])])),
        (
            Two,
            call("addmm", vec![t(&[2]), u(&[2, 3]), positive(&[3, 2])]).with("beta", 0.5).with("alpha", 2.0),
        ),
        (Two, call("baddbmm", vec![t(&[2]), u(&[2, 2, 3]), positive(&[2, 3, 2])]).with("beta", 0.5)),
        (Two, call("mv", vec![t(&[2, 3]), u(&[3])])),
        (Two, call("addmv", vec![t(&[2]), u(&[2, 3]), positive(&[3])]).with("alpha", 2.0)),
        (Two, call("dot", vec![t(&[3]), u(&[3])])),
        (Two, call("vdot", vec![t(&[3]), u(&[3])])),
        (Two, call("outer", vec![t(&[3]), u(&[2])])),
        (Two, call("matmul", vec![t(&[2, 1, 2, 3]), u(&[2, 3, 2])])),
        (Two, call("matmul", vec![t(&[2, 2, 3]), u(&[3])])),
        (Two, call("matmul", vec![t(&[3]), u(&[2, 3, 2])])),
        (Two, call("matmul", vec![t(&[2, 2, 3]), u(&[3, 2])])),
        (Two, call("linear", vec![t(&[2, 3]), u(&[4, 3]), positive(&[4])])),
        (Two, call("linear", vec![t(&[2, 2, 3]), u(&[4, 3]), positive(&[4])])),
        (Two, call("tril", vec![t(&[3, 3])])),
        (Two, call("triu", vec![t(&[3, 3]), 1i64.into()])),
    ]);
}

#[test]
fn places_of_elements() {
    let index = || places(&[0, 2, 0], &[3]);
    let matrix = || places(&[0, 2, 1, 1, 0, 0], &[2, 3]);
    check(vec![
        (Two, call("cat", vec![Value::Tensors(vec![weights(&[2, 3], 1), weights(&[1, 3], 2)])])),
        (Two, call("stack", vec![Value::Tensors(vec![weights(&[3], 1), weights(&[3], 2)]), 1i64.into()])),
        (Two, call("repeat", vec![t(&[2, 1]), ints(&[2, 1, 3])])),
        (Two, call("flip", vec![t(&[2, 3]), ints(&[1])])),
        (Two, call("roll", vec![t(&[2, 3]), ints(&[1, 2]), ints(&[0, 1])])),
        (Two, call("constant_pad_nd", vec![t(&[2, 3]), ints(&[1, -1, 2, 0]), 3.0.into()])),
        (Two, call("index_select", vec![t(&[3, 2]), 0i64.into(), index()])),
        (Two, call("index_add", vec![t(&[3, 2]), 0i64.into(), index(), u(&[3, 2])]).with("alpha", 2.0)),
        (Two, call("gather", vec![t(&[3, 3]), 0i64.into(), matrix()])),
        (
            Two,
            call(
                "index.Tensor",
                vec![t(&[3, 3]), Value::OptionalTensors(vec![None, Some(Tensor::of(&[0i64, 2, 0]))])],
            ),
        ),
        (
            Two,
            call(
                "index_put",
                vec![t(&[3, 2]), Value::OptionalTensors(vec![Some(Tensor::of(&[0i64, 2]))]), u(&[2])],
            ),
        ),
        (
            Two,
            call(
                "index_put",
                vec![
                    t(&[3]),
                    Value::OptionalTensors(vec![Some(Tensor::of(&[0i64, 0]))]),
                    u(&[2]),
                    true.into(),
                ],
            ),
        ),
        (Two, call("embedding", vec![t(&[3, 2]), matrix()])),
        (Two, call("select_scatter", vec![t(&[2, 3]), u(&[2]), 1i64.into(), 0i64.into()])),
        (Two, call("slice_scatter", vec![t(&[4, 3]), u(&[2, 3]), 0i64.into(), 1i64.into(), 3i64.into()])),
        (Two, call("diagonal_scatter", vec![t(&[3, 3]), u(&[3])])),
        (Two, call("sort", vec![t(&[2, 3])])),
        (Two, call("topk", vec![t(&[2, 5]), 2i64.into()])),
    ]);
}

#[test]
fn elements_at_places() {
    let matrix = || places(&[0, 2, 1, 1, 0, 0], &[2, 3]);
    let scatter_reduce = |reduce: &'static str, own: bool| {
        call("scatter_reduce.two", vec![positive(&[3, 3]), 0i64.into(), matrix(), t(&[2, 3]), reduce.into()])
            .with("include_self", own)
    };
    check(vec![
        (Two, call("scatter.src", vec![t(&[3, 3]), 0i64.into(), places(&[0, 2, 1], &[1, 3]), u(&[1, 3])])),
        (Two, call("scatter.value", vec![t(&[3, 3]), 0i64.into(), matrix(), 2.0.into()])),
        (Two, call("scatter_add", vec![t(&[3, 3]), 0i64.into(), matrix(), u(&[2, 3])])),
        (Two, scatter_reduce("sum", true)),
        (Two, scatter_reduce("sum", false)),
        (Two, scatter_reduce("mean", true)),
        (Two, scatter_reduce("mean", false)),
        (Two, scatter_reduce("amax", true)),
        (Two, scatter_reduce("amin", false)),
        (One, scatter_reduce("prod", true)),
        (One, scatter_reduce("prod", false)),
    ]);
}

#[test]
fn normalisation_and_losses() {
    let classes = || places(&[2, 0], &[2]);
    let none = || Value::None;
    check(vec![
        (Two, call("softmax.int", vec![t(&[2, 3]), 1i64.into()])),
        (Two, call("log_softmax.int", vec![t(&[2, 3]), 0i64.into()])),
        (One, call("layer_norm", vec![t(&[2, 3]), ints(&[3]), u(&[3]), positive(&[3])])),
        (Two, call("rms_norm", vec![t(&[2, 3]), ints(&[3]), u(&[3])])),
        (Two, call("rms_norm", vec![t(&[2, 3, 2]), ints(&[3, 2]), Value::None, 0.1.into()])),
        (Two, call("mse_loss", vec![t(&[2, 3]), u(&[2, 3])])),
        (Two, call("l1_loss", vec![t(&[2, 3]), u(&[2, 3]), 2i64.into()])),
        (Two, call("smooth_l1_loss", vec![t(&[2, 3]), u(&[2, 3]), 0i64.into(), 0.7.into()])),
        (Two, call("huber_loss", vec![t(&[2, 3]), u(&[2, 3]), 1i64.into(), 0.7.into()])),
        (Two, call("kl_div", vec![t(&[2, 3]), probabilities(&[2, 3])])),
        (Two, call("binary_cross_entropy", vec![probabilities(&[2, 3]), positive(&[2, 3])])),
        (Two, call("binary_cross_entropy_with_logits", vec![t(&[2, 3]), probabilities(&[2, 3])])),
        (
            Two,
            call(
                "binary_cross_entropy_with_logits",
                vec![t(&[2, 3]), probabilities(&[2, 3]), positive(&[3]), positive(&[3])],
            ),
        ),
        (Two, call("nll_loss", vec![t(&[2, 3]), classes(), positive(&[3])])),
        (Two, call("cross_entropy_loss", vec![t(&[2, 3]), classes()])),
        (
            Two,
            call(
                "cross_entropy_loss",
                vec![t(&[2, 3]), classes(), positive(&[3]), 1i64.into(), 0i64.into(), 0.1.into()],
            ),
        ),
        (Two, call("cross_entropy_loss", vec![t(&[2, 3]), probabilities(&[2, 3]), none(), 2i64.into()])),
        (Two, call("cosine_similarity", vec![t(&[2, 3]), u(&[2, 3])])),
    ]);
}
