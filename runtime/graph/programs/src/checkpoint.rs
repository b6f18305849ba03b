//! Checkpoints: weights in safetensors files, one or several with an index, mapped into memory, or in a NumPy archive.
//!
//! In: a file, or `model.safetensors.index.json` beside its parts. Out: tensors by name, over the pages of safetensors files. A
//! header is compared with its file before it is believed, and names of parts stay in the folder of the index.

mod arrays;

use std::collections::BTreeMap;
use std::path::{Component, Path};

use opsmith_core::DType;
use opsmith_onnx::MappedFile;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::library;
use opsmith_runtime::tensor::Tensor;
use serde::Deserialize;
use serde_json::Value;

use arrays::Arrays;

/// The largest header: the format's own limit.
const HEADER: u64 = 100_000_000;

/// The advice for files that cannot be read.
const HELP: &str =
    "weights are a safetensors file, the index of several, or a NumPy archive that `numpy.savez` wrote";

/// Element types by their names in the format.
const DTYPES: [(&str, DType); 15] = [
    ("BOOL", DType::Bool),
    ("U8", DType::U8),
    ("U16", DType::U16),
    ("U32", DType::U32),
    ("U64", DType::U64),
    ("I8", DType::I8),
    ("I16", DType::I16),
    ("I32", DType::I32),
    ("I64", DType::I64),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("F32", DType::F32),
    ("F64", DType::F64),
    ("F8_E4M3", DType::F8E4M3),
    ("F8_E5M2", DType::F8E5M2),
];

/// Tensors of files by their names.
pub(crate) enum Checkpoint {
    /// Those of safetensors files.
    Mapped(BTreeMap<String, Tensor>),
    /// Those of a NumPy archive, each read when it is needed.
    Arrays(Arrays),
}

/// A tensor in a header.
#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<i64>,
    data_offsets: [usize; 2],
}

/// The index of several files.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Opens a file, or the files of an index. A NumPy archive is known by its content, too.
    ///
    /// # Errors
    /// If one cannot be read, is damaged or lies outside the folder, or lacks a tensor of the index.
    pub fn open(path: &Path) -> Result<Checkpoint> {
        if Arrays::is_archive(path) {
            return Arrays::open(path).map(Checkpoint::Arrays);
        }
        if path.extension().is_none_or(|extension| extension != "json") {
            return file(path).map(Checkpoint::Mapped);
        }
        let damaged = |problem: String| {
            Error::io(format!("{} is no index of safetensors files: {problem}", path.display()))
                .with_help("an index is the `model.safetensors.index.json` that was saved with its files")
        };
        let text = std::fs::read_to_string(path).map_err(|error| damaged(error.to_string()))?;
        let index: Index = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        let mut files: BTreeMap<&str, BTreeMap<String, Tensor>> = BTreeMap::new();
        let mut tensors = BTreeMap::new();
        for (name, part) in &index.weight_map {
            if !Path::new(part).components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(damaged(format!("it names {part:?}, which is not beside it")));
            }
            if !files.contains_key(part.as_str()) {
                files.insert(part, file(&path.with_file_name(part))?);
            }
            let tensor = files.get(part.as_str()).and_then(|file| file.get(name));
            let Some(tensor) = tensor else { return Err(damaged(format!("{part} has no tensor `{name}`"))) };
            tensors.insert(name.clone(), tensor.clone());
        }
        Ok(Checkpoint::Mapped(tensors))
    }

    pub fn names(&self) -> Vec<&str> {
        match self {
            Checkpoint::Mapped(tensors) => tensors.keys().map(String::as_str).collect(),
            Checkpoint::Arrays(arrays) => arrays.names().iter().map(String::as_str).collect(),
        }
    }

    /// The tensor of a name in the dtype of another, whose shape it has; `None` if there is none.
    ///
    /// # Errors
    /// If it has another shape, is complex where the other is real, or no linked library converts it.
    pub fn tensor(&mut self, name: &str, like: &Tensor) -> Result<Option<Tensor>> {
        let found = match self {
            Checkpoint::Mapped(tensors) => tensors.get(name).cloned(),
            Checkpoint::Arrays(arrays) => arrays.read(name, like)?,
        };
        let Some(tensor) = found else { return Ok(None) };
        if tensor.shape() != like.shape() {
            return Err(Error::shape(format!(
                "the new weight `{name}` has the shape {:?}, and the program's has {:?}",
                tensor.shape(),
                like.shape()
            ))
            .with_help("take the weights of a model of the same sizes"));
        }
        if tensor.dtype() == like.dtype() {
            return Ok(Some(tensor));
        }
        if tensor.dtype().is_complex() && !like.dtype().is_complex() {
            return Err(Error::dtype(format!(
                "the new weight `{name}` is {}, and the program's is {}",
                tensor.dtype(),
                like.dtype()
            ))
            .with_help("take the weights of the same model"));
        }
        let cast = library::linked().find_map(|library| library.roles()).map(|roles| roles.cast);
        let cast = cast.ok_or_else(|| {
            Error::not_found(format!("no library in this program converts `{name}`"))
                .with_help("link a library of operators, such as `opsmith`")
        })?;
        cast(&tensor, like.dtype()).map(Some)
    }
}

/// The tensors of one file.
fn file(path: &Path) -> Result<BTreeMap<String, Tensor>> {
    let damaged =
        |problem: String| Error::io(format!("{} cannot be read: {problem}", path.display())).with_help(HELP);
    let map = MappedFile::open(path).map_err(|error| damaged(error.to_string()))?;
    let length = map.bytes(0, 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()).map(u64::from_le_bytes);
    let length =
        length.filter(|length| *length <= HEADER).ok_or_else(|| damaged("it has no header".to_owned()))?;
    let header = map.bytes(8, length as usize).ok_or_else(|| damaged("its header is cut off".to_owned()))?;
    let header: BTreeMap<String, Value> =
        serde_json::from_slice(&header).map_err(|error| damaged(error.to_string()))?;
    let mut tensors = BTreeMap::new();
    for (name, entry) in header.into_iter().filter(|(name, _)| name != "__metadata__") {
        let refused = |problem: String| damaged(format!("the tensor `{name}`: {problem}"));
        let entry: Entry = serde_json::from_value(entry).map_err(|error| refused(error.to_string()))?;
        let dtype = DTYPES.iter().find(|(known, _)| *known == entry.dtype).map(|(_, dtype)| *dtype);
        let dtype =
            dtype.ok_or_else(|| refused(format!("no tensor has the element type {}", entry.dtype)))?;
        let [start, end] = entry.data_offsets;
        let offset = start
            .checked_add(8 + length as usize)
            .ok_or_else(|| refused("its place overflows".to_owned()))?;
        let tensor = map.tensor(offset, dtype, &entry.shape).map_err(refused)?;
        if end.checked_sub(start) != Some(tensor.numel() as usize * dtype.size()) {
            return Err(refused(format!(
                "it has the bytes {start} to {end}, which are not those of its shape"
            )));
        }
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}
