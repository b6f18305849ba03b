//! Tangents, samples and tolerances of a spec at run time.

use opsmith_golden as golden;
use opsmith_runtime::autograd::{Options, grad, jvp};
use opsmith_runtime::op::Forward;
use opsmith_runtime::sample::{Check, ToleranceOf};
use opsmith_runtime::{Arg, DType, Result, Tensor, Value};

fn t(values: &[f64]) -> Tensor {
    Tensor::of(values)
}

fn along(
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[&Tensor],
    tangents: &[&Tensor],
) -> Vec<Option<Vec<f64>>> {
    let (_, found) = jvp(f, inputs, tangents).unwrap();
    found.into_iter().map(|tangent| tangent.map(|tangent| tangent.to_vec().unwrap())).collect()
}

#[test]
fn terms_without_a_tangent_are_left_out() {
    let (x, y, dx, dy) = (t(&[2.0, 3.0]), t(&[5.0, 7.0]), t(&[1.0, 1.0]), t(&[10.0, 100.0]));
    let f = |inputs: &[Tensor]| Ok(vec![golden::moved(&inputs[0], &inputs[1])?]);
    assert_eq!(along(f, &[&x, &y], &[&dx, &dy]), [Some(vec![25.0, 307.0])]);
    let f = |inputs: &[Tensor]| Ok(vec![golden::moved(&inputs[0], &y)?]);
    assert_eq!(along(f, &[&x], &[&dx]), [Some(vec![5.0, 7.0])]);
    let f = |inputs: &[Tensor]| Ok(vec![golden::moved(&x, &y)?, inputs[0].clone()]);
    assert_eq!(along(f, &[&x], &[&dx]), [None, Some(vec![1.0, 1.0])]);
}

#[test]
fn each_output_has_its_own_tangent() {
    let (x, y, d) = (t(&[2.0]), t(&[5.0]), t(&[1.0]));
    let f = |inputs: &[Tensor]| {
        let (low, high) = golden::spread_both(&x, &inputs[0])?;
        Ok(vec![low, high])
    };
    assert_eq!(along(f, &[&y], &[&d]), [None, Some(vec![2.0])]);
    let f = |inputs: &[Tensor]| {
        let (low, high) = golden::spread_both(&inputs[0], &y)?;
        Ok(vec![low, high])
    };
    assert_eq!(along(f, &[&x], &[&d]), [Some(vec![0.5]), Some(vec![5.0])]);
    let f = |inputs: &[Tensor]| Ok(vec![golden::strung(&[inputs[0].clone(), y.clone()])?]);
    assert_eq!(along(f, &[&x], &[&d]), [Some(vec![2.0])]);
    let f = |inputs: &[Tensor]| Ok(vec![golden::doubled(&inputs[0])?, golden::bent_again(&inputs[0])?]);
    assert_eq!(along(f, &[&x], &[&d]), [Some(vec![2.0]), Some(vec![4.0])]);
}

#[test]
fn an_absent_gradient_stays_absent() {
    let (x, y) = (t(&[2.0]).requires_grad_(true).unwrap(), t(&[5.0]).requires_grad_(true).unwrap());
    let (low, high) = golden::spread_both(&x, &y).unwrap();
    let options = Options { retain_graph: true, ..Options::default() };
    let found = grad(&[&low], &[&x, &y], &[None], options).unwrap();
    assert_eq!(found[0].as_ref().unwrap().to_vec::<f64>().unwrap(), [0.5]);
    assert!(found[1].is_none());
    let found = grad(&[&high], &[&x, &y], &[None], options).unwrap();
    assert_eq!(found[0].as_ref().unwrap().to_vec::<f64>().unwrap(), [5.0]);
    assert_eq!(found[1].as_ref().unwrap().to_vec::<f64>().unwrap(), [2.0]);
}

#[test]
fn a_backend_runs_its_own_formula_only() {
    let def = golden::LIBRARY.find("moved").unwrap().0;
    // CPU is the first bit, CUDA the second; a formula for every backend also has the bits of future ones.
    let formulas = def.grad.unwrap().formulas.iter();
    let masks: Vec<(u8, u8)> =
        formulas.map(|formula| (formula.arguments[0], formula.backends & 0b11)).collect();
    assert_eq!(masks, [(0, 0b10), (0, 0b01), (1, 0b11), (2, 0b11)]);
    let x = t(&[2.0]).requires_grad_(true).unwrap();
    golden::moved(&x, &t(&[5.0])).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [5.0], "one formula ran, not two");
}

#[test]
fn samples_and_tolerances_arrive() {
    let find = |name: &str| golden::LIBRARY.find(name).unwrap().0;
    let def = find("moved");
    assert_eq!(def.samples.len(), 2);
    let values = def.samples[1].values(def, DType::F32).unwrap();
    let Value::Tensor(first) = &values[0] else { panic!("a tensor") };
    assert_eq!((first.shape(), first.to_vec::<f32>().unwrap()), (&[2, 2][..], vec![1.5, -2.0, 3.0, 4.0]));
    let run = |name: &str| {
        let def = find(name);
        assert!(!def.samples.is_empty());
        for sample in def.samples {
            let values = sample.values(def, DType::F64).unwrap();
            let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
            opsmith_runtime::call::invoke(def, &args).unwrap();
        }
    };
    assert_eq!(def.tolerances[0].of, ToleranceOf::DType(DType::F16));
    assert_eq!(def.tolerances[0].allow, Some(0.01));
    assert_eq!(def.tolerances[1].of, ToleranceOf::Check(Check::Empty));
    assert_eq!(def.tolerances[1].allow, None);
    ["moved", "strung", "spread_both", "bent_again"].into_iter().for_each(run);
    let rule = |name: &str| find(name).grad.unwrap().forward;
    assert!(matches!(rule("doubled"), Forward::Linear));
    assert!(matches!(rule("bent_again"), Forward::ElementWise { complex: true }));
    assert!(matches!(rule("times.Tensor"), Forward::ElementWise { complex: false }));
    assert!(matches!(rule("product"), Forward::Transposed));
}
