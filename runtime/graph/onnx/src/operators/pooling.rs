//! Pooling over 1 to 3 dimensions.
//!
//! In: calls. Out: results.

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::all;
use super::convolution::{Windows, space};
use crate::call::Call;
use crate::errors::unsupported;
use crate::libraries::{run, tensors};
use crate::values::Datum;

fn windows(call: &Call<'_>, x: &Tensor) -> Result<Windows> {
    let kernel = call
        .ints("kernel_shape")?
        .ok_or_else(|| Error::argument("the attribute `kernel_shape` is missing"))?;
    Windows::of(call, &space(x)?, kernel)
}

/// Whether the library's operators know the borders: alike on both sides, at most half a window.
fn is_plain(windows: &Windows) -> bool {
    windows.is_even() && windows.before.iter().zip(&windows.kernel).all(|(pad, kernel)| pad * 2 <= *kernel)
}

pub(super) fn max_pool(call: &Call<'_>) -> Result<Vec<Datum>> {
    let x = call.tensor(0)?;
    let windows = windows(call, &x)?;
    let ceil = call.flag("ceil_mode", false)?;
    let sizes = space(&x)?;
    let count = sizes.len();
    let (padded, pads) = match is_plain(&windows) {
        true => (x.clone(), windows.before.clone()),
        false => (windows.padded(&x, f64::NEG_INFINITY)?, vec![0; count]),
    };
    if call.wants(1) && (!is_plain(&windows) || call.int("storage_order", 0)? != 0) {
        return Err(unsupported("places of largest elements with such `pads` or `storage_order`"));
    }
    let name = ["max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices"][count - 1];
    let Windows { kernel, strides, dilations, .. } = windows;
    let args = [(&padded).into(), kernel.into(), strides.into(), pads.into(), dilations.into(), ceil.into()];
    if !call.wants(1) {
        return Ok(all(tensors(name, &args, &[])?.into_iter().take(1)));
    }
    let mut results = tensors(name, &args, &[])?;
    // Places are counted in the whole input, not in a channel.
    let (planes, plane) = (x.shape()[0] * x.shape()[1], sizes.iter().product::<i64>());
    let mut shape = vec![x.shape()[0], x.shape()[1]];
    shape.extend(vec![1; count]);
    let first = run!("reshape", run!("mul.Scalar", run!("arange", planes)?, plane)?, shape)?;
    results[1] = run!("add.Tensor", &results[1], &first)?;
    Ok(all(results))
}

/// Elements at their places in larger planes of zeros.
pub(super) fn max_unpool(call: &Call<'_>) -> Result<Tensor> {
    let (x, places) = (call.tensor(0)?, call.tensor(1)?);
    let sizes = space(&x)?;
    let windows = windows(call, &x)?;
    let mut shape = x.shape()[..2].to_vec();
    for (dim, size) in sizes.iter().enumerate() {
        let border = windows.before[dim] + windows.after[dim];
        shape.push((size - 1) * windows.strides[dim] + windows.kernel[dim] - border);
    }
    // Places are counted in the whole result.
    let all = run!("zeros", vec![shape.iter().product::<i64>()]; "dtype" => x.dtype())?;
    let flat = |tensor: &Tensor| run!("reshape", tensor, vec![-1i64]);
    let found = run!("reshape", run!("scatter.src", &all, 0i64, flat(&places)?, flat(&x)?)?, shape.clone())?;
    match call.numbers(2, "output_shape")? {
        None => Ok(found),
        Some(wanted) if wanted.len() == shape.len() => {
            let more = wanted.iter().zip(&shape).rev().flat_map(|(wanted, size)| [0, wanted - size]);
            run!("constant_pad_nd", &found, more.collect::<Vec<i64>>(), 0i64)
        }
        Some(wanted) => Err(Error::shape(format!(
            "`output_shape` has {} numbers, and the result {} dimensions",
            wanted.len(),
            shape.len()
        ))),
    }
}

fn average(
    x: &Tensor,
    windows: &Windows,
    pads: Vec<i64>,
    ceil: bool,
    counts_borders: bool,
) -> Result<Tensor> {
    let name = ["avg_pool1d", "avg_pool2d", "avg_pool3d"][windows.kernel.len() - 1];
    run!(name, x, windows.kernel.clone(), windows.strides.clone(), pads, ceil, counts_borders)
}

