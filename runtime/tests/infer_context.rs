//! Hand-written inference: the requests a function can make, the outputs it must set, and its errors.
//!
//! The operator has eleven inputs, five of them optional and one a list, so that positions count declared inputs and
//! not present ones.

use std::cell::RefCell;

use opsmith_runtime::facts::ValueUse;
use opsmith_runtime::infer::InferContext;
use opsmith_runtime::infer::context::infer_by;
use opsmith_runtime::infer::symbolic::{
    ArgumentMeta, Context, Inference, Meta, OutputsMeta, Shape, Size, infer,
};
use opsmith_runtime::library::Library;
use opsmith_runtime::op::{ArgDef, ArgKind, ArgType, OpDef, ReturnDef, Schema};
use opsmith_runtime::{Arg, DType, Error, Result, Scalar, Tensor};

static LIBRARY: Library = Library { name: "tests", ..Library::EMPTY };

const fn input(name: &'static str, optional: bool) -> ArgDef {
    ArgDef::new(name, ArgType { kind: ArgKind::Tensor, optional })
}

const fn attribute(name: &'static str, kind: ArgKind, optional: bool) -> ArgDef {
    ArgDef::new(name, ArgType { kind, optional })
}

const ARGS: &[ArgDef] = &[
    input("query", false),
    input("key", false),
    attribute("heads", ArgKind::Int, false),
    input("value", false),
    input("bias", true),
    input("mask", true),
    input("scale", true),
    input("offset", true),
    attribute("rate", ArgKind::Float, false),
    ArgDef::new("parts", ArgType { kind: ArgKind::Tensors, optional: false }),
    input("table", true),
    ArgDef { value: ValueUse::Required, ..input("lengths", false) },
    ArgDef { value: ValueUse::Optional, ..input("order", false) },
    attribute("sizes", ArgKind::Ints(None), false),
    attribute("mode", ArgKind::Str, true),
];

const TENSOR: ArgType = ArgType { kind: ArgKind::Tensor, optional: false };

static OP: OpDef = OpDef {
    infer_function: Some(body),
    ..OpDef::new(
        "attention",
        Schema {
            text: "attention(…) -> (Tensor out, Tensor weights)",
            args: ARGS,
            returns: &[
                ReturnDef { name: Some("out"), ty: TENSOR },
                ReturnDef { name: Some("weights"), ty: TENSOR },
            ],
        },
        "tests.yaml:1",
        &LIBRARY,
    )
};

