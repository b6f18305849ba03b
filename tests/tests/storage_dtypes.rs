//! Dtypes that only store: conversions as PyTorch recorded them, what works with them, and the errors of the rest.

use opsmith::autograd::no_grad;
use opsmith::{DType, ErrorKind, MmInt4Options, Result, Tensor, TensorOps, Value};
use opsmith_graph::{Graph, InputSpec};
use opsmith_runtime::{DTypeSet, Element, Float8E4M3, Float8E5M2, Int4, UInt4};

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

#[test]
fn integers_of_four_bits_are_stored_and_converted() -> Result<()> {
    let wide = Tensor::of(&[-9i64, -8, -1, 0, 7, 8, 15, 16, i64::MAX, 1 << 40]);
    let signed = wide.to_dtype(DType::I4)?;
    let unsigned = wide.to_dtype(DType::U4)?;
    assert_eq!(signed.to_dtype(DType::I64)?.to_vec::<i64>()?, [7, -8, -1, 0, 7, -8, -1, 0, -1, 0]);
    assert_eq!(unsigned.to_dtype(DType::I16)?.to_vec::<i16>()?, [7, 8, 15, 0, 7, 8, 15, 0, 15, 0]);
    assert_eq!(signed.to_dtype(DType::U4)?.to_vec::<UInt4>()?, unsigned.to_vec::<UInt4>()?);
    let floats = Tensor::of(&[-1.9f32, 7.6, 1e10, f32::NAN]);
    assert_eq!(floats.to_dtype(DType::I4)?.to_dtype(DType::F32)?.to_vec::<f32>()?, [-1.0, 7.0, 0.0, 0.0]);
    assert_eq!(
        floats.to_dtype(DType::I4)?.to_dtype(DType::BF16)?.to_dtype(DType::Bool)?.to_vec::<bool>()?,
        [true, true, false, false]
    );
    // A byte from elsewhere counts by its low half.
    let bytes = Tensor::of(&[0x8fu8, 0xf1].map(Int4::from_bits));
    assert_eq!(bytes.to_dtype(DType::I8)?.to_vec::<i8>()?, [-1, 1]);
    assert_eq!(format!("{bytes}"), "[-1,  1]");
    Ok(())
}

#[test]
fn integers_of_four_bits_are_made_copied_and_viewed() -> Result<()> {
    let x = Tensor::of(&[1i32, -2, 3, 4, 5, -6]).reshape([2, 3])?.to_dtype(DType::I4)?;
    let wide = x.to_dtype(DType::I32)?;
    let turned = x.t()?.contiguous()?;
    assert_eq!(turned.to_dtype(DType::I32)?.to_vec::<i32>()?, wide.t()?.contiguous()?.to_vec::<i32>()?);
    assert!(x.equal(&x.deep_clone()?)?);
    assert_eq!(x.select(0, 0)?.select(0, 1)?.item()?, (-2i64).into());
    let made = opsmith::call("full", &[Value::Ints(vec![2]), 7.into()], &[("dtype", DType::U4.into())])?;
    let [Value::Tensor(made)] = &made[..] else { panic!("one tensor") };
    assert_eq!(made.to_dtype(DType::I64)?.to_vec::<i64>()?, [7, 7]);
    for (error, text) in [
        (x.add(&x).unwrap_err(), "there is no CPU kernel for int4"),
        (x.add(&wide).unwrap_err(), "int4 and int32 have no common dtype"),
    ] {
        let message = error.to_string();
        assert!(message.contains(text) && message.contains("to(int8)"), "{message}");
    }
    Ok(())
}

#[test]
fn a_saved_graph_has_constants_of_four_bits() -> Result<()> {
    let weight = Tensor::of(&[-8i64, -1, 0, 7]).to_dtype(DType::I4)?;
    let scaled = |x: &[Tensor]| &weight.to_dtype(DType::F32)? * &x[0];
    let graph = Graph::trace(scaled, [InputSpec::new(DType::F32, [4.into()])])?;
    let folder = std::env::temp_dir().join(format!("opsmith-int4-{}", std::process::id()));
    graph.save(&folder)?;
    let loaded = Graph::load(&folder);
    std::fs::remove_dir_all(&folder).map_err(|error| opsmith::Error::io(error.to_string()))?;
    let found = loaded?.run(&[Tensor::of(&[1.0f32, 2.0, 3.0, 0.5])])?;
    assert_eq!(found[0].to_vec::<f32>()?, [-8.0, -2.0, 0.0, 3.5]);
    Ok(())
}

#[test]
fn integers_of_four_bits_are_packed_in_pairs() -> Result<()> {
    let numbers: Vec<i64> = (0..3 * 8).map(|at| (at * 7 + 3) % 16 - 8).collect();
    let q = Tensor::from_slice(&numbers, &[3, 8])?;
    let packed = q.to_dtype(DType::I4)?.pack_int4()?;
    assert_eq!((packed.dtype(), packed.shape()), (DType::U8, &[3, 4][..]));
    let first = packed.to_vec::<u8>()?[0];
    assert_eq!((first & 15, first >> 4), (numbers[0] as u8 & 15, numbers[1] as u8 & 15));
    assert_eq!(packed.unpack_int4()?.to_dtype(DType::I64)?.to_vec::<i64>()?, numbers);

    Ok(())
}

