//! Activations as layers.

use opsmith::{EluOptions, GeluOptions, LeakyReluOptions, Result, SoftplusOptions, Tensor, TensorOps};

use crate::module;
use crate::module::{Layer, Parameter};

macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident => $method:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        module!($name {});

        impl Layer for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$method()
            }
        }
    )*};
}

activations! {
    /// `max(x, 0)`.
    ///
    /// ```
    /// use opsmith_nn::{Layer, Relu};
    ///
    /// let x = opsmith::Tensor::of(&[-1.0f32, 2.0]);
    /// assert_eq!(Relu.forward(&x).unwrap().to_vec::<f32>().unwrap(), [0.0, 2.0]);
    /// ```
    Relu => relu;
    /// `min(max(x, 0), 6)`.
    ///
    /// ```
    /// use opsmith_nn::{Layer, Relu6};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = opsmith::Tensor::of(&[-1.0, 7.0]);
    /// assert_eq!(Relu6.forward(&x)?.to_vec::<f64>()?, [0.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    Relu6 => relu6;
    /// `x * sigmoid(x)`.
    ///
    /// ```
    /// use opsmith_nn::{Layer, Silu};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = opsmith::Tensor::of(&[0.0]);
    /// assert_eq!(Silu.forward(&x)?.to_vec::<f64>()?, [0.0]);
    /// # Ok(())
    /// # }
    /// ```
    Silu => silu;
    /// `x * tanh(softplus(x))`.
    ///
    /// ```
    /// use opsmith_nn::{Layer, Mish};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = opsmith::Tensor::of(&[0.0]);
    /// assert_eq!(Mish.forward(&x)?.to_vec::<f64>()?, [0.0]);
    /// # Ok(())
    /// # }
    /// ```
    Mish => mish;
    /// `x * relu6(x + 3) / 6`.
    ///
    /// ```
    /// use opsmith_nn::{Layer, Hardswish};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = opsmith::Tensor::of(&[-4.0, 0.0, 3.0]);
    /// assert_eq!(Hardswish.forward(&x)?.to_vec::<f64>()?, [0.0, 0.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    Hardswish => hardswish;
    /// `1 / (1 + exp(-x))`.
    ///
    /// ```
    /// use opsmith_nn::{Layer, Sigmoid};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = opsmith::Tensor::of(&[0.0]);
    /// assert_eq!(Sigmoid.forward(&x)?.to_vec::<f64>()?, [0.5]);
    /// # Ok(())
    /// # }
    /// ```
    Sigmoid => sigmoid;
    /// The hyperbolic tangent.
    ///
    /// ```
    /// use opsmith_nn::{Layer, Tanh};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = opsmith::Tensor::of(&[0.0]);
    /// assert_eq!(Tanh.forward(&x)?.to_vec::<f64>()?, [0.0]);
    /// # Ok(())
    /// # }
    /// ```
    Tanh => tanh;
}

/// `x` times the probability that a normally distributed number is at most `x`.
///
/// ```
/// use opsmith_nn::{Gelu, Layer};
///
/// let x = opsmith::Tensor::of(&[0.0f32]);
/// assert_eq!(Gelu::exact().forward(&x).unwrap().to_vec::<f32>().unwrap(), [0.0]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Gelu {
    tanh: bool,
}

module!(Gelu {});

impl Gelu {
    /// With the error function.
    pub fn exact() -> Gelu {
        Gelu { tanh: false }
    }

    /// Approximated with the hyperbolic tangent.
    pub fn tanh() -> Gelu {
        Gelu { tanh: true }
    }
}

impl Layer for Gelu {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        if self.tanh { input.gelu_with(GeluOptions::new().approximate("tanh")) } else { input.gelu() }
    }
}

/// `max(x, 0) + slope * min(x, 0)`.
///
/// ```
/// use opsmith_nn::{Layer, LeakyRelu};
///
/// # fn main() -> opsmith::Result<()> {
/// let x = opsmith::Tensor::of(&[-1.0, 2.0]);
/// assert_eq!(LeakyRelu::new(0.5).forward(&x)?.to_vec::<f64>()?, [-0.5, 2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LeakyRelu {
    slope: f64,
}

