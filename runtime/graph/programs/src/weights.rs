//! Weights: parameters, buffers and constants of a program as tensors.
//!
//! In: an archive, and the weights that the program names. Out: a tensor for each, and a mistake for each that is
//! missing, damaged or of another dtype or shape. Weights of one file share their memory, as tied parameters do, and a weight
//! gets the names of it that the program does not have.

use std::collections::{BTreeMap, BTreeSet};

use opsmith_core::DType;
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::tensor::Tensor;

use crate::archive::Archive;
use crate::errors::{damaged, unsupported};
use crate::expression::Formula;
use crate::lower::{TensorLayout, layout};
use crate::model::{Input, InputKind, Model, TensorSpec, WeightKind};
use crate::pickle::{self, Pickled};
use crate::schema::{self, PayloadConfig, PayloadMeta};

/// Folders of weights and of constants, with the suffix of their tables.
const FOLDERS: [(&str, &str); 2] =
    [("data/weights/", "_weights_config.json"), ("data/constants/", "_constants_config.json")];

/// Pickles with the weights and the constants in archives of PyTorch before 2.8.
const PICKLES: [&str; 2] = ["serialized_state_dict.pt", "serialized_constants.pt"];

/// The tensors of a program's inputs, `None` for those that each run gets.
pub(crate) struct Weights {
    pub of_inputs: Vec<Option<Tensor>>,
    /// The mistakes, in the order of inputs.
    pub mistakes: Vec<Error>,
}

/// Reads the weights of a model with this name in the archive, and gives them the other names that they have there. Buffers and
/// constants that are not read may be damaged: an exporter leaves some that have no elements. A function gets the numbers of
/// weights that are done and of all.
pub(crate) fn read(
    archive: &mut Archive,
    model_name: &str,
    model: &mut Model,
    is_read: &[bool],
    progress: &mut dyn FnMut(usize, usize),
) -> Weights {
    let mut mistakes = Vec::new();
    let mut tables = Vec::new();
    for (folder, suffix) in FOLDERS {
        let member = format!("{folder}{model_name}{suffix}");
        if !archive.has(&member) {
            continue;
        }
        match archive.text(&member).and_then(|text| schema::json::<PayloadConfig>(&member, &text)) {
            Ok(table) => tables.push((folder, table.config)),
            Err(error) => mistakes.push(error),
        }
    }
    let mut reader =
        Reader { archive, tables, pickles: BTreeMap::new(), files: BTreeMap::new(), tied: Vec::new() };
    for member in PICKLES {
        if reader.archive.has(member)
            && let Err(error) = reader.pickle(member)
        {
            mistakes.push(error);
        }
    }
    let is_weight = |input: &&Input| matches!(input.kind, InputKind::Weight { .. });
    let (mut done, count) = (0, model.inputs.iter().filter(is_weight).count());
    let mut of_inputs = Vec::with_capacity(model.inputs.len());
    for (input, is_read) in model.inputs.iter().zip(is_read) {
        let InputKind::Weight { name, spec, kind, .. } = &input.kind else {
            of_inputs.push(None);
            continue;
        };
        let tensor = reader.weight(name, spec.as_ref());
        if let Err(error) = &tensor
            && (*kind == WeightKind::Parameter || *is_read)
        {
            mistakes.push(error.clone().with_note(format!("for the weight `{name}`")));
        }
        of_inputs.push(tensor.ok());
        done += 1;
        progress(done, count);
    }
    add_aliases(&mut reader, model);
    Weights { of_inputs, mistakes }
}

/// Gives weights the names of the archive that the program does not have. Those of one place belong to its first weight.
fn add_aliases(reader: &mut Reader<'_>, model: &mut Model) {
    let all_names = reader.names();
    // Dtype, sizes, strides and offset in the file.
    let mut place = |name: &str| {
        let (file, TensorLayout { dtype, layout }) = reader.place(name).ok()?;
        Some((file, dtype.name(), layout.sizes.to_vec(), layout.strides.to_vec(), layout.offset))
    };
    let (mut names, mut first) = (BTreeSet::new(), BTreeMap::new());
    for (number, input) in model.inputs.iter().enumerate() {
        if let InputKind::Weight { name, .. } = &input.kind {
            names.insert(name.clone());
            if let Some(place) = place(name) {
                first.entry(place).or_insert(number);
            }
        }
    }
    let mut found: Vec<(usize, String)> = Vec::new();
    for name in all_names.iter().filter(|name| !names.contains(*name)) {
        if let Some(number) = place(name).and_then(|place| first.get(&place)) {
            found.push((*number, name.clone()));
        }
    }
    for (number, alias) in found {
        if let InputKind::Weight { aliases, .. } = &mut model.inputs[number].kind {
            aliases.push(alias);
        }
    }
}

struct Reader<'a> {
    archive: &'a mut Archive,
    /// Folders with their weights by name.
    tables: Vec<(&'static str, BTreeMap<String, PayloadMeta>)>,
    /// Pickles that were read, by member.
    pickles: BTreeMap<String, Pickle>,
    /// The elements of files that were read, by their place and dtype, in one dimension.
    files: BTreeMap<(File, &'static str), Tensor>,
    /// The weights that were read, by their file: two names of one are one tensor, with one gradient.
    tied: Vec<(File, Tensor)>,
}

/// A file of `torch.save`, an archive in the archive.
struct Pickle {
    archive: Archive,
    tensors: BTreeMap<String, Pickled>,
}

/// A file with elements.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct File {
    /// The pickle that contains it, if it is in one.
    pickle: Option<String>,
    member: String,
}

