//! Tensors on the command line: `ones:f64:4x5`, `@data.npy`.

use anyhow::{Context, Result, bail};
use opsmith_runtime::random::{Generator, Normal};
use opsmith_runtime::{DType, Element, Scalar, Tensor, with_dtype};

/// Parses a tensor.
pub fn parse(text: &str) -> Result<Tensor> {
    if let Some(path) = text.strip_prefix('@') {
        return Ok(Tensor::load_npy(path)?);
    }
    let (kind, rest) =
        text.split_once(':').with_context(|| format!("`{text}` is no input: write ones:4x5 or @FILE.npy"))?;
    let (dtype, shape) = dtype_and_shape(rest)?;
    let dtype = dtype.unwrap_or(DType::F32);
    let shape = shape.with_context(|| format!("`{text}` has no shape: write {kind}:{rest}:4x5"))?;
    let count = count(&shape)?;
    let elements: Vec<f64> = match kind {
        "ones" => vec![1.0; count],
        "zeros" => vec![0.0; count],
        "arange" => (0..count).map(|index| index as f64).collect(),
        "randn" => {
            let mut elements = vec![0.0; count];
            Generator::new(0).fill(&Normal::<f64>::new(), &mut elements);
            elements
        }
        other => bail!("there is no input `{other}`; there are ones, zeros, randn, arange and @FILE.npy"),
    };
    Ok(with_dtype!(dtype, T => {
        let elements: Vec<T> = elements.into_iter().map(|element| T::from_scalar(Scalar::Float(element))).collect();
        Tensor::from_slice(&elements, &shape)
    })?)
}

/// Number of elements of a shape; an error if no memory could hold them.
fn count(shape: &[i64]) -> Result<usize> {
    let count = shape.iter().try_fold(1i64, |count, size| count.checked_mul(*size));
    let count = count.filter(|count| (0..1 << 34).contains(count));
    Ok(count.context("the shape has too many elements")? as usize)
}

/// `f64:4x5`, `4x5` or `f64`.
pub fn dtype_and_shape(text: &str) -> Result<(Option<DType>, Option<Vec<i64>>)> {
    if let Some((dtype, shape)) = text.split_once(':') {
        return Ok((Some(self::dtype(dtype)?), Some(self::shape(shape)?)));
    }
    match self::dtype(text) {
        Ok(dtype) => Ok((Some(dtype), None)),
        Err(_) => Ok((None, Some(self::shape(text)?))),
    }
}

/// A dtype by its name or abbreviation: `f32`, `i64`, `bf16`.
fn dtype(text: &str) -> Result<DType> {
    const SHORT: [(&str, &str); 4] = [("bf", "bfloat"), ("f", "float"), ("i", "int"), ("u", "uint")];
    let long = || {
        let (short, long) =
            SHORT.iter().find(|(short, _)| text.strip_prefix(short).is_some_and(is_number))?;
        DType::from_name(&text.replacen(short, long, 1))
    };
    let found = DType::from_name(text).or_else(long);
    found.with_context(|| {
        let names: Vec<&str> = DType::ALL.into_iter().map(DType::name).collect();
        format!("`{text}` is no dtype; there are {}", names.join(", "))
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn shape(text: &str) -> Result<Vec<i64>> {
    if matches!(text, "" | "()") {
        return Ok(Vec::new());
    }
    let size = |part: &str| {
        let size = part.parse::<i64>().ok().filter(|size| *size >= 0);
        size.with_context(|| format!("`{text}` is no shape: write sizes with x between, as in 4x5"))
    };
    text.split('x').map(size).collect()
}
