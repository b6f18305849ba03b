//! Sums, means and maxima of rows of a table, a *bag* of indices at a time.

use std::ops::Range;

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::checked;
use crate::cpu::simd;
use crate::cpu::strides::{expect_operand, expect_sizes};

/// The bags, and which rows are in them.
struct Bags {
    /// The bag of each index.
    of_index: Scratch<i64>,
    /// The first index of each bag.
    starts: Scratch<usize>,
}

impl Bags {
    /// Each bag starts at an offset and ends where the next starts; the last one with the indices or,
    /// if `include_last_offset`, at the last offset.
    fn new(indices: usize, offsets: &View<'_, i64>, include_last_offset: bool) -> Result<Bags> {
        let offsets: Scratch<i64> = offsets.iter().collect();
        let count = offsets.len() - usize::from(include_last_offset && !offsets.is_empty());
        let rising = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        let inside = offsets.first().is_none_or(|&first| first == 0)
            && offsets.last().is_none_or(|&last| last <= indices as i64);
        let holds_all = count > 0 || indices == 0;
        if !rising || !inside || !holds_all {
            return Err(Error::value(format!("{offsets:?} are not the starts of bags of {indices} indices"))
                .with_help("offsets start at 0, rise, and end before the indices do; indices need a bag"));
        }
        if count == 0 && indices > 0 {
            return Err(Error::value(format!("{indices} indices are in no bag"))
                .with_help("give an offset for each bag, and the end of the last one if it is included"));
        }
        let starts: Scratch<usize> = offsets[..count].iter().map(|&start| start as usize).collect();
        let mut bags = Bags { of_index: Scratch::filled(0, indices), starts };
        for bag in 0..count {
            let range = bags.indices(bag);
            bags.of_index[range].fill(bag as i64);
        }
        Ok(bags)
    }

    /// The indices of a bag.
    fn indices(&self, bag: usize) -> Range<usize> {
        self.starts[bag]..self.starts.get(bag + 1).copied().unwrap_or(self.of_index.len())
    }
}

/// For each bag, the sum (`mode` 0), mean (1) or maximum (2) of the rows of `weight` at its indices;
/// also each index' bag, each bag's number of indices (for means and maxima; else zeros), and for
/// maxima the index each came from (else zeros). Indices equal to `padding_idx` are passed over; sums
/// weigh rows with `per_sample_weights`.
///
/// # Errors
/// If an index is out of range, or the shapes, offsets or mode do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn embedding_bag<T: Element<Compute: Ordered>>(
    weight: View<'_, T>,
    indices: View<'_, i64>,
    offsets: View<'_, i64>,
    mode: i64,
    per_sample_weights: Option<View<'_, T>>,
    include_last_offset: bool,
    padding_idx: i64,
    mut out: ViewMut<'_, T>,
    mut offset2bag: ViewMut<'_, i64>,
    mut bag_size: ViewMut<'_, i64>,
    mut max_indices: ViewMut<'_, i64>,
) -> Result<()> {
    let (rows, width) = rows_and_width(weight.sizes(), mode)?;
    let factors = factors(&per_sample_weights, &indices, mode)?;
    let bags = Bags::new(indices.numel(), &offsets, include_last_offset)?;
    let count = bags.starts.len();
    expect_sizes(out.sizes(), &[count as i64, width])?;
    let (width, table) = (width as usize, weight.to_contiguous());
    let indices: Scratch<i64> = indices.iter().collect();
    let rows_of_indices = indices.iter().map(|index| checked(*index, rows, 0).map(|row| row as usize));
    let rows_of_indices = rows_of_indices.collect::<Result<Scratch<usize>>>()?;
    let mut sums = Scratch::filled(T::Compute::ZERO, count * width);
    let mut counts = Scratch::filled(0, count);
    let mut origins = Scratch::filled(0, if mode == 2 { sums.len() } else { count });
    let (to_sums, to_counts) = (Shared(sums.as_mut_ptr()), Shared(counts.as_mut_ptr()));
    let to_origins = Shared(origins.as_mut_ptr());
    let elements = indices.len() / count.max(1) * width;
    parallel::for_each_range_of(elements, count, |bags_of_thread| {
        for bag in bags_of_thread {
            let seen = bags.indices(bag).filter(|&at| indices[at] != padding_idx);
            let entries = seen.map(|at| (rows_of_indices[at], factors.as_ref().map(|factors| factors[at])));
            // SAFETY: the sums, the number and the origins of a bag lie in the buffers, and each bag has one thread. There
            // are origins for each sum if the mode is the maximum.
            let (sums, size, origins) = unsafe {
                let start = (bag * width) as i64;
                let origins = if mode == 2 { (to_origins.at(start), width) } else { (to_origins.at(0), 0) };
                (
                    std::slice::from_raw_parts_mut(to_sums.at(start), width),
                    &mut *to_counts.at(bag as i64),
                    std::slice::from_raw_parts_mut(origins.0, origins.1),
                )
            };
            *size = match mode {
                2 => take_largest(&table, entries.map(|(row, _)| row), sums, origins),
                _ => add_rows::<T>(&table, entries, mode == 1, sums),
            };
        }
    });
    out.write(sums.into_iter().map(T::from_compute))?;
    offset2bag.write(bags.of_index)?;
    bag_size.write(counts.into_iter().map(|count| if mode == 0 { 0 } else { count }))?;
    max_indices.write(origins)
}

