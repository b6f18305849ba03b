//! Aliases of operators and of their arguments, in every form of call.

use opsmith::runtime::facts::ValueUse;
use opsmith::runtime::library::Form;
use opsmith::{DType, LIBRARY, Result, Scalar, Tensor, TensorOps, Value, call};
use opsmith_codegen::model::{Arg, Kind};
use opsmith_codegen::{Config, pipeline};
use opsmith_graph::{BuilderArg, Dim, GraphBuilder, InputSpec};
use opsmith_testing::samples::samples;

fn item(values: Vec<Value>) -> f64 {
    match &values[..] {
        [Value::Tensor(tensor)] => tensor.item().unwrap().to_f64(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_name_is_the_same_operator() -> Result<()> {
    let (a, b) = (Tensor::of(&[6.0f32]), Tensor::of(&[3.0f32]));
    assert_eq!(opsmith::multiply(&a, &b)?.item()?, Scalar::Float(18.0));
    assert_eq!(a.subtract(&b)?.item()?, Scalar::Float(3.0));
    assert_eq!(item(call("divide.Tensor", &[(&a).into(), (&b).into()], &[])?), 2.0);
    let target = a.clone();
    target.multiply_(&b)?;
    assert_eq!(a.item()?, Scalar::Float(18.0));
    call("multiply_.Tensor", &[(&a).into(), (&b).into()], &[])?;
    assert_eq!(a.item()?, Scalar::Float(54.0));
    let mut out = Tensor::of(&[0.0f32]);
    opsmith::multiply_out(&a, &b, &mut out)?;
    assert_eq!(out.item()?, Scalar::Float(162.0));
    let same = |name: &str| LIBRARY.find(name).map(|(op, form)| (op.name, form));
    assert_eq!(same("multiply.Tensor_out").map(|(name, _)| name), Some("mul.Tensor"));
    assert!(LIBRARY.ops.iter().all(|op| op.name != "multiply.Tensor"), "it has no definition of its own");
    Ok(())
}

#[test]
fn the_first_option_alone_converts_to_the_options() -> Result<()> {
    let x = Tensor::from_slice(&[1.0f32, 5.0, 4.0, 2.0], &[2, 2])?;
    assert_eq!(x.argmax_with(1)?.to_vec::<i64>()?, [1, 0]);
    assert_eq!(x.argmax_with(opsmith::ArgmaxOptions::new().dim(1))?.to_vec::<i64>()?, [1, 0]);
    assert_eq!(x.softmax_with(1, DType::F64)?.dtype(), DType::F64);
    let image = x.reshape([1, 1, 2, 2])?;
    assert_eq!(image.max_pool2d_with([1, 2], [1, 1])?.to_vec::<f32>()?, [5.0, 4.0]);
    Ok(())
}

#[test]
fn gradients_flow_through_another_name() -> Result<()> {
    let x = Tensor::of(&[2.0f32, 3.0]).requires_grad_(true)?;
    let y = Tensor::of(&[5.0f32, 7.0]);
    opsmith::multiply(&x, &y)?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [5.0, 7.0]);
    Ok(())
}

#[test]
fn arguments_answer_to_other_names() -> Result<()> {
    let a = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    let by = |name: &'static str| call("sum.dim_IntList", &[(&a).into()], &[(name, vec![0i64].into())]);
    let Value::Tensor(first) = &by("dim")?[0] else { panic!("a tensor") };
    let Value::Tensor(second) = &by("axis")?[0] else { panic!("a tensor") };
    assert_eq!(first.to_vec::<f32>()?, second.to_vec::<f32>()?);
    let sum = call("add.Tensor", &[], &[("input", (&a).into()), ("y", (&a).into())])?;
    let Value::Tensor(sum) = &sum[0] else { panic!("a tensor") };
    assert_eq!(sum.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
    // The names of the other entry are the operator's too.
    let swapped = call("swapaxes", &[(&a).into()], &[("axis0", 0.into()), ("axis1", 1.into())])?;
    let Value::Tensor(swapped) = &swapped[0] else { panic!("a tensor") };
    assert_eq!(swapped.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    Ok(())
}

#[test]
fn one_argument_under_two_names_is_a_mistake() {
    let a = Tensor::of(&[1.0f32]);
    let twice = call("add.Tensor", &[], &[("input", (&a).into()), ("self", (&a).into()), ("y", (&a).into())]);
    assert_eq!(
        twice.unwrap_err().to_string(),
        "add.Tensor: `input` and `self` are the same argument, given twice\n  help: the signature is \
         add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    );
    let both = call("add.Tensor", &[(&a).into(), (&a).into()], &[("x", (&a).into())]);
    assert!(both.unwrap_err().to_string().contains("`x` is given twice, by position and by name"));
}

#[test]
fn definitions_say_what_specs_say() {
    let op = |name: &str| LIBRARY.find(name).unwrap().0;
    assert!(!op("bernoulli").facts.deterministic && op("add.Tensor").facts.deterministic);
    let value = |name: &str, arg: &str| {
        let op = op(name);
        op.schema.args[op.argument(arg).unwrap()].value
    };
    assert_eq!(value("reshape.tensor", "shape"), ValueUse::Required);
    assert_eq!(value("masked_select", "mask"), ValueUse::Optional);
    assert_eq!(value("masked_select", "self"), ValueUse::None);
    assert_eq!(value("index.Tensor", "indices"), ValueUse::Masks);
}

/// The definition and form of a name.
fn found(name: &str) -> (&'static str, Form) {
    let (op, form) = LIBRARY.get(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    (op.name, form)
}

#[test]
fn operators_answer_to_names_that_people_know() {
    for name in ["abs", "torch.abs", "aten::abs", "torch.ops.aten.abs.default", "np.abs", "torch.Tensor.abs"]
    {
        assert_eq!(found(name), ("abs", Form::Functional), "{name}");
    }
    assert_eq!(found("abs_out"), ("abs", Form::Out));
    assert_eq!(found("aten::abs_out"), ("abs", Form::Out));
    assert_eq!(found("torch.abs_"), ("abs", Form::Inplace));
    assert_eq!(found("aten::add.Tensor"), ("add.Tensor", Form::Functional));
    assert_eq!(found("aten::add_.Tensor"), ("add.Tensor", Form::Inplace));
    assert_eq!(found("aten::add.out"), ("add.Tensor", Form::Out));
    assert_eq!(found("torch.nn.functional.linear"), ("linear", Form::Functional));
    // One without overload beside others, as its own name finds it.
    assert_eq!(found("torch.nn.functional.conv2d"), ("conv2d", Form::Functional));
    assert_eq!(found("torch.max"), ("max", Form::Functional));
    assert_eq!(found("F.gelu"), ("gelu", Form::Functional));
    assert_eq!(found("torch.special.expit"), ("sigmoid", Form::Functional));
    assert_eq!(found("numpy.concatenate"), ("cat", Form::Functional));
    assert_eq!(found("np.expand_dims"), ("unsqueeze", Form::Functional));
    assert_eq!(found("jnp.arctan"), ("atan", Form::Functional));
    assert_eq!(found("np.max"), ("amax", Form::Functional));
    // The function of this name there is not the method of this name here.
    assert_eq!(found("F.unfold"), ("im2col", Form::Functional));
    assert_eq!(found("torch.Tensor.unfold"), ("unfold", Form::Functional));
}

#[test]
fn a_name_with_another_meaning_elsewhere_is_refused_with_advice() {
    let error = LIBRARY.get("np.std").unwrap_err().to_string();
    assert_eq!(
        error,
        "`numpy.std` means something else here\n  help: `std.correction` divides by n - 1 unless it is given \
         correction=0, numpy by n"
    );
    let error = LIBRARY.get("np.concatinate").unwrap_err().to_string();
    assert!(
        error.contains("there is no operator `np.concatinate`") && error.contains("`concatenate`"),
        "{error}"
    );
    assert!(LIBRARY.get("pwer").unwrap_err().to_string().contains("`power`"));
}

fn tensor(value: Value) -> Tensor {
    match value {
        Value::Tensor(tensor) => tensor,
        other => panic!("{other:?}"),
    }
}

fn single(name: &str, args: &[Value], kwargs: &[(&str, Value)]) -> Tensor {
    let mut results = call(name, args, kwargs).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(results.len(), 1, "{name}");
    tensor(results.remove(0))
}

#[test]
fn a_call_without_overload_takes_the_one_that_fits() -> Result<()> {
    let x = Tensor::from_slice(&[1.0f32, -2.0, 3.0, -4.0], &[2, 2])?;
    let y = Tensor::of(&[10.0f32, 20.0]);
    let (tx, ty): (Value, Value) = ((&x).into(), (&y).into());
    // A number keeps the tensor's dtype, as the overload for numbers does.
    let sum = single("add", &[tx.clone(), 2.into()], &[]);
    assert_eq!((sum.dtype(), sum.to_vec::<f32>()?), (x.dtype(), vec![3.0, 0.0, 5.0, -2.0]));
    let sum = single("add", &[tx.clone(), 0.5.into()], &[("alpha", 2.into())]);
    assert_eq!((sum.dtype(), sum.to_vec::<f32>()?), (x.dtype(), vec![2.0, -1.0, 4.0, -3.0]));
    assert_eq!(single("add", &[tx.clone(), ty.clone()], &[]).to_vec::<f32>()?, [11.0, 18.0, 13.0, 16.0]);
    assert_eq!(single("torch.pow", &[tx.clone(), 2.into()], &[]).to_vec::<f32>()?, [1.0, 4.0, 9.0, 16.0]);
    assert_eq!(single("np.power", &[2.into(), ty.clone()], &[]).to_vec::<f32>()?, [1024.0, 1048576.0]);
    // The same name with and without a dimension.
    assert_eq!(single("sum", std::slice::from_ref(&tx), &[]).to_vec::<f32>()?, [-2.0]);
    assert_eq!(single("sum", std::slice::from_ref(&tx), &[("dim", 1.into())]).to_vec::<f32>()?, [-1.0, -1.0]);
    assert_eq!(
        single("np.sum", std::slice::from_ref(&tx), &[("axis", 0.into())]).to_vec::<f32>()?,
        [4.0, -6.0]
    );
    assert_eq!(call("max", &[tx.clone(), 1.into()], &[])?.len(), 2, "values and indices");
    assert_eq!(call("max", std::slice::from_ref(&tx), &[])?.len(), 1);
    let floored = single("div", &[tx.clone(), ty.clone()], &[("rounding_mode", "floor".into())]);
    assert_eq!(floored.to_vec::<f32>()?, [0.0, -1.0, 0.0, -1.0]);
    assert_eq!(single("arange", &[3.into()], &[]).to_vec::<i64>()?, [0, 1, 2]);
    assert_eq!(single("arange", &[1.into(), 7.into(), 3.into()], &[]).to_vec::<i64>()?, [1, 4]);
    let mask = x.gt(0.0)?;
    assert_eq!(
        single("where", &[(&mask).into(), tx.clone(), 0.into()], &[]).to_vec::<f32>()?,
        [1.0, 0.0, 3.0, 0.0]
    );
    // In place and out.
    let target = x.copy(&x)?;
    call("mul_", &[(&target).into(), 3.into()], &[])?;
    assert_eq!(target.to_vec::<f32>()?, [3.0, -6.0, 9.0, -12.0]);
    let out = Tensor::of(&[0.0f32; 4]).view(vec![2, 2])?;
    call("torch.abs_out", std::slice::from_ref(&tx), &[("out", (&out).into())])?;
    assert_eq!(out.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    call("sub", &[tx.clone(), 1.into()], &[("out", (&out).into())])?;
    assert_eq!(out.to_vec::<f32>()?, [0.0, -3.0, 2.0, -5.0]);
    Ok(())
}

#[test]
fn arguments_that_no_overload_takes_are_refused_with_each_reason() {
    let x = Tensor::of(&[1.0f32]);
    let error = call("torch.add", &[(&x).into(), "two".into()], &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "no overload of `torch.add` takes (a tensor, a str)\n  \
         add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor: `other` must be a tensor, got a str\n  \
         add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor: `other` must be a number, got a str\n  \
         help: give the arguments of one of these overloads, or name it in full"
    );
}

#[test]
fn every_operator_is_a_method_of_its_first_tensor() -> Result<()> {
    let x = Tensor::from_slice(&[1.0f32, -2.0, 3.0, -4.0], &[2, 2])?;
    let weight = Tensor::from_slice(&[1.0f32, 0.0, 0.0, 2.0], &[2, 2])?;
    assert_eq!(x.linear(&weight)?.to_vec::<f32>()?, [1.0, -4.0, 3.0, -8.0]);
    assert_eq!(x.layer_norm([2])?.shape(), [2, 2]);
    // `self` is the receiver, at any position.
    let picked = x.where_(&x.gt(0.0)?, &weight)?;
    assert_eq!(picked.to_vec::<f32>()?, [1.0, 0.0, 3.0, 2.0]);
    let indices = Tensor::of(&[1i64, 1, 0]);
    assert_eq!(weight.embedding(&indices)?.to_vec::<f32>()?, [0.0, 2.0, 0.0, 2.0, 1.0, 0.0]);
    let image = opsmith::ones([1, 1, 3, 3])?;
    let kernel = opsmith::ones([1, 1, 2, 2])?;
    assert_eq!(image.conv2d(&kernel)?.to_vec::<f32>()?, [4.0; 4]);
    assert_eq!(image.squeeze_dim(0)?.conv2d(&kernel)?.shape(), [1, 2, 2]);
    assert_eq!(image.conv_transpose2d(&kernel)?.shape(), [1, 1, 4, 4]);
    Ok(())
}

#[test]
fn no_operator_with_a_tensor_that_callers_give_lacks_a_method() {
    let spec = concat!(env!("CARGO_MANIFEST_DIR"), "/../ops.yaml");
    let checked = pipeline::check(&Config::stock(spec)).expect("the spec has no mistakes");
    for op in &checked.model.ops {
        let given = |arg: &Arg| arg.ty.kind == Kind::Tensor && !arg.ty.optional && arg.default.is_none();
        let expected = op.args.iter().any(given) && !op.facts.backward_only;
        assert_eq!(op.receiver.is_some(), expected, "{}", op.name);
    }
}

/// A base name means the overload that a call by name chooses.
#[test]
fn builders_choose_overloads_as_calls_do() {
    let mut tried = 0;
    for op in LIBRARY.ops.iter().filter(|op| op.host.is_none() && op.facts.deterministic) {
        let Some((base, _)) = op.name.split_once('.') else { continue };
        for values in samples(op, DType::F32).into_iter().take(1) {
            let positional = op.schema.args.iter().filter(|arg| !arg.keyword_only).count();
            let defs = op.schema.args[positional..].iter();
            let named: Vec<(&str, Value)> =
                defs.zip(&values[positional..]).map(|(def, value)| (def.name, value.clone())).collect();
            let Ok(expected) = call(base, &values[..positional], &named) else { continue };
            let (mut builder, mut inputs) = (GraphBuilder::new(), Vec::new());
            let mut argument = |value: &Value| match value {
                Value::Tensor(tensor) => {
                    inputs.push(tensor.clone());
                    let sizes = tensor.shape().iter().map(|size| Dim::from(*size)).collect::<Vec<_>>();
                    builder.input(InputSpec::new(tensor.dtype(), sizes)).into()
                }
                other => BuilderArg::Value(other.clone()),
            };
            let args: Vec<BuilderArg> = values[..positional].iter().map(&mut argument).collect();
            let named: Vec<_> = named.iter().map(|(name, value)| (*name, argument(value))).collect();
            let result = builder.call_with(base, args, named);
            // Data-dependent results cannot be built; then the error reports that, and names the overload.
            let graph = match builder.finish([result]) {
                Ok(graph) => graph,
                Err(error) => {
                    assert!(!error.to_string().contains("no library in this program"), "{error}");
                    continue;
                }
            };
            let first = expected.into_iter().find_map(|value| match value {
                Value::Tensor(tensor) => Some(tensor),
                Value::Tensors(list) => list.into_iter().next(),
                _ => None,
            });
            let (first, found) = (first.unwrap(), graph.run(&inputs).unwrap().remove(0));
            assert_eq!((first.shape(), first.dtype()), (found.shape(), found.dtype()), "{}", op.name);
            tried += 1;
        }
    }
    assert!(tried > 80, "{tried}");
    let mut builder = GraphBuilder::new();
    let x = builder.input(InputSpec::new(DType::F32, [Dim::from("n")]));
    let sums =
        [builder.call("add", [x.into(), 2i64.into()]), builder.call("aten::add", [x.into(), x.into()])];
    let graph = builder.finish(sums).unwrap();
    let results = graph.run(&[Tensor::of(&[1f32, 2.0, 3.0])]).unwrap();
    assert_eq!(results.len(), 2);
    let mut builder = GraphBuilder::new();
    let x = builder.input(InputSpec::new(DType::F32, [Dim::from("n")]));
    let wrong = builder.call("add", [x.into(), "text".into()]);
    let error = builder.finish([wrong]).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("no overload of `add` takes"), "{error}");
}
