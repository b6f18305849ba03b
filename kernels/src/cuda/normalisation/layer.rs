//! Layer normalisation and root mean square normalisation: over the last dimensions, with a factor and a shift for each
//! element.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{Grid, KernelParameter};
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Error, Result};

use super::{address_of, factor, output, write};
use crate::cpu::normalisation::{asked, expect_count, least_eps, too_few_statistics, width};
use crate::cpu::{expect_operand, expect_sizes};
use crate::cuda::scratch::{Dense, DenseMut, Room};
use crate::device::{LAYER_NORM_HEADERS, Normalisation, Shape};

static PROGRAM: DeviceProgram = DeviceProgram::new("layer_norm.cuh", LAYER_NORM_HEADERS, "");

/// `(x - mean) * rstd * weight + bias` over the last dimensions, which `normalized_shape` gives; also
/// each row's mean and `rstd`, 1 / √(variance + eps).
///
/// # Errors
/// If `normalized_shape` is not the end of the input's shape, or a factor has another size; errors of the device.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_layer_norm(
    input: DeviceView<'_>,
    normalized_shape: &[i64],
    weight: Option<DeviceView<'_>>,
    bias: Option<DeviceView<'_>>,
    eps: f64,
    out: DeviceViewMut<'_>,
    mean: DeviceViewMut<'_>,
    rstd: DeviceViewMut<'_>,
) -> Result<()> {
    let rows = Rows::new(&input, normalized_shape, true)?;
    let (weight, bias) =
        (factor(weight.as_ref(), rows.width, "weight")?, factor(bias.as_ref(), rows.width, "bias")?);
    expect_sizes(out.sizes(), input.sizes())?;
    expect_count(mean.numel(), rows.count, "mean")?;
    expect_count(rstd.numel(), rows.count, "rstd")?;
    let input = Dense::of(&input)?;
    let (out, mean, rstd) = (DenseMut::of(out)?, DenseMut::of(mean)?, DenseMut::of(rstd)?);
    let geometry = Normalisation {
        input: input.address.cast(),
        weight: Dense::address_of(&weight).cast(),
        bias: Dense::address_of(&bias).cast(),
        out: out.address.cast(),
        mean: mean.address.cast(),
        rstd: rstd.address.cast(),
        ..rows.geometry(eps)
    };
    // SAFETY: all addresses are those of as many elements of the input's dtype as the rows have.
    unsafe { rows.launch(Kernel::Forward, &geometry)? };
    out.write()?;
    mean.write()?;
    rstd.write()
}

/// The gradients of [`native_layer_norm`] for input, weight and bias; those not asked for in
/// `output_mask` are zeros.
///
/// # Errors
/// As [`native_layer_norm`], and if there is not a mean and a `rstd` for each row.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_layer_norm_backward(
    grad_out: DeviceView<'_>,
    input: DeviceView<'_>,
    normalized_shape: &[i64],
    mean: DeviceView<'_>,
    rstd: DeviceView<'_>,
    weight: Option<DeviceView<'_>>,
    output_mask: &[bool],
    grad_input: DeviceViewMut<'_>,
    grad_weight: DeviceViewMut<'_>,
    grad_bias: DeviceViewMut<'_>,
) -> Result<()> {
    let rows = Rows::new(&input, normalized_shape, true)?;
    let weight = factor(weight.as_ref(), rows.width, "weight")?;
    if mean.numel().min(rstd.numel()) < rows.count {
        return Err(too_few_statistics(rows.count));
    }
    let (mean, rstd) = (Dense::of(&mean)?, Dense::of(&rstd)?);
    let statistics = Normalisation {
        weight: Dense::address_of(&weight).cast(),
        mean: mean.address.cast_mut().cast(),
        rstd: rstd.address.cast_mut().cast(),
        ..rows.geometry(0.0)
    };
    let wanted = [asked(output_mask, 0), asked(output_mask, 1), asked(output_mask, 2)];
    rows.gradients(wanted, (&grad_out, &input), statistics, grad_input, [Some(grad_weight), Some(grad_bias)])
}

