//! Layer normalisation: over the last dimensions, with a factor and a shift for each element.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::{Real, factors, gradient_of_row, statistics, sum, widen};
use crate::cpu::copy::with_slice;
use crate::cpu::simd::widest;
use crate::cpu::strides::expect_sizes;

/// `(x - mean) * rstd * weight + bias` over the last dimensions, which `normalized_shape` gives; also
/// each row's mean and `rstd`, 1 / √(variance + eps). Wants `input` contiguous.
///
/// # Errors
/// If `normalized_shape` is not the end of the input's shape, or a factor has another size.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_layer_norm<T: Element<Compute: Real>>(
    input: View<'_, T>,
    normalized_shape: &[i64],
    weight: Option<View<'_, T>>,
    bias: Option<View<'_, T>>,
    eps: f64,
    mut out: ViewMut<'_, T>,
    mut mean: ViewMut<'_, T>,
    mut rstd: ViewMut<'_, T>,
) -> Result<()> {
    let width = width(input.sizes(), normalized_shape)?;
    expect_sizes(out.sizes(), input.sizes())?;
    let weight = factors(weight.as_ref(), width, "weight")?;
    let bias = factors(bias.as_ref(), width, "bias")?;
    let eps = T::Compute::from_scalar(Scalar::Float(eps));
    let elements = input.to_contiguous();
    let (mut row, mut means, mut rstds) = (Scratch::new(), Scratch::new(), Scratch::new());
    with_slice(&mut out, |out| {
        for (input, out) in elements.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            widen(input, &mut row);
            let (mean, rstd) = statistics(&row, eps);
            means.push(T::from_compute(mean));
            rstds.push(T::from_compute(rstd));
            widest(
                #[inline(always)]
                || {
                    for x in &mut row {
                        *x = Arithmetic::mul(Arithmetic::sub(*x, mean), rstd);
                    }
                    if let Some(weight) = &weight {
                        row.iter_mut().zip(weight).for_each(|(x, &w)| *x = Arithmetic::mul(*x, w));
                    }
                    if let Some(bias) = &bias {
                        row.iter_mut().zip(bias).for_each(|(x, &b)| *x = Arithmetic::add(*x, b));
                    }
                    out.iter_mut().zip(&row).for_each(|(out, &x)| *out = T::from_compute(x));
                },
            );
        }
    })?;
    mean.write(means)?;
    rstd.write(rstds)
}

/// The gradients of [`native_layer_norm`] for input, weight and bias; those not asked for in
/// `output_mask` are zeros. Wants `grad_out` and `input` contiguous.
///
/// # Errors
/// As [`native_layer_norm`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_layer_norm_backward<T: Element<Compute: Real>>(
    grad_out: View<'_, T>,
    input: View<'_, T>,
    normalized_shape: &[i64],
    mean: View<'_, T>,
    rstd: View<'_, T>,
    weight: Option<View<'_, T>>,
    _bias: Option<View<'_, T>>,
    output_mask: &[bool],
    mut grad_input: ViewMut<'_, T>,
    mut grad_weight: ViewMut<'_, T>,
    mut grad_bias: ViewMut<'_, T>,
) -> Result<()> {
    let width = width(input.sizes(), normalized_shape)?;
    expect_sizes(grad_out.sizes(), input.sizes())?;
    let weight = factors(weight.as_ref(), width, "weight")?;
    let count = T::Compute::from_count(width);
    let (grads, elements) = (grad_out.to_contiguous(), input.to_contiguous());
    let mut weight_sums = Scratch::filled(T::Compute::ZERO, width);
    let mut bias_sums = weight_sums.clone();
    let mut gradient = Scratch::filled(T::default(), if asked(output_mask, 0) { elements.len() } else { 0 });
    let (mut dy, mut x, mut products) = (Scratch::new(), Scratch::new(), Scratch::new());
    let rows = grads.chunks_exact(width).zip(elements.chunks_exact(width));
    for (number, ((grad, input), (mean, rstd))) in rows.zip(mean.iter().zip(rstd.iter())).enumerate() {
        let (mean, rstd) = (mean.to_compute(), rstd.to_compute());
        widen(grad, &mut dy);
        widen(input, &mut x);
        widest(
            #[inline(always)]
            || {
                x.iter_mut().for_each(|x| *x = Arithmetic::mul(Arithmetic::sub(*x, mean), rstd));
                for (sum, (&dy, &x)) in weight_sums.iter_mut().zip(dy.iter().zip(&x)) {
                    *sum = Arithmetic::add(*sum, Arithmetic::mul(dy, x));
                }
                for (sum, &dy) in bias_sums.iter_mut().zip(&dy) {
                    *sum = Arithmetic::add(*sum, dy);
                }
                if let Some(weight) = &weight {
                    dy.iter_mut().zip(weight).for_each(|(dy, &w)| *dy = Arithmetic::mul(*dy, w));
                }
            },
        );
        let Some(gradient) = gradient.get_mut(number * width..(number + 1) * width) else { continue };
        let along_mean = Arithmetic::div(sum(&dy, |dy| dy), count);
        products.clear();
        products.extend_from_slice(&dy);
        products.iter_mut().zip(&x).for_each(|(product, &x)| *product = Arithmetic::mul(*product, x));
        let along_row = Arithmetic::div(sum(&products, |product| product), count);
        widest(
            #[inline(always)]
            || gradient_of_row(gradient, &dy, &x, rstd, (along_mean, along_row)),
        );
    }
    write_if(asked(output_mask, 0), gradient, &mut grad_input)?;
    write_if(asked(output_mask, 1), weight_sums.into_iter().map(T::from_compute), &mut grad_weight)?;
    write_if(asked(output_mask, 2), bias_sums.into_iter().map(T::from_compute), &mut grad_bias)?;
    Ok(())
}

/// Whether the gradient with the given number is wanted.
pub(super) fn asked(output_mask: &[bool], number: usize) -> bool {
    output_mask.get(number).copied().unwrap_or(true)
}

/// Writes the elements, or zeros if they are not wanted.
pub(super) fn write_if<T: Element>(
    wanted: bool,
    elements: impl IntoIterator<Item = T>,
    out: &mut ViewMut<'_, T>,
) -> Result<()> {
    if wanted { out.write(elements) } else { out.write(std::iter::repeat(T::default())) }
}

/// Elements that are normalised together.
fn width(sizes: &[i64], normalized_shape: &[i64]) -> Result<usize> {
    if normalized_shape.is_empty() || !sizes.ends_with(normalized_shape) {
        return Err(Error::shape(format!(
            "the normalised shape {normalized_shape:?} is not the end of the input's shape {sizes:?}"
        )));
    }
    Ok(normalized_shape.iter().product::<i64>().max(1) as usize)
}
