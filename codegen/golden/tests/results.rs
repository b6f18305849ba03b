//! Results: hidden ones, in-place pairs, lists with a length, and results that follow others.

use opsmith_golden as golden;
use opsmith_runtime::infer::symbolic::{Argument, Context, Inference, Meta, Shape, Size, Symbol, infer};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, DType, ErrorKind, Result, Scalar, Tensor, Value, autograd, f16};

fn op(name: &str) -> &'static OpDef {
    golden::LIBRARY.find(name).unwrap_or_else(|| panic!("{name}")).0
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

#[test]
fn users_do_not_get_what_only_gradients_need() -> Result<()> {
    let x = Tensor::of(&[1.0f32, 3.0]).requires_grad_(true)?;
    let mean = Tensor::of(&[5.0f32]);
    let (out, moved): (Tensor, Tensor) = golden::balanced(&x, Some(&mean))?;
    assert_eq!((numbers(&out), numbers(&moved)), (vec![2.0, 6.0], vec![3.0]));
    // The hidden result is available to the gradient.
    out.backward_with(Some(&Tensor::of(&[1.0f32, 10.0])), autograd::Options::default())?;
    assert_eq!(numbers(&x.grad().unwrap()), [2.0, 20.0]);
    let by_name = golden::call("balanced", &[(&x).into(), (&mean).into()], &[])?;
    assert_eq!(by_name.len(), 2);
    assert_eq!(op("balanced").hidden, 1);
    Ok(())
}

#[test]
fn the_out_form_writes_what_users_get() -> Result<()> {
    let (x, mean) = (Tensor::of(&[1.0f32, 3.0]), Tensor::of(&[5.0f32]));
    let (mut out, mut moved) = (Tensor::of(&[0.0f32, 0.0]), Tensor::of(&[0.0f32]));
    golden::balanced_out(&x, Some(&mean), &mut out, &mut moved)?;
    assert_eq!((numbers(&out), numbers(&moved)), (vec![2.0, 6.0], vec![3.0]));
    Ok(())
}

#[test]
fn a_formula_that_needs_no_elements_lets_them_change() -> Result<()> {
    let x = Tensor::of(&[1.0f32, 3.0]).requires_grad_(true)?;
    let inner = golden::plus(&x, &x)?;
    let (out, _) = golden::balanced(&inner, None)?;
    // Its elements are not saved, so changing them makes no saved tensor stale.
    autograd::no_grad(|| golden::plus_(&inner, &inner))?;
    out.backward_with(Some(&Tensor::of(&[1.0f32, 1.0])), autograd::Options::default())?;
    assert_eq!(numbers(&x.grad().unwrap()), [4.0, 4.0]);
    Ok(())
}

#[test]
fn one_of_the_arguments_is_written_in_place() -> Result<()> {
    let (x, mean) = (Tensor::of(&[1.0f32, 3.0]), Tensor::of(&[5.0f32]));
    let version = mean.clone();
    let out: Tensor = golden::balanced_(&x, Some(&mean))?;
    assert_eq!((numbers(&out), numbers(&mean), numbers(&x)), (vec![2.0, 6.0], vec![3.0], vec![1.0, 3.0]));
    assert_eq!(numbers(&version), [3.0], "the memory itself is written");
    // The result of an absent argument is dropped.
    assert_eq!(numbers(&golden::balanced_(&x, None)?), [2.0, 6.0]);
    // With gradients for the other arguments.
    let x = x.requires_grad_(true)?;
    let out = golden::balanced_(&x, Some(&mean))?;
    assert_eq!(numbers(&mean), [2.0]);
    out.backward_with(Some(&Tensor::of(&[1.0f32, 1.0])), autograd::Options::default())?;
    assert_eq!(numbers(&x.grad().unwrap()), [2.0, 2.0]);
    // A call by name, too, returns the results that are written nowhere.
    let others = golden::call("balanced_", &[(&x).into(), (&mean).into()], &[])?;
    let [Value::Tensor(out)] = &others[..] else { panic!("one result") };
    assert_eq!((numbers(out), numbers(&mean)), (vec![2.0, 6.0], vec![1.5]));
    Ok(())
}

