//! Initial values of parameters, written in place, from a generator.
//!
//! In: a tensor and a distribution. Out: the tensor's elements. Nothing is recorded for gradients.
//!
//! A weight has the shape `(outputs, inputs, window…)`; its *fan-in* is `inputs * window…`, its *fan-out*
//! `outputs * window…`.

use opsmith::autograd::no_grad;
use opsmith::{Error, Generator, NormalOptions, Result, Tensor, TensorOps, UniformOptions};

/// The dimension of a weight that the variance of results or of gradients depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fan {
    /// Inputs: keeps the variance of results.
    In,
    /// Outputs: keeps the variance of gradients.
    Out,
}

/// The function that follows a layer.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Nonlinearity {
    /// None, or a sigmoid: gain 1.
    Linear,
    /// The hyperbolic tangent: gain 5/3.
    Tanh,
    /// Positive parts: gain √2.
    Relu,
    /// Positive parts, and negative ones times a slope: gain √(2 / (1 + slope²)).
    LeakyRelu(f64),
    /// Self-normalising: gain 3/4.
    Selu,
}

impl Nonlinearity {
    /// The recommended ratio between the deviations of weights and of those that would keep the variance.
    ///
    /// ```
    /// use opsmith_nn::init::Nonlinearity;
    ///
    /// assert_eq!(Nonlinearity::Relu.gain(), 2f64.sqrt());
    /// ```
    pub fn gain(self) -> f64 {
        match self {
            Nonlinearity::Linear => 1.0,
            Nonlinearity::Tanh => 5.0 / 3.0,
            Nonlinearity::Relu => 2f64.sqrt(),
            Nonlinearity::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
            Nonlinearity::Selu => 0.75,
        }
    }
}

/// Fan-in and fan-out of a weight.
///
/// ```
/// use opsmith_nn::init;
///
/// # fn main() -> opsmith::Result<()> {
/// let weight = opsmith::zeros([4, 3, 2])?;
/// assert_eq!(init::fans(&weight)?, (6, 8));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If it has fewer than two dimensions.
pub fn fans(weight: &Tensor) -> Result<(i64, i64)> {
    let [outputs, inputs, window @ ..] = weight.shape() else {
        return Err(Error::shape(format!("a tensor of {} dimensions has no fan-in", weight.dim()))
            .with_help("give a weight of two dimensions or more, or use `uniform_` with bounds"));
    };
    let window: i64 = window.iter().product();
    Ok((inputs * window, outputs * window))
}

/// Writes numbers from `low` to below `high`.
///
/// ```
/// use opsmith::{Generator, zeros};
/// use opsmith_nn::init;
///
/// # fn main() -> opsmith::Result<()> {
/// let weight = zeros([100])?;
/// init::uniform_(&weight, -0.5, 0.5, &Generator::new(0))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|x| x.abs() <= 0.5));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the tensor's dtype is no float, or `low` is above `high`.
pub fn uniform_(tensor: &Tensor, low: f64, high: f64, generator: &Generator) -> Result<()> {
    no_grad(|| tensor.uniform_with_(UniformOptions::new().from(low).to(high).generator(generator)))
}

/// Writes normally distributed numbers.
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::init;
///
/// # fn main() -> opsmith::Result<()> {
/// let weight = opsmith::zeros([4, 4])?;
/// init::normal_(&weight, 0.0, 1.0, &Generator::new(0))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|x| *x != 0.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the tensor's dtype is no float, or the deviation is negative.
pub fn normal_(tensor: &Tensor, mean: f64, std: f64, generator: &Generator) -> Result<()> {
    no_grad(|| tensor.normal_with_(NormalOptions::new().mean(mean).std(std).generator(generator)))
}

