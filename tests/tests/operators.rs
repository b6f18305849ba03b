//! Rust's operators between tensors and numbers: every symbol, every number, on both sides.

use opsmith::{DType, Result, Scalar, Tensor};
use opsmith_runtime::Complex64;

fn reals(result: Result<Tensor>) -> Vec<f64> {
    opsmith::to_dtype(&result.unwrap(), DType::F64).unwrap().to_vec().unwrap()
}

/// Each symbol with a number on the left of a tensor, which is borrowed, then taken.
macro_rules! on_the_left {
    ($number:expr, $tensor:expr, $($symbol:tt => $expected:expr),*) => {$(
        assert_eq!(reals($number $symbol &$tensor), $expected, "{}", stringify!($number $symbol &tensor));
        assert_eq!(reals($number $symbol $tensor.clone()), $expected, "{}", stringify!($number $symbol tensor));
    )*};
}

#[test]
fn numbers_stand_on_the_left() {
    let x = Tensor::of(&[2.0f64, -4.0]);
    on_the_left!(3.0, x, + => [5.0, -1.0], - => [1.0, 7.0], * => [6.0, -12.0], / => [1.5, -0.75], % => [1.0, 3.0]);
    on_the_left!(3, x, + => [5.0, -1.0], - => [1.0, 7.0], * => [6.0, -12.0], / => [1.5, -0.75], % => [1.0, 3.0]);
    on_the_left!(Scalar::from(3.0), x, + => [5.0, -1.0], - => [1.0, 7.0], * => [6.0, -12.0], / => [1.5, -0.75], % => [1.0, 3.0]);
    let n = Tensor::of(&[2i64, -4]);
    on_the_left!(3, n, + => [5.0, -1.0], - => [1.0, 7.0], * => [6.0, -12.0], / => [1.5, -0.75], % => [1.0, 3.0]);
    on_the_left!(3, n, & => [2.0, 0.0], | => [3.0, -1.0], ^ => [1.0, -1.0]);
}

#[test]
fn complex_numbers_stand_on_the_left() {
    let z = Complex64::new(1.0, 2.0);
    let x = Tensor::of(&[2.0f64]);
    let complex = |result: Result<Tensor>| {
        opsmith::to_dtype(&result.unwrap(), DType::C128).unwrap().to_vec::<Complex64>().unwrap()[0]
    };
    assert_eq!(complex(z + &x), z + 2.0);
    assert_eq!(complex(z - &x), z - 2.0);
    assert_eq!(complex(z * x.clone()), z * 2.0);
    assert_eq!(complex(z / &x), z / 2.0);
    assert_eq!(complex(&x / z), 2.0 / z);
}

/// The quotient is rounded once, as that of two tensors.
#[test]
fn a_number_is_divided_exactly() {
    let values: Vec<f64> = (1..200).map(f64::from).collect();
    let quotients: Vec<f64> = values.iter().map(|value| 7.0 / value).collect();
    assert_eq!(reals(7.0 / &Tensor::of(&values)), quotients);
}

#[test]
fn gradients_flow_through_a_divisor() {
    let x = Tensor::of(&[2.0f64, -4.0]).requires_grad_(true).unwrap();
    opsmith::sum(&(1.0 / &x).unwrap()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [-0.25, -0.0625]);
    let x = Tensor::of(&[2.0f64, -4.0]).requires_grad_(true).unwrap();
    opsmith::sum(&(7.0 % &x).unwrap()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [-3.0, 1.0]);
}

/// A formula needs one `?`: results beside tensors are operands, on both sides.
#[test]
fn results_are_operands() {
    let (a, b, c) = (Tensor::of(&[2.0f64, 3.0]), Tensor::of(&[5.0f64, 7.0]), Tensor::of(&[1.0f64, 2.0]));
    assert_eq!(reals(&a * &b + &c), [11.0, 23.0]);
    assert_eq!(reals(&c - &a * &b), [-9.0, -19.0]);
    assert_eq!(reals(&c + (&a + &b) * &a / &b), [3.8, 2.0 + 30.0 / 7.0]);
    assert_eq!(reals(c.clone() - &a * 2.0 + b.clone()), [2.0, 3.0]);
    let wrong = &a * &Tensor::of(&[1.0f64, 2.0, 3.0]) + &c;
    assert!(wrong.unwrap_err().to_string().starts_with("mul.Tensor: "));
    let wrong = &c + &a * &Tensor::of(&[1.0f64, 2.0, 3.0]);
    assert!(wrong.unwrap_err().to_string().starts_with("mul.Tensor: "));
}
