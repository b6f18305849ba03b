//! Other names: of operators, of their arguments, in every way of calling.

use opsmith::runtime::facts::ValueUse;
use opsmith::{LIBRARY, Result, Scalar, Tensor, TensorOps, Value, call};

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
    assert_eq!(value("index.Tensor", "indices"), ValueUse::Optional);
}