/// Writes normally distributed numbers from `low` to `high`; others are not drawn.
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::init;
///
/// # fn main() -> opsmith::Result<()> {
/// let weight = opsmith::zeros([4, 4])?;
/// init::trunc_normal_(&weight, 0.0, 1.0, -2.0, 2.0, &Generator::new(0))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|x| x.abs() <= 2.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the tensor's dtype is no float, or `low` is not below `high`.
pub fn trunc_normal_(
    tensor: &Tensor,
    mean: f64,
    std: f64,
    low: f64,
    high: f64,
    generator: &Generator,
) -> Result<()> {
    if low.is_nan() || high.is_nan() || low >= high || std.is_nan() || std <= 0.0 {
        return Err(Error::value(format!(
            "no numbers lie between {low} and {high} with the deviation {std}"
        ))
        .with_help("give a lower bound below the upper one and a positive deviation"));
    }
    // The inverse of the distribution function at uniform numbers between its values at the bounds.
    let unit = |bound: f64| erf((bound - mean) / (std * 2f64.sqrt()));
    no_grad(|| {
        let (low_value, high_value) = (unit(low)?, unit(high)?);
        tensor.uniform_with_(UniformOptions::new().from(low_value).to(high_value).generator(generator))?;
        tensor.erfinv_()?;
        tensor.mul_(std * 2f64.sqrt())?;
        tensor.add_(mean)?;
        tensor.clamp_with_(opsmith::ClampOptions::new().min(low).max(high))
    })
}

/// The error function of a number.
fn erf(x: f64) -> Result<f64> {
    Ok(Tensor::scalar(x, opsmith::DType::F64).erf()?.item()?.to_f64())
}

/// Writes one number to all elements.
///
/// ```
/// use opsmith_nn::init;
///
/// # fn main() -> opsmith::Result<()> {
/// let weight = opsmith::zeros([4, 4])?;
/// init::constant_(&weight, 0.5)?;
/// assert_eq!(weight.to_vec::<f32>()?, [0.5; 16]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the tensor's dtype cannot hold it.
pub fn constant_(tensor: &Tensor, value: f64) -> Result<()> {
    no_grad(|| tensor.fill_(value))
}

/// Writes the identity matrix: 1 on the diagonal, else 0.
///
/// ```
/// use opsmith_nn::init;
///
/// # fn main() -> opsmith::Result<()> {
/// let weight = opsmith::zeros([2, 2])?;
/// init::eye_(&weight)?;
/// assert_eq!(weight.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the tensor is no matrix.
pub fn eye_(tensor: &Tensor) -> Result<()> {
    if tensor.dim() != 2 {
        return Err(Error::shape(format!(
            "the identity is a matrix, and the tensor has {} dimensions",
            tensor.dim()
        )));
    }
    no_grad(|| {
        tensor.zero_()?;
        tensor.diagonal()?.fill_(1.0)
    })
}

/// Writes uniform numbers whose variance is `gain² * 2 / (fan_in + fan_out)` (Glorot and Bengio, *Understanding the
/// difficulty of training deep feedforward neural networks*, 2010).
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::init;
///
/// # fn main() -> opsmith::Result<()> {
/// let weight = opsmith::zeros([4, 4])?;
/// init::xavier_uniform_(&weight, 1.0, &Generator::new(0))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|x| x.abs() <= 0.75f32.sqrt()));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the tensor has fewer than two dimensions or is no float.
pub fn xavier_uniform_(tensor: &Tensor, gain: f64, generator: &Generator) -> Result<()> {
    let bound = 3f64.sqrt() * xavier_deviation(tensor, gain)?;
    uniform_(tensor, -bound, bound, generator)
}

/// As [`xavier_uniform_`], with normally distributed numbers.
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::init;
///
/// # fn main() -> opsmith::Result<()> {
/// let weight = opsmith::zeros([4, 4])?;
/// init::xavier_normal_(&weight, 1.0, &Generator::new(0))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|x| *x != 0.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`xavier_uniform_`].
pub fn xavier_normal_(tensor: &Tensor, gain: f64, generator: &Generator) -> Result<()> {
    normal_(tensor, 0.0, xavier_deviation(tensor, gain)?, generator)
}

fn xavier_deviation(tensor: &Tensor, gain: f64) -> Result<f64> {
    let (fan_in, fan_out) = fans(tensor)?;
    Ok(gain * (2.0 / (fan_in + fan_out).max(1) as f64).sqrt())
}

