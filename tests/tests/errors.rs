//! The mistakes a user will make, each with the whole text that the user sees.

use opsmith::{
    AddOptions, DType, Error, ErrorKind, LIBRARY, Result, SumDimOptions, Tensor, TensorOps, Value, call,
};
use opsmith_codegen::diagnostics::{render, summary};

/// 0, 1, 2, … in the given shape.
fn arange(shape: &[i64]) -> Tensor {
    let elements: Vec<f32> = (0..shape.iter().product::<i64>()).map(|element| element as f32).collect();
    Tensor::from_slice(&elements, shape).unwrap()
}

#[track_caller]
fn check<T>(result: Result<T>, kind: ErrorKind, lines: &[&str]) -> Error {
    let Err(error) = result else { panic!("the mistake was accepted") };
    assert_eq!(error.to_string(), lines.join("\n"));
    assert_eq!(error.kind(), kind);
    error
}

#[test]
fn shapes_that_do_not_broadcast() {
    let error = check(
        arange(&[2, 3]).add(&arange(&[4])),
        ErrorKind::Shape,
        &[
            "add.Tensor: the shapes (2, 3) and (4) do not broadcast: dimension -1 has the sizes 3 and 4",
            "  self: float32 (2, 3)",
            "  other: float32 (4)",
            "  help: sizes must be equal or 1, counted from the last dimension",
        ],
    );
    // The sentence is for people; programs read the fields.
    assert_eq!(error.op(), Some("add.Tensor"));
    let shapes: Vec<_> = error.operands().iter().map(|operand| (&*operand.name, &*operand.shape)).collect();
    assert_eq!(shapes, [("self", &[2, 3][..]), ("other", &[4])]);
}

#[test]
fn a_dtype_without_a_kernel() {
    check(
        arange(&[2]).bitwise_and(&arange(&[2])),
        ErrorKind::NotImplemented,
        &[
            "bitwise_and.Tensor: there is no CPU kernel for float32",
            "  self: float32 (2)",
            "  other: float32 (2)",
            "  help: there are kernels for CPU: \
             bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64; \
             CUDA: bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64",
        ],
    );
}

#[test]
fn an_argument_of_the_wrong_dtype() {
    let condition = Tensor::of(&[1i32, 0]);
    check(
        opsmith::where_(&condition, &arange(&[2]), &arange(&[2])),
        ErrorKind::DType,
        &[
            "where.self: `condition` must be bool or uint8, got int32",
            "  condition: int32 (2)",
            "  self: float32 (2)",
            "  other: float32 (2)",
        ],
    );
}

#[test]
fn in_place_where_self_would_have_to_broadcast() {
    let small = arange(&[3]);
    check(
        small.add_(&arange(&[2, 3])),
        ErrorKind::Shape,
        &[
            "add_.Tensor: the result has the shape (2, 3), which self of shape (3) cannot hold in place",
            "  self: float32 (3)",
            "  other: float32 (2, 3)",
            "  help: an in-place form never broadcasts self; use the functional form",
        ],
    );
    assert_eq!(small.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0]);
}

#[test]
fn in_place_where_the_result_is_of_another_kind() {
    check(
        Tensor::of(&[1i32, 2]).mul_(&arange(&[2])),
        ErrorKind::DType,
        &[
            "mul_.Tensor: the result is float32, which cannot be written into self of dtype int32",
            "  self: int32 (2)",
            "  other: float32 (2)",
            "  help: use the functional form, or convert self first",
        ],
    );
}

#[test]
fn out_of_another_dtype() {
    let x = arange(&[2]);
    check(
        x.add_out(&x, &mut Tensor::of(&[0i64, 0])),
        ErrorKind::DType,
        &[
            "add.out: the result is float32, which cannot be written into out of dtype int64",
            "  self: float32 (2)",
            "  other: float32 (2)",
            "  help: give an `out` of dtype float32",
        ],
    );
}

#[test]
fn out_of_another_shape() {
    let x = arange(&[2]);
    check(
        x.add_out(&x, &mut arange(&[3])),
        ErrorKind::Shape,
        &[
            "add.out: out has the shape (3), the result (2)",
            "  self: float32 (2)",
            "  other: float32 (2)",
            "  help: give an `out` of that shape, or one without elements, which is replaced",
        ],
    );
}