#[test]
fn several_arguments_are_written_in_place() -> Result<()> {
    let (weight, speed) = (Tensor::of(&[1.0f32]), Tensor::of(&[0.5f32]));
    let change = Tensor::of(&[1.0f32]);
    golden::stepped_(&weight, &change, &speed)?;
    assert_eq!((numbers(&weight), numbers(&speed)), (vec![1.75], vec![1.5]));
    let options = golden::SteppedOptions::new().rate(1.0);
    golden::stepped_with_(&weight, &change, &speed, &options)?;
    assert_eq!((numbers(&weight), numbers(&speed)), (vec![4.25], vec![2.5]));
    let (new, _) = golden::stepped(&weight, &change, &speed)?;
    assert_eq!(
        (numbers(&new), numbers(&weight)),
        (vec![6.0], vec![4.25]),
        "the functional form writes nothing"
    );
    let written = golden::call("stepped_", &[(&weight).into(), (&change).into(), (&speed).into()], &[])?;
    let [Value::Tensor(first), Value::Tensor(second)] = &written[..] else { panic!("two results") };
    assert_eq!((numbers(first), numbers(second)), (numbers(&weight), numbers(&speed)));
    Ok(())
}

#[test]
fn in_place_pairs_refuse_what_they_cannot_write() -> Result<()> {
    let (weight, change) = (Tensor::of(&[1.0f32]), Tensor::of(&[1.0f32]));
    let speed = Tensor::of(&[0.5f32, 0.5]);
    let error = golden::stepped_(&weight, &change, &speed).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(
        error.to_string().starts_with("stepped_: the result has the shape (2), which self of shape (1)"),
        "{error}"
    );
    assert_eq!(numbers(&speed), [0.5, 0.5], "a refused call changes nothing");
    let error = golden::stepped_(&weight, &change, &weight).unwrap_err();
    assert!(
        error.to_string().starts_with("stepped_: `self` and `speed` share memory, and both are written"),
        "{error}"
    );
    let speed = Tensor::of(&[0.5f32]);
    let tracked = weight.requires_grad_(true)?;
    let error = golden::stepped_(&tracked, &change, &speed).unwrap_err();
    assert!(error.to_string().starts_with("stepped_: `self` is part of a graph"), "{error}");
    autograd::no_grad(|| golden::stepped_(&tracked, &change, &speed))?;
    assert_eq!(numbers(&tracked), [1.75]);
    let tracked_change = Tensor::of(&[1.0f32]).requires_grad_(true)?;
    let free = Tensor::of(&[1.0f32]);
    let error = golden::stepped_(&free, &tracked_change, &speed).unwrap_err();
    assert!(
        error.to_string().starts_with("stepped_: what would be written into `self` is part of a graph"),
        "{error}"
    );
    assert_eq!(numbers(&free), [1.0]);
    Ok(())
}

#[test]
fn a_list_is_as_long_as_its_length_says() -> Result<()> {
    let x = Tensor::of(&[1.0f32]);
    let pieces = golden::pieces(&x, 3)?;
    let all: Vec<Vec<f32>> = pieces.iter().map(numbers).collect();
    assert_eq!(all, [vec![0.0], vec![1.0, 1.0], vec![2.0, 2.0, 2.0]]);
    assert!(golden::pieces(&x, 0)?.is_empty());
    let error = golden::pieces(&x, -1).unwrap_err();
    assert!(error.to_string().starts_with("pieces: the result would be a list of -1 tensors"), "{error}");
    let named = golden::call("pieces", &[(&x).into(), 2.into()], &[])?;
    assert!(matches!(&named[..], [Value::Tensors(list)] if list.len() == 2));
    Ok(())
}

#[test]
fn results_follow_different_inputs_and_each_other() -> Result<()> {
    let (a, b) = (Tensor::of(&[1.0f32, 2.0]), Tensor::scalar(Scalar::Float(1.0), DType::F32));
    let args = [Arg::Tensor(&a), Arg::Tensor(&b)];
    let inferred = (op("chained").infer.expect("rules"))(&args)?;
    let outs: Vec<(Vec<i64>, DType)> =
        inferred.outs.iter().map(|out| (out.sizes.to_vec(), out.dtype)).collect();
    assert_eq!(outs, [(vec![], DType::F64), (vec![2], DType::F64), (vec![2], DType::Bool)]);
    Ok(())
}