impl Reader<'_> {
    fn weight(&mut self, name: &str, spec: Option<&TensorSpec>) -> Result<Tensor> {
        let (file, TensorLayout { dtype, layout }) = self.place(name)?;
        let member = &file.member;
        if let Some(spec) = spec {
            let known: Option<Vec<i64>> = spec.sizes.iter().map(|size| size.evaluate(&|_| None)).collect();
            if spec.dtype != dtype || known.is_some_and(|known| known != layout.sizes.as_slice()) {
                let sizes: Vec<String> = spec.sizes.iter().map(Formula::to_string).collect();
                return Err(Error::shape(format!(
                    "`{member}` is {dtype} of shape {}, and the program takes {} of shape ({})",
                    ShapeText(&layout.sizes),
                    spec.dtype,
                    sizes.join(", ")
                ))
                .with_help("weights and program are of different exports: save them together"));
            }
        }
        let is_it = |(known, tensor): &&(File, Tensor)| {
            *known == file && tensor.dtype() == dtype && *tensor.layout() == layout
        };
        if let Some((_, tensor)) = self.tied.iter().find(is_it) {
            return Ok(tensor.clone());
        }
        let elements = self.elements(&file, dtype)?;
        let tensor = elements.with_layout(layout).map_err(|error| damaged(member, error.message()))?;
        self.tied.push((file, tensor.clone()));
        Ok(tensor)
    }

    /// The names of all tensors but those that have a pickle of their own.
    fn names(&self) -> BTreeSet<String> {
        let plain = self.tables.iter().flat_map(|(_, table)| table).filter(|(_, meta)| !meta.use_pickle);
        let pickled = self.pickles.values().flat_map(|pickle| pickle.tensors.keys());
        plain.map(|(name, _)| name).chain(pickled).filter(|name| !name.is_empty()).cloned().collect()
    }

    /// The file of a weight, and its layout there.
    fn place(&mut self, name: &str) -> Result<(File, TensorLayout)> {
        let of_pickle = |member: &str, tensor: &Pickled| {
            (File { pickle: Some(member.to_owned()), member: tensor.member.clone() }, tensor.layout.clone())
        };
        for (member, pickle) in &self.pickles {
            if let Some(tensor) = pickle.tensors.get(name).filter(|_| !name.is_empty()) {
                return Ok(of_pickle(member, tensor));
            }
        }
        let found = self.tables.iter().find_map(|(folder, table)| Some((*folder, table.get(name)?)));
        let Some((folder, meta)) = found else {
            return Err(Error::not_found(format!("the archive has no weight `{name}`"))
                .with_help("save the program again with `torch.export.save`, which includes its weights"));
        };
        let member = format!("{folder}{}", meta.path_name);
        if meta.use_pickle {
            self.pickle(&member)?;
            return match self.pickles.get(&member).and_then(|pickle| pickle.tensors.get("")) {
                Some(tensor) => Ok(of_pickle(&member, tensor)),
                None => Err(unsupported(format!("`{member}`, a pickled object that is no tensor,"))
                    .with_help("export the program with this weight as a plain tensor")),
            };
        }
        let Some(tensor_meta) = &meta.tensor_meta else {
            return Err(damaged(&member, "its dtype and shape are missing"));
        };
        let layout = layout(tensor_meta).map_err(|problem| damaged(&member, problem))?;
        Ok((File { pickle: None, member }, layout))
    }

    /// Reads a pickle, once.
    fn pickle(&mut self, member: &str) -> Result<()> {
        if self.pickles.contains_key(member) {
            return Ok(());
        }
        let bytes = self.archive.read(member)?;
        // A program without constants has an empty file of them.
        if bytes.is_empty() {
            return Ok(());
        }
        let within = |error: Error| error.with_note(format!("in `{member}`"));
        let mut archive = Archive::from_bytes(bytes).map_err(within)?;
        let tensors = pickle::tensors(&mut archive).map_err(within)?;
        self.pickles.insert(member.to_owned(), Pickle { archive, tensors });
        Ok(())
    }

    /// All elements of a file in one dimension.
    fn elements(&mut self, file: &File, dtype: DType) -> Result<Tensor> {
        let key = (file.clone(), dtype.name());
        if let Some(known) = self.files.get(&key) {
            return Ok(known.clone());
        }
        let archive = match file.pickle.as_ref().and_then(|pickle| self.pickles.get_mut(pickle)) {
            Some(pickle) => &mut pickle.archive,
            None => &mut *self.archive,
        };
        let bytes = archive.read(&file.member)?;
        let tensor = elements(&bytes, dtype).map_err(|problem| damaged(&file.member, problem))?;
        self.files.insert(key, tensor.clone());
        Ok(tensor)
    }
}

/// A tensor of little-endian elements.
fn elements(bytes: &[u8], dtype: DType) -> Result<Tensor, String> {
    if !bytes.len().is_multiple_of(dtype.size()) {
        return Err(format!("{} bytes are no whole number of elements of {dtype}", bytes.len()));
    }
    if cfg!(target_endian = "big") {
        return Err("weights are little-endian, and this processor is not".to_owned());
    }
    if dtype == DType::Bool && bytes.iter().any(|byte| *byte > 1) {
        return Err("a truth value is neither 0 nor 1".to_owned());
    }
    let count = (bytes.len() / dtype.size()) as i64;
    // SAFETY: every element is written on the next lines, before any is read.
    let tensor =
        unsafe { Tensor::with_memory(&[count], dtype, Device::CPU) }.map_err(|error| error.to_string())?;
    // SAFETY: the new memory holds as many bytes, no other code has it, and every pattern of bytes is an element of the
    // dtype: those of truth values were checked.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr(), bytes.len()) };
    Ok(tensor)
}
