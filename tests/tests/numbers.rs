//! Number arguments: the behaviour of operators for numbers that the elements' dtype cannot hold.
//!
//! As in PyTorch, where `Scalar::to` and its checks decide: an error, but where numbers are promoted with the
//! elements (`x + 300` of uint8 wraps, as elements do) and where they are bounds.

use opsmith::{DType, LIBRARY, Scalar, Tensor, TensorOps, Value, call};
use opsmith_runtime::Complex64;
use opsmith_runtime::facts::NumberUse;

fn tensor(dtype: DType) -> Tensor {
    Tensor::of(&[1i64, 2, 100]).to_dtype(dtype).unwrap()
}

fn run(name: &str, args: &[Value], named: &[(&str, Value)]) -> Result<Vec<f64>, String> {
    let results = call(name, args, named).map_err(|error| error.to_string())?;
    let result = results[0].clone().into_tensor().unwrap();
    let result = result.to_dtype(DType::F64).map_err(|error| error.to_string())?;
    Ok(result.to_vec::<f64>().unwrap())
}

#[track_caller]
fn refused(name: &str, args: &[Value], named: &[(&str, Value)], parts: &[&str]) {
    let text = run(name, args, named).expect_err(name);
    parts.iter().for_each(|part| assert!(text.contains(part), "{name}: {part} in {text}"));
}

fn complex(re: f64, im: f64) -> Scalar {
    Scalar::Complex(Complex64::new(re, im))
}

/// A call by name: positional arguments, and those by name.
type NamedCall = (&'static str, Vec<Value>, Vec<(&'static str, Value)>);

/// Calls of which one number, the last argument, becomes elements.
fn made_of(number: impl Into<Scalar>, dtype: DType) -> Vec<NamedCall> {
    let number = number.into();
    let (x, mask) = (tensor(dtype), tensor(dtype).ne(1).unwrap());
    let at = || Value::from(Tensor::of(&[0i64]));
    let value = || Value::from(number);
    vec![
        ("full", vec![vec![2i64].into(), value()], vec![("dtype", dtype.into())]),
        ("full", vec![vec![0i64].into(), value()], vec![("dtype", dtype.into())]),
        ("full_like", vec![x.clone().into(), value()], vec![]),
        ("new_full", vec![x.clone().into(), vec![2i64].into(), value()], vec![]),
        ("scalar_tensor", vec![value()], vec![("dtype", dtype.into())]),
        ("fill.Scalar", vec![x.clone().into(), value()], vec![]),
        ("fill_.Scalar", vec![x.clone().into(), value()], vec![]),
        ("masked_fill.Scalar", vec![x.clone().into(), mask.clone().into(), value()], vec![]),
        ("masked_fill_.Scalar", vec![x.mul(1).unwrap().into(), mask.into(), value()], vec![]),
        ("scatter.value", vec![x.clone().into(), 0i64.into(), at(), value()], vec![]),
        ("constant_pad_nd", vec![x.clone().into(), vec![1i64, 0].into(), value()], vec![]),
        ("threshold", vec![x.into(), 0i64.into(), value()], vec![]),
    ]
}

#[test]
fn elements_are_not_made_of_numbers_that_their_dtype_cannot_hold() {
    let too_large: [(Scalar, DType, &str); 14] = [
        (300.into(), DType::U8, "300, which uint8 cannot hold"),
        ((-256).into(), DType::U8, "uint8 holds integers from 0 to 255"),
        (300.5.into(), DType::U8, "uint8 cannot hold"),
        (f64::INFINITY.into(), DType::U8, "uint8 cannot hold"),
        (f64::NAN.into(), DType::I64, "int64 cannot hold"),
        (1e19.into(), DType::I64, "int64 cannot hold"),
        ((-129).into(), DType::I8, "int8 holds integers from -128 to 127"),
        ((1i64 << 31).into(), DType::I32, "int32 cannot hold"),
        (complex(0.0, 2.0), DType::F32, "0+2j, which float32 cannot hold"),
        (complex(1.0, 2.0), DType::I64, "give a real number, or convert the tensor to a complex dtype"),
        (1e300.into(), DType::F32, "the largest number of float32 is"),
        (70000.0.into(), DType::F16, "float16 cannot hold"),
        (70000.into(), DType::F16, "float16 cannot hold"),
        (complex(1e300, 0.0), DType::C64, "complex64 cannot hold"),
    ];
    for (number, dtype, part) in too_large {
        for (name, args, named) in made_of(number, dtype) {
            if name == "threshold" && dtype.is_complex() {
                continue;
            }
            refused(name, &args, &named, &[part]);
        }
    }
}

