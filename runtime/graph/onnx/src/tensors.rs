//! Tensors of a model: elements in the file, or in files beside it.
//!
//! In: messages, and the folder of the model. Out: tensors. A size that a file declares is compared with the bytes that are
//! there before memory is allocated. Files beside the model are mapped into memory, once for all processes that use them,
//! and their pages are read when elements are; a path that leaves the folder is refused.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use opsmith_core::DType;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::layout::checked_numel;
use opsmith_runtime::tensor::Tensor;

use crate::errors::{damaged, unsupported};
use crate::mapped::{MappedFile, from_bytes};
use crate::proto::TensorProto;

/// The value of `data_location` for elements in another file.
const EXTERNAL: i32 = 1;

/// Element types by their codes; 4-bit integers are unpacked to those of 8 bits.
const DTYPES: [(i32, DType); 19] = [
    (1, DType::F32),
    (2, DType::U8),
    (3, DType::I8),
    (4, DType::U16),
    (5, DType::I16),
    (6, DType::I32),
    (7, DType::I64),
    (9, DType::Bool),
    (10, DType::F16),
    (11, DType::F64),
    (12, DType::U32),
    (13, DType::U64),
    (14, DType::C64),
    (15, DType::C128),
    (16, DType::BF16),
    (17, DType::F8E4M3),
    (19, DType::F8E5M2),
    (UINT4, DType::U8),
    (INT4, DType::I8),
];
const UINT4: i32 = 21;
const INT4: i32 = 22;

/// Names of element types that tensors here do not have.
const OTHERS: [(i32, &str); 6] = [
    (0, "undefined"),
    (8, "string"),
    (18, "float8e4m3fnuz"),
    (20, "float8e5m2fnuz"),
    (23, "float4e2m1"),
    (24, "float8e8m0"),
];

/// The element type of a code.
///
/// # Errors
/// If there is none.
pub(crate) fn dtype(code: i64) -> Result<DType> {
    let found = DTYPES.iter().find(|(known, _)| i64::from(*known) == code);
    found.map(|(_, dtype)| *dtype).ok_or_else(|| {
        let name = OTHERS.iter().find(|(known, _)| i64::from(*known) == code).map(|(_, name)| *name);
        match name {
            Some(name) => unsupported(format!("the element type {name}")),
            None => Error::argument(format!("there is no element type with the number {code}"))
                .with_help("the model is damaged, or of a newer version of ONNX: export it for an older one"),
        }
    })
}

/// The code of an element type.
pub(crate) fn code(dtype: DType) -> i32 {
    DTYPES.iter().find(|(_, known)| *known == dtype).map_or(0, |(code, _)| *code)
}

/// Reads tensors of one model.
pub(crate) struct Reader {
    /// The folder of the model; `None` for a model in memory, which has no files beside it.
    folder: Option<PathBuf>,
    mapped: RefCell<BTreeMap<PathBuf, MappedFile>>,
}

impl Reader {
    pub fn new(folder: Option<PathBuf>) -> Reader {
        Reader { folder, mapped: RefCell::default() }
    }

    /// The tensor of a message.
    ///
    /// # Errors
    /// If it is damaged, has elements of an unknown type, or lies in a file that cannot be read.
    pub fn tensor(&self, message: &TensorProto) -> Result<Tensor> {
        let dtype = dtype(i64::from(message.data_type))?;
        let packed = matches!(message.data_type, INT4 | UINT4);
        if let Some(size) = message.dims.iter().find(|size| **size < 0) {
            return Err(damaged(&place(message), format!("a size is {size}")));
        }
        let count =
            checked_numel(&message.dims).map_err(|error| damaged(&place(message), error.message()))?;
        let bytes = match packed {
            true => count / 2 + count % 2,
            false => count
                .checked_mul(dtype.size() as i64)
                .ok_or_else(|| damaged(&place(message), "its size overflows"))?,
        };
        if message.data_location == Some(EXTERNAL) {
            return self.external(message, dtype, bytes as usize, packed);
        }
        let given = match &message.raw_data {
            Some(raw) => raw.to_vec(),
            None => fields(message, dtype),
        };
        if given.len() != bytes as usize {
            let text = format!("it has {} bytes, and its dtype and shape need {bytes}", given.len());
            return Err(damaged(&place(message), text));
        }
        match packed {
            true => {
                from_bytes(&unpacked(&given, count as usize, message.data_type == INT4), dtype, &message.dims)
            }
            false => from_bytes(&given, dtype, &message.dims),
        }
        .map_err(|problem| damaged(&place(message), problem))
    }

