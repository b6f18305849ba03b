//! Convolutions over one, two and three dimensions, and transposed ones.

use opsmith::{
    Conv1dOptions, Conv2dOptions, Conv3dOptions, ConvTranspose1dOptions, ConvTranspose2dOptions,
    ConvTranspose3dOptions, Error, Generator, Result, Tensor,
};

use crate::config::config;
use crate::module::{Layer, Parameter};
use crate::per_axis::PerAxis;
use crate::{init, module};

config! {
    /// Options of a convolution. Lengths are a number for all axes or an array.
    ConvConfig<const N: usize> {
        /// Distance of neighbouring windows; 1 by default.
        stride: [i64; N] = [1; N], set impl Into<PerAxis<N>> => stride.into().0;
        /// Zeros at both ends of each axis; 0 by default.
        padding: [i64; N] = [0; N], set impl Into<PerAxis<N>> => padding.into().0;
        /// Distance of the elements of a window; 1 by default.
        dilation: [i64; N] = [1; N], set impl Into<PerAxis<N>> => dilation.into().0;
        /// Groups of channels that are convolved separately; 1 by default.
        groups: i64 = 1;
        /// Whether results are shifted by a bias; true by default.
        bias: bool = true;
    }
}

config! {
    /// Options of a transposed convolution. Lengths are a number for all axes or an array.
    ConvTransposeConfig<const N: usize> {
        /// Distance of neighbouring windows in the result; 1 by default.
        stride: [i64; N] = [1; N], set impl Into<PerAxis<N>> => stride.into().0;
        /// Places that are cut from both ends of each axis of the result; 0 by default.
        padding: [i64; N] = [0; N], set impl Into<PerAxis<N>> => padding.into().0;
        /// Places that are added at one end of each axis of the result; 0 by default.
        output_padding: [i64; N] = [0; N], set impl Into<PerAxis<N>> => output_padding.into().0;
        /// Distance of the elements of a window; 1 by default.
        dilation: [i64; N] = [1; N], set impl Into<PerAxis<N>> => dilation.into().0;
        /// Groups of channels that are convolved separately; 1 by default.
        groups: i64 = 1;
        /// Whether results are shifted by a bias; true by default.
        bias: bool = true;
    }
}

/// A convolution over `N` dimensions, 1 to 3: [`Conv1d`], [`Conv2d`], [`Conv3d`].
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::{Conv2d, ConvConfig, Layer};
///
/// # fn main() -> opsmith::Result<()> {
/// let layer = Conv2d::new_with(3, 8, 3, ConvConfig::new().stride(2).padding([1, 0]), &Generator::new(0))?;
/// assert_eq!(layer.forward(&opsmith::ones([1, 3, 9, 9])?)?.shape(), [1, 8, 5, 4]);
/// # Ok(())
/// # }
/// ```
///
/// `(samples, inputs, places…)`, or one sample without the first dimension, gives `(samples, outputs, windows…)`.
/// Parameters: `weight`, `(outputs, inputs / groups, kernel…)`, and `bias`, `(outputs)`, both uniform within
/// `1 / √(inputs / groups * kernel…)` at first.
#[derive(Debug)]
pub struct Conv<const N: usize> {
    weight: Parameter,
    bias: Option<Parameter>,
    config: ConvConfig<N>,
}

/// A convolution over one dimension.
pub type Conv1d = Conv<1>;
/// A convolution over two dimensions.
pub type Conv2d = Conv<2>;
/// A convolution over three dimensions.
pub type Conv3d = Conv<3>;

module!(<const N: usize> Conv<N> { weight, bias });

impl<const N: usize> Conv<N> {
    /// A convolution with a bias, of `float32`.
    ///
    /// # Errors
    /// If a number of channels or a length is not positive, or there is no memory.
    pub fn new(
        inputs: i64,
        outputs: i64,
        kernel: impl Into<PerAxis<N>>,
        generator: &Generator,
    ) -> Result<Self> {
        Self::new_with(inputs, outputs, kernel, ConvConfig::new(), generator)
    }

    /// As [`Conv::new`], with options.
    ///
    /// # Errors
    /// As [`Conv::new`], and if `groups` does not divide both numbers of channels.
    pub fn new_with(
        inputs: i64,
        outputs: i64,
        kernel: impl Into<PerAxis<N>>,
        config: ConvConfig<N>,
        generator: &Generator,
    ) -> Result<Self> {
        check_channels::<N>(inputs, outputs, config.groups)?;
        let sizes = [&[outputs, inputs / config.groups][..], &kernel.into().0].concat();
        let (weight, bias) = parameters(&sizes, config.bias.then_some(outputs), generator)?;
        Ok(Conv { weight, bias, config })
    }

    /// The weight.
    pub fn weight(&self) -> &Parameter {
        &self.weight
    }

    /// The bias, if there is one.
    pub fn bias(&self) -> Option<&Parameter> {
        self.bias.as_ref()
    }
}

macro_rules! options {
    ($options:ident, $this:ident, $($field:ident),*) => {{
        let options = $options::new().groups($this.config.groups)$(.$field($this.config.$field))*;
        match &$this.bias {
            Some(bias) => options.bias(bias),
            None => options,
        }
    }};
}

