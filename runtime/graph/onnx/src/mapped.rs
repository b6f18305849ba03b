//! Files in memory, whose parts are tensors.
//!
//! In: a file. Out: tensors over its pages, which are read when elements are, and shared between processes until one writes
//! them. Written elements stay in the process.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use opsmith_core::DType;
use opsmith_runtime::device::Device;
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::layout::{Layout, checked_numel};
use opsmith_runtime::storage::Storage;
use opsmith_runtime::tensor::Tensor;

/// A file in memory.
#[derive(Clone)]
pub struct MappedFile(Arc<MmapRaw>);

impl MappedFile {
    /// Maps a file. One that another program shortens while it is in use ends this program, as any mapped file does.
    ///
    /// # Errors
    /// If the file cannot be read, or is no plain file.
    pub fn open(path: impl AsRef<Path>) -> io::Result<MappedFile> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
        }
        // SAFETY: the pointer of the mapping is used within its length only.
        let map = unsafe { MmapOptions::new().map_copy(&file) }?;
        Ok(MappedFile(Arc::new(MmapRaw::from(map))))
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of some bytes; `None` if the file ends before.
    pub fn bytes(&self, offset: usize, length: usize) -> Option<Vec<u8>> {
        let end = offset.checked_add(length)?;
        if end > self.len() {
            return None;
        }
        let mut bytes = vec![0u8; length];
        // SAFETY: the part lies within the mapping, as was checked, and the new memory has as many bytes.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr().add(offset), bytes.as_mut_ptr(), length) };
        Some(bytes)
    }

    /// The tensor of little-endian elements from an offset on: over the file's pages, or copied if its elements are not
    /// aligned there or are truth values, which are checked.
    ///
    /// # Errors
    /// In words, if the file ends before, a size is negative, or a truth value is neither 0 nor 1.
    pub fn tensor(&self, offset: usize, dtype: DType, sizes: &[i64]) -> Result<Tensor, String> {
        let count = checked_numel(sizes).map_err(|error| error.message().to_owned())? as usize;
        let length = count.checked_mul(dtype.size()).ok_or("its size overflows")?;
        let end = offset.checked_add(length).filter(|end| *end <= self.len());
        if end.is_none() {
            return Err(format!(
                "it needs {length} bytes from byte {offset} of a file of {} bytes",
                self.len()
            ));
        }
        let start = self.0.as_mut_ptr().wrapping_add(offset);
        let in_place = dtype != DType::Bool && start.addr().is_multiple_of(dtype.size()) && length > 0;
        if !in_place || cfg!(target_endian = "big") {
            return from_bytes(&self.bytes(offset, length).unwrap_or_default(), dtype, sizes);
        }
        // SAFETY: the part lies within a private, writable mapping that the storage keeps, is aligned, and every pattern of
        // bytes is an element of the dtype.
        let storage = unsafe { Storage::external(start, length, self.0.clone()) };
        // SAFETY: the layout has as many elements as the storage.
        Ok(unsafe { Tensor::from_parts(storage, Layout::contiguous(sizes), dtype, Device::CPU) })
    }
}

/// A tensor of little-endian elements, as many as the sizes say.
pub(crate) fn from_bytes(bytes: &[u8], dtype: DType, sizes: &[i64]) -> Result<Tensor, String> {
    if cfg!(target_endian = "big") {
        return Err("elements are little-endian, and this processor is not".to_owned());
    }
    if dtype == DType::Bool && bytes.iter().any(|byte| *byte > 1) {
        return Err("a truth value is neither 0 nor 1".to_owned());
    }
    let count = checked_numel(sizes).map_err(|error| error.message().to_owned())?;
    let needed = (count as usize).checked_mul(dtype.size());
    if needed != Some(bytes.len()) {
        return Err(format!("it has {} bytes, and its dtype and shape need another number", bytes.len()));
    }
    // SAFETY: every element is written on the next lines, before any is read.
    let tensor =
        unsafe { Tensor::with_memory(sizes, dtype, Device::CPU) }.map_err(|error| error.to_string())?;
    // SAFETY: the new memory holds as many bytes, no other code has it, and every pattern of bytes is an element of the
    // dtype: those of truth values were checked.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr(), bytes.len()) };
    Ok(tensor)
}
