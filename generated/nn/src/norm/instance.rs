//! Normalisation of each sample: by channel, and by group of channels.

use opsmith::{Error, GroupNormOptions, Result, Tensor, TensorOps};

use super::{check_dimensions, ones, zeros};
use crate::config::config;
use crate::module;
use crate::module::{Layer, Parameter};

config! {
    /// Options of [`GroupNorm`].
    GroupNormConfig {
        /// The number that is added to variances; 1e-5 by default.
        eps: f64 = 1e-5;
        /// Whether there are a weight and a bias; true by default.
        affine: bool = true;
    }
}

config! {
    /// Options of [`InstanceNorm`].
    InstanceNormConfig {
        /// The number that is added to variances; 1e-5 by default.
        eps: f64 = 1e-5;
        /// Whether there are a weight and a bias; false by default.
        affine: bool = false;
    }
}

/// `(x - mean) / √(variance + eps) * weight + bias`, with the statistics of each sample's groups of channels (Wu and He,
/// *Group normalization*, 2018).
///
/// ```
/// use opsmith_nn::{GroupNorm, Layer};
///
/// # fn main() -> opsmith::Result<()> {
/// assert_eq!(GroupNorm::new(2, 6)?.forward(&opsmith::ones([1, 6, 4])?)?.shape(), [1, 6, 4]);
/// # Ok(())
/// # }
/// ```
///
/// `(samples, channels, …)`. Parameters: `weight` and `bias`, `(channels)`.
#[derive(Debug)]
pub struct GroupNorm {
    weight: Option<Parameter>,
    bias: Option<Parameter>,
    groups: i64,
    config: GroupNormConfig,
}

module!(GroupNorm { weight, bias });

impl GroupNorm {
    /// A layer for numbers of groups and channels, of `float32`.
    ///
    /// # Errors
    /// If the groups do not divide the channels, or there is no memory.
    pub fn new(groups: i64, channels: i64) -> Result<GroupNorm> {
        GroupNorm::new_with(groups, channels, GroupNormConfig::new())
    }

    /// As [`GroupNorm::new`], with options.
    ///
    /// # Errors
    /// As [`GroupNorm::new`].
    pub fn new_with(groups: i64, channels: i64, config: GroupNormConfig) -> Result<GroupNorm> {
        if groups < 1 || channels % groups != 0 {
            return Err(Error::value(format!("{channels} channels cannot be divided into {groups} groups"))
                .with_help("choose a number of groups that divides the channels"));
        }
        Ok(GroupNorm {
            weight: config.affine.then(|| ones(&[channels])).transpose()?,
            bias: config.affine.then(|| zeros(&[channels])).transpose()?,
            groups,
            config,
        })
    }
}

impl Layer for GroupNorm {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let mut options = GroupNormOptions::new().eps(self.config.eps);
        if let Some(weight) = &self.weight {
            options = options.weight(weight);
        }
        if let Some(bias) = &self.bias {
            options = options.bias(bias);
        }
        opsmith::group_norm_with(input, self.groups, options)
    }
}

/// `(x - mean) / √(variance + eps) * weight + bias`, with the statistics of each sample's channels (Ulyanov et al.,
/// *Instance normalization*, 2016). There are no running statistics.
///
/// ```
/// use opsmith_nn::{InstanceNorm2d, Layer};
///
/// # fn main() -> opsmith::Result<()> {
/// assert_eq!(InstanceNorm2d::new(3)?.forward(&opsmith::ones([1, 3, 4, 4])?)?.shape(), [1, 3, 4, 4]);
/// # Ok(())
/// # }
/// ```
///
/// `(samples, channels, places…)` with `N` dimensions of places, or one sample. Parameters, with `affine`: `weight` and
/// `bias`, `(channels)`.
#[derive(Debug)]
pub struct InstanceNorm<const N: usize> {
    weight: Option<Parameter>,
    bias: Option<Parameter>,
    config: InstanceNormConfig,
    channels: i64,
}

/// Instance normalisation of sequences.
pub type InstanceNorm1d = InstanceNorm<1>;
/// Instance normalisation of images.
pub type InstanceNorm2d = InstanceNorm<2>;
/// Instance normalisation of volumes.
pub type InstanceNorm3d = InstanceNorm<3>;

module!(<const N: usize> InstanceNorm<N> { weight, bias });

impl<const N: usize> InstanceNorm<N> {
    /// A layer for a number of channels, without parameters.
    ///
    /// # Errors
    /// If the number is negative, or there is no memory.
    pub fn new(channels: i64) -> Result<Self> {
        Self::new_with(channels, InstanceNormConfig::new())
    }

    /// As [`InstanceNorm::new`], with options.
    ///
    /// # Errors
    /// As [`InstanceNorm::new`].
    pub fn new_with(channels: i64, config: InstanceNormConfig) -> Result<Self> {
        const { assert!(N >= 1 && N <= 3, "places have one to three dimensions") };
        Ok(InstanceNorm {
            weight: config.affine.then(|| ones(&[channels])).transpose()?,
            bias: config.affine.then(|| zeros(&[channels])).transpose()?,
            config,
            channels,
        })
    }
}

impl<const N: usize> Layer for InstanceNorm<N> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let name = format!("InstanceNorm{N}d");
        check_dimensions(
            &name,
            input.shape(),
            &[N + 1, N + 2],
            "the dimensions of places follow that of channels",
        )?;
        let one = input.dim() == N + 1;
        let samples = if one { input.unsqueeze(0)? } else { input.clone() };
        let channels = samples.shape()[1];
        if channels != self.channels {
            return Err(Error::shape(format!(
                "{name} of {} channels cannot normalise an input of {channels}",
                self.channels
            )));
        }
        let (weight, bias) = (self.weight.as_deref(), self.bias.as_deref());
        let eps = self.config.eps;
        let result = opsmith::instance_norm(&samples, weight, bias, None, None, true, 0.0, eps, false)?;
        if one { result.squeeze_dim(0) } else { Ok(result) }
    }
}
