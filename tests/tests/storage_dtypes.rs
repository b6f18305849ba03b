//! Dtypes that only store: conversions as PyTorch recorded them, what works with them, and the errors of the rest.

use opsmith::autograd::no_grad;
use opsmith::{DType, ErrorKind, Result, Tensor, TensorOps, Value};
use opsmith_runtime::{DTypeSet, Element, Float8E4M3, Float8E5M2};

/// The words of a recorded file, by lines.
fn recorded(name: &str) -> Vec<Vec<u32>> {
    let path = format!("{}/data/float8/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("a recorded file");
    let number = |word: &str| u32::from_str_radix(word, 16).expect("hexadecimal digits");
    text.lines().map(|line| line.split(' ').map(number).collect()).collect()
}

fn singles(bits: impl IntoIterator<Item = u32>) -> Vec<f32> {
    bits.into_iter().map(f32::from_bits).collect()
}

fn bytes_agree<T: Element>(name: &str, bits: fn(T) -> u8) -> Result<()> {
    let pairs = recorded(name);
    let numbers = Tensor::of(&singles(pairs.iter().map(|pair| pair[0])));
    for dtype in [DType::F32, DType::F64] {
        let found = numbers.to_dtype(dtype)?.to_dtype(T::DTYPE)?.to_vec::<T>()?;
        for (pair, found) in pairs.iter().zip(found) {
            assert_eq!(u32::from(bits(found)), pair[1], "{:e} from {dtype}", f32::from_bits(pair[0]));
        }
    }
    Ok(())
}

fn numbers_agree<T: Element>(name: &str, number: fn(u8) -> T) -> Result<()> {
    let bytes: Vec<T> = (0..=255).map(number).collect();
    let found = Tensor::of(&bytes).to_dtype(DType::F32)?.to_vec::<f32>()?;
    for (byte, (found, expected)) in found.iter().zip(recorded(name)).enumerate() {
        let expected = f32::from_bits(expected[0]);
        let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
        assert!(same, "{byte:#x} is {found}, and {expected} in PyTorch");
    }
    Ok(())
}

#[test]
fn conversions_are_those_of_pytorch() -> Result<()> {
    bytes_agree("float8_e4m3fn", Float8E4M3::to_bits)?;
    bytes_agree("float8_e5m2", Float8E5M2::to_bits)?;
    numbers_agree("numbers_float8_e4m3fn", Float8E4M3::from_bits)?;
    numbers_agree("numbers_float8_e5m2", Float8E5M2::from_bits)
}

#[test]
fn a_number_of_double_precision_is_rounded_once() -> Result<()> {
    let above = Tensor::of(&[1.0625 + 2f64.powi(-45), -1.0625 - 2f64.powi(-45), 1.0625]);
    let found = above.to_dtype(DType::F8E4M3)?.to_dtype(DType::F32)?.to_vec::<f32>()?;
    assert_eq!(found, [1.125, -1.125, 1.0]);
    Ok(())
}

#[test]
fn elements_are_made_copied_viewed_and_printed() -> Result<()> {
    for dtype in [DType::F8E4M3, DType::F8E5M2] {
        let x = Tensor::of(&[0.5f32, -1.5, 2.0, 100.0, 0.1, 0.0]).reshape([2, 3])?.to_dtype(dtype)?;
        let wide = x.to_dtype(DType::F32)?;
        assert_eq!(
            x.t()?.contiguous()?.to_dtype(DType::F32)?.to_vec::<f32>()?,
            wide.t()?.contiguous()?.to_vec::<f32>()?
        );
        assert_eq!(x.select(0, 1)?.deep_clone()?.dtype(), dtype);
        assert!(x.equal(&x.deep_clone()?)?);
        assert_eq!(x.select(0, 0)?.select(0, 1)?.item()?.to_f64(), -1.5);
        let ints = x.to_dtype(DType::I64)?.to_vec::<i64>()?;
        assert_eq!(ints[..3], [0, -1, 2]);
        let halves = x.to_dtype(DType::BF16)?.to_dtype(dtype)?;
        assert!(x.equal(&halves)?);
        // With two bits 0.1 is 0.094, less than a thousandth of 96.
        let first = if dtype == DType::F8E5M2 { "[[ 5.0e-01, -1.5e+00," } else { "[[ 0.5, -1.5," };
        assert!(format!("{x}").starts_with(first), "{x}");
        let made = opsmith::call("full", &[Value::Ints(vec![2]), 0.3.into()], &[("dtype", dtype.into())])?;
        let [Value::Tensor(made)] = &made[..] else { panic!("one tensor") };
        assert_eq!(made.to_dtype(DType::F32)?.to_vec::<f32>()?, [0.3125, 0.3125]);
    }
    Ok(())
}

#[test]
fn arithmetic_is_an_error_that_names_the_cure() -> Result<()> {
    let x = Tensor::of(&[1.0f32, 2.0]).to_dtype(DType::F8E4M3)?;
    let one = Tensor::of(&[1.0f32]);
    for (error, text) in [
        (x.add(&x).unwrap_err(), "there is no CPU kernel for float8_e4m3fn"),
        (x.add(&one).unwrap_err(), "float8_e4m3fn and float32 have no common dtype"),
        (x.sum().unwrap_err(), "there is no CPU kernel for float8_e4m3fn"),
        (x.exp().unwrap_err(), "there is no CPU kernel for float8_e4m3fn"),
    ] {
        let message = error.to_string();
        assert!(message.contains(text), "{message}");
        assert!(message.contains("to(float32)"), "{message}");
    }
    Ok(())
}

#[test]
fn no_set_but_one_has_dtypes_that_only_store() {
    for (name, set) in DTypeSet::NAMED {
        assert_eq!(set.iter().any(DType::is_stored), name == "storable", "{name}");
    }
    assert_eq!(DTypeSet::STORABLE.iter().count(), DType::COUNT);
}

#[test]
fn a_gradient_is_not_lost_without_a_word() -> Result<()> {
    let x = Tensor::of(&[1.0f32]).requires_grad_(true)?;
    let error = x.to_dtype(DType::F8E5M2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Autograd);
    assert!(error.to_string().contains("would lose the gradient"), "{error}");
    assert_eq!(x.detach().to_dtype(DType::F8E5M2)?.dtype(), DType::F8E5M2);
    assert_eq!(no_grad(|| x.to_dtype(DType::F8E5M2))?.dtype(), DType::F8E5M2);
    assert!(x.detach().to_dtype(DType::F8E5M2)?.requires_grad_(true).is_err());
    Ok(())
}

#[test]
fn a_scaled_product_is_that_of_pytorch() -> Result<()> {
    let [left, right, scale_a, scale_b, bias, expected] = &recorded("scaled_mm")[..] else {
        panic!("six lines were recorded")
    };
    let matrix = |bytes: &[u32], sizes: &[i64]| {
        let elements: Vec<Float8E4M3> = bytes.iter().map(|byte| Float8E4M3::from_bits(*byte as u8)).collect();
        Tensor::from_slice(&elements, sizes)
    };
    let row = |bits: &[u32]| Tensor::of(&singles(bits.iter().copied()));
    let arguments =
        [matrix(left, &[4, 16])?, matrix(right, &[16, 16])?, row(scale_a), row(scale_b), row(bias)];
    let [left, right, scale_a, scale_b, bias] = arguments.each_ref().map(Into::into);
    let named = [("out_dtype", DType::F32.into())];
    let found = opsmith::call("_scaled_mm", &[left, right, scale_a, scale_b, bias], &named)?;
    let [Value::Tensor(found)] = &found[..] else { panic!("one tensor") };
    let expected = singles(expected.iter().copied());
    let largest = expected.iter().fold(0.0f32, |most, number| most.max(number.abs()));
    for (found, expected) in found.to_vec::<f32>()?.iter().zip(&expected) {
        assert!((found - expected).abs() <= 1e-5 * largest, "{found} instead of {expected}");
    }
    Ok(())
}
