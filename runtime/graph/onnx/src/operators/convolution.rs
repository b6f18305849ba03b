//! Convolutions over 1 to 3 dimensions, and the geometry of their windows.
//!
//! In: calls. Out: results. Borders may differ between the sides of a dimension, which the library's operators do not know:
//! then the input is padded first.

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use crate::call::Call;
use crate::errors::unsupported;
use crate::libraries::run;

/// Windows over the last dimensions of a tensor.
pub(super) struct Windows {
    pub kernel: Vec<i64>,
    pub strides: Vec<i64>,
    pub dilations: Vec<i64>,
    pub before: Vec<i64>,
    pub after: Vec<i64>,
}

impl Windows {
    /// Those of a call, over dimensions of the given sizes.
    ///
    /// # Errors
    /// If attributes have other lengths.
    pub fn of(call: &Call<'_>, sizes: &[i64], kernel: Vec<i64>) -> Result<Windows> {
        let count = sizes.len();
        let list = |name: &str, default: i64| -> Result<Vec<i64>> {
            let list = call.ints(name)?.unwrap_or_else(|| vec![default; count]);
            match list.len() == count {
                true => Ok(list),
                false => Err(Error::argument(format!(
                    "`{name}` has {} numbers, and {count} are needed",
                    list.len()
                ))),
            }
        };
        if kernel.len() != count {
            let text = format!("the window has {} dimensions, and the input {count} of space", kernel.len());
            return Err(Error::shape(text));
        }
        let (strides, dilations) = (list("strides", 1)?, list("dilations", 1)?);
        if let Some(number) = strides.iter().chain(&dilations).chain(&kernel).find(|number| **number < 1) {
            return Err(Error::value(format!("a window, stride or dilation is {number}")));
        }
        let pads = call.ints("pads")?.unwrap_or_else(|| vec![0; 2 * count]);
        if pads.len() != 2 * count {
            let text = format!("`pads` has {} numbers, and {} are needed", pads.len(), 2 * count);
            return Err(Error::argument(text));
        }
        let (mut before, mut after) = (pads[..count].to_vec(), pads[count..].to_vec());
        let upper = match call.text("auto_pad", "NOTSET")?.as_str() {
            "NOTSET" => None,
            "VALID" => {
                (before, after) = (vec![0; count], vec![0; count]);
                None
            }
            "SAME_UPPER" => Some(true),
            "SAME_LOWER" => Some(false),
            other => return Err(unsupported(format!("`auto_pad` = {other:?}"))),
        };
        if let Some(upper) = upper {
            for dim in 0..count {
                let span = (kernel[dim] - 1) * dilations[dim] + 1;
                let places = (sizes[dim] + strides[dim] - 1) / strides[dim];
                let total = ((places - 1) * strides[dim] + span - sizes[dim]).max(0);
                let less = total / 2;
                (before[dim], after[dim]) = if upper { (less, total - less) } else { (total - less, less) };
            }
        }
        Ok(Windows { kernel, strides, dilations, before, after })
    }

    pub fn is_even(&self) -> bool {
        self.before == self.after && self.before.iter().all(|pad| *pad >= 0)
    }

    /// The tensor with borders of a value, for windows without borders of their own.
    ///
    /// # Errors
    /// Errors of the operator.
    pub fn padded(&self, x: &Tensor, value: f64) -> Result<Tensor> {
        let each = self.before.iter().zip(&self.after).rev();
        let flat: Vec<i64> = each.flat_map(|(before, after)| [*before, *after]).collect();
        if flat.iter().all(|pad| *pad == 0) {
            return Ok(x.clone());
        }
        match x.dtype().is_float() {
            true => run!("constant_pad_nd", x, flat, value),
            false => run!("constant_pad_nd", x, flat, value as i64),
        }
    }
}

/// The sizes of the dimensions after samples and channels.
///
/// # Errors
/// If there are none, or more than 3.
pub(super) fn space(x: &Tensor) -> Result<Vec<i64>> {
    match x.shape() {
        [_, _, space @ ..] if (1..=3).contains(&space.len()) => Ok(space.to_vec()),
        shape => Err(unsupported(format!("an input of {} dimensions", shape.len()))
            .with_help("samples and channels are followed by 1 to 3 dimensions")),
    }
}

