//! Empty tensors given as `out`.

use opsmith::{DType, Tensor, TensorOps, Value, call};
use opsmith_testing::{checks, report};

#[test]
fn what_is_made_in_place_of_an_empty_out_is_the_callers() {
    let x = Tensor::of(&[-1f32, 2.0, -3.0]);
    let empty = || opsmith::zeros([0]).unwrap();
    for name in ["abs", "abs.out"] {
        let out = empty();
        let shape_before = out.shape();
        let results = call(name, &[(&x).into()], &[("out", (&out).into())]).unwrap();
        assert!(matches!(&results[..], [Value::Tensor(result)] if result.same(&out)));
        assert_eq!((out.shape(), out.numel(), out.strides()), (&[3][..], 3, &[1][..]));
        assert_eq!(out.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
        // Whoever looked at the shape before still sees that.
        assert_eq!(shape_before, [0]);
        // From then on it has a shape, which no other result fits.
        assert!(call(name, &[Value::from(opsmith::ones([2]).unwrap())], &[("out", (&out).into())]).is_err());
        assert_eq!(out.add(&out).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
    }
    // Another dtype, shapes without elements one after the other, and views.
    let out = opsmith::to_dtype(&empty(), DType::F64).unwrap();
    for shape in [[0, 3], [4, 0], [2, 3]] {
        call("abs", &[Value::from(opsmith::ones(shape).unwrap())], &[("out", (&out).into())]).unwrap();
        assert_eq!((out.shape(), out.dtype()), (&shape[..], DType::F64));
    }
    assert_eq!(out.t().unwrap().shape(), [3, 2]);
    // Several outputs, by one list, by numbers and by names.
    let matrix = Tensor::from_slice(&[3f32, 1.0, 2.0, 6.0, 5.0, 4.0], &[2, 3]).unwrap();
    let places = || opsmith::to_dtype(&empty(), DType::I64).unwrap();
    let arguments = [Value::from(&matrix), Value::Int(1)];
    for keys in [["out0", "out1"], ["values", "indices"]] {
        let (values, indices) = (empty(), places());
        call("max.dim", &arguments, &[(keys[0], (&values).into()), (keys[1], (&indices).into())]).unwrap();
        assert_eq!(values.to_vec::<f32>().unwrap(), [3.0, 6.0]);
        assert_eq!(indices.to_vec::<i64>().unwrap(), [0, 0]);
        // In any order, each once.
        let (values, indices) = (empty(), places());
        call("max.dim", &arguments, &[(keys[1], (&indices).into()), (keys[0], (&values).into())]).unwrap();
        assert_eq!((values.numel(), indices.numel()), (2, 2));
        let twice = [(keys[0], Value::from(&values)), ("out0", Value::from(&values))];
        assert!(call("max.dim", &arguments, &twice).unwrap_err().to_string().contains("given twice"));
    }
    let (values, indices) = (empty(), places());
    let list = Value::Tensors(vec![values.clone(), indices.clone()]);
    call("max.dim", &arguments, &[("out", list)]).unwrap();
    assert_eq!((values.shape(), indices.shape()), (&[2][..], &[2][..]));
}

#[test]
fn every_out_form_fills_the_callers_empty_tensors() {
    let report = report(&opsmith::LIBRARY, checks::out_form);
    report.assert_right();
    assert!(report.compared > 500, "only {} calls were compared", report.compared);
}