/// `n` weights of `length` numbers of a row in `groups`: the numbers, scales and zeros.
fn weights(n: usize, length: usize, groups: usize, lowest: i64) -> Result<[Tensor; 3]> {
    let spread = |count: usize, step: usize, of: usize| (0..count).map(move |at| (at * step + 3) % of);
    let numbers: Vec<i64> = spread(n * length, 7, 16).map(|number| number as i64 + lowest).collect();
    let reals =
        |step: usize| spread(n * groups, step, 11).map(|at| at as f64 * 0.3 - 1.2).collect::<Vec<_>>();
    let sizes = [n as i64, groups as i64];
    Ok([
        Tensor::from_slice(&numbers, &[n as i64, length as i64])?,
        Tensor::from_slice(&reals(5), &sizes)?,
        Tensor::from_slice(&reals(3), &sizes)?,
    ])
}

#[test]
fn a_product_with_packed_weights_is_that_of_their_numbers() -> Result<()> {
    // Few rows and many, a group of an odd number of neighbours, more rows of weights than are unpacked at a time.
    for (rows, n, length, groups) in
        [(1, 3, 8, 2), (3, 70, 32, 1), (2, 5, 18, 6), (9, 5, 18, 2), (33, 130, 64, 2), (2, 3, 0, 1)]
    {
        for (dtype, lowest) in [(DType::I4, -8), (DType::U4, 0)] {
            let [q, scales, zeros] = weights(n, length, groups, lowest)?;
            let packed = q.to_dtype(dtype)?.pack_int4()?;
            let x: Vec<f64> = (0..rows * length).map(|at| ((at * 13) % 29) as f64 * 0.1 - 1.4).collect();
            let x = Tensor::from_slice(&x, &[rows as i64, length as i64])?;
            let grouped =
                q.to_dtype(DType::F64)?.reshape([n as i64, groups as i64, (length / groups) as i64])?;
            let whole = (&grouped - &zeros.unsqueeze(-1)?)?;
            let weight = (&whole * &scales.unsqueeze(-1)?)?.reshape([n as i64, length as i64])?;
            let expected = x.matmul(&weight.t()?)?.to_vec::<f64>()?;
            for (compute, tolerance) in [(DType::F64, 1e-11), (DType::F32, 1e-4), (DType::BF16, 0.03)] {
                let [x, scales, zeros] = [&x, &scales, &zeros].map(|one| one.to_dtype(compute));
                let options = MmInt4Options::new().zeros(&zeros?).dtype(dtype);
                let found = x?.mm_int4_with(&packed, &scales?, options)?;
                assert_eq!((found.dtype(), found.shape()), (compute, &[rows as i64, n as i64][..]));
                let largest = expected.iter().fold(1.0f64, |most, number| most.max(number.abs()));
                for (found, expected) in found.to_dtype(DType::F64)?.to_vec::<f64>()?.iter().zip(&expected) {
                    assert!(
                        (found - expected).abs() <= tolerance * largest,
                        "{rows} {n} {length} {dtype} {compute}"
                    );
                }
            }
        }
    }
    Ok(())
}

#[test]
fn gradients_of_packed_products_are_those_of_their_numbers() -> Result<()> {
    let [q, scales, zeros] = weights(3, 8, 2, -8)?;
    let packed = q.to_dtype(DType::I4)?.pack_int4()?;
    let tracked = || -> Result<[Tensor; 3]> {
        let x = Tensor::of(&[0.5, -1.0, 2.0, 0.1, 3.0, -0.7, 1.1, 0.9]).reshape([1, 8])?;
        Ok([
            x.requires_grad_(true)?,
            scales.deep_clone()?.requires_grad_(true)?,
            zeros.deep_clone()?.requires_grad_(true)?,
        ])
    };
    let [x, s, z] = tracked()?;
    x.mm_int4_with(&packed, &s, MmInt4Options::new().zeros(&z))?.sum()?.backward()?;
    let [other_x, other_s, other_z] = tracked()?;
    let grouped = (&q.to_dtype(DType::F64)?.reshape([3, 2, 4])? - &other_z.unsqueeze(-1)?)?;
    let weight = (&grouped * &other_s.unsqueeze(-1)?)?.reshape([3, 8])?;
    other_x.matmul(&weight.t()?)?.sum()?.backward()?;
    for (found, expected) in [(x, other_x), (s, other_s), (z, other_z)] {
        let [found, expected] = [found, expected].map(|one| one.grad().expect("a gradient"));
        for (found, expected) in found.to_vec::<f64>()?.iter().zip(expected.to_vec::<f64>()?) {
            assert!((found - expected).abs() < 1e-12);
        }
    }
    Ok(())
}
