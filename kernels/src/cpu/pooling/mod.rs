//! Pooling: the largest element or the mean of windows that slide over the last dimensions.
//!
//! Inputs that are not contiguous are copied first. Means of 16-bit floats are computed in `f32`.

mod average;
pub(super) mod largest;
pub(super) mod means;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Result, Scratch, View};

use super::strides::expect_operand;
use crate::window::{MOST, Window, spatial_sizes, with_spatial};

pub(crate) use average::refuse_zero;
pub use average::{
    adaptive_avg_pool, adaptive_avg_pool2d_backward, adaptive_avg_pool3d, adaptive_avg_pool3d_backward,
    avg_pool2d, avg_pool2d_backward, avg_pool3d, avg_pool3d_backward,
};
pub use largest::{
    adaptive_max_pool2d, adaptive_max_pool3d, max_pool2d_with_indices, max_pool2d_with_indices_backward,
    max_pool3d_with_indices, max_pool3d_with_indices_backward,
};

/// Input elements that an output position sees along one dimension.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: i64,
    end: i64,
    /// How many elements a mean divides by: border elements may count too.
    counted: i64,
}

/// The ranges of every position in each dimension.
struct Ranges {
    dims: [Scratch<Range>; MOST],
    step: [i64; MOST],
    input: [i64; MOST],
}

impl Ranges {
    /// Positions of a window; means count border elements inside the input's border if asked to.
    fn of_window(window: &Window, input: [i64; MOST], ceil: bool, count_border: bool) -> Result<Ranges> {
        let output = window.output_sizes(input, ceil)?;
        let range = |dim: usize, position: i64| {
            let start = window.start(dim, position);
            let (step, size) = (window.dilation[dim], input[dim]);
            let reach = start + (window.kernel[dim] - 1) * step + 1;
            // As many steps from the start as lead inside.
            let first = start + ((-start).max(0) + step - 1) / step * step;
            let end = reach.min(size);
            let counted =
                if count_border { reach.min(size + window.padding[dim]) - start } else { end - first };
            Range { first, end, counted }
        };
        let dims = std::array::from_fn(|dim| (0..output[dim]).map(|position| range(dim, position)).collect());
        Ok(Ranges { dims, step: window.dilation, input })
    }

    /// As many positions as asked for, that together see every element.
    fn adaptive(input: [i64; MOST], output: [i64; MOST]) -> Ranges {
        let range = |dim: usize, position: i64| {
            // Sizes of expanded tensors may have products that are no `i64`.
            let (size, parts) = (i128::from(input[dim]), i128::from(output[dim]));
            let position = i128::from(position);
            let first = (position * size / parts) as i64;
            let end = (((position + 1) * size + parts - 1) / parts) as i64;
            Range { first, end, counted: end - first }
        };
        let dims = std::array::from_fn(|dim| (0..output[dim]).map(|position| range(dim, position)).collect());
        Ranges { dims, step: [1; MOST], input }
    }

    fn outputs(&self) -> usize {
        self.dims.iter().map(|list| list.len()).product()
    }

    fn inputs(&self) -> usize {
        self.input.iter().product::<i64>() as usize
    }

    /// Calls `body` with the number and ranges of each position, in row-major order.
    fn for_each(&self, mut body: impl FnMut(usize, [Range; MOST])) {
        let [first, second, third] = &self.dims;
        let mut number = 0;
        for &a in first {
            for &b in second {
                for &c in third {
                    body(number, [a, b, c]);
                    number += 1;
                }
            }
        }
    }

    /// Calls `body` with the number, in a plane of the input, of each element that ranges see.
    #[inline(always)]
    fn for_each_element(&self, [a, b, c]: [Range; MOST], mut body: impl FnMut(usize)) {
        let [_, rows, columns] = self.input;
        let mut depth = a.first;
        while depth < a.end {
            let mut row = b.first;
            while row < b.end {
                let start = (depth * rows + row) * columns;
                let mut column = c.first;
                while column < c.end {
                    body((start + column) as usize);
                    column += self.step[2];
                }
                row += self.step[1];
            }
            depth += self.step[0];
        }
    }
}

/// One plane (all places of a channel of a sample) after the other, of inputs and outputs.
struct Planes {
    ranges: Ranges,
    count: usize,
}

impl Planes {
    /// Planes whose outputs are positions of a window, counted as in [`Ranges::of_window`].
    ///
    /// # Errors
    /// If the window does not fit, or the output has another shape.
    fn of_window(
        window: &Window,
        ceil: bool,
        count_border: bool,
        sizes: &[i64],
        out_sizes: &[i64],
    ) -> Result<Planes> {
        let input = spatial_sizes(sizes, window.spatial)?;
        Planes::new(sizes, window.spatial, Ranges::of_window(window, input, ceil, count_border)?, out_sizes)
    }

    /// Planes whose outputs are parts that together make up the last dimensions.
    ///
    /// # Errors
    /// If a shape has too few or too many dimensions, or the two have other ones in front.
    fn adaptive(spatial: usize, sizes: &[i64], out_sizes: &[i64]) -> Result<Planes> {
        let ranges = Ranges::adaptive(spatial_sizes(sizes, spatial)?, spatial_sizes(out_sizes, spatial)?);
        Planes::new(sizes, spatial, ranges, out_sizes)
    }

    fn new(sizes: &[i64], spatial: usize, ranges: Ranges, out_sizes: &[i64]) -> Result<Planes> {
        let output = std::array::from_fn(|dim| ranges.dims[dim].len() as i64);
        expect_operand("an operand", out_sizes, &with_spatial(sizes, spatial, output))?;
        let count = sizes[..sizes.len() - spatial].iter().product::<i64>() as usize;
        Ok(Planes { ranges, count })
    }

    /// Output elements of every plane, each from a plane of the input.
    fn gather<T: Element, R>(
        &self,
        input: &View<'_, T>,
        mut element: impl FnMut(&[T], [Range; MOST]) -> R,
    ) -> Scratch<R> {
        let elements = input.to_contiguous();
        let mut results = Scratch::with_capacity(self.count * self.ranges.outputs());
        for plane in elements.chunks_exact(self.ranges.inputs().max(1)) {
            self.ranges.for_each(|_, ranges| results.push(element(plane, ranges)));
        }
        results
    }

    /// Input elements of every plane, to which each output element adds something.
    fn scatter<T: Element<Compute: Arithmetic>>(
        &self,
        grad: &View<'_, T>,
        mut add: impl FnMut(T::Compute, [Range; MOST], &mut [T::Compute]),
    ) -> impl Iterator<Item = T> {
        let grad = grad.to_contiguous();
        let mut sums = Scratch::filled(T::Compute::ZERO, self.count * self.ranges.inputs());
        let planes = grad.chunks_exact(self.ranges.outputs().max(1));
        for (grad, sums) in planes.zip(sums.chunks_exact_mut(self.ranges.inputs().max(1))) {
            self.ranges.for_each(|number, ranges| add(grad[number].to_compute(), ranges, sums));
        }
        sums.into_iter().map(T::from_compute)
    }
}

#[cfg(test)]
mod tests;
