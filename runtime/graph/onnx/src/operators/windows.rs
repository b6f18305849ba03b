//! Windows of signals, spectra, and grids of affine maps.
//!
//! In: calls. Out: results.

use opsmith_core::DType;
use opsmith_runtime::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::pointwise::to;
use crate::call::{Call, axis};
use crate::errors::unsupported;
use crate::libraries::run;
use crate::tensors;

/// A sum of cosines over a window: `Σ factor[k] * cos(2πk * place / period)`.
fn cosines(call: &Call<'_>, factors: &[f64]) -> Result<Tensor> {
    let size = call.number(0, "size")?.ok_or_else(|| Error::argument("input 0 is missing"))?;
    let dtype = tensors::dtype(call.int("output_datatype", 1)?)?;
    let period = if call.flag("periodic", true)? { size } else { size - 1 };
    let places = run!("arange", size; "dtype" => DType::F64)?;
    let mut sum = run!("zeros_like", &places)?;
    for (at, factor) in factors.iter().enumerate() {
        let angles = run!("mul.Scalar", &places, std::f64::consts::TAU * at as f64 / period as f64)?;
        sum = run!("add.Tensor", &sum, run!("mul.Scalar", run!("cos", &angles)?, *factor)?)?;
    }
    to(&sum, dtype)
}

pub(super) fn hann(call: &Call<'_>) -> Result<Tensor> {
    cosines(call, &[0.5, -0.5])
}

pub(super) fn hamming(call: &Call<'_>) -> Result<Tensor> {
    cosines(call, &[25.0 / 46.0, -21.0 / 46.0])
}

pub(super) fn blackman(call: &Call<'_>) -> Result<Tensor> {
    cosines(call, &[0.42, -0.5, 0.08])
}

/// Pairs in the last dimension, or single numbers, as complex numbers.
fn complex(x: &Tensor) -> Result<Tensor> {
    let part = |at: i64| run!("select.int", x, -1i64, at);
    let real = part(0)?;
    let imaginary = if x.size(-1)? == 2 { part(1)? } else { run!("zeros_like", &real)? };
    run!("complex", &real, &imaginary)
}

/// Complex numbers as pairs in a last dimension.
fn pairs(x: &Tensor) -> Result<Tensor> {
    run!("stack", vec![run!("real", x)?, run!("imag", x)?], -1i64)
}

pub(super) fn dft(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let length = call.number(1, "dft_length")?;
    // Before version 20, the dimension is an attribute.
    let given = match call.number(2, "axis")? {
        Some(given) => given,
        None => call.int("axis", if call.node.version < 20 { 1 } else { -2 })?,
    };
    let dim = axis(given, x.dim())?;
    let length = length.map_or(Value::None, Value::Int);
    let (onesided, inverse) = (call.flag("onesided", false)?, call.flag("inverse", false)?);
    let signal = complex(&x)?;
    match (inverse, onesided) {
        (true, true) => run!("unsqueeze", run!("fft_irfft", &signal, length, dim)?, -1i64),
        (true, false) => pairs(&run!("fft_ifft", &signal, length, dim)?),
        (false, true) => pairs(&run!("fft_rfft", run!("real", &signal)?, length, dim)?),
        (false, false) => pairs(&run!("fft_fft", &signal, length, dim)?),
    }
}

/// Spectra of parts of a signal.
pub(super) fn stft(call: &Call<'_>) -> Result<Tensor> {
    let signal = call.tensor(0)?;
    let step = call.number(1, "frame_step")?.ok_or_else(|| Error::argument("input 1 is missing"))?;
    let window = call.maybe(2)?;
    let length = match (call.number(3, "frame_length")?, &window) {
        (Some(length), _) => length,
        (None, Some(window)) => window.numel(),
        (None, None) => return Err(Error::argument("neither a window nor the length of frames is given")),
    };
    let real = signal.dim() == 2 || signal.size(-1)? == 1;
    let signal = if signal.dim() == 2 { signal } else { complex(&signal)? };
    let signal = if real && signal.dtype().is_float() {
        signal
    } else if real {
        run!("real", &signal)?
    } else {
        signal
    };
    let mut frames = run!("unfold", &signal, 1i64, length, step)?;
    if let Some(window) = window {
        frames = run!("mul.Tensor", &frames, &window)?;
    }
    match (real, call.flag("onesided", true)?) {
        (true, true) => pairs(&run!("fft_rfft", &frames, Value::None, -1i64)?),
        (false, true) => Err(unsupported("one side of the spectrum of complex numbers")),
        (true, false) => {
            let zeros = run!("zeros_like", &frames)?;
            pairs(&run!("fft_fft", run!("complex", &frames, &zeros)?, Value::None, -1i64)?)
        }
        (false, false) => pairs(&run!("fft_fft", &frames, Value::None, -1i64)?),
    }
}

