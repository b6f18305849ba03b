//! Recurrent layers: long short-term memory, gated recurrent units, and single gates.

use opsmith::{Error, Generator, Result, Tensor, TensorOps};

use crate::config::config;
use crate::init;
use crate::module::{Layer, Module, Parameter, TrainingMode, Visitor, VisitorMut};

config! {
    /// Options of [`Lstm`] and [`Gru`].
    RecurrentConfig {
        /// Number of layers, each of which takes the states of the one before; 1 by default.
        layers: i64 = 1;
        /// Whether sums are shifted by biases; true by default.
        bias: bool = true;
        /// Whether the first dimension counts samples and the second steps; false by default, as in PyTorch.
        batch_first: bool = false;
        /// The probability of dropping a state between layers in training; 0 by default.
        dropout: f64 = 0.0;
        /// Whether each layer also runs from the last step to the first; false by default.
        bidirectional: bool = false;
    }
}

config! {
    /// Options of [`Rnn`].
    RnnConfig {
        /// The options of all recurrent layers.
        recurrent: RecurrentConfig = RecurrentConfig::new();
        /// The function of sums; the hyperbolic tangent by default.
        nonlinearity: RnnNonlinearity = RnnNonlinearity::Tanh;
    }
}

/// The function of an [`Rnn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RnnNonlinearity {
    /// The hyperbolic tangent.
    Tanh,
    /// The positive part.
    Relu,
}

/// The parameters of all layers and directions, and the shapes of inputs.
#[derive(Debug)]
struct Weights {
    /// Weights of the input and of the state, and two biases, for each layer and direction.
    parameters: Vec<Parameter>,
    units: i64,
    config: RecurrentConfig,
    mode: TrainingMode,
}

impl Weights {
    fn new(
        inputs: i64,
        units: i64,
        gates: i64,
        config: RecurrentConfig,
        generator: &Generator,
    ) -> Result<Weights> {
        if inputs < 1 || units < 1 || config.layers < 1 {
            return Err(Error::value(format!(
                "a recurrent network of {} layers from {inputs} inputs to {units} units does not exist",
                config.layers
            ))
            .with_help("give positive numbers"));
        }
        if !(0.0..=1.0).contains(&config.dropout) {
            return Err(Error::value(format!("the probability of dropout is {}", config.dropout)));
        }
        let directions = if config.bidirectional { 2 } else { 1 };
        let bound = 1.0 / (units as f64).sqrt();
        let mut parameters = Vec::new();
        let mut add = |sizes: &[i64]| -> Result<()> {
            let tensor = opsmith::empty(sizes)?;
            init::uniform_(&tensor, -bound, bound, generator)?;
            parameters.push(Parameter::new(tensor)?);
            Ok(())
        };
        for layer in 0..config.layers {
            for _ in 0..directions {
                let inputs = if layer == 0 { inputs } else { directions * units };
                add(&[gates * units, inputs])?;
                add(&[gates * units, units])?;
                if config.bias {
                    add(&[gates * units])?;
                    add(&[gates * units])?;
                }
            }
        }
        Ok(Weights { parameters, units, config, mode: TrainingMode::default() })
    }

    /// The parameters' names, as PyTorch has them.
    fn names(&self) -> impl Iterator<Item = String> + use<> {
        let kinds = if self.config.bias { 4 } else { 2 };
        let directions = if self.config.bidirectional { 2 } else { 1 };
        (0..self.parameters.len()).map(move |position| {
            let (block, kind) = (position / kinds, position % kinds);
            let kind = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"][kind];
            let suffix = if block % directions == 1 { "_reverse" } else { "" };
            format!("{kind}_l{}{suffix}", block / directions)
        })
    }

    /// The parameters as tensors.
    fn tensors(&self) -> Vec<&Tensor> {
        self.parameters.iter().map(|parameter| &**parameter).collect()
    }

    /// The probability of dropping states in this call.
    fn is_training(&self) -> bool {
        self.mode.is_training()
    }

    /// An input with three dimensions, and whether it was one sample.
    fn samples(&self, input: &Tensor) -> Result<(Tensor, bool)> {
        match input.dim() {
            2 => Ok((input.unsqueeze(self.sample_dim())?, true)),
            3 => Ok((input.clone(), false)),
            dimensions => Err(Error::shape(format!(
                "a recurrent layer takes two or three dimensions, and the input has {dimensions}"
            ))
            .with_help(format!(
                "its shape is {:?}; give (steps, samples, inputs), or (samples, steps, inputs) with `batch_first`",
                input.shape()
            ))),
        }
    }

