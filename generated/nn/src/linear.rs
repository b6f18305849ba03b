//! Linear layers, and layers without parameters that change shapes at most.

use opsmith::{Error, FlattenOptions, Generator, LinearOptions, Result, Tensor, TensorOps};

use crate::config::config;
use crate::module::{Layer, Parameter};
use crate::{init, module};

config! {
    /// Options of [`Linear`].
    LinearConfig {
        /// Whether results are shifted by a bias; true by default.
        bias: bool = true;
    }
}

/// `input @ weight.t() + bias`, over the last dimension.
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::{Layer, Linear};
///
/// # fn main() -> opsmith::Result<()> {
/// let layer = Linear::new(3, 2, &Generator::new(0))?;
/// assert_eq!(layer.forward(&opsmith::ones([5, 3])?)?.shape(), [5, 2]);
/// # Ok(())
/// # }
/// ```
///
/// `(…, inputs)` gives `(…, outputs)`. Parameters: `weight`, `(outputs, inputs)`, and `bias`, `(outputs)`, both uniform
/// within `1 / √inputs` at first.
#[derive(Debug)]
pub struct Linear {
    weight: Parameter,
    bias: Option<Parameter>,
}

module!(Linear { weight, bias });

impl Linear {
    /// A layer with a bias, of `float32`.
    ///
    /// # Errors
    /// If a size is negative, or there is no memory.
    pub fn new(inputs: i64, outputs: i64, generator: &Generator) -> Result<Linear> {
        Linear::new_with(inputs, outputs, LinearConfig::new(), generator)
    }

    /// As [`Linear::new`], with options.
    ///
    /// # Errors
    /// As [`Linear::new`].
    pub fn new_with(
        inputs: i64,
        outputs: i64,
        config: LinearConfig,
        generator: &Generator,
    ) -> Result<Linear> {
        let weight = opsmith::empty([outputs, inputs])?;
        let bias = config.bias.then(|| opsmith::empty([outputs])).transpose()?;
        init::default_(&weight, bias.as_ref(), generator)?;
        Ok(Linear { weight: Parameter::new(weight)?, bias: bias.map(Parameter::new).transpose()? })
    }

    /// The weight, `(outputs, inputs)`.
    pub fn weight(&self) -> &Parameter {
        &self.weight
    }

    /// The bias, `(outputs)`, if there is one.
    pub fn bias(&self) -> Option<&Parameter> {
        self.bias.as_ref()
    }

    /// The same layer with the weight of another module, for tied weights.
    ///
    /// # Errors
    /// If the shapes differ.
    pub fn with_weight(mut self, weight: &Parameter) -> Result<Linear> {
        if weight.shape() != self.weight.shape() {
            return Err(Error::shape(format!(
                "a weight of shape {:?} cannot replace one of shape {:?}",
                weight.shape(),
                self.weight.shape()
            )));
        }
        self.weight = weight.tied();
        Ok(self)
    }
}

impl Layer for Linear {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        linear(input, &self.weight, self.bias.as_deref())
    }
}

/// The linear operator with an optional bias.
pub(crate) fn linear(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    match bias {
        Some(bias) => opsmith::linear_with(input, weight, LinearOptions::new().bias(bias)),
        None => opsmith::linear(input, weight),
    }
}

/// A range of dimensions as one.
///
/// ```
/// use opsmith_nn::{Flatten, Layer};
///
/// # fn main() -> opsmith::Result<()> {
/// assert_eq!(Flatten::new().forward(&opsmith::ones([2, 3, 4])?)?.shape(), [2, 12]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Flatten {
    first: i64,
    last: i64,
}

module!(Flatten {});

impl Flatten {
    /// All dimensions but the first, which counts samples.
    pub fn new() -> Flatten {
        Flatten::range(1, -1)
    }

    /// The dimensions from `first` to `last`, which is included; negative ones count from the end.
    pub fn range(first: i64, last: i64) -> Flatten {
        Flatten { first, last }
    }
}

impl Default for Flatten {
    fn default() -> Self {
        Flatten::new()
    }
}

impl Layer for Flatten {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.flatten_with(FlattenOptions::new().start_dim(self.first).end_dim(self.last))
    }
}

/// The input itself.
///
/// ```
/// use opsmith_nn::{Identity, Layer};
///
/// # fn main() -> opsmith::Result<()> {
/// let x = opsmith::ones([2])?;
/// assert!(Identity.forward(&x)?.same(&x));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity;

module!(Identity {});

impl Layer for Identity {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        Ok(input.clone())
    }
}
