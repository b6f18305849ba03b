//! The encoder of a transformer.

use opsmith::{Generator, Result, Tensor, TensorOps};

use crate::config::config;
use crate::module::{InLayer, Layer};
use crate::{
    AttentionConfig, AttentionMasks, Dropout, LayerNorm, LayerNormConfig, Linear, MultiheadAttention, module,
};

config! {
    /// Options of [`TransformerEncoderLayer`].
    TransformerLayerConfig {
        /// Width between the two linear layers; 2048 by default.
        feed_forward: i64 = 2048;
        /// The probability of dropout; 0.1 by default.
        dropout: f64 = 0.1;
        /// The function between the two linear layers; the positive part by default.
        activation: FeedForwardActivation = FeedForwardActivation::Relu;
        /// The number that is added to variances; 1e-5 by default.
        eps: f64 = 1e-5;
        /// Whether the first dimension counts samples and the second steps; false by default, as in PyTorch.
        batch_first: bool = false;
        /// Whether inputs of attention and linear layers are normalised, in place of sums; false by default.
        norm_first: bool = false;
    }
}

/// The function between the linear layers of a [`TransformerEncoderLayer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeedForwardActivation {
    /// The positive part.
    Relu,
    /// [`Gelu`](crate::Gelu), exact.
    Gelu,
}

/// Attention to the input and two linear layers, each added to its input and normalised (Vaswani et al., *Attention is
/// all you need*, 2017).
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::{Layer, TransformerEncoderLayer, TransformerLayerConfig};
///
/// # fn main() -> opsmith::Result<()> {
/// let config = TransformerLayerConfig::new().feed_forward(16).batch_first(true);
/// let layer = TransformerEncoderLayer::new_with(8, 2, config, &Generator::new(0))?;
/// assert_eq!(layer.forward(&opsmith::randn([2, 5, 8])?)?.shape(), [2, 5, 8]);
/// # Ok(())
/// # }
/// ```
///
/// Inputs as those of [`MultiheadAttention`]. Modules: `self_attn`, `linear1`, `linear2`, `norm1`, `norm2`.
#[derive(Debug)]
pub struct TransformerEncoderLayer {
    self_attn: MultiheadAttention,
    linear1: Linear,
    dropout: Dropout,
    linear2: Linear,
    norm1: LayerNorm,
    norm2: LayerNorm,
    dropout1: Dropout,
    dropout2: Dropout,
    config: TransformerLayerConfig,
}

module!(TransformerEncoderLayer { self_attn, linear1, dropout, linear2, norm1, norm2, dropout1, dropout2 });

impl TransformerEncoderLayer {
    /// A layer for vectors of a width, divided among heads, of `float32`.
    ///
    /// # Errors
    /// If the heads do not divide the width, or there is no memory.
    pub fn new(width: i64, heads: i64, generator: &Generator) -> Result<TransformerEncoderLayer> {
        TransformerEncoderLayer::new_with(width, heads, TransformerLayerConfig::new(), generator)
    }

    /// As [`TransformerEncoderLayer::new`], with options.
    ///
    /// # Errors
    /// As [`TransformerEncoderLayer::new`], and if the probability of dropout is not between 0 and 1.
    pub fn new_with(
        width: i64,
        heads: i64,
        config: TransformerLayerConfig,
        generator: &Generator,
    ) -> Result<TransformerEncoderLayer> {
        let attention = AttentionConfig::new().dropout(config.dropout).batch_first(config.batch_first);
        let norm = || LayerNorm::new_with([width], LayerNormConfig::new().eps(config.eps));
        Ok(TransformerEncoderLayer {
            self_attn: MultiheadAttention::new_with(width, heads, attention, generator)?,
            linear1: Linear::new(width, config.feed_forward, generator)?,
            dropout: Dropout::new(config.dropout)?,
            linear2: Linear::new(config.feed_forward, width, generator)?,
            norm1: norm()?,
            norm2: norm()?,
            dropout1: Dropout::new(config.dropout)?,
            dropout2: Dropout::new(config.dropout)?,
            config,
        })
    }

    /// The result, without attention between some pairs of steps.
    ///
    /// # Errors
    /// If shapes do not fit each other or the layer.
    pub fn forward_with(&self, input: &Tensor, masks: AttentionMasks) -> Result<Tensor> {
        if self.config.norm_first {
            let sum = input.add(&self.attention(&self.norm1.forward(input).in_layer("norm1")?, masks)?)?;
            sum.add(&self.feed_forward(&self.norm2.forward(&sum).in_layer("norm2")?)?)
        } else {
            let sum = input.add(&self.attention(input, masks)?)?;
            let sum = self.norm1.forward(&sum).in_layer("norm1")?;
            self.norm2.forward(&sum.add(&self.feed_forward(&sum)?)?).in_layer("norm2")
        }
    }

    fn attention(&self, x: &Tensor, masks: AttentionMasks) -> Result<Tensor> {
        self.dropout1.forward(&self.self_attn.attend_with(x, x, x, masks).in_layer("self_attn")?)
    }

    fn feed_forward(&self, x: &Tensor) -> Result<Tensor> {
        let hidden = self.linear1.forward(x).in_layer("linear1")?;
        let hidden = match self.config.activation {
            FeedForwardActivation::Relu => hidden.relu()?,
            FeedForwardActivation::Gelu => hidden.gelu()?,
        };
        self.dropout2.forward(&self.linear2.forward(&self.dropout.forward(&hidden)?).in_layer("linear2")?)
    }
}

impl Layer for TransformerEncoderLayer {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.forward_with(input, AttentionMasks::new())
    }
}

/// Encoder layers one after the other, and a normalisation at the end if there is one.
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::{Layer, LayerNorm, Module, TransformerEncoder, TransformerEncoderLayer};
///
/// # fn main() -> opsmith::Result<()> {
/// let generator = Generator::new(0);
/// let layers = (0..2).map(|_| TransformerEncoderLayer::new(8, 2, &generator)).collect::<opsmith::Result<_>>()?;
/// let encoder = TransformerEncoder::new(layers, Some(LayerNorm::new([8])?));
/// assert!(encoder.state_dict().get("layers.1.norm1.weight").is_some());
/// assert_eq!(encoder.forward(&opsmith::randn([3, 1, 8])?)?.shape(), [3, 1, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TransformerEncoder {
    layers: Vec<TransformerEncoderLayer>,
    norm: Option<LayerNorm>,
}

module!(TransformerEncoder { layers, norm });

impl TransformerEncoder {
    /// An encoder of layers. Unlike in PyTorch, no layer is a copy of another: each has initial values of its own.
    pub fn new(layers: Vec<TransformerEncoderLayer>, norm: Option<LayerNorm>) -> TransformerEncoder {
        TransformerEncoder { layers, norm }
    }

    /// The result, without attention between some pairs of steps.
    ///
    /// # Errors
    /// If shapes do not fit each other or the layers.
    pub fn forward_with(&self, input: &Tensor, masks: &AttentionMasks) -> Result<Tensor> {
        let mut value = input.clone();
        for (position, layer) in self.layers.iter().enumerate() {
            value = layer.forward_with(&value, masks.clone()).in_layer(&format!("layers.{position}"))?;
        }
        self.norm.as_ref().map_or(Ok(value.clone()), |norm| norm.forward(&value).in_layer("norm"))
    }
}

impl Layer for TransformerEncoder {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.forward_with(input, &AttentionMasks::new())
    }
}
