//! Launches of `channel_norm.cuh`: statistics of channels, or of groups of channels of a sample.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{Grid, KernelParameter};
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::{DType, Device, Error, Result};

use crate::cuda::fold::{Fold, Operands, fold};
use crate::cuda::scratch::Room;
use crate::device::REDUCTION_HEADERS;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("channel_norm.cuh", REDUCTION_HEADERS, include_str!("../../../cuda/channel_norm.cuh"));

/// The parameter of the kernels, field by field as in `channel_norm.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct ChannelNorm {
    pub samples: u64,
    pub channels: u64,
    pub places: u64,
    pub statistics: u64,
    pub channels_of_one: u64,
    pub of_sample: u64,
    pub given: Given,
    pub eps: f64,
    pub momentum: f64,
    pub unbiased: f64,
    pub input: *const c_void,
    pub grad: *const c_void,
    pub weight: *const c_void,
    pub bias: *const c_void,
    pub given_mean: *const c_void,
    pub given_spread: *const c_void,
    pub pairs: *mut c_void,
    pub sums: *mut c_void,
    pub along: *mut c_void,
    pub out: *mut c_void,
    pub mean: *mut c_void,
    pub rstd: *mut c_void,
    pub running_mean: *mut c_void,
    pub running_var: *mut c_void,
    pub grad_weight: *mut c_void,
    pub grad_bias: *mut c_void,
}

/// The statistics that `settle` starts from.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Given {
    /// Those of the elements, in `pairs`.
    Nothing = 0,
    /// Means and variances.
    Variances = 1,
    /// Means and reciprocal deviations.
    Deviations = 2,
}

/// Kernels with a thread for each statistic, element or channel.
#[derive(Clone, Copy)]
enum Kernel {
    Settle,
    Normalise,
    Project,
    Gradient,
    FactorGradients,
    GroupStatistic,
    ChannelSum,
}

/// Numbers of folds and kernels of the program.
const MEAN_AND_VARIANCE: u32 = 0;
const PAIR_SUM: u32 = 1;
const FIRST_KERNEL: u32 = 2;

/// A normalisation of row-major elements of one dtype.
pub(super) struct Channels {
    pub device: Device,
    pub dtype: DType,
    /// Whether samples share statistics.
    shared: bool,
    pub norm: ChannelNorm,
    _pairs: Room,
}

impl Channels {
    /// Samples of channels of places, whose statistics are of each channel over all samples.
    ///
    /// # Errors
    /// If the device has no more memory.
    pub fn shared(dtype: DType, device: Device, [samples, channels, places]: [usize; 3]) -> Result<Channels> {
        Channels::new(dtype, device, [samples, channels, places], [channels, 1, 0])
    }

    /// Samples of groups of channels of places, whose statistics are of each group of each sample.
    ///
    /// # Errors
    /// If the device has no more memory.
    pub fn grouped(
        dtype: DType,
        device: Device,
        [samples, groups, channels, places]: [usize; 4],
    ) -> Result<Channels> {
        let sizes = [samples, groups * channels, places];
        Channels::new(dtype, device, sizes, [samples * groups, channels, groups])
    }

    fn new(
        dtype: DType,
        device: Device,
        sizes: [usize; 3],
        [statistics, channels_of_one, of_sample]: [usize; 3],
    ) -> Result<Channels> {
        let (null, nowhere) = (std::ptr::null(), std::ptr::null_mut());
        let [samples, channels, places] = sizes.map(|size| size as u64);
        // A number of the compute type has at most eight bytes.
        let pairs = Room::new::<[f64; 2]>(device, statistics as u64)?;
        let norm = ChannelNorm {
            samples,
            channels,
            places,
            statistics: statistics as u64,
            channels_of_one: channels_of_one as u64,
            of_sample: of_sample as u64,
            given: Given::Nothing,
            eps: 0.0,
            momentum: 0.0,
            unbiased: 1.0,
            input: null,
            grad: null,
            weight: null,
            bias: null,
            given_mean: null,
            given_spread: null,
            pairs: pairs.address(),
            sums: nowhere,
            along: nowhere,
            out: nowhere,
            mean: nowhere,
            rstd: nowhere,
            running_mean: nowhere,
            running_var: nowhere,
            grad_weight: nowhere,
            grad_bias: nowhere,
        };
        Ok(Channels { device, dtype, shared: of_sample == 0, norm, _pairs: pairs })
    }

    /// The number of statistics.
    pub fn statistics(&self) -> usize {
        self.norm.statistics as usize
    }

    /// Elements of each statistic.
    pub fn count(&self) -> u64 {
        let samples = if self.shared { self.norm.samples } else { 1 };
        samples * self.norm.channels_of_one * self.norm.places
    }

