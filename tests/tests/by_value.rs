//! Operators whose results depend on elements: by hand-written inference, in calls and before them.

use opsmith::{DType, LIBRARY, Tensor, TensorOps, Value};
use opsmith_graph::{Dim, Graph, InputSpec};
use opsmith_runtime::infer::symbolic::{
    ArgumentMeta, Context, Inference, Meta, OutputsMeta, Shape, Size, infer,
};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, Result};

fn op(name: &str) -> &'static OpDef {
    LIBRARY.ops.iter().find(|op| op.name == name).unwrap()
}

fn outputs(name: &str, args: &[ArgumentMeta<'_>], context: &mut Context) -> Result<OutputsMeta> {
    match infer(op(name), args, context)? {
        Inference::Tensors(outputs) => Ok(outputs),
        other => panic!("{name}: {other:?}"),
    }
}

/// A float tensor whose first size is a symbol.
fn rows(context: &mut Context, more: &[i64]) -> Meta {
    let first = Size::from(context.symbols.fresh());
    let sizes = std::iter::once(first).chain(more.iter().map(|size| Size::Const(*size)));
    Meta::new(DType::F32, sizes.collect())
}

fn shape(outputs: &OutputsMeta, at: usize, context: &Context) -> String {
    outputs.outs[at].shape.named(&context.symbols).to_string()
}

fn guards(context: &Context) -> Vec<String> {
    context.guards().iter().map(|guard| guard.condition.named(&context.symbols).to_string()).collect()
}

#[test]
fn calls_go_by_elements() {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let reshaped = opsmith::reshape_by(&x, &Tensor::of(&[3i64, -1])).unwrap();
    assert_eq!(
        (reshaped.shape(), reshaped.to_vec::<f32>().unwrap()),
        (&[3, 2][..], x.to_vec::<f32>().unwrap())
    );
    let repeated = opsmith::repeat_by(&x, &Tensor::of(&[2i64, 1])).unwrap();
    assert_eq!(repeated.shape(), [4, 3]);
    let count = |value: i64| Tensor::of(&[value]);
    let numbers = opsmith::arange_by(&count(2), &count(9), &count(3)).unwrap();
    assert_eq!(numbers.to_vec::<i64>().unwrap(), [2, 5, 8]);
    let part =
        opsmith::slice_by_with(&x, &count(0), &count(-1), opsmith::SliceByOptions::new().dim(1)).unwrap();
    assert_eq!(part.to_vec::<f32>().unwrap(), [1.0, 2.0, 4.0, 5.0]);
    let error = opsmith::reshape_by(&x, &Tensor::of(&[4i64, -1])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "reshape.tensor: 6 elements cannot have the shape [4, -1]\n  self: float32 (2, 3)\n  shape: int64 (2)"
    );
}

#[test]
fn gradients_flow_through_what_elements_shaped() {
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    x.set_requires_grad(true).unwrap();
    let y = opsmith::slice_by(&x, &Tensor::of(&[1i64]), &Tensor::of(&[2i64])).unwrap();
    let y = opsmith::repeat_by(&y, &Tensor::of(&[2i64, 2])).unwrap();
    let y = opsmith::reshape_by(&y, &Tensor::of(&[12i64])).unwrap();
    y.sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [0.0, 0.0, 0.0, 4.0, 4.0, 4.0]);
}