/// `x * weight / √(mean square + eps)` over the last dimensions, which `normalized_shape` gives. An absent
/// `eps` is the distance from 1 to the next number of the type that computes.
///
/// # Errors
/// If `normalized_shape` is not the end of the input's shape, or the weight has another size; errors of the device.
pub fn rms_norm(
    input: DeviceView<'_>,
    normalized_shape: &[i64],
    weight: Option<DeviceView<'_>>,
    eps: Option<f64>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = input.dtype();
    let rows = Rows::new(&input, normalized_shape, false)?;
    let weight = factor(weight.as_ref(), rows.width, "weight")?;
    expect_sizes(out.sizes(), input.sizes())?;
    let input = Dense::of(&input)?;
    let out = DenseMut::of(out)?;
    let geometry = Normalisation {
        input: input.address.cast(),
        weight: Dense::address_of(&weight).cast(),
        out: out.address.cast(),
        ..rows.geometry(epsilon(dtype, eps))
    };
    // SAFETY: all addresses are those of as many elements of the input's dtype as the rows have.
    unsafe { rows.launch(Kernel::Forward, &geometry)? };
    out.write()
}

/// The gradients of [`rms_norm`] for input and weight; those not asked for in `output_mask` are zeros.
///
/// # Errors
/// As [`rms_norm`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn rms_norm_backward(
    grad_out: DeviceView<'_>,
    input: DeviceView<'_>,
    normalized_shape: &[i64],
    weight: Option<DeviceView<'_>>,
    eps: Option<f64>,
    output_mask: &[bool],
    grad_input: DeviceViewMut<'_>,
    grad_weight: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad_out.dtype();
    let rows = Rows::new(&input, normalized_shape, false)?;
    let weight = factor(weight.as_ref(), rows.width, "weight")?;
    // The compute type has at most as many bytes as a double.
    let rstd = Room::new::<f64>(rows.device, rows.count as u64)?;
    let geometry = Normalisation {
        weight: Dense::address_of(&weight).cast(),
        rstd: rstd.address(),
        ..rows.geometry(epsilon(dtype, eps))
    };
    let wanted = [asked(output_mask, 0), asked(output_mask, 1), false];
    rows.gradients(wanted, (&grad_out, &input), geometry, grad_input, [Some(grad_weight), None])
}

fn epsilon(dtype: DType, eps: Option<f64>) -> f64 {
    eps.unwrap_or(least_eps(if dtype == DType::F64 { DType::F64 } else { DType::F32 }))
}

/// Kernels of `layer_norm.cuh`.
#[derive(Clone, Copy)]
enum Kernel {
    Forward,
    Backward,
    Factors,
    FactorsEnd,
}

/// The elements as rows that are normalised alone.
struct Rows {
    device: Device,
    dtype: DType,
    centred: bool,
    count: usize,
    width: usize,
}

impl Rows {
    fn new(input: &DeviceView<'_>, normalized_shape: &[i64], centred: bool) -> Result<Rows> {
        let dtype = input.dtype();
        let width = width(input.sizes(), normalized_shape)?;
        Ok(Rows { device: input.device(), dtype, centred, count: input.numel() / width, width })
    }

    fn geometry(&self, eps: f64) -> Normalisation {
        Normalisation::of_rows(self.count as u64, self.width as u64, eps)
    }