/// Triangles over frequencies, whose middles are even on the scale of tones.
pub(super) fn mel_weights(call: &Call<'_>) -> Result<Tensor> {
    let number = |at: usize| -> Result<f64> {
        let found = call.given(at)?.floats("input")?;
        found.first().copied().ok_or_else(|| Error::argument(format!("input {at} has no element")))
    };
    let [bins, length, rate] = [number(0)? as usize, number(1)? as usize, number(2)? as usize];
    if bins > 1 << 16 || length > 1 << 20 {
        return Err(Error::value("there are too many bins or frequencies"));
    }
    let (low, high) = (number(3)?, number(4)?);
    let tone = |frequency: f64| 2595.0 * (1.0 + frequency / 700.0).log10();
    let (first, last) = (tone(low), tone(high));
    let step = (last - first) / (bins + 2) as f64;
    let edge = |at: usize| {
        let frequency = 700.0 * (10f64.powf((at as f64 * step + first) / 2595.0) - 1.0);
        ((length + 1) as f64 * frequency / rate.max(1) as f64).floor() as i64
    };
    let rows = length / 2 + 1;
    let mut weights = vec![0f32; rows * bins];
    for bin in 0..bins {
        let (lower, middle, upper) = (edge(bin), edge(bin + 1), edge(bin + 2));
        let mut set = |row: i64, value: f64| {
            if let Some(weight) = usize::try_from(row).ok().and_then(|row| weights.get_mut(row * bins + bin))
            {
                *weight = value as f32;
            }
        };
        match middle - lower {
            0 => set(middle, 1.0),
            width => (lower..=middle).for_each(|row| set(row, (row - lower) as f64 / width as f64)),
        }
        if upper > middle {
            (middle..upper).for_each(|row| set(row, (upper - row) as f64 / (upper - middle) as f64));
        }
    }
    let dtype = tensors::dtype(call.int("output_datatype", 1)?)?;
    to(&Tensor::from_slice(&weights, &[rows as i64, bins as i64])?, dtype)
}

/// The places of an image's elements after affine maps.
pub(super) fn affine_grid(call: &Call<'_>) -> Result<Tensor> {
    let theta = call.tensor(0)?;
    let sizes = call.given(1)?.ints("size")?;
    let [samples, _, space @ ..] = sizes.as_slice() else {
        return Err(Error::argument("`size` has fewer than 4 numbers"));
    };
    let corners = call.flag("align_corners", false)?;
    let count = space.len();
    if !(2..=3).contains(&count) {
        return Err(unsupported(format!("images of {count} dimensions")));
    }
    // The last dimension is the first of the map.
    let mut parts = Vec::new();
    for (dim, size) in space.iter().enumerate().rev() {
        let places = run!("arange", *size; "dtype" => theta.dtype())?;
        let (steps, shift) = if corners { ((size - 1).max(1), 0.0) } else { (*size, 0.5) };
        let unit = run!("mul.Scalar", run!("add.Scalar", &places, shift)?, 2.0 / steps as f64)?;
        let mut shape = vec![1i64; count];
        shape[dim] = *size;
        let along = run!("reshape", run!("add.Scalar", &unit, -1.0)?, shape)?;
        parts.push(run!("expand", &along, space.to_vec())?);
    }
    parts.push(run!("ones", space.to_vec(); "dtype" => theta.dtype())?);
    let places = run!("reshape", run!("stack", parts, -1i64)?, vec![1, -1, count as i64 + 1])?;
    let moved = run!("matmul", &places, run!("transpose.int", &theta, 1i64, 2i64)?)?;
    let mut shape = vec![*samples];
    shape.extend(space);
    shape.push(count as i64);
    run!("reshape", &moved, shape)
}