#[test]
fn constants_decide_shapes_before_a_run() {
    let mut context = Context::new();
    let x = rows(&mut context, &[6]);
    let (sizes, repeats) = (Tensor::of(&[3i64, -1]), Tensor::of(&[2i64, 1, 3]));
    let (sizes, repeats) = (Meta::constant(&sizes), Meta::constant(&repeats));
    let reshaped = outputs("reshape.tensor", &[(&x).into(), (&sizes).into()], &mut context).unwrap();
    assert_eq!(shape(&reshaped, 0, &context), "(3, 2*s0)");
    let repeated = outputs("repeat.tensor", &[(&x).into(), (&repeats).into()], &mut context).unwrap();
    assert_eq!(shape(&repeated, 0, &context), "(2, s0, 18)");
    assert!(guards(&context).is_empty());
    let [start, end] = [1i64, -2].map(|value| Meta::constant(&Tensor::of(&[value])));
    let args = [
        (&x).into(),
        (&start).into(),
        (&end).into(),
        ArgumentMeta::Plain(Arg::Int(0)),
        ArgumentMeta::Plain(Arg::Int(1)),
    ];
    let part = outputs("slice.by_tensor", &args, &mut context).unwrap();
    let symbol = context.symbols.all().next().unwrap();
    for size in [0, 1, 2, 3, 9] {
        let bindings = context.symbols.bind(&[(symbol, size)]).unwrap();
        let real = Tensor::from_slice(&vec![0f32; size as usize * 6], &[size, 6]).unwrap();
        let real = opsmith::slice_by(&real, &Tensor::of(&[1i64]), &Tensor::of(&[-2i64])).unwrap();
        assert_eq!(part.outs[0].shape.bind(&bindings).unwrap()[..], *real.shape(), "{size} rows");
    }
    // An indivisible size is detected when the size is known.
    let odd = Meta::constant(&Tensor::of(&[4i64, -1]));
    outputs("reshape.tensor", &[(&x).into(), (&odd).into()], &mut context).unwrap();
    assert_eq!(guards(&context), ["4*floor(6*s0/4) == 6*s0"]);
    context.check(&context.symbols.bind(&[(symbol, 2)]).unwrap()).unwrap();
    assert!(context.check(&context.symbols.bind(&[(symbol, 3)]).unwrap()).is_err());
}

#[test]
fn graphs_with_constants_give_what_calls_give() {
    let one = |value: i64| Tensor::of(&[value]);
    let (sizes, repeats) = (Tensor::of(&[3i64, -1]), Tensor::of(&[2i64, 1]));
    let (start, end, last) = (one(1), one(-1), one(5));
    let function = move |x: &[Tensor]| {
        let reshaped = opsmith::reshape_by(&x[0], &sizes)?;
        let numbers = opsmith::arange_by(&start, &last, &start)?;
        Ok([opsmith::repeat_by(&reshaped, &repeats)?, opsmith::slice_by(&x[0], &start, &end)?, numbers])
    };
    let specs = || [InputSpec::new(DType::F32, [Dim::from("n"), 6.into()])];
    let graph = Graph::trace(&function, specs()).unwrap();
    assert!(graph.guards().is_empty(), "{:?}", graph.guards());
    for rows in [4, 7, 20] {
        let elements: Vec<f32> = (0..rows * 6).map(|element| element as f32).collect();
        let x = Tensor::from_slice(&elements, &[rows, 6]).unwrap();
        let (eager, run) = (function(std::slice::from_ref(&x)).unwrap(), graph.run(&[&x]).unwrap());
        for (eager, run) in eager[..2].iter().zip(&run) {
            assert_eq!((eager.shape(), eager.to_vec::<f32>()), (run.shape(), run.to_vec::<f32>()));
        }
        assert_eq!(eager[2].to_vec::<i64>().unwrap(), run[2].to_vec::<i64>().unwrap());
    }
    // An input is no constant.
    let by_input = |x: &[Tensor]| Ok([opsmith::reshape_by(&x[0], &x[1])?]);
    let [x] = specs();
    let error = Graph::trace(by_input, [x, InputSpec::new(DType::I64, [2.into()])]).unwrap_err().to_string();
    assert!(
        error.contains("the elements of `shape` decide the shape of the result, so they must be known"),
        "{error}"
    );
    let by_input = |x: &[Tensor]| Ok([opsmith::repeat_by(&x[0], &x[1])?]);
    let [x] = specs();
    let error = Graph::trace(by_input, [x, InputSpec::new(DType::I64, [2.into()])]).unwrap_err().to_string();
    assert!(error.contains("the elements of `repeats` decide"), "{error}");
}

