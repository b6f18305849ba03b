//! Tensors of any dtype, shape and layout: strided, transposed, expanded beyond any memory, overlapping.

use opsmith::{DType, Tensor};
use opsmith_runtime::layout::checked_numel;

use super::Random;

const SIZES: [i64; 12] = [0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 7, 17];
/// Sizes of a loop in several threads.
const LARGE: [i64; 4] = [8193, 16411, 40009, 70001];
/// Sizes that only an expanded dimension can have.
const HUGE: [i64; 5] = [1 << 37, 1 << 40, 1 << 50, 1 << 58, i64::MAX];
/// Maximal number of elements of a tensor that a call may process one by one.
const MOST: i64 = 1 << 14;
const SPECIAL: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    1e-310,
    1e308,
    -1e308,
    9.3e18,
    -3.0,
    65504.0,
];
const SPECIAL_INTEGERS: [i64; 10] =
    [0, 0, 1, -1, 2, i64::MAX, i64::MIN, 1 << 40, -(1 << 31), u32::MAX as i64];

/// Any shape of few elements.
pub fn shape(random: &mut Random) -> Vec<i64> {
    let rank = random.one_of(&[0usize, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6]);
    let mut shape: Vec<i64> = Vec::new();
    for _ in 0..rank {
        let size = random.one_of(&SIZES);
        let fits = shape.iter().product::<i64>() * size <= MOST;
        shape.push(if fits { size } else { 1 });
    }
    shape
}

/// A tensor of any dtype, shape and layout.
pub fn tensor(random: &mut Random) -> Tensor {
    let dtype = random.one_of(&DType::ALL);
    let mut shape = shape(random);
    if random.once_in(12) {
        enlarge(random, &mut shape, &HUGE);
    } else if random.once_in(12) {
        enlarge(random, &mut shape, &LARGE);
    }
    laid_out(random, dtype, &shape)
}

/// Gives a dimension of a shape, or a new one, one of the sizes.
fn enlarge(random: &mut Random, shape: &mut Vec<i64>, sizes: &[i64]) {
    let size = random.one_of(sizes);
    if shape.is_empty() || random.once_in(4) {
        shape.insert(random.below(shape.len() + 1), size);
    } else {
        let at = random.below(shape.len());
        shape[at] = size;
    }
}

/// A tensor of a dtype and shape with any layout; dimensions too large for memory are expanded.
pub fn laid_out(random: &mut Random, dtype: DType, shape: &[i64]) -> Tensor {
    let numel = checked_numel(shape);
    let huge = !numel.is_ok_and(|numel| numel <= 1 << 20);
    let mut strides = dense(random, shape, huge);
    match random.below(6) {
        // Steps over elements.
        1 => strides.iter_mut().for_each(|stride| *stride *= 2),
        // Some dimensions expanded.
        2 => strides.iter_mut().for_each(|stride| *stride *= random.below(2) as i64),
        // Overlapping windows.
        3 => strides.iter_mut().for_each(|stride| *stride = (*stride).min(1 + random.below(2) as i64)),
        _ => {}
    }
    // Without elements, strides may be any number.
    let empty = shape.contains(&0);
    for (stride, &size) in strides.iter_mut().zip(shape) {
        if (size == 1 || empty && size == 2) && random.once_in(8) {
            *stride = random.one_of(&[i64::MAX, 1 << 62, 0, 7]);
        }
    }
    let offset = random.one_of(&[0, 0, 0, 1, 5]);
    let reach = |(size, stride): (&i64, &i64)| (size - 1).max(0).saturating_mul(*stride);
    let span = if empty { 0 } else { shape.iter().zip(&strides).map(reach).fold(0, i64::saturating_add) };
    let span = span.min(1 << 17);
    let base = filled(random, dtype, (offset + span + 1) as usize);
    opsmith::as_strided_with(&base, shape, &strides, opsmith::AsStridedOptions::new().storage_offset(offset))
        .unwrap_or(base)
}

/// Strides without gaps in any order of dimensions; those of huge dimensions are 0.
fn dense(random: &mut Random, shape: &[i64], huge: bool) -> Vec<i64> {
    let mut order: Vec<usize> = (0..shape.len()).collect();
    if random.once_in(3) {
        (1..order.len()).for_each(|at| order.swap(at, random.below(at + 1)));
    }
    let mut strides = vec![0; shape.len()];
    let mut step = 1i64;
    for &dim in order.iter().rev() {
        if huge && shape[dim] >= 1 << 20 {
            continue;
        }
        strides[dim] = step;
        step *= shape[dim].max(1);
    }
    strides
}

/// Elements of a dtype: small numbers that are often valid indices, ordinary ones, or special ones.
pub fn filled(random: &mut Random, dtype: DType, count: usize) -> Tensor {
    let kind = random.below(4);
    let values: Vec<f64> = (0..count)
        .map(|_| match kind {
            0 => random.below(3) as f64,
            1 => random.below(2000) as f64 / 500.0 - 2.0,
            2 => 0.05 + random.below(900) as f64 / 1000.0,
            _ => random.one_of(&SPECIAL),
        })
        .collect();
    let whole = |random: &mut Random| -> Vec<i64> {
        let special = |_: &f64| random.one_of(&SPECIAL_INTEGERS);
        values.iter().map(special).collect()
    };
    let floats = |values: &[f64]| Tensor::of(values);
    let base =
        if kind == 3 && !dtype.is_differentiable() { Tensor::of(&whole(random)) } else { floats(&values) };
    opsmith::to_dtype(&base, dtype).unwrap_or(base)
}

/// A mutation of a sample's tensor: of other dtype, layout or sizes, or with other elements.
pub fn mutated(random: &mut Random, tensor: &Tensor, others: &[Tensor]) -> Tensor {
    let mut shape = tensor.shape().to_vec();
    let mut dtype = tensor.dtype();
    match random.below(12) {
        0 | 1 => dtype = random.one_of(&DType::ALL),
        2 => enlarge(random, &mut shape, &HUGE),
        3 | 4 if !shape.is_empty() => {
            let at = random.below(shape.len());
            let large = random.once_in(6);
            shape[at] = random.one_of(if large { &LARGE[..] } else { &SIZES });
        }
        5 => shape.insert(random.below(shape.len() + 1), random.one_of(&[0, 1, 1, 2])),
        6 if !shape.is_empty() => {
            shape.remove(random.below(shape.len()));
        }
        7 if !others.is_empty() => return shared(random, others),
        8 => return self::tensor(random),
        9 => return relaid(random, tensor).unwrap_or_else(|| tensor.clone()),
        _ => {}
    }
    laid_out(random, dtype, &shape)
}

/// A tensor of the call again, or a view of it.
pub fn shared(random: &mut Random, others: &[Tensor]) -> Tensor {
    let other = &others[random.below(others.len())];
    match random.below(4) {
        0 => other.clone(),
        1 => other.detach(),
        2 => opsmith::transpose(other, 0, -1).unwrap_or_else(|_| other.clone()),
        _ => opsmith::slice(other).unwrap_or_else(|_| other.clone()),
    }
}

/// The same elements in another layout.
fn relaid(random: &mut Random, tensor: &Tensor) -> Option<Tensor> {
    let dim = random.below(tensor.dim().max(1)) as i64;
    let swapped = opsmith::transpose(tensor, 0, dim).ok()?;
    opsmith::transpose(&opsmith::contiguous(&swapped).ok()?, 0, dim).ok()
}