/// Element by element an operator may write where it read; any other may not.
#[test]
fn out_that_is_an_input() -> Result<()> {
    let x = arange(&[1]);
    x.add_out(&arange(&[1]), &mut x.clone())?;
    check(
        x.sum_dim_with_out(Some(&[0]), &mut x.clone(), SumDimOptions::new().keepdim(true)),
        ErrorKind::Aliasing,
        &[
            "sum.IntList_out: out shares memory with the input `self`",
            "  self: float32 (1)",
            "  help: this kernel reads inputs after it starts writing; give out its own memory",
        ],
    );
    Ok(())
}

#[test]
fn backward_of_more_than_one_element() -> Result<()> {
    let x = arange(&[2, 3]).requires_grad_(true)?;
    check(
        x.mul(&x)?.backward(),
        ErrorKind::Autograd,
        &[
            "backward of a tensor of shape (2, 3) needs the gradient to begin with; \
             only for one element it is 1",
            "  help: reduce the tensor to one element, for instance to its sum, or use backward_with",
        ],
    );
    Ok(())
}

#[test]
fn backward_twice() -> Result<()> {
    let x = arange(&[1]).requires_grad_(true)?;
    let y = x.exp()?;
    y.backward()?;
    let (exp, _) = LIBRARY.get("exp")?;
    check(
        y.backward(),
        ErrorKind::Autograd,
        &[
            "backward went through `exp` a second time, \
             but the first pass freed what the call had saved (result)",
            &format!("  in backward: the gradient of `self` of `exp` ({})", exp.location),
            "  help: pass `retain_graph: true` to every pass but the last",
        ],
    );
    Ok(())
}

#[test]
fn backward_of_a_tensor_without_a_graph() {
    check(
        arange(&[1]).backward(),
        ErrorKind::Autograd,
        &[
            "backward needs a tensor that is part of a graph, this one is not",
            "  help: compute it from tensors on which requires_grad_(true) was called, outside no_grad",
        ],
    );
}

#[test]
fn a_leaf_modified_in_place() -> Result<()> {
    let x = arange(&[2]).requires_grad_(true)?;
    check(
        x.add_with_(&arange(&[2]), AddOptions::new().alpha(2)),
        ErrorKind::Autograd,
        &[
            "add_.Tensor: self is a leaf that requires a gradient, \
             so it cannot be changed in place while operators are recorded",
            "  self: float32 (2)",
            "  other: float32 (2)",
            "  help: do it under no_grad (an optimizer step), or on a copy",
        ],
    );
    Ok(())
}

#[test]
fn a_saved_tensor_modified_in_place() -> Result<()> {
    let x = arange(&[1]).requires_grad_(true)?;
    let y = arange(&[1]);
    let z = x.mul(&y)?;
    y.add_(&arange(&[1]))?;
    let (mul, _) = LIBRARY.get("mul.Tensor")?;
    check(
        z.backward(),
        ErrorKind::Autograd,
        &[
            "`mul.Tensor` saved its argument `other` for backward, and its memory was changed in place \
             since, last by `add_.Tensor` (version 1, saved at 0)",
            &format!("  in backward: the gradient of `self` of `mul.Tensor` ({})", mul.location),
            "  help: use the functional form of the call that changed it, or give it a copy",
        ],
    );
    Ok(())
}

#[test]
fn an_operator_that_does_not_exist() {
    check(
        call("ad.Tensor", &[], &[]),
        ErrorKind::NotFound,
        &[
            "there is no operator `ad.Tensor`",
            "  help: did you mean `add.Tensor`, `add.Scalar`, `add.out`, `pad`, `add.Scalar_out`?",
        ],
    );
    check(
        call("add.Tensr", &[], &[]),
        ErrorKind::NotFound,
        &[
            "there is no operator `add.Tensr`",
            "  help: did you mean `add.Tensor`, `add.Scalar`, `add.out`, `add.Scalar_out`, `add_.Tensor`?",
        ],
    );
    check(
        call("flux_capacitor", &[], &[]),
        ErrorKind::NotFound,
        &[
            "there is no operator `flux_capacitor`",
            "  help: the operators are listed in the API documentation",
        ],
    );
}