type Body = Box<dyn Fn(&mut InferContext<'_>) -> Result<()>>;

thread_local! {
    static BODY: RefCell<Option<Body>> = const { RefCell::new(None) };
}

/// The operator's function, set by the test.
fn body(context: &mut InferContext<'_>) -> Result<()> {
    let body = BODY.with_borrow_mut(Option::take).expect("the test sets it");
    body(context)
}

fn float(sizes: &[i64]) -> Meta {
    Meta::new(DType::F32, Shape::concrete(sizes))
}

/// Runs a function with the second and fourth of the optional inputs present, the others absent.
fn run(
    context: &mut Context,
    function: impl Fn(&mut InferContext<'_>) -> Result<()> + 'static,
) -> Result<OutputsMeta> {
    let rows = Size::from(context.symbols.fresh());
    let query = Meta::new(DType::F32, Shape::from_iter([rows.clone(), Size::Const(8)]));
    let (key, value, mask, offset) = (float(&[5, 8]), float(&[5, 6]), float(&[5]), float(&[1]));
    let parts = [float(&[2]), float(&[3]), float(&[4])];
    let lengths = Meta::constant(&Tensor::of(&[3i64, 4]));
    let order = Meta::new(DType::I64, Shape::concrete(&[2]));
    let sizes = [rows, Size::Const(4)];
    let none = ArgumentMeta::Plain(Arg::None);
    let args = [
        (&query).into(),
        (&key).into(),
        ArgumentMeta::Plain(Arg::Int(2)),
        (&value).into(),
        none,
        (&mask).into(),
        none,
        (&offset).into(),
        ArgumentMeta::Plain(Arg::Float(0.5)),
        ArgumentMeta::Tensors(&parts),
        none,
        (&lengths).into(),
        (&order).into(),
        ArgumentMeta::Ints(&sizes),
        none,
    ];
    BODY.set(Some(Box::new(function)));
    match infer(&OP, &args, context)? {
        Inference::Tensors(outputs) => Ok(outputs),
        other => panic!("{other:?}"),
    }
}

/// The message for a function that requests a missing value.
fn refusal<T>(ask: impl Fn(&mut InferContext<'_>) -> Result<T> + 'static) -> String {
    let error = run(&mut Context::new(), move |context| ask(context).map(drop)).unwrap_err();
    assert_eq!(error.op(), Some("attention"));
    let text = error.to_string();
    // The operands are in between, the same in every message.
    let lines = text.lines().filter(|line| !line.contains(": float32") && !line.contains(": int64"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn inputs_and_attributes_are_found_by_name_and_by_position() {
    let mut context = Context::new();
    let outputs = run(&mut context, |context| {
        assert_eq!((context.input_count(), context.attribute_count()), (11, 4));
        assert_eq!(context.size("query", -1)?, Size::Const(8));
        assert_eq!(context.input(2usize)?.shape, context.input("value")?.shape);
        // By declared position, though `bias` and `scale` are absent.
        assert!(context.optional_input(3usize)?.is_none());
        assert_eq!(
            context.optional_input(4usize)?.map(|mask| mask.shape.to_string()).as_deref(),
            Some("(5)")
        );
        assert!(context.optional_input("scale")?.is_none());
        assert_eq!(
            context.optional_input(6usize)?.map(|offset| offset.shape.to_string()).as_deref(),
            Some("(1)")
        );
        assert_eq!(
            (context.instances("bias")?, context.instances("mask")?, context.instances(7usize)?),
            (0, 1, 3)
        );
        assert_eq!(
            context.variadic_input(7usize, 1)?.map(|part| part.shape.to_string()).as_deref(),
            Some("(3)")
        );
        assert_eq!(context.attribute::<i64>("heads")?, 2);
        assert_eq!(context.attribute::<f64>(1usize)?, 0.5);
        assert_eq!(context.attribute::<Option<&str>>("mode")?, None);
        assert_eq!(context.value::<i64>("lengths")?, Some(vec![3, 4]));
        assert_eq!(context.value::<i64>("order")?, None, "it is optional, and no constant");
        let sizes = context.attribute::<Vec<Size>>("sizes")?;
        context.set_shape("weights", sizes)?;
        context.set_dtype("weights", DType::F16)?;
        let out = [context.size("query", 0)?, context.size("value", 1)?];
        context.set_shape(0usize, out)?;
        context.set_dtype(0usize, context.dtype("value")?)
    })
    .unwrap();
    let said: Vec<String> = outputs.outs.iter().map(|out| format!("{} {}", out.dtype, out.shape)).collect();
    assert_eq!(said, ["float32 (s0, 6)", "float16 (s0, 4)"]);
}

#[test]
fn values_are_for_those_who_declare_them() {
    assert_eq!(
        refusal(|context| context.value::<f32>("query")),
        "attention: the elements of `query` are asked for, and they need not be known when results are inferred\n  help: declare `value_depends: {query: required}`, or `optional`"
    );
    assert_eq!(
        refusal(|context| context.value::<i32>("lengths")),
        "attention: `lengths` holds int64, its elements are asked for as int32\n  help: ask for the type that it holds"
    );
}

#[test]
fn attributes_have_their_types() {
    assert_eq!(
        refusal(|context| context.attribute::<f64>("heads")),
        "attention: the attribute `heads` is an int, and it is asked for as a float\n  help: ask for the type that the signature declares"
    );
    assert_eq!(
        refusal(|context| context.attribute::<Vec<i64>>("sizes")),
        "attention: the attribute `sizes` is a size that is not known yet\n  help: ask for it as `Size`, or `Vec<Size>`, which may be a formula"
    );
    assert_eq!(
        refusal(|context| context.attribute::<&str>("mode").map(str::len)),
        "attention: the attribute `mode` is none, and it is asked for as a str\n  help: it is optional: ask for an `Option`"
    );
    assert_eq!(
        refusal(|context| context.attribute::<Scalar>("query")),
        "attention: there is no attribute `query`\n  help: the attributes are heads, rate, sizes, mode, counted from 0"
    );
}

#[test]
fn inputs_that_are_not_there_are_named() {
    assert_eq!(
        refusal(|context| context.input("bias").map(drop)),
        "attention: the input `bias` is absent\n  help: ask for it with `optional_input`, which gives none then"
    );
    assert_eq!(
        refusal(|context| context.input("parts").map(drop)),
        "attention: the input `parts` is a list of tensors\n  help: ask for each with `variadic_input`, and for how many with `instances`"
    );
    assert_eq!(
        refusal(|context| context.variadic_input("parts", 3).map(drop)),
        "attention: `parts[3]` is outside the list of 3"
    );
    assert_eq!(
        refusal(|context| context.variadic_input("query", 0).map(drop)),
        "attention: the input `query` is no list of tensors\n  help: ask for it with `input` or `optional_input`"
    );
    assert!(
        refusal(|context| context.input(11usize).map(drop)).starts_with("attention: there is no input 11\n")
    );
    assert!(refusal(|context| context.set_dtype("third", DType::F32)).contains("there is no output"));
}

#[test]
fn outputs_must_be_set() {
    let all_but_one = |context: &mut InferContext<'_>| {
        context.set_shape("out", [Size::Const(1)])?;
        context.set_dtype("out", DType::F32)?;
        context.set_shape("weights", [])
    };
    assert_eq!(
        refusal(all_but_one),
        "attention: its inference function leaves the dtype of output `weights` unset\n  help: call `set_dtype` for every output, whatever the arguments are"
    );
    assert!(
        refusal(|_| Ok(()))
            .starts_with("attention: its inference function leaves the shape of output `out` unset")
    );
}

#[test]
fn what_is_required_is_checked_now_or_later() {
    let mut context = Context::new();
    let both = |wanted: i64| {
        move |context: &mut InferContext<'_>| {
            let rows = context.equal(&context.size("query", 0)?, &Size::Const(7));
            context.require(rows, "there are seven days")?;
            let columns = context.equal(&context.size("query", 1)?, &Size::Const(wanted));
            context.require(columns, "the columns do not fit")?;
            for output in [0usize, 1] {
                context.set_shape(output, [])?;
                context.set_dtype(output, DType::F32)?;
            }
            Ok(())
        }
    };
    run(&mut context, both(8)).unwrap();
    let symbol = context.symbols.all().next().unwrap();
    assert!(context.check(&context.symbols.bind(&[(symbol, 7)]).unwrap()).is_ok());
    let error = context.check(&context.symbols.bind(&[(symbol, 6)]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("only where s0 == 7, because there are seven days"), "{error}");
    assert!(refusal(both(9)).starts_with("attention: the columns do not fit"));
}

#[test]
fn eager_calls_need_numbers_and_the_dtypes_that_kernels_write() {
    let x = Tensor::of(&[1f32]);
    let lengths = Tensor::of(&[1i64]);
    let none = Arg::None;
    let parts = [x.clone()];
    let args: Vec<Arg<'_>> = vec![
        (&x).into(),
        (&x).into(),
        Arg::Int(1),
        (&x).into(),
        none,
        none,
        none,
        none,
        Arg::Float(0.0),
        Arg::Tensors(&parts),
        none,
        (&lengths).into(),
        (&lengths).into(),
        Arg::Ints(&[]),
        none,
    ];
    fn call(
        args: &[Arg<'_>],
        function: impl Fn(&mut InferContext<'_>) -> Result<()> + 'static,
    ) -> Result<String> {
        BODY.set(Some(Box::new(function)));
        let inferred = infer_by(&OP, args, body, DType::F32, &[None, Some(DType::I64)])?;
        Ok(inferred
            .outs
            .iter()
            .map(|out| format!("{} {:?}", out.dtype, &out.sizes[..]))
            .collect::<Vec<_>>()
            .join(", "))
    }
    fn set(context: &mut InferContext<'_>, size: Size, second: DType) -> Result<()> {
        context.set_shape(0usize, [size.clone()])?;
        context.set_shape(1usize, [size])?;
        context.set_dtype(0usize, DType::F32)?;
        context.set_dtype(1usize, second)
    }
    let order = |context: &mut InferContext<'_>| {
        // In an eager call every declared value is known.
        let order = context.value::<i64>("order")?.ok_or_else(|| Error::value("no order"))?;
        set(context, Size::Const(order[0]), DType::I64)
    };
    assert_eq!(call(&args, order).unwrap(), "float32 [1], int64 [1]");
    let wrong = call(&args, |context| set(context, Size::Const(1), DType::F32)).unwrap_err().to_string();
    assert!(wrong.contains("gives output 1 the dtype float32, and the kernel writes int64"), "{wrong}");
    let unknown = call(&args, |context| set(context, Size::Unknown, DType::I64)).unwrap_err().to_string();
    assert!(unknown.contains("gives output 0 the shape (-1)"), "{unknown}");
    let negative = call(&args, |context| set(context, Size::Const(-3), DType::I64)).unwrap_err().to_string();
    assert!(negative.contains("the shape (-3) has a negative size"), "{negative}");
}