    /// Launches a kernel.
    ///
    /// # Safety
    /// The geometry's addresses are null or those of the elements that `layer_norm.cuh` asks for.
    unsafe fn launch(&self, kernel: Kernel, geometry: &Normalisation) -> Result<()> {
        // The sums of no rows are zeros.
        if self.count == 0 && matches!(kernel, Kernel::Forward | Kernel::Backward) {
            return Ok(());
        }
        let (name, shape, blocks) = match kernel {
            Kernel::Forward => ("OPSMITH_NORMALISE", geometry.of_each_row(self.dtype), 1),
            Kernel::Backward => ("OPSMITH_NORMALISE_BACKWARD", geometry.of_each_row(self.dtype), 1),
            Kernel::Factors => ("OPSMITH_NORMALISE_FACTORS", geometry.of_columns(), geometry.splits),
            Kernel::FactorsEnd => {
                let blocks = u32::try_from(geometry.size.div_ceil(256)).ok();
                ("OPSMITH_NORMALISE_FACTORS_END", blocks.map(|blocks| Shape { blocks, threads: [256, 1] }), 1)
            }
        };
        let shape = shape.ok_or_else(|| {
            Error::not_implemented(format!(
                "a device normalises at most 2^31 rows or columns at a time, and there are {} by {}",
                geometry.rows, geometry.size
            ))
            .with_help("normalise parts of the input")
        })?;
        let number = (kernel as u32) << 9 | u32::from(self.centred) << 8 | self.dtype as u32;
        let dtype = self.dtype.ident();
        let instance = || match kernel {
            Kernel::FactorsEnd => format!("{name}(opsmith_kernel, dtype::{dtype})"),
            _ => format!("{name}(opsmith_kernel, dtype::{dtype}, {})", self.centred),
        };
        let grid = Grid {
            blocks: [shape.blocks, blocks, 1],
            threads: [shape.threads[0], shape.threads[1], 1],
            shared: 0,
        };
        let parameters = [KernelParameter::of(geometry)];
        // SAFETY: the caller's promise; the parameter is that of `layer_norm.cuh`.
        unsafe { PROGRAM.launch(self.device, number, instance, grid, &parameters) }
    }

    /// Writes the gradients that are wanted of input, weight and bias, and zeros for the others. `geometry` has the weight and
    /// the statistics; those of rows that are not centred have room alone.
    fn gradients(
        &self,
        wanted: [bool; 3],
        (grad_out, input): (&DeviceView<'_>, &DeviceView<'_>),
        geometry: Normalisation,
        grad_input: DeviceViewMut<'_>,
        [grad_weight, grad_bias]: [Option<DeviceViewMut<'_>>; 2],
    ) -> Result<()> {
        expect_operand("grad_out", grad_out.sizes(), input.sizes())?;
        if wanted[0] {
            expect_sizes(grad_input.sizes(), input.sizes())?;
        }
        let of_factor = |wanted: bool, view: Option<_>| match view {
            Some(view) => output(wanted, view),
            None => Ok(None),
        };
        let of_input = output(wanted[0], grad_input)?;
        let (of_weight, of_bias) = (of_factor(wanted[1], grad_weight)?, of_factor(wanted[2], grad_bias)?);
        let (grads, elements) = (Dense::of(grad_out)?, Dense::of(input)?);
        let geometry =
            Normalisation { grad: grads.address.cast(), input: elements.address.cast(), ..geometry };
        if of_input.is_some() {
            // SAFETY: all addresses are those of as many elements of the input's dtype as the rows have.
            unsafe {
                self.launch(Kernel::Backward, &Normalisation { out: address_of(&of_input), ..geometry })?
            };
        }
        if of_weight.is_some() || of_bias.is_some() {
            self.factors(&geometry, [address_of(&of_weight), address_of(&of_bias)])?;
        }
        write(of_input)?;
        write(of_weight)?;
        write(of_bias)
    }

    fn factors(&self, geometry: &Normalisation, [of_weight, of_bias]: [*mut c_void; 2]) -> Result<()> {
        let partials = Room::new::<[f64; 2]>(self.device, (geometry.splits as usize * self.width) as u64)?;
        let factors = Normalisation {
            partials: partials.address(),
            grad_weight: of_weight,
            grad_bias: of_bias,
            ..*geometry
        };
        // SAFETY: all addresses are those of the elements that the kernels ask for, or null.
        unsafe {
            if !self.centred {
                // The statistics alone.
                let statistics = Normalisation { mean: std::ptr::null_mut(), ..*geometry };
                self.launch(Kernel::Forward, &statistics)?;
            }
            self.launch(Kernel::Factors, &factors)?;
            self.launch(Kernel::FactorsEnd, &factors)
        }
    }
}