    fn sample_dim(&self) -> i64 {
        if self.config.batch_first { 0 } else { 1 }
    }

    /// States before the first step: those given, or zeros.
    fn state(&self, given: Option<&Tensor>, input: &Tensor, one: bool) -> Result<Tensor> {
        if let Some(state) = given {
            return if one { state.unsqueeze(1) } else { Ok(state.clone()) };
        }
        let directions = if self.config.bidirectional { 2 } else { 1 };
        let samples = input.size(self.sample_dim())?;
        let zeros = opsmith::zeros([self.config.layers * directions, samples, self.units])?;
        zeros.to_dtype(input.dtype())?.to_device(input.device())
    }

    /// A result without the dimension of samples, if the input had none.
    fn output(&self, output: Tensor, one: bool) -> Result<Tensor> {
        if one { output.squeeze_dim(self.sample_dim()) } else { Ok(output) }
    }
}

/// Last states without the dimension of samples, if the input had none.
fn last(state: Tensor, one: bool) -> Result<Tensor> {
    if one { state.squeeze_dim(1) } else { Ok(state) }
}

impl Module for Weights {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.names().zip(&self.parameters).for_each(|(name, parameter)| visitor.field(&name, parameter));
        visitor.field("", &self.mode);
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        let names = self.names();
        names.zip(&mut self.parameters).for_each(|(name, parameter)| visitor.field(&name, parameter));
        visitor.field("", &mut self.mode);
    }
}

macro_rules! recurrent {
    ($name:ident) => {
        impl Module for $name {
            fn visit(&self, visitor: &mut Visitor<'_>) {
                self.weights.visit(visitor);
            }

            fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
                self.weights.visit_mut(visitor);
            }
        }

        /// The states of the last layer at all steps, from states of zero.
        impl Layer for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                Ok(self.run(input, None)?.0)
            }
        }
    };
}

/// Long short-term memory over sequences (Hochreiter and Schmidhuber, 1997).
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::Lstm;
///
/// # fn main() -> opsmith::Result<()> {
/// let layer = Lstm::new(4, 8, &Generator::new(0))?;
/// let (output, (hidden, cell)) = layer.run(&opsmith::randn([5, 2, 4])?, None)?;
/// assert_eq!((output.shape(), hidden.shape(), cell.shape()), (&[5, 2, 8][..], &[1, 2, 8][..], &[1, 2, 8][..]));
/// # Ok(())
/// # }
/// ```
///
/// `(steps, samples, inputs)`, or `(samples, steps, inputs)` with `batch_first`, or one sample, `(steps, inputs)`.
/// Parameters for each layer `N`: `weight_ih_lN`, `(4 * units, inputs)`, `weight_hh_lN`, `(4 * units, units)`,
/// `bias_ih_lN` and `bias_hh_lN`, `(4 * units)`, with gates in the order input, forget, cell, output, and the same with
/// `_reverse`; all uniform within `1 / √units` at first.
#[derive(Debug)]
pub struct Lstm {
    weights: Weights,
}

recurrent!(Lstm);

impl Lstm {
    /// A layer of `float32`.
    ///
    /// # Errors
    /// If a number is not positive, or there is no memory.
    pub fn new(inputs: i64, units: i64, generator: &Generator) -> Result<Lstm> {
        Lstm::new_with(inputs, units, RecurrentConfig::new(), generator)
    }

    /// As [`Lstm::new`], with options.
    ///
    /// # Errors
    /// As [`Lstm::new`], and if the probability of dropout is not between 0 and 1.
    pub fn new_with(inputs: i64, units: i64, config: RecurrentConfig, generator: &Generator) -> Result<Lstm> {
        Ok(Lstm { weights: Weights::new(inputs, units, 4, config, generator)? })
    }

    /// The states of the last layer at all steps, and the last hidden and cell states, `(layers * directions, samples,
    /// units)`, from given ones or zeros.
    ///
    /// # Errors
    /// If shapes do not fit each other or the layer.
    pub fn run(
        &self,
        input: &Tensor,
        state: Option<(&Tensor, &Tensor)>,
    ) -> Result<(Tensor, (Tensor, Tensor))> {
        let of = &self.weights;
        let (input, one) = of.samples(input)?;
        let hidden = of.state(state.map(|state| state.0), &input, one)?;
        let cell = of.state(state.map(|state| state.1), &input, one)?;
        let RecurrentConfig { layers, bias, batch_first, dropout, bidirectional } = of.config;
        let (output, hidden, cell) = opsmith::lstm(
            &input,
            &[hidden, cell],
            &of.tensors(),
            bias,
            layers,
            dropout,
            of.is_training(),
            bidirectional,
            batch_first,
        )?;
        Ok((of.output(output, one)?, (last(hidden, one)?, last(cell, one)?)))
    }
}

