//! Printing: the same text as NumPy's.

mod support;

use opsmith_runtime::{Complex64, DType, Element, Scalar, Tensor, bf16, with_dtype};
use support::strided;

fn tensor_of<T: Element>(elements: impl Iterator<Item = T>, shape: &[i64]) -> Tensor {
    Tensor::from_slice(&elements.collect::<Vec<_>>(), shape).unwrap()
}

/// The tensor that a line of `data/print.txt` describes: `float32 2x2: 1.0 2.0 3.0 4.0`.
fn parse(line: &str) -> Tensor {
    let (kind, elements) = line.split_once(':').unwrap();
    let (dtype, shape) = kind.split_once(' ').unwrap();
    let shape: Vec<i64> = shape.split('x').filter_map(|size| size.parse().ok()).collect();
    let dtype = DType::from_name(dtype).unwrap();
    if elements.trim() == "range" {
        let count = shape.iter().product::<i64>();
        return with_dtype!(dtype, T => tensor_of((0..count).map(|k| T::from_scalar(k.into())), &shape));
    }
    let words = elements.split_whitespace();
    if dtype == DType::U64 {
        return tensor_of(words.map(|word| word.parse::<u64>().unwrap()), &shape);
    }
    let scalar = |word: &str| match word.split_once('|') {
        Some((re, im)) => Scalar::Complex(Complex64::new(re.parse().unwrap(), im.parse().unwrap())),
        None if dtype.is_float() => Scalar::Float(word.parse().unwrap()),
        None => Scalar::Int(word.parse().unwrap()),
    };
    with_dtype!(dtype, T => tensor_of(words.map(|word| T::from_scalar(scalar(word))), &shape))
}

#[test]
fn tensors_print_as_in_numpy() {
    let mut count = 0;
    for case in include_str!("data/print.txt").split("\n@ ").skip(1) {
        let (line, expected) = case.split_once('\n').unwrap();
        assert_eq!(parse(line).to_string(), expected.trim_end_matches('\n'), "{line}");
        count += 1;
    }
    assert!(count > 140, "only {count} cases");
}

#[test]
fn bfloat16_shows_the_digits_it_has() {
    let tensor = Tensor::of(&[bf16::from_f32(0.1), bf16::from_f32(-1.5), bf16::from_f32(100.0)]);
    assert_eq!(tensor.to_string(), "[  0.1,  -1.5, 100.0]");
    assert_eq!(Tensor::of(&[bf16::from_f32(1e30), bf16::ONE]).to_string(), "[1.e+30, 1.e+00]");
}

#[test]
fn a_view_prints_its_own_elements() {
    let tensor = strided(&[0, 1, 2, 3, 4, 5], &[3, 2], &[-1, 3], 2);
    assert_eq!(tensor.to_string(), "[[2, 5],\n [1, 4],\n [0, 3]]");
}

#[test]
fn debug_adds_what_is_not_in_the_elements() {
    let tensor = Tensor::from_slice(&[1.5f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    assert_eq!(
        format!("{tensor:?}"),
        "tensor([[1.5, 2.0],\n        [3.0, 4.0]], dtype=float32, shape=(2, 2))"
    );
    let empty = Tensor::from_slice(&[0i64; 0], &[2, 0]).unwrap();
    assert_eq!(format!("{empty:?}"), "tensor([], dtype=int64, shape=(2, 0))");
    let one_size = Tensor::from_slice(&[0i64; 0], &[0]).unwrap();
    assert_eq!(format!("{one_size:?}"), "tensor([], dtype=int64, shape=(0,))");
}