module!(LeakyRelu {});

impl LeakyRelu {
    /// With a slope of negative numbers, PyTorch's default of which is 0.01.
    pub fn new(slope: f64) -> LeakyRelu {
        LeakyRelu { slope }
    }
}

impl Layer for LeakyRelu {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.leaky_relu_with(LeakyReluOptions::new().negative_slope(self.slope))
    }
}

/// `x` if it is positive, else `alpha * (exp(x) - 1)`.
///
/// ```
/// use opsmith_nn::{Layer, Elu};
///
/// # fn main() -> opsmith::Result<()> {
/// let x = opsmith::Tensor::of(&[0.0, 2.0]);
/// assert_eq!(Elu::new(1.0).forward(&x)?.to_vec::<f64>()?, [0.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Elu {
    alpha: f64,
}

module!(Elu {});

impl Elu {
    /// With a limit of negative numbers, PyTorch's default of which is 1.
    pub fn new(alpha: f64) -> Elu {
        Elu { alpha }
    }
}

impl Layer for Elu {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.elu_with(EluOptions::new().alpha(self.alpha))
    }
}

/// `log(1 + exp(beta * x)) / beta`, and `x` where `beta * x` is above a threshold.
///
/// ```
/// use opsmith_nn::{Layer, Softplus};
///
/// # fn main() -> opsmith::Result<()> {
/// let x = opsmith::Tensor::of(&[30.0]);
/// assert_eq!(Softplus::new(1.0, 20.0).forward(&x)?.to_vec::<f64>()?, [30.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Softplus {
    beta: f64,
    threshold: f64,
}

module!(Softplus {});

impl Softplus {
    /// PyTorch's defaults are 1 and 20.
    pub fn new(beta: f64, threshold: f64) -> Softplus {
        Softplus { beta, threshold }
    }
}

impl Layer for Softplus {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.softplus_with(SoftplusOptions::new().beta(self.beta).threshold(self.threshold))
    }
}

/// `max(x, 0) + weight * min(x, 0)`, with a learned slope for all channels, the second dimension, or for each.
///
/// ```
/// use opsmith_nn::{Layer, Prelu};
///
/// # fn main() -> opsmith::Result<()> {
/// let x = opsmith::Tensor::of(&[-1.0f32, 2.0]);
/// assert_eq!(Prelu::new(1)?.forward(&x)?.to_vec::<f32>()?, [-0.25, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// Parameter: `weight`, `(1)` or `(channels)`, 1/4 at first.
#[derive(Debug)]
pub struct Prelu {
    weight: Parameter,
}

module!(Prelu { weight });

impl Prelu {
    /// With one slope, or as many as channels.
    ///
    /// # Errors
    /// If the number is negative, or there is no memory.
    pub fn new(slopes: i64) -> Result<Prelu> {
        Ok(Prelu { weight: Parameter::new(opsmith::full([slopes], 0.25)?)? })
    }
}

impl Layer for Prelu {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.prelu(&self.weight)
    }
}

/// `exp(x)` along a dimension, divided by its sum.
///
/// ```
/// use opsmith_nn::{Layer, Softmax};
///
/// # fn main() -> opsmith::Result<()> {
/// let x = opsmith::Tensor::of(&[1.0, 1.0]);
/// assert_eq!(Softmax { dim: -1 }.forward(&x)?.to_vec::<f64>()?, [0.5, 0.5]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Softmax {
    /// The dimension, from the end if it is negative.
    pub dim: i64,
}

module!(Softmax {});

impl Layer for Softmax {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.softmax(self.dim)
    }
}

/// The logarithm of [`Softmax`].
///
/// ```
/// use opsmith_nn::{Layer, LogSoftmax};
///
/// # fn main() -> opsmith::Result<()> {
/// let x = opsmith::Tensor::of(&[1.0]);
/// assert_eq!(LogSoftmax { dim: 0 }.forward(&x)?.to_vec::<f64>()?, [0.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LogSoftmax {
    /// The dimension, from the end if it is negative.
    pub dim: i64,
}

module!(LogSoftmax {});

impl Layer for LogSoftmax {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.log_softmax(self.dim)
    }
}
