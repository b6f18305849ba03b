//! Layers one after the other, and functions as layers.

use std::fmt;

use opsmith::{Error, Result, Tensor};

use crate::module;
use crate::module::{InLayer, Layer, Module, Visitor, VisitorMut};

/// Layers one after the other, named by position unless they have names. [`sequential!`](crate::sequential) makes one of
/// a list.
///
/// ```
/// use opsmith::Generator;
/// use opsmith_nn::{Layer, Linear, Relu, Sequential};
///
/// # fn main() -> opsmith::Result<()> {
/// let generator = Generator::new(0);
/// let network = Sequential::new()
///     .add("hidden", Linear::new(4, 8, &generator)?)?
///     .push(Relu)
///     .add("logits", Linear::new(8, 2, &generator)?)?;
/// assert_eq!(network.forward(&opsmith::ones([1, 4])?)?.shape(), [1, 2]);
/// // An error has the name of its layer.
/// let error = network.forward(&opsmith::ones([1, 3])?).unwrap_err();
/// assert!(error.to_string().contains("in the layer `hidden`"));
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Sequential(Vec<(String, Box<dyn Layer>)>);

impl Sequential {
    /// No layers: the input is the result.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Appends a layer, named by its position.
    #[must_use]
    pub fn push(mut self, layer: impl Layer + 'static) -> Sequential {
        self.0.push((self.0.len().to_string(), Box::new(layer)));
        self
    }

    /// Appends a layer with a name.
    ///
    /// # Errors
    /// If another layer has the name, or it has a dot, is empty or a number, which paths of a state dict could not tell apart.
    pub fn add(mut self, name: impl Into<String>, layer: impl Layer + 'static) -> Result<Sequential> {
        let name = name.into();
        if self.0.iter().any(|(known, _)| *known == name) {
            return Err(Error::argument(format!("two layers have the name `{name}`"))
                .with_help("give each layer a name of its own, or `push` layers without names"));
        }
        if name.is_empty() || name.contains('.') || name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::argument(format!("a layer cannot have the name `{name}`"))
                .with_help("give a name without dots that is no number: layers without names have numbers"));
        }
        self.0.push((name, Box::new(layer)));
        Ok(self)
    }

    /// Number of layers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sequential").field(&self.0.iter().map(|(name, _)| name).collect::<Vec<_>>()).finish()
    }
}

impl Module for Sequential {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.0.iter().for_each(|(name, layer)| visitor.field(name, layer));
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        self.0.iter_mut().for_each(|(name, layer)| visitor.field(name, layer));
    }
}

impl Layer for Sequential {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let mut value = input.clone();
        for (name, layer) in &self.0 {
            value = layer.forward(&value).in_layer(name)?;
        }
        Ok(value)
    }
}

/// [`Sequential`](crate::Sequential) layers from a list.
///
/// ```
/// use opsmith_nn::{Flatten, Relu, sequential};
///
/// assert_eq!(sequential![Flatten::new(), Relu].len(), 2);
/// ```
#[macro_export]
macro_rules! sequential {
    ($($layer:expr),* $(,)?) => {
        $crate::Sequential::new()$(.push($layer))*
    };
}

/// A function as a layer.
///
/// ```
/// use opsmith::{Tensor, TensorOps};
/// use opsmith_nn::{FunctionLayer, Layer};
///
/// # fn main() -> opsmith::Result<()> {
/// let square = FunctionLayer::new(|x| x.mul(x));
/// assert_eq!(square.forward(&Tensor::of(&[3.0f32]))?.to_vec::<f32>()?, [9.0]);
/// # Ok(())
/// # }
/// ```
pub struct FunctionLayer(Box<Function>);

type Function = dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync;

module!(FunctionLayer {});

impl FunctionLayer {
    /// A layer without parameters.
    pub fn new(function: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static) -> FunctionLayer {
        FunctionLayer(Box::new(function))
    }
}

impl fmt::Debug for FunctionLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FunctionLayer")
    }
}

impl Layer for FunctionLayer {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        (self.0)(input)
    }
}