    /// A tensor whose elements are in a file beside the model.
    fn external(&self, message: &TensorProto, dtype: DType, bytes: usize, packed: bool) -> Result<Tensor> {
        let entry = |key: &str| {
            message.external_data.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
        };
        let number = |key: &str| {
            let text = entry(key).filter(|text| !text.is_empty());
            text.map(|text| {
                text.parse::<usize>().map_err(|_| damaged(&place(message), format!("its {key} is {text:?}")))
            })
            .transpose()
        };
        let location =
            entry("location").ok_or_else(|| damaged(&place(message), "it names no file of its elements"))?;
        let map = self.map(location, message)?;
        let offset = number("offset")?.unwrap_or(0);
        let rest = map.len().checked_sub(offset);
        let length = number("length")?.or(rest).unwrap_or(0);
        if rest.is_none_or(|rest| length > rest) || length != bytes {
            let text = format!(
                "it needs {bytes} bytes, and is {length} bytes from byte {offset} of {location:?}, which has {}",
                map.len()
            );
            return Err(damaged(&place(message), text));
        }
        let made = match packed {
            false => map.tensor(offset, dtype, &message.dims),
            true => {
                let count = message.dims.iter().product::<i64>() as usize;
                let part = map.bytes(offset, bytes).unwrap_or_default();
                from_bytes(&unpacked(&part, count, message.data_type == INT4), dtype, &message.dims)
            }
        };
        made.map_err(|problem| damaged(&place(message), problem))
    }

    /// A file beside the model in memory.
    fn map(&self, location: &str, message: &TensorProto) -> Result<MappedFile> {
        let Some(folder) = &self.folder else {
            return Err(damaged(
                &place(message),
                format!("its elements are in {location:?}, and a model in memory has no files beside it"),
            ));
        };
        let inside = Path::new(location)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let path = folder.join(location);
        let refused = || {
            Error::io(format!(
                "{} names {location:?}, a file outside the folder of the model",
                place(message)
            ))
            .with_help(
                "files of a model are beside it or in folders there: save it again with relative paths",
            )
        };
        if !inside || location.contains(['\\', '\0']) {
            return Err(refused());
        }
        let missing = |error: std::io::Error| {
            Error::io(format!("{}: {} cannot be read: {error}", place(message), path.display()))
                .with_help("copy the files that were saved with the model into its folder")
        };
        let real = path.canonicalize().map_err(missing)?;
        if !real.starts_with(folder.canonicalize().map_err(missing)?) {
            return Err(refused());
        }
        if let Some(known) = self.mapped.borrow().get(&real) {
            return Ok(known.clone());
        }
        let map = MappedFile::open(&real).map_err(missing)?;
        self.mapped.borrow_mut().insert(real, map.clone());
        Ok(map)
    }
}

/// A tensor in words.
fn place(message: &TensorProto) -> String {
    match message.name.as_str() {
        "" => "a tensor".to_owned(),
        name => format!("the tensor `{name}`"),
    }
}

/// The bytes of elements that are given as numbers.
fn fields(message: &TensorProto, dtype: DType) -> Vec<u8> {
    let narrow = |width: usize| {
        message
            .int32_data
            .iter()
            .flat_map(move |number| number.to_le_bytes().into_iter().take(width))
            .collect()
    };
    match dtype {
        DType::F32 | DType::C64 => {
            message.float_data.iter().flat_map(|number| number.to_le_bytes()).collect()
        }
        DType::F64 | DType::C128 => {
            message.double_data.iter().flat_map(|number| number.to_le_bytes()).collect()
        }
        DType::I64 => message.int64_data.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::U64 => message.uint64_data.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::U32 => message.uint64_data.iter().flat_map(|number| (*number as u32).to_le_bytes()).collect(),
        _ => narrow(dtype.size()),
    }
}

/// 4-bit integers, two in a byte, the lower half first, as bytes.
fn unpacked(bytes: &[u8], count: usize, signed: bool) -> Vec<u8> {
    let halves = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).take(count);
    halves.map(|half| if signed { (((half << 4) as i8) >> 4) as u8 } else { half }).collect()
}