/// Adds rows of the table, each times its factor, and divides by their number for a mean. Returns the number of rows.
fn add_rows<T: Element<Compute: Arithmetic>>(
    table: &[T],
    entries: impl Iterator<Item = (usize, Option<T::Compute>)>,
    is_mean: bool,
    sums: &mut [T::Compute],
) -> i64 {
    let width = sums.len();
    simd::widest_over::<T, _>(
        #[inline(always)]
        || {
            let mut count = 0;
            for (row, factor) in entries {
                let row = &table[row * width..][..width];
                match factor {
                    Some(factor) => sums.iter_mut().zip(row).for_each(|(sum, element)| {
                        *sum = Arithmetic::add(*sum, Arithmetic::mul(factor, element.to_compute()));
                    }),
                    None => sums.iter_mut().zip(row).for_each(|(sum, element)| {
                        *sum = Arithmetic::add(*sum, element.to_compute());
                    }),
                }
                count += 1;
            }
            if is_mean {
                let divisor = T::Compute::from_scalar(Scalar::Int(count.max(1)));
                sums.iter_mut().for_each(|sum| *sum = Arithmetic::div(*sum, divisor));
            }
            count
        },
    )
}

/// The maxima of rows of the table, and the row of each. Returns the number of rows.
fn take_largest<T: Element<Compute: Ordered>>(
    table: &[T],
    rows: impl Iterator<Item = usize>,
    largest: &mut [T::Compute],
    origins: &mut [i64],
) -> i64 {
    let width = largest.len();
    let mut count = 0;
    for row in rows {
        let elements = &table[row * width..][..width];
        for ((largest, origin), element) in largest.iter_mut().zip(origins.iter_mut()).zip(elements) {
            let value = element.to_compute();
            if count == 0 || value.gt(*largest) {
                (*largest, *origin) = (value, row as i64);
            }
        }
        count += 1;
    }
    count
}

/// Rows and columns of the table of bags.
///
/// # Errors
/// If it is no matrix, or there is no such mode.
pub(crate) fn rows_and_width(weight: &[i64], mode: i64) -> Result<(i64, i64)> {
    let &[rows, width] = weight else {
        return Err(Error::shape(format!("the weight must be a matrix, got {}", ShapeText(weight))));
    };
    if !(0..=2).contains(&mode) {
        return Err(
            Error::value(format!("there is no mode {mode}")).with_help("use 0 (sum), 1 (mean) or 2 (max)")
        );
    }
    Ok((rows, width))
}

/// Refuses weights of indices that do not fit.
///
/// # Errors
/// As it says.
pub(crate) fn check_weights(mode: i64, weights: &[i64], indices: &[i64]) -> Result<()> {
    if mode != 0 {
        return Err(Error::value("only sums can weigh their rows"));
    }
    expect_operand("per_sample_weights", weights, indices)
}

/// The weights of indices, if there are some.
///
/// # Errors
/// If they do not fit.
fn factors<T: Element<Compute: Arithmetic>>(
    per_sample_weights: &Option<View<'_, T>>,
    indices: &View<'_, i64>,
    mode: i64,
) -> Result<Option<Scratch<T::Compute>>> {
    match per_sample_weights {
        None => Ok(None),
        Some(factors) => {
            check_weights(mode, factors.sizes(), indices.sizes())?;
            Ok(Some(factors.iter().map(T::to_compute).collect()))
        }
    }
}

