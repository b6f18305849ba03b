//! Connectionist temporal classification: the twin of [`cpu::ctc`](crate::cpu::ctc), a block for each sample.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{Grid, KernelParameter};
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Result, Scratch};

use super::scratch::{Dense, DenseMut, Room, write_dense};
use crate::cpu::ctc::{Sizes, expect_blank, expect_lengths};
use crate::cpu::{expect_operand, expect_sizes};
use crate::device::HEADERS;

static PROGRAM: DeviceProgram = DeviceProgram::new("ctc.cuh", HEADERS, include_str!("../../cuda/ctc.cuh"));

/// Field by field as in `ctc.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Paths {
    logarithms: *const c_void,
    alpha: *mut c_void,
    losses: *mut c_void,
    grads: *const c_void,
    out: *mut c_void,
    labels: *const i64,
    starts: *const i64,
    lengths: *const i64,
    steps: *const i64,
    work: *mut f64,
    chains: *mut i64,
    times: u64,
    samples: u64,
    classes: u64,
    states: u64,
    blank: i64,
    zero_infinity: u64,
}

/// The lists of a call, on the device.
struct Lists {
    starts: Room,
    lengths: Room,
    steps: Room,
}

impl Lists {
    fn new(device: Device, targets: &[i64], input_lengths: &[i64], target_lengths: &[i64]) -> Result<Lists> {
        let mut starts = Scratch::with_capacity(target_lengths.len());
        let mut start = 0;
        for length in target_lengths {
            starts.push(start);
            start += if let [_, row] = targets { *row } else { *length };
        }
        Ok(Lists {
            starts: Room::of(device, &starts)?,
            lengths: Room::of(device, target_lengths)?,
            steps: Room::of(device, input_lengths)?,
        })
    }

    fn paths(&self, sizes: &Sizes, labels: *const i64, blank: i64) -> Paths {
        Paths {
            logarithms: std::ptr::null(),
            alpha: std::ptr::null_mut(),
            losses: std::ptr::null_mut(),
            grads: std::ptr::null(),
            out: std::ptr::null_mut(),
            labels,
            starts: self.starts.address(),
            lengths: self.lengths.address(),
            steps: self.steps.address(),
            work: std::ptr::null_mut(),
            chains: std::ptr::null_mut(),
            times: sizes.times as u64,
            samples: sizes.samples as u64,
            classes: sizes.classes as u64,
            states: sizes.states as u64,
            blank,
            zero_infinity: 0,
        }
    }
}

/// The negative logarithm of each sample's likelihood, `(samples)`, and those of all states' paths from the start, `(samples,
/// times, states)`; states that a sample does not have are impossible.
///
/// # Errors
/// If the shapes do not go together, or errors of the device, which reports a label that is no class.
pub fn forward(
    log_probs: DeviceView<'_>,
    targets: DeviceView<'_>,
    input_lengths: &[i64],
    target_lengths: &[i64],
    blank: i64,
    losses: DeviceViewMut<'_>,
    log_alpha: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = log_probs.dtype();
    let sizes =
        Sizes::new(log_probs.sizes(), targets.sizes(), log_alpha.sizes(), input_lengths, target_lengths)?;
    expect_blank(blank, sizes.classes as i64)?;
    expect_sizes(losses.sizes(), &[sizes.samples as i64])?;
    let device = losses.device();
    let lists = Lists::new(device, targets.sizes(), input_lengths, target_lengths)?;
    let (logarithms, labels) = (Dense::of(&log_probs)?, Dense::of(&targets)?);
    let (losses, alpha) = (DenseMut::of(losses)?, DenseMut::of(log_alpha)?);
    let work = Room::new::<f64>(device, (sizes.samples * 2 * sizes.states) as u64)?;
    let paths = Paths {
        logarithms: logarithms.address.cast(),
        alpha: alpha.address.cast(),
        losses: losses.address.cast(),
        work: work.address(),
        ..lists.paths(&sizes, labels.address.cast(), blank)
    };
    // SAFETY: the operands have the sizes that the parameter says, and the work two numbers of each state.
    unsafe { launch(dtype, (0, "path_losses"), device, &paths)? };
    losses.write()?;
    alpha.write()
}

