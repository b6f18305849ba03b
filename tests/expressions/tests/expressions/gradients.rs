//! Derived gradients against differences: in both directions of the complex plane, of second order, and in forward
//! mode.

use opsmith::autograd::Options;
use opsmith::{DType, Tensor, Value};
use opsmith_runtime::op::{ArgKind, ElementType, OpDef};
use opsmith_runtime::{Complex64, Scalar};
use opsmith_testing::checks::{Call, forward_mode, gradient, second_order};

/// Numbers that are distant from each other, from zero, and from the thresholds of branches.
const NUMBERS: [(f64, f64); 10] = [
    (0.3, 0.8),
    (0.83, -0.41),
    (1.21, 0.37),
    (0.57, 0.92),
    (0.91, -0.73),
    (0.44, 0.61),
    (1.07, -0.19),
    (0.69, 0.53),
    (0.38, -0.88),
    (0.77, 0.29),
];

fn tensor(dtype: DType, first: usize) -> Tensor {
    let numbers: Vec<(f64, f64)> = (0..2).map(|index| NUMBERS[(first + index) % NUMBERS.len()]).collect();
    match dtype.is_complex() {
        true => {
            let numbers: Vec<Complex64> = numbers.iter().map(|(re, im)| Complex64::new(*re, *im)).collect();
            Tensor::from_slice(&numbers, &[2]).unwrap()
        }
        false => Tensor::from_slice(&numbers.iter().map(|(re, _)| *re).collect::<Vec<_>>(), &[2]).unwrap(),
    }
}

/// A call whose tensors are complex where a bit is set; the last bit is for its numbers.
fn call(op: &'static OpDef, complex: usize) -> Call {
    let dtype = |bit: usize| if complex & (1 << bit) != 0 { DType::C128 } else { DType::F64 };
    let args = op.schema.args.iter().zip(op.element_types).enumerate().map(|(index, (arg, element))| {
        match (arg.ty.kind, element) {
            (ArgKind::Tensor, ElementType::Real) => Value::Tensor(tensor(DType::F64, 3 * index)),
            (ArgKind::Tensor, _) => Value::Tensor(tensor(dtype(index), 3 * index)),
            (ArgKind::Scalar, _) if complex & 4 != 0 => {
                Value::Scalar(Scalar::Complex(Complex64::new(0.6, -0.7)))
            }
            (ArgKind::Scalar, _) => Value::Scalar(Scalar::Float(0.7)),
            // Odd: its half is not whole.
            (ArgKind::Int, _) => Value::Int(3),
            _ => Value::Float(0.9),
        }
    });
    Call { op, args: args.collect() }
}

/// The kinds of operands that an operator is called with.
fn cases(op: &OpDef) -> &'static [usize] {
    match op.schema.args.len() {
        1 | 2 if op.schema.args.iter().filter(|arg| arg.ty.kind == ArgKind::Tensor).count() == 1 => {
            &[0, 1, 4, 5]
        }
        1 | 2 => &[0, 1, 2, 3],
        _ => &[0, 1, 3, 4, 6],
    }
}

/// Pointwise operators, and compositions of such.
fn expressions() -> impl Iterator<Item = &'static OpDef> {
    let lacks = |op: &OpDef| op.name.starts_with("scale_norm") || LACKING.contains(&op.name);
    crate::LIBRARY.ops.iter().copied().filter(move |op| !lacks(op))
}

/// The operators with missing parts; `missing.rs` tests them.
const LACKING: [&str; 4] = ["no_word", "half_a_word", "composed", "stepped"];

/// The operators that need ordered numbers.
const ORDERED: [&str; 4] = ["larger", "smaller", "larger_number", "smaller_number"];

/// Operators with a number among real parts or absolute values of elements.
const AMONG_REALS: [&str; 3] = ["shifted_part", "larger_part", "above"];

fn failures(check: fn(&Call) -> Result<(), String>) -> Vec<String> {
    let mut failures = Vec::new();
    let mut checked = 0;
    for op in expressions() {
        for &complex in cases(op) {
            let call = call(op, complex);
            // One of them supports complex numbers only, others real ones.
            if op.name == "turned" && complex & 1 == 0 || ORDERED.contains(&op.name) && complex != 0 {
                continue;
            }
            // A number among real values must be real.
            if AMONG_REALS.contains(&op.name) && complex & 4 != 0 {
                let error = opsmith_testing::calls::call(op, &call.args).map(|_| ()).unwrap_err().to_string();
                assert!(
                    error.contains("`s` is 0.6-0.7j, ") && error.contains("cannot hold"),
                    "{}: {error}",
                    op.name
                );
                continue;
            }
            checked += 1;
            if let Err(why) = check(&call) {
                failures.push(format!("{} of case {complex}: {why}", op.name));
            }
        }
    }
    assert!(checked > 300, "{checked} calls");
    failures
}

#[track_caller]
fn assert_none(failures: Vec<String>) {
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn gradients_are_slopes() {
    assert_none(failures(gradient));
}

#[test]
fn second_gradients_are_slopes_of_gradients() {
    assert_none(failures(second_order));
}

#[test]
fn tangents_are_slopes() {
    assert_none(failures(forward_mode));
}

/// Every operator has a gradient of every tensor.
#[test]
fn none_goes_without() {
    for op in expressions().filter(|op| op.composite.is_none()) {
        let grad = op.grad.unwrap_or_else(|| panic!("{} has no gradient", op.name));
        for (index, arg) in
            op.schema.args.iter().enumerate().filter(|(_, arg)| arg.ty.kind == ArgKind::Tensor)
        {
            let found = grad.formulas.iter().any(|formula| formula.arguments.contains(&(index as u8)));
            assert!(found, "{} has no gradient of {}", op.name, arg.name);
        }
    }
}

/// The number of the report about this defect: at 0.3 + 0.8i.
#[test]
fn a_number_times_its_size() {
    let z = Tensor::from_slice(&[Complex64::new(0.3, 0.8)], &[1]).unwrap().requires_grad_(true).unwrap();
    let out = crate::times_size(&z).unwrap();
    let start = Tensor::from_slice(&[Complex64::new(1.0, 0.0)], &[1]).unwrap();
    out.backward_with(Some(&start), Options::default()).unwrap();
    let found = z.grad().unwrap().to_vec::<Complex64>().unwrap()[0];
    assert!((found - Complex64::new(0.9597, 0.2809)).norm() < 1e-4, "{found}");
}

/// A real size times a number is complex where the number is.
#[test]
fn a_size_times_a_complex_number() {
    let z = Tensor::from_slice(&[Complex64::new(3.0, 4.0)], &[1]).unwrap();
    let s = Complex64::new(0.0, 2.0);
    let out = crate::scaled_size(&z, Scalar::Complex(s)).unwrap();
    assert_eq!(out.to_vec::<Complex64>().unwrap(), [Complex64::new(3.0, 14.0)]);
    // A number with an imaginary part is not 1.
    let s = Complex64::new(1.0, 2.0);
    let out = crate::one_or_self(&z, Scalar::Complex(s)).unwrap();
    assert_eq!(out.to_vec::<Complex64>().unwrap(), [Complex64::new(-5.0, 10.0)]);
    let out = crate::shifted_part(&z, Scalar::Complex(Complex64::new(1.0, 0.0))).unwrap();
    assert_eq!(out.to_vec::<f64>().unwrap(), [4.0]);
}