/// The gradient of [`embedding_bag`] for `weight`.
///
/// # Errors
/// If an index or bag is out of range, or the shapes do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn embedding_bag_dense_backward<T: Element<Compute: Ordered>>(
    grad: View<'_, T>,
    indices: View<'_, i64>,
    offset2bag: View<'_, i64>,
    bag_size: View<'_, i64>,
    maximum_indices: View<'_, i64>,
    num_weights: i64,
    scale_grad_by_freq: bool,
    mode: i64,
    per_sample_weights: Option<View<'_, T>>,
    padding_idx: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let &[bags, width] = grad.sizes() else {
        return Err(Error::shape(format!("the gradient must be a matrix, got {}", ShapeText(grad.sizes()))));
    };
    expect_sizes(out.sizes(), &[num_weights, width])?;
    expect_operand("offset2bag", offset2bag.sizes(), indices.sizes())?;
    let factors = factors(&per_sample_weights, &indices, mode)?;
    let (width_, grads) = (width as usize, grad.to_contiguous());
    let mut sums = Scratch::filled(T::Compute::ZERO, out.numel());
    if mode == 2 {
        // An empty bag has no maximum, so its gradient goes nowhere.
        let sizes: Scratch<i64> = bag_size.iter().collect();
        for (at, index) in maximum_indices.iter().enumerate().take(grads.len()) {
            if sizes.get(at / width_.max(1)).is_some_and(|&size| size == 0) {
                continue;
            }
            let row = checked(index, num_weights, 0)? as usize * width_;
            let sum = &mut sums[row + at % width_];
            *sum = Arithmetic::add(*sum, grads[at].to_compute());
        }
    } else {
        let counts: Scratch<i64> = bag_size.iter().collect();
        let mut uses = Scratch::filled(0i64, num_weights as usize);
        for index in indices.iter() {
            uses[checked(index, num_weights, 0)? as usize] += 1;
        }
        for (at, (index, bag)) in indices.iter().zip(offset2bag.iter()).enumerate() {
            let bag = checked(bag, bags, 0)? as usize;
            if index == padding_idx {
                continue;
            }
            let in_bag = if mode == 1 { counts.get(bag).copied().unwrap_or(1).max(1) } else { 1 };
            let uses = if scale_grad_by_freq { uses[index as usize] } else { 1 };
            let divisor = T::Compute::from_scalar(Scalar::Int(in_bag * uses));
            let weight = factors.as_ref().map_or(T::Compute::ONE, |factors| factors[at]);
            let factor = Arithmetic::div(weight, divisor);
            add_row(&mut sums[index as usize * width_..][..width_], &grads[bag * width_..][..width_], factor);
        }
    }
    out.write(sums.into_iter().map(T::from_compute))
}

/// Adds the elements of a row, times a factor.
fn add_row<T: Element<Compute: Arithmetic>>(sums: &mut [T::Compute], row: &[T], factor: T::Compute) {
    simd::widest_over::<T, _>(
        #[inline(always)]
        || {
            for (sum, element) in sums.iter_mut().zip(row) {
                *sum = Arithmetic::add(*sum, Arithmetic::mul(factor, element.to_compute()));
            }
        },
    );
}

/// The gradient of [`embedding_bag`] for `per_sample_weights`: of each index' row and its bag's
/// gradient, the product.
///
/// # Errors
/// If an index or bag is out of range, or the shapes or mode do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn embedding_bag_per_sample_weights_backward<T: Element<Compute: Arithmetic>>(
    grad: View<'_, T>,
    weight: View<'_, T>,
    indices: View<'_, i64>,
    offsets: View<'_, i64>,
    offset2bag: View<'_, i64>,
    mode: i64,
    padding_idx: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let (&[bags, width], &[rows, columns]) = (grad.sizes(), weight.sizes()) else {
        return Err(Error::shape("the gradient and the weight must be matrices"));
    };
    if mode != 0 || width != columns {
        return Err(Error::value("only sums of rows as wide as the gradient can weigh their rows"));
    }
    expect_sizes(out.sizes(), indices.sizes())?;
    let of_index = match offset2bag.numel() {
        // As PyTorch takes it, absent: the offsets say the same.
        0 => Bags::new(indices.numel(), &offsets, false)?.of_index,
        _ => offset2bag.iter().collect(),
    };
    expect_operand("offset2bag", &[of_index.len() as i64], indices.sizes())?;
    let (width, grads, table) = (width as usize, grad.to_contiguous(), weight.to_contiguous());
    let mut products = Scratch::with_capacity(indices.numel());
    for (index, bag) in indices.iter().zip(of_index.iter().copied()) {
        let (row, bag) = (checked(index, rows, 0)? as usize, checked(bag, bags, 0)? as usize);
        let pairs = grads[bag * width..][..width].iter().zip(&table[row * width..][..width]);
        let sum = pairs.fold(T::Compute::ZERO, |sum, (grad, element)| {
            Arithmetic::add(sum, Arithmetic::mul(grad.to_compute(), element.to_compute()))
        });
        products.push(if index == padding_idx { T::default() } else { T::from_compute(sum) });
    }
    out.write(products)
}