#[test]
fn numbers_that_fit_are_rounded_and_negative_ones_wrap() {
    let fine: [(Scalar, DType, f64); 9] = [
        (255.into(), DType::U8, 255.0),
        ((-1).into(), DType::U8, 255.0),
        ((-255).into(), DType::U8, 1.0),
        (1.5.into(), DType::U8, 1.0),
        ((-128).into(), DType::I8, -128.0),
        (complex(3.0, 0.0), DType::F32, 3.0),
        (f64::INFINITY.into(), DType::F16, f64::INFINITY),
        (65504.0.into(), DType::F16, 65504.0),
        (true.into(), DType::U8, 1.0),
    ];
    for (number, dtype, expected) in fine {
        for (name, args, named) in made_of(number, dtype) {
            let result = run(name, &args, &named).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(result.is_empty() || result.contains(&expected), "{name} of {number:?}: {result:?}");
        }
    }
    // Every number is a truth value.
    for number in [300.into(), f64::NAN.into(), complex(0.0, 2.0)] {
        let args = [vec![1i64].into(), Value::from(number)];
        assert_eq!(run("full", &args, &[("dtype", DType::Bool.into())]).unwrap(), [1.0]);
    }
}

#[test]
fn bounds_may_lie_beyond_all_elements() {
    let x = || Value::from(Tensor::of(&[1i64, 2, 200]).to_dtype(DType::U8).unwrap());
    let small = || Value::from(Tensor::of(&[1i64, 2, -100]).to_dtype(DType::I8).unwrap());
    let clamp = |x: Value, low: Option<i64>, high: Option<i64>| {
        let bound = |bound: Option<i64>| bound.map_or(Value::None, |bound| Value::from(Scalar::from(bound)));
        run("clamp", &[x, bound(low), bound(high)], &[])
    };
    assert_eq!(clamp(x(), Some(-1), None).unwrap(), [1., 2., 200.]);
    assert_eq!(clamp(x(), Some(-300), Some(300)).unwrap(), [1., 2., 200.]);
    assert_eq!(clamp(x(), Some(-1), Some(100)).unwrap(), [1., 2., 100.]);
    assert_eq!(clamp(small(), Some(-300), Some(1)).unwrap(), [1., 1., -100.]);
    assert_eq!(clamp(small(), Some(0), Some(300)).unwrap(), [1., 2., 0.]);
    for (x, low, high, part) in [
        (x(), None, Some(-1), "`max` is -1, below all that uint8 holds"),
        (x(), Some(300), None, "`min` is 300, above all that uint8 holds"),
        (x(), Some(-5), Some(-3), "`max` is -3, below"),
        (small(), Some(300), Some(400), "`min` is 300, above"),
        (small(), None, Some(-300), "`max` is -300, below"),
    ] {
        let text = clamp(x, low, high).unwrap_err();
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(run("clamp_min", &[x(), (-1i64).into()], &[]).unwrap(), [1., 2., 200.]);
    assert_eq!(run("clamp_max", &[x(), 300i64.into()], &[]).unwrap(), [1., 2., 200.]);
    refused("clamp_max", &[x(), (-1i64).into()], &[], &["below all that uint8 holds"]);
    assert_eq!(run("hardtanh", &[x(), (-1i64).into(), 5i64.into()], &[]).unwrap(), [1., 2., 5.]);
    assert_eq!(run("hardtanh", &[x(), 5i64.into(), 300i64.into()], &[]).unwrap(), [5., 5., 200.]);
    refused("hardtanh", &[x(), (-1i64).into(), (-1i64).into()], &[], &["`max_val` is -1"]);
    // A float is promoted, as before.
    assert_eq!(run("clamp", &[x(), (-1.5).into()], &[]).unwrap(), [1., 2., 200.]);
    refused("clamp", &[tensor(DType::F32).into(), 1e300.into()], &[], &["float32 cannot hold"]);
}

#[test]
fn factors_are_numbers_that_elements_are_computed_with() {
    let x = |dtype| Value::from(tensor(dtype));
    let alpha = |number: Scalar| [("alpha", Value::from(number))];
    for name in ["add.Tensor", "sub.Tensor", "rsub.Tensor"] {
        let args = |dtype| [x(dtype), x(dtype)];
        refused(name, &args(DType::U8), &alpha(300.into()), &["`alpha` is 300, which uint8 cannot hold"]);
        refused(name, &args(DType::I64), &alpha(1.5.into()), &["elements of int64 are not computed with"]);
        refused(name, &args(DType::F32), &alpha(complex(0.0, 2.0)), &["0+2j, which float32 cannot hold"]);
        refused(name, &args(DType::F32), &alpha(complex(1.0, 0.0)), &["not computed with such numbers"]);
        run(name, &args(DType::F32), &alpha(2.5.into())).unwrap();
        run(name, &args(DType::C64), &alpha(2.5.into())).unwrap();
    }
    let add =
        |dtype, number: Scalar| run("addcmul", &[x(dtype), x(dtype), x(dtype)], &[("value", number.into())]);
    assert!(add(DType::F32, complex(0.0, 2.0)).unwrap_err().contains("`value` is 0+2j"));
    assert!(add(DType::U8, 300.into()).unwrap_err().contains("uint8 cannot hold"));
    // 16-bit floats are computed in 32 bits.
    assert_eq!(add(DType::F16, 70000.0.into()).unwrap(), [f64::INFINITY; 3]);
    for name in ["elu", "leaky_relu", "celu", "softplus", "threshold"] {
        let mut args = vec![x(DType::F32), complex(0.0, 2.0).into()];
        args.extend((name == "threshold").then(|| 1.0.into()));
        refused(name, &args, &[], &["0+2j, which float32 cannot hold"]);
    }
    // Numbers that are promoted wrap, as elements do.
    assert_eq!(run("add.Scalar", &[x(DType::U8), 300i64.into()], &[]).unwrap(), [45., 46., 144.]);
    refused("pow.Tensor_Scalar", &[x(DType::U8), 300i64.into()], &[], &["`exponent` is 300"]);
}

/// No operator converts a number silently: real elements reject an imaginary part, for any use of the number.
#[test]
fn no_operator_drops_an_imaginary_part() {
    let mut tried = 0;
    for op in LIBRARY.ops.iter().copied().filter(|op| op.kernels.is_some()) {
        let computed =
            op.numbers.iter().filter(|(_, how)| !matches!(how, NumberUse::Lower | NumberUse::Upper));
        for (index, _) in computed {
            for mut args in opsmith_testing::samples::samples(op, DType::F32).into_iter().take(1) {
                args[usize::from(*index)] = Value::Scalar(complex(0.5, 2.0));
                // One that is promoted makes the result complex.
                let Err(error) = opsmith_testing::calls::call(op, &args).map(|results| {
                    assert!(results.iter().all(|result| result.dtype().is_complex()), "{}", op.name);
                }) else {
                    continue;
                };
                let text = error.to_string();
                // A number that has a bound is compared before.
                assert!(text.contains("cannot hold") || text.contains("must be at"), "{}: {text}", op.name);
                tried += 1;
            }
        }
    }
    assert!(tried > 30, "{tried}");
}
