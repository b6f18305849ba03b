//! Pooling: the twin of [`cpu::pooling`](crate::cpu::pooling). Inputs may have any strides.

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DType, DeviceView, DeviceViewMut, Error, Result, Untyped};

use super::launch::each;
use super::lists::{ListMemory, Lists};
use super::window::{Images, Sliding, each_place, each_place_with};
use crate::cpu::pooling::refuse_zero;
use crate::cpu::{expect_operand, expect_sizes};
use crate::device::POOLING;
use crate::device::strided::Strided;
use crate::window::{MOST, Window, spatial_sizes, with_spatial};

static PROGRAM: DeviceProgram =
    DeviceProgram::new("pooling.cuh", POOLING, include_str!("../../cuda/pooling.cuh"));

/// Field by field as in `pooling.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Pooling {
    sliding: Sliding,
    adaptive: u32,
    counts_border: u32,
    divisor: i64,
    rounds: u64,
}

impl Pooling {
    /// Positions of a window over the last dimensions of `sizes`, as many as `out` has.
    ///
    /// # Errors
    /// If the window does not fit, or the output has another shape.
    fn of_window(window: &Window, ceil: bool, sizes: &[i64], out: &[i64]) -> Result<Pooling> {
        let input = spatial_sizes(sizes, window.spatial)?;
        let output = window.output_sizes(input, ceil)?;
        expect_operand("an operand", out, &with_spatial(sizes, window.spatial, output))?;
        let sliding = Sliding::new(window, input, output);
        Ok(Pooling { sliding, adaptive: 0, counts_border: 0, divisor: 0, rounds: 0 })
    }

    /// Parts of the last dimensions of `sizes`, as many as `out` has.
    ///
    /// # Errors
    /// If a shape has too few or too many dimensions, or the two have other ones in front.
    fn adaptive(spatial: usize, sizes: &[i64], out: &[i64]) -> Result<Pooling> {
        let (input, output) = (spatial_sizes(sizes, spatial)?, spatial_sizes(out, spatial)?);
        expect_operand("an operand", out, &with_spatial(sizes, spatial, output))?;
        let window = Window::new(spatial, &[1], &[1], &[0], &[1])?;
        let sliding = Sliding::new(&window, input, output);
        Ok(Pooling { sliding, adaptive: 1, counts_border: 0, divisor: 0, rounds: 0 })
    }

    /// With the divisor of means.
    ///
    /// # Errors
    /// If the divisor is 0.
    fn divided_by(mut self, counts_border: bool, divisor: Option<i64>) -> Result<Pooling> {
        refuse_zero(divisor)?;
        self.counts_border = u32::from(counts_border);
        self.divisor = divisor.unwrap_or(0);
        Ok(self)
    }
}

