//! The format safetensors: a header of names, dtypes and shapes, and elements.
//!
//! In: state dicts. Out: bytes, and the reverse. Bytes are not trusted: the header is checked against them before any
//! memory is allocated for a tensor, and every `bool` is checked.

use std::borrow::Cow;
use std::fs;
use std::io::Write;
use std::path::Path;

use ::safetensors::tensor::View;
use ::safetensors::{Dtype, SafeTensors};
use opsmith::{DType, Device, Element, Error, Result, Tensor};
use opsmith_runtime::internals::{TensorInternals as _, replace};
use opsmith_runtime::with_dtype;

use super::StateDict;

pub(super) fn save(dict: &StateDict, path: &Path) -> Result<()> {
    let bytes = to_bytes(dict)?;
    replace(path, |file| file.write_all(&bytes)).map_err(|error: std::io::Error| {
        Error::io(format!("cannot write {}: {error}", path.display()))
            .with_help("give a file in a folder that exists and allows writing")
    })
}

pub(super) fn load(path: &Path) -> Result<StateDict> {
    let file = path.display();
    let bytes = fs::read(path).map_err(|error| Error::io(format!("cannot read {file}: {error}")))?;
    from_bytes(&bytes).map_err(|error| error.with_note(format!("in the file {file}")))
}

pub(super) fn to_bytes(dict: &StateDict) -> Result<Vec<u8>> {
    let mut entries = Vec::with_capacity(dict.len());
    for (name, tensor) in dict.iter() {
        entries
            .push((name, entry(tensor).map_err(|error| error.with_note(format!("in the tensor `{name}`")))?));
    }
    ::safetensors::serialize(entries, None)
        .map_err(|error| Error::io(format!("cannot write safetensors: {error}")))
}

pub(super) fn from_bytes(bytes: &[u8]) -> Result<StateDict> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| {
        Error::io(format!("the data is no safetensors file, or is damaged: {error}")).with_help(
            "a checkpoint that `torch.save` wrote is another format; save it with `safetensors.torch`",
        )
    })?;
    let mut dict = StateDict::new();
    for (name, view) in file.tensors() {
        let tensor = tensor(view.dtype(), view.shape(), view.data());
        dict.insert(&*name, tensor.map_err(|error| error.with_note(format!("in the tensor `{name}`")))?);
    }
    Ok(dict)
}

/// A tensor's dtype, shape and elements in the format.
struct Entry {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl View for Entry {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

macro_rules! formats {
    ($({
        $variant:ident: $rust:ty, $name:literal, $kind:ident, $size:literal, $numpy:literal, $safetensors:ident,
        $($columns:tt)*
    })*) => {
        /// Dtypes with those of the format; a complex one has that of its parts, an integer of four bits that of its bytes.
        const FORMATS: [(DType, Dtype); DType::ALL.len()] = [$((DType::$variant, Dtype::$safetensors)),*];
    };
}

opsmith_runtime::for_each_dtype!(formats);

/// A tensor's elements in the format.
fn entry(tensor: &Tensor) -> Result<Entry> {
    let dtype = tensor.dtype();
    let format = FORMATS.iter().find(|(known, _)| *known == dtype && is_in_format(dtype));
    let Some((_, format)) = format else {
        return Err(Error::dtype(format!("a {dtype} tensor cannot be written to a safetensors file"))
            .with_help(if dtype.is_complex() {
                "store its real and imaginary parts as two tensors"
            } else {
                "convert it to int8 or uint8, or pack pairs in bytes"
            }));
    };
    let shape = tensor.shape().iter().map(|size| *size as usize).collect();
    let bytes = with_dtype!(dtype, T => bytes(&tensor.to_vec::<T>()?));
    Ok(Entry { dtype: *format, shape, bytes })
}

/// Whether the format has the dtype itself.
fn is_in_format(dtype: DType) -> bool {
    !dtype.is_complex() && dtype.bits() >= 8
}

/// The memory of elements.
fn bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    // SAFETY: elements have no padding, and all their bytes are initialised.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(elements)) }.to_vec()
}

/// A tensor of elements in the format, whose length the reader of the header has compared with the shape.
fn tensor(format: Dtype, shape: &[usize], bytes: &[u8]) -> Result<Tensor> {
    let known = FORMATS.iter().find(|(dtype, known)| *known == format && is_in_format(*dtype));
    let Some(&(dtype, _)) = known else {
        return Err(Error::dtype(format!("elements of {format:?} are no dtype of tensors"))
            .with_help("convert the tensor before it is saved, for instance to bfloat16"));
    };
    let large = || Error::shape(format!("the shape {shape:?} is too large"));
    let sizes: Vec<i64> =
        shape.iter().map(|size| i64::try_from(*size).map_err(|_| large())).collect::<Result<_>>()?;
    let count = sizes.iter().try_fold(1i64, |count, size| count.checked_mul(*size)).ok_or_else(large)?;
    if count.checked_mul(dtype.size() as i64) != i64::try_from(bytes.len()).ok() {
        return Err(Error::io(format!(
            "{} bytes are no elements of {dtype} of the shape {shape:?}",
            bytes.len()
        )));
    }
    if dtype == DType::Bool && bytes.iter().any(|byte| *byte > 1) {
        return Err(Error::io("a truth value is neither 0 nor 1").with_help("the file is damaged"));
    }
    // SAFETY: every element is written below.
    let tensor = unsafe { Tensor::with_memory(&sizes, dtype, Device::CPU)? };
    // SAFETY: the new tensor has no other owner and as many bytes; those of a `bool` were checked, and all bytes are valid
    // for the other dtypes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr(), bytes.len()) };
    Ok(tensor)
}