/// The result of symbolic inference as text, for a first size that is a symbol.
fn before(name: &str, more: &[Argument<'_>]) -> Result<Vec<String>> {
    let mut context = Context::new();
    let rows = Size::from(context.symbols.fresh());
    let x = Meta::new(DType::F32, Shape::from_iter([rows, Size::Const(3)]));
    let args: Vec<Argument<'_>> = std::iter::once(Argument::Tensor(&x)).chain(more.iter().copied()).collect();
    let Inference::Tensors(outputs) = infer(op(name), &args, &mut context)? else { panic!("{name}") };
    Ok(outputs
        .outs
        .iter()
        .map(|out| format!("{} {}", out.dtype, out.shape.named(&context.symbols)))
        .collect())
}

#[test]
fn chains_are_followed_before_sizes_are_known() -> Result<()> {
    let other = Meta::new(DType::F32, Shape::UnknownRank);
    let chained = before("chained", &[Argument::Tensor(&other)])?;
    assert_eq!(chained, ["float64 (-2)", "float64 (s0, 3)", "bool (s0, 3)"]);
    Ok(())
}

#[test]
fn a_function_decides_alone() -> Result<()> {
    let (x, none) = (Tensor::of(&[1.0f32, 2.0]), Arg::None);
    let eager = |n: i64, other: Arg<'_>| {
        (op("decided").infer.expect("a function"))(&[Arg::Tensor(&x), other, Arg::Int(n)])
    };
    let outs: Vec<(Vec<i64>, DType)> =
        eager(5, Arg::Tensor(&x))?.outs.iter().map(|out| (out.sizes.to_vec(), out.dtype)).collect();
    assert_eq!(outs, [(vec![5, 2], DType::F32), (vec![6], DType::I64)]);
    // No rule of the spec replaces an unset output.
    let error = eager(-5, none).unwrap_err().to_string();
    assert!(error.contains("leaves the shape of output `place` unset"), "{error}");
    assert!(
        golden::decided(&x, None, -5).unwrap_err().to_string().starts_with("decided: its inference function")
    );
    let twice = &Size::from(Symbol(0)) * &Size::Const(2);
    let said = before("decided", &[Argument::Plain(none), Argument::Int(&twice)])?;
    assert_eq!(said, ["float32 (2*s0, s0)", "int64 (2*s0)"]);
    Ok(())
}

#[test]
fn sizes_that_a_run_tells_have_names_and_bounds() -> Result<()> {
    assert_eq!(before("counted", &[])?, ["int64 (u1, 2)", "float32 (u2, u1)"]);
    Ok(())
}

#[test]
fn results_are_there_if_their_conditions_hold() -> Result<()> {
    let (x, extra) = (Tensor::of(&[1.0f32, -3.0]), Tensor::of(&[7.0f32]));
    let (out, mask, more): (Tensor, Option<Tensor>, Option<Tensor>) = golden::masked(&x, None, true)?;
    assert_eq!(numbers(&out), [1.0, -3.0]);
    assert_eq!(mask.unwrap().to_vec::<bool>()?, [true, false]);
    assert!(more.is_none());
    let (_, mask, more) = golden::masked(&x, Some(&extra), false)?;
    assert!(mask.is_none());
    assert_eq!(numbers(&more.unwrap()), [7.0]);
    let named = golden::call("masked", &[(&x).into(), Value::None, false.into()], &[])?;
    assert!(matches!(&named[..], [Value::Tensor(_), Value::None, Value::None]));
    // Gradients flow through the present ones.
    let x = x.requires_grad_(true)?;
    let (out, ..) = golden::masked(&x, None, false)?;
    out.backward_with(Some(&Tensor::of(&[2.0f32, 3.0])), autograd::Options::default())?;
    assert_eq!(numbers(&x.grad().unwrap()), [2.0, 3.0]);
    Ok(())
}

#[test]
fn a_composition_may_leave_a_result_out() -> Result<()> {
    let x = Tensor::of(&[1.0f32]);
    assert!(golden::maybe_twice(&x, false)?.1.is_none());
    assert_eq!(numbers(&golden::maybe_twice(&x, true)?.1.unwrap()), [2.0]);
    Ok(())
}

#[test]
fn dtypes_go_together_in_rows() -> Result<()> {
    let (half, single, double) =
        (Tensor::of(&[f16::ONE, f16::ONE]), Tensor::of(&[2.0f32, 3.0]), Tensor::of(&[0.5f64]));
    let (out, total) = golden::mixed(&half, &single, 1.5)?;
    assert_eq!((out.dtype(), total.dtype()), (DType::F32, DType::F64));
    assert_eq!((numbers(&out), total.item()?), (vec![3.0, 3.0], Scalar::Float(6.0)));
    let (out, total) = golden::mixed(&single, &double, 2.0)?;
    assert_eq!((out.to_vec::<f64>()?, total.item()?), (vec![2.0, 3.0], Scalar::Float(5.0)));
    assert_eq!(golden::narrowed(&double)?.dtype(), DType::F32);
    assert_eq!(golden::narrowed(&single)?.dtype(), DType::F16);
    let error = golden::mixed(&double, &single, 1.0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "mixed: the dtypes of the arguments do not go together\n  self: float64 (1)\n  weight: float32 (2)\n  \
         help: convert them to one of: self float16, weight float32; self float32, weight float32; \
         self float32, weight float64"
    );
    assert_eq!(op("mixed").combinations.len(), 3);
    Ok(())
}
