//! Attention with several heads.

use opsmith::{DType, Error, Generator, Result, ScaledDotProductAttentionOptions, Tensor, TensorOps};

use crate::config::config;
use crate::linear::linear;
use crate::module::{Layer, Parameter, TrainingMode};
use crate::{Linear, LinearConfig, init, module};

config! {
    /// Options of [`MultiheadAttention`].
    AttentionConfig {
        /// The probability of dropping a weight of attention in training; 0 by default.
        dropout: f64 = 0.0;
        /// Whether projections have biases; true by default.
        bias: bool = true;
        /// Whether the first dimension counts samples and the second steps; false by default, as in PyTorch.
        batch_first: bool = false;
    }
}

config! {
    /// Pairs of queries and keys that do not attend to each other.
    AttentionMasks {
        /// `(queries, keys)` or `(samples * heads, queries, keys)`: `bool`, true for a pair that is left out, as PyTorch's
        /// layer has it, or a float that is added to scores.
        mask: Option<Tensor> = None, set &Tensor => Some(mask.clone());
        /// `(samples, keys)`: `bool`, true for a key that is padding, or a float that is added to its scores.
        key_padding: Option<Tensor> = None, set &Tensor => Some(key_padding.clone());
        /// Whether a query attends only to keys at its step and before; false by default.
        causal: bool = false;
    }
}

/// Attention in several parts of vectors (Vaswani et al., *Attention is all you need*, 2017): queries, keys and values
/// are projected, each head's queries weigh its values by `softmax(q @ k.t() / √width)`, and the heads' results are
/// projected together.
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::{AttentionMasks, MultiheadAttention};
///
/// # fn main() -> opsmith::Result<()> {
/// let layer = MultiheadAttention::new(8, 2, &Generator::new(0))?;
/// let x = opsmith::randn([5, 1, 8])?;
/// let y = layer.attend_with(&x, &x, &x, AttentionMasks::new().causal(true))?;
/// assert_eq!(y.shape(), [5, 1, 8]);
/// # Ok(())
/// # }
/// ```
///
/// Inputs are `(steps, samples, width)`, or `(samples, steps, width)` with `batch_first`, or one sample,
/// `(steps, width)`. Parameters: `in_proj_weight`, `(3 * width, width)`, and `in_proj_bias`, `(3 * width)`, of queries,
/// keys and values in this order, and `out_proj`, a [`Linear`]. As a [`Layer`], it attends to its input.
#[derive(Debug)]
pub struct MultiheadAttention {
    in_proj_weight: Parameter,
    in_proj_bias: Option<Parameter>,
    out_proj: Linear,
    heads: i64,
    config: AttentionConfig,
    mode: TrainingMode,
}

module!(MultiheadAttention { in_proj_weight, in_proj_bias, out_proj, mode });

impl MultiheadAttention {
    /// A layer for vectors of a width, divided among heads, of `float32`.
    ///
    /// # Errors
    /// If the heads do not divide the width, or there is no memory.
    pub fn new(width: i64, heads: i64, generator: &Generator) -> Result<MultiheadAttention> {
        MultiheadAttention::new_with(width, heads, AttentionConfig::new(), generator)
    }

    /// As [`MultiheadAttention::new`], with options.
    ///
    /// # Errors
    /// As [`MultiheadAttention::new`], and if the probability of dropout is not between 0 and 1.
    pub fn new_with(
        width: i64,
        heads: i64,
        config: AttentionConfig,
        generator: &Generator,
    ) -> Result<MultiheadAttention> {
        if heads < 1 || width < 1 || width % heads != 0 {
            return Err(Error::value(format!(
                "vectors of {width} elements cannot be divided among {heads} heads"
            ))
            .with_help("choose a number of heads that divides the width"));
        }
        if !(0.0..=1.0).contains(&config.dropout) {
            return Err(Error::value(format!("the probability of dropout is {}", config.dropout)));
        }
        let in_proj_weight = opsmith::empty([3 * width, width])?;
        init::xavier_uniform_(&in_proj_weight, 1.0, generator)?;
        let in_proj_bias = config.bias.then(|| Parameter::new(opsmith::zeros([3 * width])?)).transpose()?;
        let out_proj = Linear::new_with(width, width, LinearConfig::new().bias(config.bias), generator)?;
        if let Some(bias) = out_proj.bias() {
            init::constant_(bias, 0.0)?;
        }
        Ok(MultiheadAttention {
            in_proj_weight: Parameter::new(in_proj_weight)?,
            in_proj_bias,
            out_proj,
            heads,
            config,
            mode: TrainingMode::default(),
        })
    }

    /// The result for each query, of the queries' shape.
    ///
    /// # Errors
    /// If shapes do not fit each other or the layer.
    pub fn attend(&self, query: &Tensor, key: &Tensor, value: &Tensor) -> Result<Tensor> {
        self.attend_with(query, key, value, AttentionMasks::new())
    }