/// The gradient of [`forward`]'s losses by the scores whose logarithms of probabilities `log_probs` are: softmax less the
/// share of paths. That of samples with no possible path is zero with `zero_infinity`, else not a number.
///
/// # Errors
/// As [`forward`].
#[allow(clippy::too_many_arguments, reason = "the arguments are those of the operator")]
pub fn backward(
    grad: DeviceView<'_>,
    log_probs: DeviceView<'_>,
    targets: DeviceView<'_>,
    input_lengths: &[i64],
    target_lengths: &[i64],
    losses: DeviceView<'_>,
    log_alpha: DeviceView<'_>,
    blank: i64,
    zero_infinity: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad.dtype();
    let sizes =
        Sizes::new(log_probs.sizes(), targets.sizes(), log_alpha.sizes(), input_lengths, target_lengths)?;
    expect_operand("grad", grad.sizes(), &[sizes.samples as i64])?;
    expect_operand("neg_log_likelihood", losses.sizes(), &[sizes.samples as i64])?;
    expect_sizes(out.sizes(), log_probs.sizes())?;
    expect_blank(blank, sizes.classes as i64)?;
    let device = out.device();
    let lists = Lists::new(device, targets.sizes(), input_lengths, target_lengths)?;
    let (logarithms, labels) = (Dense::of(&log_probs)?, Dense::of(&targets)?);
    let (grads, losses, alpha) = (Dense::of(&grad)?, Dense::of(&losses)?, Dense::of(&log_alpha)?);
    let work = Room::new::<f64>(device, (sizes.samples * (3 * sizes.states + sizes.classes)) as u64)?;
    let chains = Room::new::<i64>(device, (sizes.samples * 2 * sizes.states) as u64)?;
    write_dense(out, |out| {
        let paths = Paths {
            logarithms: logarithms.address.cast(),
            alpha: alpha.address.cast_mut().cast(),
            losses: losses.address.cast_mut().cast(),
            grads: grads.address.cast(),
            out: out.cast(),
            work: work.address(),
            chains: chains.address(),
            zero_infinity: u64::from(zero_infinity),
            ..lists.paths(&sizes, labels.address.cast(), blank)
        };
        // SAFETY: the operands have the sizes that the parameter says; work and chains are as `ctc.cuh` describes them.
        unsafe { launch(dtype, (1, "path_gradients"), device, &paths) }
    })
}

/// Each loss divided by the length of its labels, at least 1.
///
/// # Errors
/// If there is another number of lengths, or errors of the device.
pub fn by_length(losses: DeviceView<'_>, lengths: &[i64], out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = losses.dtype();
    expect_lengths(losses.numel(), lengths)?;
    expect_sizes(out.sizes(), losses.sizes())?;
    let device = out.device();
    let lists = Lists::new(device, &[], &[], lengths)?;
    let losses = Dense::of(&losses)?;
    let sizes = Sizes { times: 0, samples: lengths.len(), classes: 0, states: 0 };
    write_dense(out, |out| {
        let paths = Paths {
            losses: losses.address.cast_mut().cast(),
            out: out.cast(),
            ..lists.paths(&sizes, std::ptr::null(), 0)
        };
        // SAFETY: there are as many losses as lengths.
        unsafe { launch(dtype, (2, "losses_by_length"), device, &paths) }
    })
}

/// Launches a kernel with a block for each sample.
///
/// # Safety
/// The operands that the kernel needs have the sizes of the parameter.
unsafe fn launch(dtype: DType, (number, name): (u32, &str), device: Device, paths: &Paths) -> Result<()> {
    if paths.samples == 0 {
        return Ok(());
    }
    let number = number << 8 | dtype as u32;
    let instance = || format!("OPSMITH_CTC(opsmith_kernel, {name}, dtype::{})", dtype.ident());
    let widest = paths.states.max(paths.classes).clamp(1, 256) as u32;
    let grid = Grid {
        blocks: [paths.samples as u32, 1, 1],
        threads: [widest.next_multiple_of(32), 1, 1],
        shared: 0,
    };
    let parameters = [KernelParameter::of(paths)];
    // SAFETY: the caller's promise; the parameter is that of `ctc.cuh`.
    unsafe { PROGRAM.launch(device, number, instance, grid, &parameters) }
}
