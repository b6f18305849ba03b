//! Batch normalisation.

use opsmith::autograd::no_grad;
use opsmith::{DType, Error, Result, Tensor, TensorOps};

use super::{check_dimensions, ones, zeros};
use crate::config::config;
use crate::module;
use crate::module::{Layer, ModuleBuffer, Parameter, TrainingMode};

config! {
    /// Options of [`BatchNorm`].
    BatchNormConfig {
        /// The number that is added to variances; 1e-5 by default.
        eps: f64 = 1e-5;
        /// The part of a batch's statistics in new running ones, 0.1 by default; with `None`, these are the means of all
        /// batches.
        momentum: Option<f64> = Some(0.1);
        /// Whether there are a weight and a bias; true by default.
        affine: bool = true;
        /// Whether there are running statistics, for evaluation; true by default.
        track_running_stats: bool = true;
    }
}

/// `(x - mean) / √(variance + eps) * weight + bias`, with statistics of each channel, the second dimension: those of the
/// batch while the module trains, else the running ones (Ioffe and Szegedy, *Batch normalization*, 2015).
///
/// ```
/// use opsmith_nn::{BatchNorm2d, Layer, Module};
///
/// # fn main() -> opsmith::Result<()> {
/// let mut layer = BatchNorm2d::new(3)?;
/// layer.forward(&opsmith::randn([4, 3, 8, 8])?)?;
/// layer.eval();
/// assert_eq!(layer.forward(&opsmith::ones([1, 3, 8, 8])?)?.shape(), [1, 3, 8, 8]);
/// # Ok(())
/// # }
/// ```
///
/// [`BatchNorm1d`] takes `(samples, channels)` and `(samples, channels, places)`, [`BatchNorm2d`] and [`BatchNorm3d`] two
/// and three dimensions of places. Parameters: `weight` and `bias`, `(channels)`; buffers: `running_mean`,
/// `running_var`, `(channels)`, and `num_batches_tracked`, `int64` without dimensions. A running variance is that of a
/// sample, divided by one less than the number of elements.
#[derive(Debug)]
pub struct BatchNorm<const N: usize> {
    weight: Option<Parameter>,
    bias: Option<Parameter>,
    running_mean: Option<ModuleBuffer>,
    running_var: Option<ModuleBuffer>,
    num_batches_tracked: Option<ModuleBuffer>,
    channels: i64,
    config: BatchNormConfig,
    mode: TrainingMode,
}

/// Batch normalisation of vectors, or of sequences.
pub type BatchNorm1d = BatchNorm<1>;
/// Batch normalisation of images.
pub type BatchNorm2d = BatchNorm<2>;
/// Batch normalisation of volumes.
pub type BatchNorm3d = BatchNorm<3>;

module!(<const N: usize> BatchNorm<N> { weight, bias, running_mean, running_var, num_batches_tracked, mode });

impl<const N: usize> BatchNorm<N> {
    /// A layer for a number of channels, of `float32`.
    ///
    /// # Errors
    /// If the number is negative, or there is no memory.
    pub fn new(channels: i64) -> Result<Self> {
        Self::new_with(channels, BatchNormConfig::new())
    }

    /// As [`BatchNorm::new`], with options.
    ///
    /// # Errors
    /// As [`BatchNorm::new`].
    pub fn new_with(channels: i64, config: BatchNormConfig) -> Result<Self> {
        const { assert!(N >= 1 && N <= 3, "places have one to three dimensions") };
        let tracks = config.track_running_stats;
        let buffer = |tensor: Result<Tensor>| tensor.map(|tensor| ModuleBuffer::new(&tensor));
        Ok(BatchNorm {
            weight: config.affine.then(|| ones(&[channels])).transpose()?,
            bias: config.affine.then(|| zeros(&[channels])).transpose()?,
            running_mean: tracks.then(|| buffer(opsmith::zeros([channels]))).transpose()?,
            running_var: tracks.then(|| buffer(opsmith::ones([channels]))).transpose()?,
            num_batches_tracked: tracks.then(|| buffer(Ok(Tensor::scalar(0, DType::I64)))).transpose()?,
            channels,
            config,
            mode: TrainingMode::default(),
        })
    }

    /// The part of this batch in new running statistics, after a number of batches.
    fn momentum(&self, batches: &Tensor) -> Result<f64> {
        match self.config.momentum {
            Some(momentum) => Ok(momentum),
            None => Ok(1.0 / (batches.item()?.to_f64() + 1.0)),
        }
    }

    fn check(&self, input: &Tensor) -> Result<()> {
        let shape = input.shape();
        let name = format!("BatchNorm{N}d");
        let allowed: &[usize] = if N == 1 { &[2, 3] } else { &[N + 2] };
        check_dimensions(&name, shape, allowed, "the first counts samples, the second channels")?;
        if shape[1] != self.channels {
            return Err(Error::shape(format!(
                "{name} of {} channels cannot normalise an input of {}",
                self.channels, shape[1]
            ))
            .with_help(format!("the shape is {shape:?}; the second dimension counts channels")));
        }
        let trains = self.mode.is_training() || self.running_mean.is_none();
        if trains && shape[1] > 0 && input.numel() == shape[1] {
            return Err(Error::shape(format!("{name} cannot train on a single element of each channel"))
                .with_help(format!("the shape is {shape:?}; give more samples, or call `eval`")));
        }
        Ok(())
    }
}

impl<const N: usize> Layer for BatchNorm<N> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.check(input)?;
        let (weight, bias, eps) = (self.weight.as_deref(), self.bias.as_deref(), self.config.eps);
        let (Some(mean), Some(var), Some(batches)) =
            (&self.running_mean, &self.running_var, &self.num_batches_tracked)
        else {
            return opsmith::batch_norm(input, weight, bias, None, None, true, 0.0, eps, false);
        };
        if !self.mode.is_training() {
            return opsmith::batch_norm(input, weight, bias, Some(mean), Some(var), false, 0.0, eps, false);
        }
        let momentum = self.momentum(batches)?;
        let result = opsmith::native_batch_norm_(input, weight, bias, mean, var, true, momentum, eps)?.0;
        no_grad(|| batches.add_(1))?;
        Ok(result)
    }
}