#[test]
fn what_is_no_constant_and_must_be_is_named() {
    let mut context = Context::new();
    let x = rows(&mut context, &[6]);
    let sizes = Meta::new(DType::I64, Shape::concrete(&[2]));
    let error = outputs("reshape.tensor", &[(&x).into(), (&sizes).into()], &mut context).unwrap_err();
    assert_eq!(
        error.to_string(),
        "reshape.tensor: the elements of `shape` decide the shape or dtype of the result, and they are not known before the run\n  self: float32 (s0, 6)\n  shape: int64 (2)\n  help: give a constant for `shape` when the graph is built"
    );
}

#[test]
fn what_a_run_finds_is_bounded() {
    let mut context = Context::new();
    let x = rows(&mut context, &[6]);
    let found = outputs("nonzero", &[(&x).into()], &mut context).unwrap();
    assert_eq!(shape(&found, 0, &context), "(u1, 2)");
    let [count, _] = found.outs[0].shape.sizes().unwrap() else { panic!("two dimensions") };
    let count = count.as_symbol().unwrap();
    let first = context.symbols.all().next().unwrap();
    let mut bindings = context.symbols.bind(&[(first, 2)]).unwrap();
    context.symbols.set(&mut bindings, count, 12).unwrap();
    assert_eq!(found.outs[0].shape.bind(&bindings).unwrap()[..], [12, 2]);
    assert!(context.symbols.set(&mut bindings, count, 13).is_err(), "12 elements are at most 12 places");
    let mask = Meta::new(DType::Bool, x.shape.clone());
    let picked = outputs("masked_select", &[(&x).into(), (&mask).into()], &mut context).unwrap();
    let size = &picked.outs[0].shape.sizes().unwrap()[0];
    assert!(size.is_less(&(x.shape.numel() + Size::Const(1)), &context.symbols).unwrap());
    // A constant determines the actual size at once.
    let known = Meta::constant(&Tensor::of(&[0f32, 2.0, 0.0, 3.0]));
    let found = outputs("nonzero", &[(&known).into()], &mut context).unwrap();
    assert_eq!(shape(&found, 0, &context), "(2, 1)");
    // A graph can read the data-dependent sizes from the rules.
    assert!(!op("nonzero").rules.unwrap().run_sizes.is_empty());
    assert!(op("mm").rules.unwrap().run_sizes.is_empty());
}

#[test]
fn elements_that_differ() {
    let x = Tensor::from_slice(&[2i32, 1, 2, 5, 2, 1], &[2, 3]).unwrap();
    let all = opsmith::UniqueOptions::new().return_inverse(true).return_counts(true);
    let (values, inverse, counts) = opsmith::unique_with(&x, &all).unwrap();
    assert_eq!(values.to_vec::<i32>().unwrap(), [1, 2, 5]);
    assert_eq!((inverse.shape(), inverse.to_vec::<i64>().unwrap()), (&[2, 3][..], vec![1, 0, 1, 2, 1, 0]));
    assert_eq!(counts.to_vec::<i64>().unwrap(), [2, 3, 1]);
    let (values, inverse, counts) =
        opsmith::unique(&Tensor::of(&[f32::NAN, 0.0, -0.0, f32::NAN, f32::INFINITY])).unwrap();
    assert_eq!(values.numel(), 4, "NaN differs from itself, and 0 is -0: {values:?}");
    assert_eq!((inverse.shape(), counts.shape()), (&[0][..], &[0][..]));
    let none = opsmith::call("_unique2", &[Value::from(Tensor::of::<f64>(&[]))], &[]).unwrap();
    assert!(matches!(&none[0], Value::Tensor(values) if values.numel() == 0));
    let mut context = Context::new();
    let x = rows(&mut context, &[6]);
    let flag = |on| ArgumentMeta::Plain(Arg::Bool(on));
    let found =
        outputs("_unique2", &[(&x).into(), flag(true), flag(true), flag(true)], &mut context).unwrap();
    let shapes = [0, 1, 2].map(|at| shape(&found, at, &context));
    assert_eq!(shapes, ["(u1)", "(s0, 6)", "(u1)"]);
}