/// The means of windows.
fn averages(x: &Tensor, windows: &Windows, ceil: bool, counts_borders: bool) -> Result<Tensor> {
    let none = vec![0; windows.kernel.len()];
    if windows.dilations.iter().any(|dilation| *dilation != 1) {
        return dilated(x, windows, ceil, counts_borders);
    }
    if is_plain(windows) {
        return average(x, windows, windows.before.clone(), ceil, counts_borders);
    }
    let sums = average(&windows.padded(x, 0.0)?, windows, none.clone(), ceil, true)?;
    if counts_borders {
        return Ok(sums);
    }
    let ones = windows.padded(&run!("ones_like", x)?, 0.0)?;
    run!("div.Tensor", &sums, average(&ones, windows, none, ceil, true)?)
}

/// Means of windows with gaps, as convolutions of single channels with ones.
fn dilated(x: &Tensor, windows: &Windows, ceil: bool, counts_borders: bool) -> Result<Tensor> {
    let mut windows = Windows {
        after: windows.after.clone(),
        before: windows.before.clone(),
        kernel: windows.kernel.clone(),
        strides: windows.strides.clone(),
        dilations: windows.dilations.clone(),
    };
    let sizes = space(x)?;
    let mut more = vec![0i64; sizes.len()];
    for (dim, size) in sizes.iter().enumerate().filter(|_| ceil) {
        let span = (windows.kernel[dim] - 1) * windows.dilations[dim] + 1;
        let room = size + windows.before[dim] + windows.after[dim] - span;
        let places = (room + windows.strides[dim] - 1) / windows.strides[dim];
        // A last window that begins behind the input does not count.
        let begins_behind = places * windows.strides[dim] >= size + windows.before[dim];
        let places = if begins_behind { places - 1 } else { places };
        more[dim] = (places * windows.strides[dim] - room).max(0);
    }
    let ones = run!("ones_like", x)?;
    let weights = if counts_borders { windows.padded(&ones, 1.0)? } else { windows.padded(&ones, 0.0)? };
    let padded = windows.padded(x, 0.0)?;
    (windows.before, windows.after) = (vec![0; sizes.len()], more);
    let (padded, weights) = (windows.padded(&padded, 0.0)?, windows.padded(&weights, 0.0)?);
    let summed = |tensor: &Tensor| {
        let channels = tensor.shape()[1];
        let mut shape = vec![channels, 1];
        shape.extend(&windows.kernel);
        let kernel = run!("ones", shape; "dtype" => tensor.dtype())?;
        let name = ["conv1d", "conv2d", "conv3d"][sizes.len() - 1];
        let none = opsmith_runtime::Value::None;
        run!(
            name,
            tensor,
            &kernel,
            none,
            windows.strides.clone(),
            vec![0i64; sizes.len()],
            windows.dilations.clone(),
            channels
        )
    };
    run!("div.Tensor", summed(&padded)?, summed(&weights)?)
}

pub(super) fn average_pool(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let (ceil, borders) = (call.flag("ceil_mode", false)?, call.flag("count_include_pad", false)?);
    averages(&x, &windows(call, &x)?, ceil, borders)
}

/// The norms of windows.
pub(super) fn lp_pool(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let power = call.int("p", 2)? as f64;
    let windows = windows(call, &x)?;
    let powers = run!("pow.Tensor_Scalar", run!("abs", &x)?, power)?;
    let means = averages(&powers, &windows, call.flag("ceil_mode", false)?, true)?;
    let count = windows.kernel.iter().product::<i64>();
    run!("pow.Tensor_Scalar", run!("mul.Scalar", &means, count)?, 1.0 / power)
}

fn space_dims(x: &Tensor) -> Vec<i64> {
    (2..x.dim() as i64).collect()
}

pub(super) fn global_average(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    run!("mean.dim", &x, space_dims(&x), true)
}

pub(super) fn global_max(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    run!("amax", &x, space_dims(&x), true)
}

pub(super) fn global_lp(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    run!("linalg_vector_norm", &x, call.int("p", 2)?, space_dims(&x), true)
}
