//! Normalisation of vectors: the last dimensions.

use opsmith::{LayerNormOptions, Result, RmsNormOptions, Tensor};

use super::{ones, zeros};
use crate::config::config;
use crate::module;
use crate::module::{Layer, Parameter};

config! {
    /// Options of [`LayerNorm`].
    LayerNormConfig {
        /// The number that is added to variances; 1e-5 by default.
        eps: f64 = 1e-5;
        /// Whether there is a weight; true by default.
        affine: bool = true;
        /// Whether there is a bias, if there is a weight; true by default.
        bias: bool = true;
    }
}

config! {
    /// Options of [`RmsNorm`].
    RmsNormConfig {
        /// The number that is added to means of squares; by default the distance from 1 to the next number of the dtype.
        eps: Option<f64> = None, set f64 => Some(eps);
        /// Whether there is a weight; true by default.
        affine: bool = true;
    }
}

/// `(x - mean) / √(variance + eps) * weight + bias`, with the statistics of the last dimensions (Ba et al., *Layer
/// normalization*, 2016).
///
/// ```
/// use opsmith_nn::{Layer, LayerNorm};
///
/// # fn main() -> opsmith::Result<()> {
/// assert_eq!(LayerNorm::new([4])?.forward(&opsmith::ones([2, 3, 4])?)?.shape(), [2, 3, 4]);
/// # Ok(())
/// # }
/// ```
///
/// Parameters: `weight` and `bias`, of the normalised sizes.
#[derive(Debug)]
pub struct LayerNorm {
    weight: Option<Parameter>,
    bias: Option<Parameter>,
    sizes: Vec<i64>,
    config: LayerNormConfig,
}

module!(LayerNorm { weight, bias });

impl LayerNorm {
    /// A layer for last dimensions of given sizes, of `float32`.
    ///
    /// # Errors
    /// If a size is negative, or there is no memory.
    pub fn new(sizes: impl AsRef<[i64]>) -> Result<LayerNorm> {
        LayerNorm::new_with(sizes, LayerNormConfig::new())
    }

    /// As [`LayerNorm::new`], with options.
    ///
    /// # Errors
    /// As [`LayerNorm::new`].
    pub fn new_with(sizes: impl AsRef<[i64]>, config: LayerNormConfig) -> Result<LayerNorm> {
        let sizes = sizes.as_ref().to_vec();
        Ok(LayerNorm {
            weight: config.affine.then(|| ones(&sizes)).transpose()?,
            bias: (config.affine && config.bias).then(|| zeros(&sizes)).transpose()?,
            sizes,
            config,
        })
    }
}

impl Layer for LayerNorm {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let mut options = LayerNormOptions::new().eps(self.config.eps);
        if let Some(weight) = &self.weight {
            options = options.weight(weight);
        }
        if let Some(bias) = &self.bias {
            options = options.bias(bias);
        }
        opsmith::layer_norm_with(input, &self.sizes, options)
    }
}

/// `x / √(mean of squares + eps) * weight`, with the means of the last dimensions (Zhang and Sennrich, *Root mean square
/// layer normalization*, 2019).
///
/// ```
/// use opsmith_nn::{Layer, RmsNorm};
///
/// # fn main() -> opsmith::Result<()> {
/// assert_eq!(RmsNorm::new([4])?.forward(&opsmith::ones([2, 4])?)?.shape(), [2, 4]);
/// # Ok(())
/// # }
/// ```
///
/// Parameter: `weight`, of the normalised sizes.
#[derive(Debug)]
pub struct RmsNorm {
    weight: Option<Parameter>,
    sizes: Vec<i64>,
    config: RmsNormConfig,
}

module!(RmsNorm { weight });

impl RmsNorm {
    /// A layer for last dimensions of given sizes, of `float32`.
    ///
    /// # Errors
    /// If a size is negative, or there is no memory.
    pub fn new(sizes: impl AsRef<[i64]>) -> Result<RmsNorm> {
        RmsNorm::new_with(sizes, RmsNormConfig::new())
    }

    /// As [`RmsNorm::new`], with options.
    ///
    /// # Errors
    /// As [`RmsNorm::new`].
    pub fn new_with(sizes: impl AsRef<[i64]>, config: RmsNormConfig) -> Result<RmsNorm> {
        let sizes = sizes.as_ref().to_vec();
        Ok(RmsNorm { weight: config.affine.then(|| ones(&sizes)).transpose()?, sizes, config })
    }
}

impl Layer for RmsNorm {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let mut options = RmsNormOptions::new();
        if let Some(weight) = &self.weight {
            options = options.weight(weight);
        }
        if let Some(eps) = self.config.eps {
            options = options.eps(eps);
        }
        opsmith::rms_norm_with(input, &self.sizes, options)
    }
}
