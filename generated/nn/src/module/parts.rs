//! The parts of modules: layers, parameters, buffers, modes, and containers of them.
//!
//! In: tensors. Out: leaves of a tree of modules, and trees of trees.

use std::ops::Deref;

use opsmith::{Result, Tensor};

use super::{ItemMut, Module, ModuleItem, Visitor, VisitorMut};

/// A module with a function of one tensor, so that [`Sequential`](crate::Sequential) can hold it.
pub trait Layer: Module + Send + Sync {
    /// The layer's result.
    ///
    /// # Errors
    /// Those of the layer's operator: about shapes, dtypes and devices.
    fn forward(&self, input: &Tensor) -> Result<Tensor>;
}

/// The name of a layer in errors from inside it.
///
/// ```
/// use opsmith::{Generator, ones};
/// use opsmith_nn::{InLayer, Layer, Linear};
///
/// # fn main() -> opsmith::Result<()> {
/// let logits = Linear::new(4, 2, &Generator::new(0))?;
/// let error = logits.forward(&ones([1, 3])?).in_layer("logits").unwrap_err();
/// assert!(error.to_string().contains("in the layer `logits`"));
/// # Ok(())
/// # }
/// ```
pub trait InLayer {
    /// Adds the name to an error.
    #[must_use]
    fn in_layer(self, name: &str) -> Self;
}

impl<T> InLayer for Result<T> {
    fn in_layer(self, name: &str) -> Self {
        self.map_err(|error| error.with_note(format!("in the layer `{name}`")))
    }
}

/// A tensor that an optimizer changes.
#[derive(Debug)]
pub struct Parameter(Tensor);

impl Parameter {
    /// A parameter with the elements of a tensor, which is outside any graph and now requires a gradient.
    ///
    /// # Errors
    /// If its dtype has no gradients.
    pub fn new(tensor: Tensor) -> Result<Parameter> {
        Ok(Parameter(tensor.detach().requires_grad_(true)?))
    }

    /// The same parameter, for another module with tied weights.
    #[must_use]
    pub fn tied(&self) -> Parameter {
        Parameter(self.0.clone())
    }
}

impl Deref for Parameter {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.0
    }
}

/// A tensor of a module's state that is no parameter, such as a running mean.
#[derive(Debug)]
pub struct ModuleBuffer(Tensor);

impl ModuleBuffer {
    /// A buffer over the elements of a tensor.
    pub fn new(tensor: &Tensor) -> ModuleBuffer {
        ModuleBuffer(tensor.detach())
    }
}

impl Deref for ModuleBuffer {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.0
    }
}

/// Whether a module trains, which is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingMode(bool);

impl TrainingMode {
    /// Whether the module trains.
    pub fn is_training(self) -> bool {
        self.0
    }
}

impl TrainingMode {
    pub(super) fn set(&mut self, training: bool) {
        self.0 = training;
    }
}

impl Default for TrainingMode {
    fn default() -> Self {
        TrainingMode(true)
    }
}

macro_rules! leaf {
    ($ty:ty, $this:ident => $item:expr, $item_mut:expr) => {
        impl Module for $ty {
            fn visit(&self, visitor: &mut Visitor<'_>) {
                let $this = self;
                (visitor.found)(&visitor.path, $item);
            }

            fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
                let $this = self;
                (visitor.found)(&visitor.path, $item_mut);
            }
        }
    };
}

leaf!(Parameter, this => ModuleItem::Parameter(&this.0), ItemMut::Tensor(&mut this.0));
leaf!(ModuleBuffer, this => ModuleItem::Buffer(&this.0), ItemMut::Tensor(&mut this.0));
leaf!(TrainingMode, this => ModuleItem::Mode(*this), ItemMut::Mode(this));

impl<M: Module> Module for Option<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        self.iter().for_each(|module| module.visit(visitor));
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        self.iter_mut().for_each(|module| module.visit_mut(visitor));
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        (**self).visit(visitor);
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        (**self).visit_mut(visitor);
    }
}

/// Modules by position, as PyTorch's `ModuleList`.
impl<M: Module> Module for Vec<M> {
    fn visit(&self, visitor: &mut Visitor<'_>) {
        for (position, module) in self.iter().enumerate() {
            visitor.field(&position.to_string(), module);
        }
    }

    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>) {
        for (position, module) in self.iter_mut().enumerate() {
            visitor.field(&position.to_string(), module);
        }
    }
}