#[test]
fn calls_by_name_with_the_wrong_arguments() {
    let x = Value::Tensor(arange(&[2]));
    let signature =
        "  help: the signature is add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
    let refused = |args: &[Value], kwargs: &[(&str, Value)], lines: &[&str]| {
        check(call("add.Tensor", args, kwargs), ErrorKind::Argument, lines);
    };
    refused(std::slice::from_ref(&x), &[], &["add.Tensor: the argument `other` is missing", signature]);
    refused(
        &[x.clone(), Value::Str("1".into())],
        &[],
        &["add.Tensor: `other` must be a tensor, got a str", signature],
    );
    refused(
        &[x.clone(), x.clone(), x.clone()],
        &[],
        &["add.Tensor: 3 positional arguments given, at most 2 taken", signature],
    );
    refused(
        &[x.clone(), x.clone()],
        &[("alfa", Value::Int(2))],
        &["add.Tensor: there is no argument `alfa`", "  help: the arguments are: self, other, alpha"],
    );
}

/// Six mistakes of six kinds in six entries.
const SIX_MISTAKES: &str = "\
edition: 1
ops:
- func: a(Tensr self) -> Tensor
  pointwise: self
- func: b(Tensor self) -> Tensor
  pointwise: self + sefl
- func: c(Tensor self) -> Tensor
  shape: folow(self)
  dtype: follow(self)
  dispatch: {CPU: c}
- func: d(Tensor self) -> Tensor
  varants: [out]
  pointwise: self
- func: e(Tensor self) -> Tensor
  pointwise: self
  derivatives: {other: grad}
- func: f(Tensor self) -> Tensor
  pointwise: self
  dtypes: [flaot32]
";

/// One run reports all mistakes of a spec.
#[test]
fn six_mistakes_in_six_entries() {
    let (sources, diagnostics) = opsmith_codegen::check_text("ops.yaml", SIX_MISTAKES);
    let texts: Vec<String> =
        diagnostics.sorted().map(|diagnostic| render(&sources, diagnostic, false)).collect();
    let expected = "\
error[E0110]: unknown type `Tensr`
 --> ops.yaml:3:11
  |
3 | - func: a(Tensr self) -> Tensor
  |           ^^^^^ no such type
  |
  = help: did you mean `Tensor`?

error[E0305]: nothing is called `sefl` here
 --> ops.yaml:6:21
  |
6 |   pointwise: self + sefl
  |                     ^^^^ unknown name
  |
  = help: did you mean `self`?

error[E0323]: there is no rule `folow`
 --> ops.yaml:8:10
  |
8 |   shape: folow(self)
  |          ^^^^^ unknown rule
  |
  = help: did you mean `follow`?

error[E0206]: unknown key `varants`
  --> ops.yaml:12:3
   |
12 |   varants: [out]
   |   ^^^^^^^ not a key of an operator
   |
   = help: did you mean `variants`?

error[E0441]: `e` has no argument `other`
  --> ops.yaml:16:17
   |
16 |   derivatives: {other: grad}
   |                 ^^^^^ no such argument
   |
   = help: the tensor arguments are `self`

error[E0407]: there is no dtype `flaot32`
  --> ops.yaml:19:12
   |
19 |   dtypes: [flaot32]
   |            ^^^^^^^ unknown dtype
   |
   = help: did you mean `float32`?

6 errors";
    assert_eq!(format!("{}\n\n{}", texts.join("\n\n"), summary(&diagnostics)), expected);
}

#[test]
fn dtypes_are_checked_where_there_is_nothing_to_compute() {
    let empty = opsmith::zeros([0]).unwrap();
    for (name, arguments) in [
        ("gather", vec![Value::from(&empty), 0.into(), (&empty).into()]),
        ("index_select", vec![(&empty).into(), 0.into(), (&empty).into()]),
        ("scatter.src", vec![(&empty).into(), 0.into(), (&empty).into(), (&empty).into()]),
    ] {
        let error = call(name, &arguments, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DType, "{error}");
        assert!(error.to_string().contains("`index` must be int32 or int64, got float32"), "{error}");
    }
    // An empty tensor of integers holds no number of a wrong kind.
    let places = opsmith::to_dtype(&empty, DType::U8).unwrap();
    assert!(call("gather", &[(&empty).into(), 0.into(), (&places).into()], &[]).is_ok());
}

/// A grid has a dimension for each vector, so that thousands would need gigabytes for their sizes alone.
#[test]
fn a_grid_of_very_many_vectors() {
    let vectors = vec![Tensor::of(&[1.0f32, 2.0]); 65];
    let vectors: Vec<&Tensor> = vectors.iter().collect();
    let error = opsmith::meshgrid(&vectors).unwrap_err().to_string();
    assert!(error.contains("tensors.len() <= 64"), "{error}");
    assert_eq!(opsmith::meshgrid(&vectors[..3]).unwrap()[2].shape(), [2, 2, 2]);
}
