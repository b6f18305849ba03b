//! Errors: their data, and their whole text for users.

use opsmith_runtime::error::{ErrorOperand, ShapeText};
use opsmith_runtime::{Complex64, DType, Error, ErrorKind, Scalar, Tensor, Value};

#[test]
fn an_error_reads_from_the_operator_down_to_the_help() {
    let operand = |name: &str, dtype, shape: &[i64]| ErrorOperand {
        name: name.to_owned(),
        dtype,
        shape: shape.into(),
        formulas: None,
    };
    let error = Error::shape("the inner sizes differ: 3 and 4")
        .with_help("transpose one of them")
        .in_op("mm", vec![operand("self", DType::F32, &[2, 3]), operand("mat2", DType::F64, &[4, 5])]);
    let text = "mm: the inner sizes differ: 3 and 4\n  self: float32 (2, 3)\n  mat2: float64 (4, 5)\n  help: transpose one of them";
    assert_eq!(error.to_string(), text);
    assert_eq!(format!("{error:?}"), text);
    assert_eq!(
        (error.kind(), error.op(), error.message(), error.help()),
        (ErrorKind::Shape, Some("mm"), "the inner sizes differ: 3 and 4", Some("transpose one of them"))
    );
    assert_eq!(error.operands()[1], operand("mat2", DType::F64, &[4, 5]));
}

#[test]
fn the_innermost_operator_is_named() {
    let error = Error::value("it is negative").in_op("inner", Vec::new()).in_op("outer", Vec::new());
    assert_eq!(error.to_string(), "inner: it is negative");
    assert_eq!(Error::value("it is negative").to_string(), "it is negative");
}

#[test]
fn shapes_print_like_tuples() {
    assert_eq!(ShapeText(&[]).to_string(), "()");
    assert_eq!(ShapeText(&[3]).to_string(), "(3)");
    assert_eq!(ShapeText(&[2, 0, 1]).to_string(), "(2, 0, 1)");
}

#[track_caller]
fn check<T: std::fmt::Debug>(found: opsmith_runtime::Result<T>, expected: &str) {
    assert_eq!(found.unwrap_err().to_string(), expected);
}

#[test]
fn the_tensors_own_methods_explain_themselves() {
    check(
        Tensor::from_slice(&[1.0f32; 5], &[2, 3]),
        "5 elements cannot have the shape (2, 3), which needs 6",
    );
    check(Tensor::from_slice(&[1.0f32; 0], &[-1]), "the shape (-1) has a negative size");
    let tensor = Tensor::from_slice(&[1.0f32; 6], &[2, 3]).unwrap();
    check(
        tensor.to_vec::<f64>(),
        "the tensor holds float32, not float64\n  help: convert it first, or ask for the type it holds",
    );
    check(
        tensor.item(),
        "a tensor with 6 elements has no single value\n  help: reduce it or select one element first",
    );
    check(tensor.size(2), "dimension 2 is out of range for a tensor with 2 dimensions\n  help: use -2 to 1");
    check(Tensor::scalar(1, DType::F32).size(0), "a tensor without dimensions has no sizes");
}

#[test]
fn values_of_the_wrong_kind_are_named() {
    check(Value::Int(3).into_tensor(), "expected a tensor, got an int");
    check(Scalar::Float(2.5).as_integer(), "expected an integer, got 2.5");
    check(Scalar::Complex(Complex64::new(1.0, -2.0)).as_integer(), "expected an integer, got 1-2j");
}