impl<const N: usize> Layer for Conv<N> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let weight = &self.weight;
        match N {
            1 => {
                opsmith::conv1d_with(input, weight, options!(Conv1dOptions, self, stride, padding, dilation))
            }
            2 => {
                opsmith::conv2d_with(input, weight, options!(Conv2dOptions, self, stride, padding, dilation))
            }
            _ => {
                opsmith::conv3d_with(input, weight, options!(Conv3dOptions, self, stride, padding, dilation))
            }
        }
    }
}

/// A transposed convolution over `N` dimensions, 1 to 3: [`ConvTranspose1d`], [`ConvTranspose2d`], [`ConvTranspose3d`].
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::{ConvTranspose1d, ConvTransposeConfig, Layer};
///
/// # fn main() -> opsmith::Result<()> {
/// let layer = ConvTranspose1d::new_with(4, 2, 3, ConvTransposeConfig::new().stride(2), &Generator::new(0))?;
/// assert_eq!(layer.forward(&opsmith::ones([1, 4, 5])?)?.shape(), [1, 2, 11]);
/// # Ok(())
/// # }
/// ```
///
/// `(samples, inputs, places…)`, or one sample without the first dimension, gives `(samples, outputs, places…)`, of
/// `(places - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1` places. Parameters: `weight`,
/// `(inputs, outputs / groups, kernel…)`, and `bias`, `(outputs)`, uniform as those of [`Conv`], with the weight's second
/// dimension in place of the inputs.
#[derive(Debug)]
pub struct ConvTranspose<const N: usize> {
    weight: Parameter,
    bias: Option<Parameter>,
    config: ConvTransposeConfig<N>,
}

/// A transposed convolution over one dimension.
pub type ConvTranspose1d = ConvTranspose<1>;
/// A transposed convolution over two dimensions.
pub type ConvTranspose2d = ConvTranspose<2>;
/// A transposed convolution over three dimensions.
pub type ConvTranspose3d = ConvTranspose<3>;

module!(<const N: usize> ConvTranspose<N> { weight, bias });

impl<const N: usize> ConvTranspose<N> {
    /// A transposed convolution with a bias, of `float32`.
    ///
    /// # Errors
    /// As [`Conv::new`].
    pub fn new(
        inputs: i64,
        outputs: i64,
        kernel: impl Into<PerAxis<N>>,
        generator: &Generator,
    ) -> Result<Self> {
        Self::new_with(inputs, outputs, kernel, ConvTransposeConfig::new(), generator)
    }

    /// As [`ConvTranspose::new`], with options.
    ///
    /// # Errors
    /// As [`Conv::new_with`].
    pub fn new_with(
        inputs: i64,
        outputs: i64,
        kernel: impl Into<PerAxis<N>>,
        config: ConvTransposeConfig<N>,
        generator: &Generator,
    ) -> Result<Self> {
        check_channels::<N>(inputs, outputs, config.groups)?;
        let sizes = [&[inputs, outputs / config.groups][..], &kernel.into().0].concat();
        let (weight, bias) = parameters(&sizes, config.bias.then_some(outputs), generator)?;
        Ok(ConvTranspose { weight, bias, config })
    }

    /// The weight.
    pub fn weight(&self) -> &Parameter {
        &self.weight
    }

    /// The bias, if there is one.
    pub fn bias(&self) -> Option<&Parameter> {
        self.bias.as_ref()
    }
}

impl<const N: usize> Layer for ConvTranspose<N> {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        macro_rules! of {
            ($options:ident) => {
                options!($options, self, stride, padding, output_padding, dilation)
            };
        }
        match N {
            1 => opsmith::conv_transpose1d_with(input, &self.weight, of!(ConvTranspose1dOptions)),
            2 => opsmith::conv_transpose2d_with(input, &self.weight, of!(ConvTranspose2dOptions)),
            _ => opsmith::conv_transpose3d_with(input, &self.weight, of!(ConvTranspose3dOptions)),
        }
    }
}

fn check_channels<const N: usize>(inputs: i64, outputs: i64, groups: i64) -> Result<()> {
    const { assert!(N >= 1 && N <= 3, "a convolution has one to three dimensions") };
    if inputs < 1 || outputs < 1 || groups < 1 {
        return Err(Error::value(format!(
            "a convolution from {inputs} to {outputs} channels in {groups} groups does not exist"
        ))
        .with_help("give positive numbers"));
    }
    if inputs % groups != 0 || outputs % groups != 0 {
        return Err(Error::value(format!(
            "{inputs} channels of the input and {outputs} of the result cannot be divided into {groups} groups"
        ))
        .with_help("choose a number of groups that divides both"));
    }
    Ok(())
}

fn parameters(
    sizes: &[i64],
    outputs: Option<i64>,
    generator: &Generator,
) -> Result<(Parameter, Option<Parameter>)> {
    if sizes.iter().any(|size| *size < 1) {
        return Err(Error::value(format!("the window {:?} of a convolution has no elements", &sizes[2..])));
    }
    let weight = opsmith::empty(sizes)?;
    let bias = outputs.map(|outputs| opsmith::empty([outputs])).transpose()?;
    init::default_(&weight, bias.as_ref(), generator)?;
    Ok((Parameter::new(weight)?, bias.map(Parameter::new).transpose()?))
}
