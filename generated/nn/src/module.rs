//! Modules: trees of named parameters and buffers.
//!
//! In: structs whose fields are parameters, buffers and other modules. Out: their tensors by path, as PyTorch names
//! them, and operations on all of them: moves, conversions, modes, state dicts.

mod parts;

use std::path::Path;

use opsmith::{DType, Device, Result, Tensor, TensorOps};

pub use self::parts::{InLayer, Layer, ModuleBuffer, Parameter, TrainingMode};
use crate::state::{self, LoadConfig, StateDict};

/// A tree of named parameters, buffers and modules.
///
/// A struct whose fields are modules, parameters, buffers, modes, or `Option`, `Vec` and `Box` of them, is one by
/// [`module!`](crate::module):
///
/// ```
/// use opsmith::{Generator, Result, Tensor, TensorOps};
/// use opsmith_nn::{InLayer, Layer, Linear, Module, module};
///
/// struct Network {
///     hidden: Linear,
///     logits: Linear,
/// }
///
/// module!(Network { hidden, logits });
///
/// impl Layer for Network {
///     fn forward(&self, input: &Tensor) -> Result<Tensor> {
///         let hidden = self.hidden.forward(input).in_layer("hidden")?.relu()?;
///         self.logits.forward(&hidden).in_layer("logits")
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let generator = Generator::new(0);
/// let network = Network { hidden: Linear::new(4, 8, &generator)?, logits: Linear::new(8, 2, &generator)? };
/// let names: Vec<String> = network.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["hidden.weight", "hidden.bias", "logits.weight", "logits.bias"]);
/// # Ok(())
/// # }
/// ```
pub trait Module {
    /// Visits all parts, each under its name, in the order in which a state dict has them.
    fn visit(&self, visitor: &mut Visitor<'_>);

    /// Visits the same parts in the same order, for changes.
    fn visit_mut(&mut self, visitor: &mut VisitorMut<'_>);

    /// The parameters by path. One that has several paths, as tied weights have, stands under the first.
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        let mut found: Vec<(String, Tensor)> = Vec::new();
        self.visit(&mut Visitor::new(&mut |path, item| {
            if let ModuleItem::Parameter(parameter) = item
                && !found.iter().any(|(_, known)| known.same(parameter))
            {
                found.push((path.to_owned(), parameter.clone()));
            }
        }));
        found
    }

    /// The parameters, for an optimizer, each once.
    fn parameters(&self) -> Vec<Tensor> {
        self.named_parameters().into_iter().map(|(_, parameter)| parameter).collect()
    }

    /// The buffers by path: tensors of the state that have no gradients, such as running statistics.
    fn named_buffers(&self) -> Vec<(String, Tensor)> {
        let mut found = Vec::new();
        self.visit(&mut Visitor::new(&mut |path, item| {
            if let ModuleItem::Buffer(buffer) = item {
                found.push((path.to_owned(), buffer.clone()));
            }
        }));
        found
    }

    /// Sets whether the module trains: dropout sets elements to zero, and batch normalisation uses the statistics of the
    /// batch.
    fn set_training(&mut self, training: bool) {
        self.visit_mut(&mut VisitorMut::new(&mut |_, item| {
            if let ItemMut::Mode(mode) = item {
                mode.set(training);
            }
        }));
    }

    /// Training mode, in which modules are made.
    fn train(&mut self) {
        self.set_training(true);
    }

    /// Evaluation mode: the same result for each call.
    fn eval(&mut self) {
        self.set_training(false);
    }

    /// Removes the gradients of all parameters.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Tensor::zero_grad);
    }

    /// Sets whether the parameters require gradients: without, they are frozen.
    ///
    /// # Errors
    /// If a parameter was computed from tracked tensors.
    fn requires_grad_(&self, required: bool) -> Result<()> {
        self.parameters().iter().try_for_each(|parameter| parameter.set_requires_grad(required))
    }

    /// Moves parameters and buffers to a device. Those that move are new tensors without gradients: make optimizers
    /// afterwards. On an error nothing has moved.
    ///
    /// # Errors
    /// If the device does not exist, or its memory is exhausted.
    fn to_device(&mut self, device: Device) -> Result<()> {
        replace_tensors(self, &|tensor| tensor.to_device(device))
    }

    /// Converts parameters and buffers of floating-point dtypes, such as all to `float64`. Those that are converted are
    /// new tensors without gradients: make optimizers afterwards. On an error nothing has changed.
    ///
    /// # Errors
    /// If the dtype is no float, or memory is exhausted.
    fn to_dtype(&mut self, dtype: DType) -> Result<()> {
        if !dtype.is_float() {
            return Err(opsmith::Error::dtype(format!("parameters cannot be {dtype}"))
                .with_help("convert a module to a floating-point dtype, such as float16 or float64"));
        }
        replace_tensors(self, &|tensor| {
            if tensor.dtype().is_float() { tensor.to_dtype(dtype) } else { Ok(tensor.clone()) }
        })
    }

    /// Parameters and buffers by path. They are the module's own tensors: [`StateDict::copied`] gives a copy that later
    /// steps do not change.
    fn state_dict(&self) -> StateDict {
        let mut dict = StateDict::new();
        self.visit(&mut Visitor::new(&mut |path, item| {
            if let ModuleItem::Parameter(tensor) | ModuleItem::Buffer(tensor) = item {
                dict.insert(path, tensor.detach());
            }
        }));
        dict
    }

