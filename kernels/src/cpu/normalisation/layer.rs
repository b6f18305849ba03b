//! Layer normalisation and root mean square normalisation: over the last dimensions, with a factor and a shift for each
//! element.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{DType, Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::rows::{Statistics, add_to_factors, gradient, normalise, statistics_of};
use super::{Real, factors};
use crate::cpu::copy::with_slice;
use crate::cpu::lanes::{computed, with_computed};
use crate::cpu::strides::{expect_operand, expect_sizes};

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
    let rows = Rows::new(&input, normalized_shape, weight.as_ref())?;
    let bias = rows.factors(bias.as_ref(), "bias", no_shift())?;
    let eps = T::Compute::from_scalar(Scalar::Float(eps));
    let mut means = Scratch::filled(T::default(), rows.count);
    let mut rstds = means.clone();
    let places = [Shared(means.as_mut_ptr()), Shared(rstds.as_mut_ptr())];
    rows.normalise::<true>(&input, &bias, eps, &mut out, |row, statistics| {
        // SAFETY: each row has a place.
        unsafe {
            *places[0].at(row as i64) = T::from_compute(statistics.mean);
            *places[1].at(row as i64) = T::from_compute(statistics.rstd);
        }
    })?;
    mean.write(means)?;
    rstd.write(rstds)
}

/// The gradients of [`native_layer_norm`] for input, weight and bias; those not asked for in
/// `output_mask` are zeros. Wants `grad_out` and `input` contiguous.
///
/// # Errors
/// As [`native_layer_norm`], and if there is not a mean and a `rstd` for each row.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_layer_norm_backward<T: Element<Compute: Real>>(
    grad_out: View<'_, T>,
    input: View<'_, T>,
    normalized_shape: &[i64],
    mean: View<'_, T>,
    rstd: View<'_, T>,
    weight: Option<View<'_, T>>,
    output_mask: &[bool],
    grad_input: ViewMut<'_, T>,
    mut grad_weight: ViewMut<'_, T>,
    mut grad_bias: ViewMut<'_, T>,
) -> Result<()> {
    let rows = Rows::new(&input, normalized_shape, weight.as_ref())?;
    let (mean, rstd) = (mean.to_contiguous(), rstd.to_contiguous());
    if mean.len().min(rstd.len()) < rows.count {
        return Err(too_few_statistics(rows.count));
    }
    let statistics = |number: usize, _: &[_]| Statistics {
        mean: mean[number].to_compute(),
        rstd: rstd[number].to_compute(),
    };
    let wanted = [asked(output_mask, 0), asked(output_mask, 1) || asked(output_mask, 2)];
    let [of_weight, of_bias] = rows.gradients::<true>(&grad_out, &input, statistics, wanted, grad_input)?;
    write_if(asked(output_mask, 1), of_weight.into_iter().map(T::from_compute), &mut grad_weight)?;
    write_if(asked(output_mask, 2), of_bias.into_iter().map(T::from_compute), &mut grad_bias)
}

/// `x * weight / √(mean square + eps)` over the last dimensions, which `normalized_shape` gives. An absent
/// `eps` is the distance from 1 to the next number of the type that computes. Wants `input` contiguous.
///
/// # Errors
/// If `normalized_shape` is not the end of the input's shape, or the weight has another size.
pub fn rms_norm<T: Element<Compute: Real>>(
    input: View<'_, T>,
    normalized_shape: &[i64],
    weight: Option<View<'_, T>>,
    eps: Option<f64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let rows = Rows::new(&input, normalized_shape, weight.as_ref())?;
    let bias = rows.factors::<T>(None, "bias", no_shift())?;
    rows.normalise::<false>(&input, &bias, epsilon::<T>(eps), &mut out, |_, _| {})
}