    /// Computes the statistics of the input, or takes the given ones, and writes those that have addresses.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// Addresses are null or those of as many row-major elements of the dtype as `channel_norm.cuh` asks for.
    pub unsafe fn settle(&self) -> Result<()> {
        let norm = &self.norm;
        if norm.given == Given::Nothing {
            let sizes = [norm.samples, norm.channels, norm.places].map(|size| size as i64);
            let (reduced, out) = ([true, false, true], (norm.pairs, &[0, 1, 0][..]));
            let input = (norm.input, &contiguous_strides(&sizes)[..]);
            // SAFETY: the caller's promise; there is a pair for each statistic.
            unsafe {
                match self.shared {
                    true => {
                        self.fold((MEAN_AND_VARIANCE, "MeanAndVariance"), &sizes, &reduced, input, out)?
                    }
                    false => self.launch(Kernel::GroupStatistic, norm, norm.statistics)?,
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.launch(Kernel::Settle, norm, norm.statistics) }
    }

    /// Writes the normalised elements; after [`Channels::settle`].
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// As [`Channels::settle`].
    pub unsafe fn normalise(&self) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.launch(Kernel::Normalise, &self.norm, self.elements()) }
    }

    /// Writes the gradients that have addresses, that of the input to `out`; after [`Channels::settle`]. `own` if statistics
    /// depend on the elements.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// As [`Channels::settle`].
    pub unsafe fn gradients(&self, own: bool) -> Result<()> {
        let norm = &self.norm;
        let (samples, channels) = (norm.samples as i64, norm.channels as i64);
        let rows = Room::new::<[f64; 2]>(self.device, (samples * channels) as u64)?;
        let totals = Room::new::<[f64; 2]>(self.device, channels as u64)?;
        let along = Room::new::<[f64; 2]>(self.device, self.statistics() as u64)?;
        let of_rows = ChannelNorm { sums: rows.address(), ..*norm };
        let of_channels = ChannelNorm { sums: totals.address(), ..*norm };
        let wants_factors = !norm.grad_weight.is_null() || !norm.grad_bias.is_null();
        // SAFETY: the caller's promise; there is a pair for each row, channel and statistic.
        unsafe {
            self.launch(Kernel::ChannelSum, &of_rows, norm.samples * norm.channels)?;
            if self.shared || wants_factors {
                let input = (rows.address::<c_void>().cast_const(), &[channels, 1][..]);
                let out = (totals.address(), &[0, 1][..]);
                self.fold((PAIR_SUM, "PairSum"), &[samples, channels], &[true, false], input, out)?;
            }
            if !norm.out.is_null() {
                let sums = if self.shared { totals.address() } else { rows.address() };
                let along = if own { along.address() } else { std::ptr::null_mut() };
                let norm = ChannelNorm { sums, along, ..*norm };
                if own {
                    self.launch(Kernel::Project, &norm, norm.statistics)?;
                }
                self.launch(Kernel::Gradient, &norm, self.elements())?;
            }
            if wants_factors {
                self.launch(Kernel::FactorGradients, &of_channels, norm.channels)?;
            }
        }
        Ok(())
    }

    fn elements(&self) -> u64 {
        self.norm.samples * self.norm.channels * self.norm.places
    }

    unsafe fn fold(
        &self,
        (number, name): (u32, &str),
        sizes: &[i64],
        reduced: &[bool],
        input: (*const c_void, &[i64]),
        out: (*mut c_void, &[i64]),
    ) -> Result<()> {
        let f = Fold {
            program: &PROGRAM,
            number: number << 8 | self.dtype as u32,
            text: || format!("{name}<opsmith::dtype::{}>", self.dtype.ident()),
            value: 0.0,
            ordered: false,
        };
        // SAFETY: the caller's promise.
        unsafe { fold(&f, &Operands { device: self.device, sizes, reduced, input, out }) }
    }

    /// Launches a kernel for so many statistics, elements, channels or rows.
    unsafe fn launch(&self, kernel: Kernel, norm: &ChannelNorm, count: u64) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let dtype = self.dtype.ident();
        let function = match kernel {
            Kernel::Settle => "settle",
            Kernel::Normalise => "normalise",
            Kernel::Project => "project",
            Kernel::Gradient => "gradient",
            Kernel::FactorGradients => "factor_gradients",
            Kernel::GroupStatistic => "group_statistic",
            Kernel::ChannelSum => "channel_sum",
        };
        // Elements of a row, of kernels with a team for each.
        let row = match kernel {
            Kernel::GroupStatistic => Some(norm.channels_of_one * norm.places),
            Kernel::ChannelSum => Some(norm.places),
            _ => None,
        };
        let number = ((FIRST_KERNEL + kernel as u32) << 8 | self.dtype as u32) << 1;
        let macro_name = if row.is_some() { "OPSMITH_CHANNEL_ROWS" } else { "OPSMITH_CHANNELS" };
        let instance = || format!("{macro_name}(opsmith_kernel, {function}, dtype::{dtype})");
        let x = row.map_or(256, |size| size.clamp(1, 256).next_power_of_two() as u32);
        let y = 256 / x;
        let blocks = match row {
            Some(_) => count.div_ceil(u64::from(y)),
            None => count.div_ceil(1024).min(1 << 20),
        };
        let blocks =
            u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32).ok_or_else(|| {
                Error::not_implemented("a device normalises at most 2^31 channels of samples at a time")
                    .with_help("normalise parts of the input")
            })?;
        let grid = Grid { blocks: [blocks, 1, 1], threads: [x, y, 1], shared: 0 };
        let parameters = [KernelParameter::of(norm)];
        // SAFETY: the caller's promise; the parameter is that of `channel_norm.cuh`.
        unsafe { PROGRAM.launch(self.device, number, instance, grid, &parameters) }
    }
}