pub(super) fn conv(call: &Call<'_>) -> Result<Tensor> {
    convolved(call, &call.tensor(0)?, &call.tensor(1)?, call.maybe(2)?)
}

/// A convolution with the attributes of a call.
///
/// # Errors
/// Errors of the attributes and the operator.
pub(super) fn convolved(
    call: &Call<'_>,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<Tensor>,
) -> Result<Tensor> {
    let sizes = space(x)?;
    let windows = Windows::of(call, &sizes, weight.shape().get(2..).unwrap_or_default().to_vec())?;
    let name = ["conv1d", "conv2d", "conv3d"][sizes.len() - 1];
    let (x, pads) = match windows.is_even() {
        true => (x.clone(), windows.before.clone()),
        false => (windows.padded(x, 0.0)?, vec![0; sizes.len()]),
    };
    let bias = bias.map_or(opsmith_runtime::Value::None, opsmith_runtime::Value::Tensor);
    let groups = call.int("group", 1)?;
    run!(name, &x, weight, bias, windows.strides, pads, windows.dilations, groups)
}

pub(super) fn conv_transpose(call: &Call<'_>) -> Result<Tensor> {
    let (x, weight, bias) = (call.tensor(0)?, call.tensor(1)?, call.maybe(2)?);
    let sizes = space(&x)?;
    let count = sizes.len();
    let mut windows = Windows::of(call, &sizes, weight.shape().get(2..).unwrap_or_default().to_vec())?;
    let more = call.ints("output_padding")?.unwrap_or_else(|| vec![0; count]);
    if more.len() != count {
        return Err(Error::argument(format!(
            "`output_padding` has {} numbers, and {count} are needed",
            more.len()
        )));
    }
    let auto = call.text("auto_pad", "NOTSET")?;
    let target = call.ints("output_shape")?;
    let full = |dim: usize| {
        let span = (windows.kernel[dim] - 1) * windows.dilations[dim] + 1;
        (sizes[dim] - 1) * windows.strides[dim] + span + more[dim]
    };
    let wanted: Option<Vec<i64>> = match (target, auto.as_str()) {
        (Some(target), _) => Some(target.iter().rev().take(count).rev().copied().collect()),
        (None, "SAME_UPPER" | "SAME_LOWER") => {
            Some(sizes.iter().zip(&windows.strides).map(|(size, stride)| size * stride).collect())
        }
        _ => None,
    };
    if let Some(wanted) = wanted.filter(|wanted| wanted.len() == count) {
        for (dim, wanted) in wanted.into_iter().enumerate() {
            let total = full(dim) - wanted;
            let less = total.div_euclid(2);
            let (before, after) =
                if auto == "SAME_UPPER" { (less, total - less) } else { (total - less, less) };
            (windows.before[dim], windows.after[dim]) = (before, after);
        }
    }
    let name = ["conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"][count - 1];
    let even = windows.is_even() && more.iter().zip(&windows.strides).all(|(more, stride)| more < stride);
    let bias = bias.map_or(opsmith_runtime::Value::None, opsmith_runtime::Value::Tensor);
    let groups = call.int("group", 1)?;
    if even {
        return run!(
            name,
            &x,
            &weight,
            bias,
            windows.strides,
            windows.before,
            more,
            groups,
            windows.dilations
        );
    }
    let zeros = vec![0i64; count];
    let Windows { strides, dilations, before, after, .. } = windows;
    let whole = run!(name, &x, &weight, bias, strides, zeros.clone(), zeros, groups, dilations)?;
    // Surplus places are cut off; places that no element reaches are those of the bias.
    let flat: Vec<i64> = (0..count).rev().flat_map(|dim| [-before[dim], more[dim] - after[dim]]).collect();
    run!("constant_pad_nd", &whole, flat)
}

pub(super) fn col2im(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let sizes = call.given(1)?.ints("image_shape")?;
    let kernel = call.given(2)?.ints("block_shape")?;
    if sizes.len() != 2 {
        return Err(unsupported(format!("images of {} dimensions", sizes.len())));
    }
    let windows = Windows::of(call, &sizes, kernel)?;
    if !windows.is_even() {
        return Err(unsupported("`pads` that differ between sides"));
    }
    run!("col2im", &x, sizes, windows.kernel, windows.dilations, windows.before, windows.strides)
}