/// The gradients of [`rms_norm`] for input and weight; those not asked for in `output_mask` are zeros. Wants `grad_out`
/// and `input` contiguous.
///
/// # Errors
/// As [`rms_norm`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn rms_norm_backward<T: Element<Compute: Real>>(
    grad_out: View<'_, T>,
    input: View<'_, T>,
    normalized_shape: &[i64],
    weight: Option<View<'_, T>>,
    eps: Option<f64>,
    output_mask: &[bool],
    grad_input: ViewMut<'_, T>,
    mut grad_weight: ViewMut<'_, T>,
) -> Result<()> {
    let rows = Rows::new(&input, normalized_shape, weight.as_ref())?;
    let eps = epsilon::<T>(eps);
    let statistics = |_: usize, row: &[T::Compute]| statistics_of::<false, _>(row, eps);
    let wanted = [asked(output_mask, 0), asked(output_mask, 1)];
    let [of_weight, _] = rows.gradients::<false>(&grad_out, &input, statistics, wanted, grad_input)?;
    write_if(wanted[1], of_weight.into_iter().map(T::from_compute), &mut grad_weight)
}

/// The error of rows without statistics of their own.
#[cold]
pub(crate) fn too_few_statistics(rows: usize) -> Error {
    Error::shape(format!("mean and rstd do not have {rows} elements, one a row"))
}

fn epsilon<T: Element>(eps: Option<f64>) -> T::Compute {
    T::Compute::from_scalar(Scalar::Float(eps.unwrap_or(least_eps(T::Compute::DTYPE))))
}

/// The number that takes the place of an absent `eps`, for the type that computes.
pub(crate) fn least_eps(compute: DType) -> f64 {
    match compute {
        DType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    }
}

/// A shift that leaves every number as it is, minus zero too.
fn no_shift<C: Real>() -> C {
    Arithmetic::neg(C::ZERO)
}

/// Rows whose gradients of factors are summed before they join the total.
pub(in crate::cpu) const CHUNK: usize = 64;

/// The elements as rows that are normalised alone, and the factors of a row.
struct Rows<C> {
    count: usize,
    width: usize,
    weight: Scratch<C>,
}

impl<C: Real> Rows<C> {
    fn new<T: Element<Compute = C>>(
        input: &View<'_, T>,
        normalized_shape: &[i64],
        weight: Option<&View<'_, T>>,
    ) -> Result<Rows<C>> {
        let width = width(input.sizes(), normalized_shape)?;
        let rows = Rows { count: input.numel() / width, width, weight: Scratch::new() };
        Ok(Rows { weight: rows.factors(weight, "weight", C::ONE)?, ..rows })
    }

    /// The elements of a factor, `absent` for each if there is none.
    fn factors<T: Element<Compute = C>>(
        &self,
        view: Option<&View<'_, T>>,
        name: &str,
        absent: C,
    ) -> Result<Scratch<C>> {
        Ok(factors(view, self.width, name)?.unwrap_or_else(|| Scratch::filled(absent, self.width)))
    }

    fn range(&self, row: usize) -> std::ops::Range<usize> {
        row * self.width..(row + 1) * self.width
    }

    /// Normalises each row and calls `report` with its number and statistics.
    fn normalise<const CENTRED: bool>(
        &self,
        input: &View<'_, impl Element<Compute = C>>,
        bias: &[C],
        eps: C,
        out: &mut ViewMut<'_, impl Element<Compute = C>>,
        report: impl Fn(usize, Statistics<C>) + Sync,
    ) -> Result<()> {
        expect_sizes(out.sizes(), input.sizes())?;
        let elements = input.to_contiguous();
        with_slice(out, |out| {
            let target = Shared(out.as_mut_ptr());
            parallel::for_each_range_of(self.width, self.count, |range| {
                let (mut row, mut normal) = (Scratch::new(), Scratch::new());
                for number in range {
                    let row = computed(&elements[self.range(number)], &mut row);
                    // SAFETY: the row lies in the output, and no other thread has it.
                    let out = unsafe { self.row_at(&target, number) };
                    let statistics = with_computed(out, &mut normal, |out| {
                        normalise::<CENTRED, C>(row, &self.weight, bias, eps, out)
                    });
                    report(number, statistics);
                }
            });
        })
    }