    /// Copies the tensors of a state dict into those of the module, which must be the same by names, shapes and dtypes.
    ///
    /// # Errors
    /// With all missing, unexpected and different tensors, in which case the module has not changed; or if a device
    /// fails.
    fn load_state_dict(&self, dict: &StateDict) -> Result<()> {
        self.load_state_dict_with(dict, LoadConfig::new())
    }

    /// As [`Module::load_state_dict`], with options for partial loading and conversions.
    ///
    /// # Errors
    /// As [`Module::load_state_dict`].
    fn load_state_dict_with(&self, dict: &StateDict, config: LoadConfig) -> Result<()> {
        state::load_into(&self.state_dict(), dict, &config)
    }

    /// Writes the state dict to a safetensors file, which appears when it is complete.
    ///
    /// # Errors
    /// If the file cannot be written, or a tensor is complex, which the format has no dtype for in PyTorch.
    fn save(&self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        self.state_dict().save(path)
    }

    /// Loads a safetensors file: its names, shapes and dtypes must be those of the module.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged, and as [`Module::load_state_dict`].
    fn load(&self, path: impl AsRef<Path>) -> Result<()>
    where
        Self: Sized,
    {
        self.load_state_dict(&StateDict::load(path)?)
    }
}

/// A part that [`Module::visit`] found.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ModuleItem<'a> {
    /// A parameter.
    Parameter(&'a Tensor),
    /// A buffer.
    Buffer(&'a Tensor),
    /// Whether a module trains.
    Mode(TrainingMode),
}

/// The same, for changes, which only this crate makes.
enum ItemMut<'a> {
    Tensor(&'a mut Tensor),
    Mode(&'a mut TrainingMode),
}

/// The path from the root of a tree of modules, and a function for its parts.
pub struct Visitor<'a> {
    path: String,
    found: &'a mut dyn FnMut(&str, ModuleItem<'_>),
}

impl<'a> Visitor<'a> {
    /// A visitor at the root that calls a function with the path of each part.
    pub fn new(found: &'a mut dyn FnMut(&str, ModuleItem<'_>)) -> Visitor<'a> {
        Visitor { path: String::new(), found }
    }

    /// Visits a part under a name; with none, under the name of its owner.
    pub fn field(&mut self, name: &str, part: &(impl Module + ?Sized)) {
        let length = enter(&mut self.path, name);
        part.visit(self);
        self.path.truncate(length);
    }
}

/// As [`Visitor`], for changes.
pub struct VisitorMut<'a> {
    path: String,
    found: &'a mut dyn FnMut(&str, ItemMut<'_>),
}

impl<'a> VisitorMut<'a> {
    fn new(found: &'a mut dyn FnMut(&str, ItemMut<'_>)) -> VisitorMut<'a> {
        VisitorMut { path: String::new(), found }
    }

    /// Visits a part under a name.
    pub fn field(&mut self, name: &str, part: &mut (impl Module + ?Sized)) {
        let length = enter(&mut self.path, name);
        part.visit_mut(self);
        self.path.truncate(length);
    }
}

/// Appends a name to a path; returns the path's length before.
fn enter(path: &mut String, name: &str) -> usize {
    let length = path.len();
    if !path.is_empty() && !name.is_empty() {
        path.push('.');
    }
    path.push_str(name);
    length
}

/// Replaces each parameter and buffer by the result of a function, all or none. Tied parameters stay tied.
fn replace_tensors(
    module: &mut (impl Module + ?Sized),
    new: &dyn Fn(&Tensor) -> Result<Tensor>,
) -> Result<()> {
    let mut old: Vec<Tensor> = Vec::new();
    module.visit(&mut Visitor::new(&mut |_, item| {
        if let ModuleItem::Parameter(tensor) | ModuleItem::Buffer(tensor) = item {
            old.push(tensor.clone());
        }
    }));
    let mut pairs: Vec<(Tensor, Tensor)> = Vec::with_capacity(old.len());
    for tensor in old {
        if pairs.iter().any(|(known, _)| known.same(&tensor)) {
            continue;
        }
        let replacement = opsmith::autograd::no_grad(|| new(&tensor))?;
        let replacement = if replacement.same(&tensor) {
            replacement
        } else {
            replacement.detach().requires_grad_(tensor.requires_grad())?
        };
        pairs.push((tensor, replacement));
    }
    module.visit_mut(&mut VisitorMut::new(&mut |_, item| {
        if let ItemMut::Tensor(tensor) = item
            && let Some((_, replacement)) = pairs.iter().find(|(old, _)| old.same(tensor))
        {
            *tensor = replacement.clone();
        }
    }));
    Ok(())
}

/// Implements [`Module`](trait@crate::Module) for a struct: its fields that are modules, parameters, buffers or modes, in
/// the order of a state dict. Other fields are left out.
#[macro_export]
macro_rules! module {
    (<const $n:ident: usize> $name:ty { $($fields:tt)* }) => {
        $crate::module!(@implement [const $n: usize] $name { $($fields)* });
    };
    (@implement [$($generics:tt)*] $name:ty { $($field:ident),* $(,)? }) => {
        impl<$($generics)*> $crate::Module for $name {
            #[allow(unused_variables, reason = "a module without parts")]
            fn visit(&self, visitor: &mut $crate::Visitor<'_>) {
                $(visitor.field(stringify!($field), &self.$field);)*
            }

            #[allow(unused_variables, reason = "a module without parts")]
            fn visit_mut(&mut self, visitor: &mut $crate::VisitorMut<'_>) {
                $(visitor.field(stringify!($field), &mut self.$field);)*
            }
        }
    };
    ($name:ty { $($fields:tt)* }) => {
        $crate::module!(@implement [] $name { $($fields)* });
    };
}