    /// As [`MultiheadAttention::attend`], without some pairs of queries and keys.
    ///
    /// # Errors
    /// As [`MultiheadAttention::attend`].
    pub fn attend_with(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        masks: AttentionMasks,
    ) -> Result<Tensor> {
        let (query, key, value) = (self.samples(query)?, self.samples(key)?, self.samples(value)?);
        let [q, k, v] = self.projected(&query.tensor, &key.tensor, &value.tensor)?;
        let mut options = ScaledDotProductAttentionOptions::new();
        if self.mode.is_training() {
            options = options.dropout_p(self.config.dropout);
        }
        // The operator knows the causal mask alone without a matrix of it.
        let explicit = masks.causal && (masks.mask.is_some() || masks.key_padding.is_some());
        let mask = self.combined(&masks, explicit, &q, &k)?;
        options = match &mask {
            Some(mask) => options.attn_mask(mask),
            None => options.is_causal(masks.causal),
        };
        let heads = opsmith::scaled_dot_product_attention_with(&q, &k, &v, options)?;
        let joined = heads.transpose(1, 2)?.reshape(query.tensor.shape())?;
        query.restored(self.out_proj.forward(&joined)?, self.config.batch_first)
    }

    /// The weights of attention, `(samples, queries, keys)`, as means over heads, without dropout.
    ///
    /// # Errors
    /// As [`MultiheadAttention::attend`].
    pub fn weights(&self, query: &Tensor, key: &Tensor, masks: AttentionMasks) -> Result<Tensor> {
        let (query, key) = (self.samples(query)?, self.samples(key)?);
        let [q, k, _] = self.projected(&query.tensor, &key.tensor, &key.tensor)?;
        let width = (q.size(-1)? as f64).sqrt();
        let mut scores = q.matmul(&k.transpose(-2, -1)?)?.div(width)?;
        if let Some(mask) = self.combined(&masks, masks.causal, &q, &k)? {
            scores = scores.add(&mask)?;
        }
        scores.softmax(-1)?.mean_dim(Some(&[1]))
    }

    /// An input with samples first.
    fn samples(&self, input: &Tensor) -> Result<Samples> {
        let tensor = match (input.dim(), self.config.batch_first) {
            (2, _) => input.unsqueeze(0)?,
            (3, true) => input.clone(),
            (3, false) => input.transpose(0, 1)?,
            (dimensions, _) => {
                return Err(Error::shape(format!(
                    "attention takes two or three dimensions, and an input has {dimensions}"
                ))
                .with_help(format!(
                    "its shape is {:?}; give (steps, samples, width), or (samples, steps, width) with `batch_first`",
                    input.shape()
                )));
            }
        };
        Ok(Samples { tensor, one: input.dim() == 2 })
    }

    /// Projections `(samples, heads, steps, width / heads)`.
    fn projected(&self, query: &Tensor, key: &Tensor, value: &Tensor) -> Result<[Tensor; 3]> {
        let width = self.in_proj_weight.shape()[1];
        let one = |input: &Tensor, part: i64| {
            let weight = self.in_proj_weight.narrow(0, part * width, width)?;
            let bias =
                self.in_proj_bias.as_ref().map(|bias| bias.narrow(0, part * width, width)).transpose()?;
            let all = linear(input, &weight, bias.as_ref())?;
            let [samples, steps] = [all.shape()[0], all.shape()[1]];
            all.reshape([samples, steps, self.heads, width / self.heads])?.transpose(1, 2)
        };
        Ok([one(query, 0)?, one(key, 1)?, one(value, 2)?])
    }

    /// The masks as numbers that are added to scores, if there are any; the causal one among them only on request.
    fn combined(
        &self,
        masks: &AttentionMasks,
        causal: bool,
        q: &Tensor,
        k: &Tensor,
    ) -> Result<Option<Tensor>> {
        let (samples, queries, keys) = (q.shape()[0], q.shape()[2], k.shape()[2]);
        let mut all = Vec::new();
        if let Some(mask) = &masks.mask {
            let mask = scores(mask, q.dtype())?;
            all.push(match mask.dim() {
                3 => mask.reshape([samples, self.heads, queries, keys])?,
                _ => mask,
            });
        }
        if let Some(padding) = &masks.key_padding {
            all.push(scores(padding, q.dtype())?.reshape([samples, 1, 1, keys])?);
        }
        if causal {
            all.push(later_keys(q, k)?);
        }
        let Some((first, others)) = all.split_first() else { return Ok(None) };
        others.iter().try_fold(first.clone(), |sum, mask| sum.add(mask)).map(Some)
    }
}

impl Layer for MultiheadAttention {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.attend(input, input, input)
    }
}

/// An input with samples first, and whether it was one sample.
struct Samples {
    tensor: Tensor,
    one: bool,
}

impl Samples {
    /// A result in the order of the input's dimensions.
    fn restored(&self, result: Tensor, batch_first: bool) -> Result<Tensor> {
        match (self.one, batch_first) {
            (true, _) => result.squeeze_dim(0),
            (false, true) => Ok(result),
            (false, false) => result.transpose(0, 1),
        }
    }
}

/// A mask as numbers that are added to scores: minus infinity for pairs that are left out.
fn scores(mask: &Tensor, dtype: DType) -> Result<Tensor> {
    if mask.dtype() != DType::Bool {
        return mask.to_dtype(dtype);
    }
    let zeros = opsmith::zeros(mask.shape())?.to_dtype(dtype)?.to_device(mask.device())?;
    zeros.masked_fill(mask, f64::NEG_INFINITY)
}

/// The numbers that leave out keys after a query.
fn later_keys(q: &Tensor, k: &Tensor) -> Result<Tensor> {
    let (queries, keys) = (q.shape()[2], k.shape()[2]);
    let later = opsmith::ones([queries, keys])?.triu_with(opsmith::TriuOptions::new().diagonal(1))?;
    scores(&later.to_dtype(DType::Bool)?.to_device(q.device())?, q.dtype())
}
