//! Undecided inference: guards, unknown sizes and ranks, and errors that are certain nevertheless.

use opsmith::{DType, LIBRARY, Tensor};
use opsmith_runtime::Arg;
use opsmith_runtime::infer::symbolic::{
    ArgumentMeta, Context, Inference, Meta, OutputsMeta, Shape, Size, infer,
};
use opsmith_runtime::op::OpDef;

fn op(name: &str) -> &'static OpDef {
    LIBRARY.ops.iter().find(|op| op.name == name).unwrap()
}

/// A shape from texts: a number, `-1`, or the name of a symbol.
fn shape(context: &mut Context, sizes: &[&str]) -> Shape {
    if sizes == ["-2"] {
        return Shape::UnknownRank;
    }
    sizes
        .iter()
        .map(|text| match text.parse() {
            Ok(-1) => Size::Unknown,
            Ok(number) => Size::Const(number),
            Err(_) => {
                let symbols = &mut context.symbols;
                let known =
                    symbols.all().map(Size::from).find(|size| size.named(symbols).to_string() == *text);
                known.unwrap_or_else(|| Size::from(symbols.named(text, 0, None).unwrap()))
            }
        })
        .collect()
}

fn float(context: &mut Context, sizes: &[&str]) -> Meta {
    Meta::new(DType::F32, shape(context, sizes))
}

