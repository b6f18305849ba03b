//! State dicts: tensors by path, in memory and in files.
//!
//! In: modules, optimizers, files. Out: tensors under PyTorch's names, and errors that name every difference at once.

mod safetensors;

use std::collections::{BTreeMap, btree_map};
use std::path::Path;

use opsmith::autograd::no_grad;
use opsmith::{DType, Error, Result, Tensor, TensorOps};

use crate::config::config;
use crate::npz;

/// Tensors by path, in the order of their paths.
///
/// ```
/// use opsmith::{Generator, Tensor};
/// use opsmith_nn::{Linear, Module, StateDict};
///
/// # fn main() -> opsmith::Result<()> {
/// let path = std::env::temp_dir().join(format!("opsmith-nn-doc-{}.safetensors", std::process::id()));
/// let layer = Linear::new(3, 2, &Generator::new(0))?;
/// layer.save(&path)?;
/// let dict = StateDict::load(&path)?;
/// assert_eq!(dict.names(), ["bias", "weight"]);
/// Linear::new(3, 2, &Generator::new(1))?.load_state_dict(&dict)?;
/// # std::fs::remove_file(path).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct StateDict(BTreeMap<String, Tensor>);

impl StateDict {
    /// No tensors.
    pub fn new() -> StateDict {
        StateDict::default()
    }

    /// Adds a tensor, or replaces the one of that path, which is returned.
    pub fn insert(&mut self, path: impl Into<String>, tensor: Tensor) -> Option<Tensor> {
        self.0.insert(path.into(), tensor)
    }

    /// Removes a tensor.
    pub fn remove(&mut self, path: &str) -> Option<Tensor> {
        self.0.remove(path)
    }

    /// The tensor of a path.
    pub fn get(&self, path: &str) -> Option<&Tensor> {
        self.0.get(path)
    }

    /// Paths with their tensors.
    pub fn iter(&self) -> btree_map::Iter<'_, String, Tensor> {
        self.0.iter()
    }

    /// All paths.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same elements in memory of their own, which later steps of an optimizer do not change.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn copied(&self) -> Result<StateDict> {
        self.iter().map(|(path, tensor)| Ok((path.clone(), tensor.deep_clone()?.detach()))).collect()
    }

    /// The tensors under a path, without it: `encoder` gives `encoder.0.weight` as `0.weight`.
    #[must_use]
    pub fn below(&self, path: &str) -> StateDict {
        let inner = |(name, tensor): (&String, &Tensor)| {
            Some((name.strip_prefix(path)?.strip_prefix('.')?.to_owned(), tensor.clone()))
        };
        self.iter().filter_map(inner).collect()
    }

    /// Writes a safetensors file, which appears when it is complete.
    ///
    /// # Errors
    /// If the file cannot be written, or a tensor is complex, a dtype that PyTorch does not read from this format.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        safetensors::save(self, path.as_ref())
    }

    /// Reads a safetensors file, for instance one that PyTorch wrote.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or has a tensor of a dtype that tensors do not have, such as 8-bit floats.
    pub fn load(path: impl AsRef<Path>) -> Result<StateDict> {
        safetensors::load(path.as_ref())
    }

    /// The bytes of a safetensors file.
    ///
    /// # Errors
    /// As [`StateDict::save`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        safetensors::to_bytes(self)
    }

    /// Reads the bytes of a safetensors file.
    ///
    /// # Errors
    /// As [`StateDict::load`].
    pub fn from_bytes(bytes: &[u8]) -> Result<StateDict> {
        safetensors::from_bytes(bytes)
    }

    /// Writes a NumPy archive, which appears when it is complete.
    ///
    /// # Errors
    /// If the file cannot be written, or a tensor is `bfloat16`, which NumPy does not have.
    pub fn save_npz(&self, path: impl AsRef<Path>) -> Result<()> {
        npz::save(path, self.iter())
    }

    /// Reads all arrays of a NumPy archive.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or has an array that is no tensor.
    pub fn load_npz(path: impl AsRef<Path>) -> Result<StateDict> {
        Ok(npz::load(path)?.into_iter().collect())
    }
}

impl FromIterator<(String, Tensor)> for StateDict {
    fn from_iter<I: IntoIterator<Item = (String, Tensor)>>(items: I) -> StateDict {
        StateDict(items.into_iter().collect())
    }
}

impl IntoIterator for StateDict {
    type Item = (String, Tensor);
    type IntoIter = btree_map::IntoIter<String, Tensor>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

config! {
    /// Options of [`Module::load_state_dict_with`](crate::Module::load_state_dict_with).
    LoadConfig {
        /// Whether tensors of the module that the state dict does not have stay as they are, in place of an error; false
        /// by default.
        allow_missing: bool = false;
        /// Whether tensors that the module does not have are left out, in place of an error; false by default.
        allow_unexpected: bool = false;
        /// Whether tensors of other dtypes are converted, in place of an error; false by default.
        convert_dtypes: bool = false;
    }
}

/// Copies tensors into those of the same paths. All differences are found before the first element is written.
pub(crate) fn load_into(own: &StateDict, given: &StateDict, config: &LoadConfig) -> Result<()> {
    let mut differences = Vec::new();
    let mut copies: Vec<(&Tensor, Tensor)> = Vec::new();
    for (path, target) in own.iter() {
        let Some(source) = given.get(path) else {
            if !config.allow_missing {
                differences.push(format!("`{path}` is missing"));
            }
            continue;
        };
        match difference(target, source, config) {
            Some(difference) => differences.push(format!("`{path}` {difference}")),
            None => copies.push((target, source.clone())),
        }
    }
    if !config.allow_unexpected {
        let unexpected = given.iter().filter(|(path, _)| own.get(path).is_none());
        differences.extend(unexpected.map(|(path, _)| format!("`{path}` is unexpected")));
    }
    if !differences.is_empty() {
        return Err(refused(&differences));
    }
    no_grad(|| {
        // Conversions and moves, which need memory, come before the first write.
        for (target, source) in &mut copies {
            *source = source.detach().to_dtype(target.dtype())?.to_device(target.device())?;
        }
        copies.iter().try_for_each(|(target, source)| target.copy_(source))
    })
}

fn difference(target: &Tensor, source: &Tensor, config: &LoadConfig) -> Option<String> {
    if source.shape() != target.shape() {
        return Some(format!("has the shape {:?}, and the module's is {:?}", source.shape(), target.shape()));
    }
    let convertible = |dtype: DType| config.convert_dtypes && !dtype.is_complex();
    let (given, own) = (source.dtype(), target.dtype());
    if given != own && !(convertible(given) && convertible(own)) {
        return Some(format!("is {given}, and the module's is {own}"));
    }
    None
}

fn refused(differences: &[String]) -> Error {
    let count = differences.len();
    let tensors = if count == 1 { "a tensor differs".to_owned() } else { format!("{count} tensors differ") };
    let error = Error::argument(format!("the state dict does not fit: {tensors}, and nothing was loaded"));
    differences.iter().fold(error, Error::with_note).with_help(
        "load it into a module of the same structure, or use `load_state_dict_with` and a `LoadConfig` that allows missing or \
         unexpected tensors or converts dtypes",
    )
}