/// Gated recurrent units over sequences (Cho et al., 2014).
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::Gru;
///
/// # fn main() -> opsmith::Result<()> {
/// let (output, hidden) = Gru::new(4, 8, &Generator::new(0))?.run(&opsmith::randn([5, 2, 4])?, None)?;
/// assert_eq!((output.shape(), hidden.shape()), (&[5, 2, 8][..], &[1, 2, 8][..]));
/// # Ok(())
/// # }
/// ```
///
/// Shapes and parameters as those of [`Lstm`], with `3 * units` rows, of gates in the order reset, update, new.
#[derive(Debug)]
pub struct Gru {
    weights: Weights,
}

recurrent!(Gru);

impl Gru {
    /// A layer of `float32`.
    ///
    /// # Errors
    /// If a number is not positive, or there is no memory.
    pub fn new(inputs: i64, units: i64, generator: &Generator) -> Result<Gru> {
        Gru::new_with(inputs, units, RecurrentConfig::new(), generator)
    }

    /// As [`Gru::new`], with options.
    ///
    /// # Errors
    /// As [`Lstm::new_with`].
    pub fn new_with(inputs: i64, units: i64, config: RecurrentConfig, generator: &Generator) -> Result<Gru> {
        Ok(Gru { weights: Weights::new(inputs, units, 3, config, generator)? })
    }

    /// The states of the last layer at all steps, and the last states, from given ones or zeros.
    ///
    /// # Errors
    /// If shapes do not fit each other or the layer.
    pub fn run(&self, input: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let of = &self.weights;
        let (input, one) = of.samples(input)?;
        let state = of.state(state, &input, one)?;
        let RecurrentConfig { layers, bias, batch_first, dropout, bidirectional } = of.config;
        let (output, state) = opsmith::gru(
            &input,
            &state,
            &of.tensors(),
            bias,
            layers,
            dropout,
            of.is_training(),
            bidirectional,
            batch_first,
        )?;
        Ok((of.output(output, one)?, last(state, one)?))
    }
}

/// Recurrent layers of one gate: `tanh(input sum + state sum)`.
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::Rnn;
///
/// # fn main() -> opsmith::Result<()> {
/// let (output, hidden) = Rnn::new(4, 8, &Generator::new(0))?.run(&opsmith::randn([5, 2, 4])?, None)?;
/// assert_eq!((output.shape(), hidden.shape()), (&[5, 2, 8][..], &[1, 2, 8][..]));
/// # Ok(())
/// # }
/// ```
///
/// Shapes and parameters as those of [`Lstm`], with `units` rows.
#[derive(Debug)]
pub struct Rnn {
    weights: Weights,
    nonlinearity: RnnNonlinearity,
}

recurrent!(Rnn);

impl Rnn {
    /// A layer of `float32`.
    ///
    /// # Errors
    /// If a number is not positive, or there is no memory.
    pub fn new(inputs: i64, units: i64, generator: &Generator) -> Result<Rnn> {
        Rnn::new_with(inputs, units, RnnConfig::new(), generator)
    }

    /// As [`Rnn::new`], with options.
    ///
    /// # Errors
    /// As [`Lstm::new_with`].
    pub fn new_with(inputs: i64, units: i64, config: RnnConfig, generator: &Generator) -> Result<Rnn> {
        let RnnConfig { recurrent, nonlinearity } = config;
        Ok(Rnn { weights: Weights::new(inputs, units, 1, recurrent, generator)?, nonlinearity })
    }

    /// The states of the last layer at all steps, and the last states, from given ones or zeros.
    ///
    /// # Errors
    /// If shapes do not fit each other or the layer.
    pub fn run(&self, input: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let of = &self.weights;
        let (input, one) = of.samples(input)?;
        let state = of.state(state, &input, one)?;
        let RecurrentConfig { layers, bias, batch_first, dropout, bidirectional } = of.config;
        let run = match self.nonlinearity {
            RnnNonlinearity::Tanh => opsmith::rnn_tanh,
            RnnNonlinearity::Relu => opsmith::rnn_relu,
        };
        let parameters = of.tensors();
        let (output, state) = run(
            &input,
            &state,
            &parameters,
            bias,
            layers,
            dropout,
            of.is_training(),
            bidirectional,
            batch_first,
        )?;
        Ok((of.output(output, one)?, last(state, one)?))
    }
}