/// Parameter of a functor with places of its output, an input and the positions.
#[derive(Clone, Copy)]
#[repr(C)]
struct OfImages<const N: usize> {
    places: Strided<N>,
    input: Images,
    pooling: Pooling,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct PutPositions {
    places: Strided<1>,
    lists: Lists,
    positions: u64,
    elements: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct LargestBackward {
    places: Strided<1>,
    grad: Images,
    lists: Lists,
    output: [u64; MOST],
}

/// The operators whose functions differ in the number of dimensions of the window alone.
macro_rules! of_windows {
    ($spatial:literal: $means:ident, $means_backward:ident, $largest:ident, $largest_backward:ident, $adaptive_backward:ident,
     $adaptive_largest:ident) => {
        /// The means of windows over the last dimensions. Elements of the border count as zeros if `count_include_pad`;
        /// `divisor_override` divides instead of the number of elements.
        ///
        /// # Errors
        /// If the shapes or parameters do not fit, or errors of the device.
        #[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
        pub fn $means(
            self_: DeviceView<'_>,
            kernel_size: &[i64],
            stride: &[i64],
            padding: &[i64],
            ceil_mode: bool,
            count_include_pad: bool,
            divisor_override: Option<i64>,
            out: DeviceViewMut<'_>,
        ) -> Result<()> {
            let window = Window::new($spatial, kernel_size, stride, padding, &[1])?;
            let pooling = Pooling::of_window(&window, ceil_mode, self_.sizes(), out.sizes())?;
            means($spatial, pooling.divided_by(count_include_pad, divisor_override)?, &self_, &out)
        }

        /// The gradient of the means of windows: each window's, spread evenly over its elements.
        ///
        /// # Errors
        /// If the shapes or parameters do not fit, or errors of the device.
        #[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
        pub fn $means_backward(
            grad_output: DeviceView<'_>,
            self_: Untyped<'_>,
            kernel_size: &[i64],
            stride: &[i64],
            padding: &[i64],
            ceil_mode: bool,
            count_include_pad: bool,
            divisor_override: Option<i64>,
            out: DeviceViewMut<'_>,
        ) -> Result<()> {
            let window = Window::new($spatial, kernel_size, stride, padding, &[1])?;
            let pooling = Pooling::of_window(&window, ceil_mode, self_.sizes(), grad_output.sizes())?;
            let pooling = pooling.divided_by(count_include_pad, divisor_override)?;
            means_backward($spatial, pooling, &grad_output, self_.sizes(), &out)
        }

        /// The largest elements of windows over the last dimensions, and their positions in their planes, counted row by
        /// row. NaN is larger than everything.
        ///
        /// # Errors
        /// If the shapes or parameters do not fit, or errors of the device.
        #[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
        pub fn $largest(
            self_: DeviceView<'_>,
            kernel_size: &[i64],
            stride: &[i64],
            padding: &[i64],
            dilation: &[i64],
            ceil_mode: bool,
            out: DeviceViewMut<'_>,
            indices: DeviceViewMut<'_>,
        ) -> Result<()> {
            let window = Window::new($spatial, kernel_size, stride, padding, dilation)?;
            let pooling = Pooling::of_window(&window, ceil_mode, self_.sizes(), out.sizes())?;
            largest($spatial, pooling, &self_, &out, &indices)
        }

        /// The gradient of largest elements: each output's goes to the element it came from.
        ///
        /// # Errors
        /// If the shapes do not fit, or errors of the device; an index outside its plane is an error at the next wait.
        pub fn $largest_backward(
            grad_output: DeviceView<'_>,
            self_: Untyped<'_>,
            indices: DeviceView<'_>,
            out: DeviceViewMut<'_>,
        ) -> Result<()> {
            largest_backward($spatial, &grad_output, self_.sizes(), &indices, &out)
        }

        /// The gradient of the means of parts that together make up the last dimensions.
        ///
        /// # Errors
        /// If the shapes do not fit, or errors of the device.
        pub fn $adaptive_backward(
            grad_output: DeviceView<'_>,
            self_: Untyped<'_>,
            out: DeviceViewMut<'_>,
        ) -> Result<()> {
            let pooling = Pooling::adaptive($spatial, self_.sizes(), grad_output.sizes())?;
            means_backward($spatial, pooling, &grad_output, self_.sizes(), &out)
        }

        /// The largest elements of parts that together make up the last dimensions, and their positions in their planes,
        /// counted row by row. NaN is larger than everything.
        ///
        /// # Errors
        /// If the shapes do not fit, or errors of the device.
        pub fn $adaptive_largest(
            self_: DeviceView<'_>,
            out: DeviceViewMut<'_>,
            indices: DeviceViewMut<'_>,
        ) -> Result<()> {
            let pooling = Pooling::adaptive($spatial, self_.sizes(), out.sizes())?;
            largest($spatial, pooling, &self_, &out, &indices)
        }
    };
}

of_windows!(2: avg_pool2d, avg_pool2d_backward, max_pool2d_with_indices, max_pool2d_with_indices_backward,
    adaptive_avg_pool2d_backward, adaptive_max_pool2d);
of_windows!(3: avg_pool3d, avg_pool3d_backward, max_pool3d_with_indices, max_pool3d_with_indices_backward,
    adaptive_avg_pool3d_backward, adaptive_max_pool3d);

/// Means of parts that together make up the last dimensions, as many as `output_size` says.
///
/// # Errors
/// If the shapes do not fit, or errors of the device.
pub fn adaptive_avg_pool(self_: DeviceView<'_>, output_size: &[i64], out: DeviceViewMut<'_>) -> Result<()> {
    let spatial = output_size.len().clamp(1, MOST);
    means(spatial, Pooling::adaptive(spatial, self_.sizes(), out.sizes())?, &self_, &out)
}

/// As [`adaptive_avg_pool`], over the last three dimensions; sums are rounded at each step, as PyTorch's are.
///
/// # Errors
/// If the shapes do not fit, or errors of the device.
pub fn adaptive_avg_pool3d(self_: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    let pooling = Pooling { rounds: 1, ..Pooling::adaptive(3, self_.sizes(), out.sizes())? };
    means(3, pooling, &self_, &out)
}

fn means(spatial: usize, pooling: Pooling, input: &DeviceView<'_>, out: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = input.dtype();
    let places = each_place(out, spatial)?;
    let parameter = OfImages { places, input: Images::of(input, spatial), pooling };
    // SAFETY: the struct has the fields of `pooling.cuh`, and its places are those of the views.
    unsafe { each(&PROGRAM, out.device(), (0, "Means"), dtype, &places, &parameter) }
}

/// The gradient of [`means`] for an input of these sizes.
fn means_backward(
    spatial: usize,
    pooling: Pooling,
    grad: &DeviceView<'_>,
    sizes: &[i64],
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad.dtype();
    expect_sizes(out.sizes(), sizes)?;
    let places = each_place(out, spatial)?;
    let parameter = OfImages { places, input: Images::of(grad, spatial), pooling };
    // SAFETY: as for `means`.
    unsafe { each(&PROGRAM, out.device(), (1, "MeansBackward"), dtype, &places, &parameter) }
}

fn largest(
    spatial: usize,
    pooling: Pooling,
    input: &DeviceView<'_>,
    out: &DeviceViewMut<'_>,
    indices: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = input.dtype();
    expect_sizes(indices.sizes(), out.sizes())?;
    let operands = [Images::of_mut(out, spatial), Images::of_mut(indices, spatial)];
    let places = each_place_with(out.sizes(), spatial, operands)?;
    let parameter = OfImages { places, input: Images::of(input, spatial), pooling };
    // SAFETY: as for `means`.
    unsafe { each(&PROGRAM, out.device(), (2, "Largest"), dtype, &places, &parameter) }
}

fn largest_backward(
    spatial: usize,
    grad: &DeviceView<'_>,
    input_sizes: &[i64],
    indices: &DeviceView<'_>,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad.dtype();
    expect_sizes(out.sizes(), input_sizes)?;
    expect_operand("indices", indices.sizes(), grad.sizes())?;
    let input = spatial_sizes(input_sizes, spatial)?;
    let output = spatial_sizes(grad.sizes(), spatial)?;
    let count = |sizes: [i64; MOST]| sizes.iter().product::<i64>() as usize;
    let planes = |numel: usize, sizes| numel.checked_div(count(sizes));
    if let (Some(ours), Some(theirs)) = (planes(out.numel(), input), planes(grad.numel(), output))
        && ours < theirs
    {
        return Err(Error::shape(format!("{theirs} planes of a gradient do not belong to {ours} planes")));
    }
    let device = out.device();
    let memory = ListMemory::new(device, out.numel(), grad.numel())?;
    let lists = memory.lists();
    let places = each_place_with(grad.sizes(), spatial, [Images::of(indices, spatial)])?;
    let (positions, elements) = (count(output) as u64, count(input) as u64);
    let parameter = PutPositions { places, lists, positions, elements };
    // SAFETY: the lists have room for each position of the gradient, and a head for each element.
    unsafe { each(&PROGRAM, device, (3, "PutPositions"), DType::I64, &places, &parameter)? };
    let places = each_place(out, spatial)?;
    let output = output.map(|size| size as u64);
    let parameter = LargestBackward { places, grad: Images::of(grad, spatial), lists, output };
    // SAFETY: the lists were made for this gradient.
    unsafe { each(&PROGRAM, device, (4, "LargestBackward"), dtype, &places, &parameter) }
}