    /// The elements of a row.
    ///
    /// # Safety
    /// They lie at the address, for writes by this thread alone.
    unsafe fn row_at<'a, T>(&self, start: &Shared<T>, row: usize) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(start.at((row * self.width) as i64), self.width) }
    }

    /// Writes the gradient of the input and returns those of weight and bias, each if it is wanted.
    fn gradients<const CENTRED: bool>(
        &self,
        grad_out: &View<'_, impl Element<Compute = C>>,
        input: &View<'_, impl Element<Compute = C>>,
        statistics: impl Fn(usize, &[C]) -> Statistics<C> + Sync,
        [of_input, of_factors]: [bool; 2],
        mut grad_input: ViewMut<'_, impl Element<Compute = C>>,
    ) -> Result<[Scratch<C>; 2]> {
        expect_operand("grad_out", grad_out.sizes(), input.sizes())?;
        if of_input {
            expect_sizes(grad_input.sizes(), input.sizes())?;
        } else {
            write_if(false, [], &mut grad_input)?;
        }
        let (grads, elements) = (grad_out.to_contiguous(), input.to_contiguous());
        let chunks = self.count.div_ceil(CHUNK);
        let room = if of_factors { chunks * self.width } else { 0 };
        let mut sums = [Scratch::filled(C::ZERO, room), Scratch::filled(C::ZERO, room)];
        let [of_weight, of_bias] = &mut sums;
        let (of_weight, of_bias) = (Shared(of_weight.as_mut_ptr()), Shared(of_bias.as_mut_ptr()));
        with_slice(&mut grad_input, |grad_input| {
            let target = Shared(grad_input.as_mut_ptr());
            parallel::for_each_range_of(CHUNK * self.width, chunks, |range| {
                let (mut dy, mut x, mut gradient_row) = (Scratch::new(), Scratch::new(), Scratch::new());
                for number in range.start * CHUNK..self.count.min(range.end * CHUNK) {
                    let dy = computed(&grads[self.range(number)], &mut dy);
                    let x = computed(&elements[self.range(number)], &mut x);
                    let statistics = statistics(number, x);
                    // SAFETY: each chunk has sums, and one thread.
                    let sums = || unsafe {
                        [self.row_at(&of_weight, number / CHUNK), self.row_at(&of_bias, number / CHUNK)]
                    };
                    if !of_input {
                        if of_factors {
                            add_to_factors(dy, x, statistics, sums());
                        }
                        continue;
                    }
                    // SAFETY: the row lies in the gradient, and no other thread has it.
                    let out = unsafe { self.row_at(&target, number) };
                    with_computed(out, &mut gradient_row, |out| {
                        if of_factors {
                            gradient::<CENTRED, true, C>(dy, x, &self.weight, statistics, out, sums());
                        } else {
                            gradient::<CENTRED, false, C>(
                                dy,
                                x,
                                &self.weight,
                                statistics,
                                out,
                                Default::default(),
                            );
                        }
                    });
                }
            });
        })?;
        Ok(sums.map(|sums| self.total(&sums)))
    }

    /// The sums of all chunks, added in their order.
    fn total(&self, sums: &[C]) -> Scratch<C> {
        let mut total = Scratch::filled(C::ZERO, self.width);
        for sums in sums.chunks_exact(self.width) {
            total.iter_mut().zip(sums).for_each(|(total, &sum)| *total = Arithmetic::add(*total, sum));
        }
        total
    }
}

/// Whether the gradient with the given number is wanted.
pub(crate) fn asked(output_mask: &[bool], number: usize) -> bool {
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
pub(crate) fn width(sizes: &[i64], normalized_shape: &[i64]) -> Result<usize> {
    if normalized_shape.is_empty() || !sizes.ends_with(normalized_shape) {
        return Err(Error::shape(format!(
            "the normalised shape {normalized_shape:?} is not the end of the input's shape {sizes:?}"
        )));
    }
    Ok(normalized_shape.iter().product::<i64>().max(1) as usize)
}