/// Writes uniform numbers of the deviation `gain / √fan` (He et al., *Delving deep into rectifiers*, 2015).
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::init::{self, Fan, Nonlinearity};
///
/// # fn main() -> opsmith::Result<()> {
/// let weight = opsmith::zeros([4, 4])?;
/// init::kaiming_uniform_(&weight, Fan::In, Nonlinearity::Relu, &Generator::new(0))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|x| x.abs() <= 1.5f32.sqrt()));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the tensor has fewer than two dimensions or is no float.
pub fn kaiming_uniform_(
    tensor: &Tensor,
    fan: Fan,
    nonlinearity: Nonlinearity,
    generator: &Generator,
) -> Result<()> {
    let bound = 3f64.sqrt() * kaiming_deviation(tensor, fan, nonlinearity)?;
    uniform_(tensor, -bound, bound, generator)
}

/// As [`kaiming_uniform_`], with normally distributed numbers.
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::init::{self, Fan, Nonlinearity};
///
/// # fn main() -> opsmith::Result<()> {
/// let weight = opsmith::zeros([4, 4])?;
/// init::kaiming_normal_(&weight, Fan::Out, Nonlinearity::Relu, &Generator::new(0))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|x| *x != 0.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`kaiming_uniform_`].
pub fn kaiming_normal_(
    tensor: &Tensor,
    fan: Fan,
    nonlinearity: Nonlinearity,
    generator: &Generator,
) -> Result<()> {
    normal_(tensor, 0.0, kaiming_deviation(tensor, fan, nonlinearity)?, generator)
}

fn kaiming_deviation(tensor: &Tensor, fan: Fan, nonlinearity: Nonlinearity) -> Result<f64> {
    let (fan_in, fan_out) = fans(tensor)?;
    let fan = if fan == Fan::In { fan_in } else { fan_out };
    Ok(nonlinearity.gain() / (fan.max(1) as f64).sqrt())
}

/// Writes a matrix with orthonormal rows or columns, whichever are fewer, times `gain` (Saxe et al., *Exact solutions to
/// the nonlinear dynamics of learning in deep linear neural networks*, 2013). Dimensions from the second on are one.
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::init;
///
/// # fn main() -> opsmith::Result<()> {
/// let weight = opsmith::zeros([4, 4])?;
/// init::orthogonal_(&weight, 1.0, &Generator::new(0))?;
/// assert!(weight.to_vec::<f32>()?.iter().all(|x| *x != 0.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the tensor has fewer than two dimensions or is no float.
pub fn orthogonal_(tensor: &Tensor, gain: f64, generator: &Generator) -> Result<()> {
    fans(tensor)?;
    if tensor.numel() == 0 {
        return Ok(());
    }
    no_grad(|| {
        let (rows, columns) = (tensor.shape()[0], tensor.numel() / tensor.shape()[0]);
        let (tall, narrow) = (rows.max(columns), rows.min(columns));
        let (q, r) = opsmith::linalg_qr(&opsmith::randn_generator([tall, narrow], Some(generator))?)?;
        // Signs that make the factorisation unique, and the result uniformly distributed.
        let q = q.mul(&r.diagonal()?.sign()?)?;
        let q = if rows < columns { q.t()? } else { q };
        let q = q.reshape(tensor.shape())?.mul(gain)?;
        tensor.copy_(&q.to_device(tensor.device())?)
    })
}

/// The default of PyTorch's layers: uniform numbers within `1 / √fan_in` for a weight, and for its bias.
pub(crate) fn default_(weight: &Tensor, bias: Option<&Tensor>, generator: &Generator) -> Result<()> {
    // The gain of a slope of √5, times √3, is 1.
    let bound = 1.0 / (fans(weight)?.0.max(1) as f64).sqrt();
    uniform_(weight, -bound, bound, generator)?;
    bias.map_or(Ok(()), |bias| uniform_(bias, -bound, bound, generator))
}