fn outputs(name: &str, args: &[ArgumentMeta<'_>], context: &mut Context) -> OutputsMeta {
    match infer(op(name), args, context).unwrap() {
        Inference::Tensors(outputs) => outputs,
        other => panic!("{name}: {other:?}"),
    }
}

/// The shape of the first result, and the guards, as text.
fn said(name: &str, args: &[ArgumentMeta<'_>], context: &mut Context) -> (String, Vec<String>) {
    let outputs = outputs(name, args, context);
    let guards = context.guards().iter().map(|guard| guard.condition.named(&context.symbols).to_string());
    let mut guards: Vec<String> = guards.collect();
    // An undecidable condition is a separate guard each time.
    guards.dedup();
    (outputs.outs[0].shape.named(&context.symbols).to_string(), guards)
}

fn binary(name: &str, a: &[&str], b: &[&str]) -> (String, Vec<String>) {
    let mut context = Context::new();
    let (a, b) = (float(&mut context, a), float(&mut context, b));
    said(name, &[ArgumentMeta::Tensor(&a), ArgumentMeta::Tensor(&b)], &mut context)
}

fn case(result: (String, Vec<String>), shape: &str, guards: &[&str]) {
    assert_eq!(result.0, shape);
    assert_eq!(result.1, guards);
}

#[test]
fn products_of_matrices() {
    case(binary("mm", &["n", "k"], &["k", "4"]), "(n, 4)", &[]);
    case(binary("mm", &["n", "k"], &["j", "4"]), "(n, 4)", &["k == j"]);
    case(binary("mm", &["-1", "3"], &["-1", "4"]), "(-1, 4)", &["a condition on sizes that are not known"]);
    case(binary("mm", &["-2"], &["3", "4"]), "(-1, 4)", &["a condition on sizes that are not known"]);
}

#[test]
fn broadcasting() {
    case(binary("maximum", &["n", "3"], &["n", "1"]), "(n, 3)", &[]);
    case(binary("maximum", &["n", "3"], &["m", "3"]), "(n, 3)", &["n == m"]);
    case(binary("maximum", &["n"], &["4"]), "(4)", &["n == 4 || n == 1"]);
    case(binary("maximum", &["-1"], &["4"]), "(4)", &["a condition on sizes that are not known"]);
    let open = "a condition on sizes that are not known";
    case(binary("maximum", &["-1", "2"], &["n", "1"]), "(-1, 2)", &[open]);
    case(binary("maximum", &["-2"], &["n", "1"]), "(-2)", &["a condition on sizes that are not known"]);
    case(binary("maximum", &["-2"], &["1", "1"]), "(-2)", &[]);
    case(binary("maximum", &["5"], &["n", "1"]), "(n, 5)", &[]);
}

#[test]
fn guards_are_taken_as_given_from_then_on() {
    let mut context = Context::new();
    let (a, b) = (float(&mut context, &["n", "3"]), float(&mut context, &["m", "3"]));
    let first = said("maximum", &[ArgumentMeta::Tensor(&a), ArgumentMeta::Tensor(&b)], &mut context);
    let again = said(
        "mm",
        &[ArgumentMeta::Tensor(&b), ArgumentMeta::Tensor(&float(&mut Context::new(), &["3", "2"]))],
        &mut context,
    );
    assert_eq!(first.1, ["n == m"]);
    case(again, "(m, 2)", &["n == m"]);
    let symbols: Vec<_> = context.symbols.all().collect();
    let bindings = context.symbols.bind(&[(symbols[0], 4), (symbols[1], 4)]).unwrap();
    context.check(&bindings).unwrap();
    let bindings = context.symbols.bind(&[(symbols[0], 4), (symbols[1], 5)]).unwrap();
    assert_eq!(
        context.check(&bindings).unwrap_err().to_string(),
        "maximum: the graph holds only where n == m, because sizes broadcast only if they are equal or 1\n  help: the inputs give n = 4, m = 5; build the graph anew for them"
    );
}

#[test]
fn examples_choose_what_symbols_leave_open() {
    let mut context = Context::new();
    let (one, many) = (context.symbols.fresh_like(1), context.symbols.fresh_like(7));
    let a = Meta::new(DType::F32, Shape::from_iter([Size::from(one)]));
    let b = Meta::new(DType::F32, Shape::from_iter([Size::from(many)]));
    let result = said("maximum", &[ArgumentMeta::Tensor(&a), ArgumentMeta::Tensor(&b)], &mut context);
    case(result, "(s1)", &["s0 == 1"]);
}

#[test]
fn functions_without_a_rule() {
    let mut context = Context::new();
    let (x, w) = (float(&mut context, &["n", "3", "h", "w"]), float(&mut context, &["8", "3", "3", "3"]));
    let (two, one, zero) = ([2i64, 2], [1i64, 1], [0i64, 0]);
    let args = [
        ArgumentMeta::Tensor(&x),
        ArgumentMeta::Tensor(&w),
        ArgumentMeta::Plain(Arg::None),
        ArgumentMeta::Plain(Arg::Ints(&two)),
        ArgumentMeta::Plain(Arg::Ints(&one)),
        ArgumentMeta::Plain(Arg::Ints(&one)),
        ArgumentMeta::Plain(Arg::Bool(false)),
        ArgumentMeta::Plain(Arg::Ints(&zero)),
        ArgumentMeta::Plain(Arg::Int(1)),
    ];
    let (shape, guards) = said("convolution", &args, &mut context);
    assert_eq!(shape, "(n, 8, floor((h+1)/2), floor((w+1)/2))");
    assert_eq!(guards, ["h >= 1", "w >= 1", "inference of `convolution` confirms its result"]);
    let symbols: Vec<_> = context.symbols.all().take(3).collect();
    let bind = |n, h, w| context.symbols.bind(&[(symbols[0], n), (symbols[1], h), (symbols[2], w)]).unwrap();
    context.check(&bind(5, 224, 17)).unwrap();
    // A window that does not fit is no result.
    assert!(context.check(&bind(5, 0, 17)).is_err());
}

#[test]
fn reductions_and_lists() {
    let mut context = Context::new();
    let x = float(&mut context, &["n", "3", "m"]);
    let dims = [0i64, -1];
    let sum = |keep: bool| {
        [
            ArgumentMeta::Tensor(&x),
            ArgumentMeta::Plain(Arg::Ints(&dims)),
            ArgumentMeta::Plain(Arg::Bool(keep)),
            ArgumentMeta::Plain(Arg::None),
        ]
    };
    assert_eq!(said("sum.dim_IntList", &sum(false), &mut context).0, "(3)");
    assert_eq!(said("sum.dim_IntList", &sum(true), &mut context).0, "(1, 3, 1)");
    let unknown = Meta::new(DType::I32, Shape::UnknownRank);
    let args =
        [&ArgumentMeta::Tensor(&unknown), &sum(false)[1], &sum(false)[2], &sum(false)[3]].map(|arg| *arg);
    let result = outputs("sum.dim_IntList", &args, &mut context);
    assert_eq!((result.outs[0].shape.clone(), result.outs[0].dtype), (Shape::UnknownRank, DType::I64));
    let list = [x.clone(), float(&mut context, &["n", "3", "4"]), float(&mut context, &["k", "3", "-1"])];
    let joined = said("cat", &[ArgumentMeta::Tensors(&list), ArgumentMeta::Plain(Arg::Int(0))], &mut context);
    assert_eq!(joined.0, "(2*n+k, 3, 4)");
    assert!(joined.1.contains(&"m == 4".to_owned()), "{:?}", joined.1);
}

#[test]
fn sizes_may_be_attributes() {
    let mut context = Context::new();
    let x = float(&mut context, &["n", "6"]);
    let n = x.shape.sizes().unwrap()[0].clone();
    let sizes = [&n * &Size::Const(2), Size::Const(3)];
    let result = outputs("view", &[ArgumentMeta::Tensor(&x), ArgumentMeta::Ints(&sizes)], &mut context);
    assert_eq!(result.outs[0].shape.named(&context.symbols).to_string(), "(2*n, 3)");
    let all = [Size::Const(-1)];
    let result = outputs("view", &[ArgumentMeta::Tensor(&x), ArgumentMeta::Ints(&all)], &mut context);
    assert_eq!(result.outs[0].shape.named(&context.symbols).to_string(), "(6*n)");
}

#[test]
fn what_is_certainly_wrong_is_an_error_at_once() {
    let mut context = Context::new();
    let (a, b) = (float(&mut context, &["n", "3"]), float(&mut context, &["4", "m"]));
    let error =
        infer(op("mm"), &[ArgumentMeta::Tensor(&a), ArgumentMeta::Tensor(&b)], &mut context).unwrap_err();
    assert_eq!(
        error.to_string(),
        "mm: `self.size(1) == mat2.size(0)` does not hold: the left side is 3, the right side 4\n  self: float32 (n, 3)\n  mat2: float32 (4, m)\n  help: the operator's documentation says what it accepts"
    );
    let error = infer(
        op("maximum"),
        &[ArgumentMeta::Tensor(&a), ArgumentMeta::Tensor(&float(&mut context, &["2"]))],
        &mut context,
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "maximum: the shapes (n, 3) and (2) do not broadcast: dimension -1 has the sizes 3 and 2\n  self: float32 (n, 3)\n  other: float32 (2)\n  help: sizes must be equal or 1, counted from the last dimension"
    );
    // With numbers, the error is that of the call.
    let (x, y) = (Tensor::of(&[1f32, 2.0]), Tensor::of(&[1f32, 2.0, 3.0]));
    let (a, b) = (Meta::describe(&x), Meta::describe(&y));
    let error =
        infer(op("maximum"), &[ArgumentMeta::Tensor(&a), ArgumentMeta::Tensor(&b)], &mut Context::new());
    assert_eq!(error.unwrap_err().to_string(), opsmith::maximum(&x, &y).unwrap_err().to_string());
}

#[test]
fn compositions_are_left_to_those_who_trace_them() {
    let composition = LIBRARY.ops.iter().find(|op| op.infer.is_none() && op.composite.is_some()).unwrap();
    let x = Meta::new(DType::F32, Shape::concrete(&[2, 3]));
    let defaults: Vec<_> = composition
        .schema
        .args
        .iter()
        .map(|arg| arg.default.map(|value| value.as_arg(arg.ty).to_value()))
        .collect();
    let args: Vec<ArgumentMeta<'_>> = defaults
        .iter()
        .map(|value| {
            value.as_ref().map_or(ArgumentMeta::Tensor(&x), |value| ArgumentMeta::Plain(value.as_arg()))
        })
        .collect();
    let result = infer(composition, &args, &mut Context::new()).unwrap();
    assert!(matches!(result, Inference::Composition), "{}: {result:?}", composition.name);
}
