//! Reading and writing `.npy` files, NumPy's format for one array.
//!
//! In: a path, or bytes from anywhere. Out: a tensor. Nothing is allocated on the word of a header
//! alone, and every error says which file and why.

mod header;

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use opsmith_core::DType;

use crate::arg::Arg;
use crate::device::Device;
use crate::dispatch::Borrows;
use crate::error::{Error, Result};
use crate::layout::{Layout, numel};
use crate::replace::replace;
use crate::storage::Storage;
use crate::tensor::Tensor;

impl Tensor {
    /// Reads a `.npy` file of version 1.0, 2.0 or 3.0.
    ///
    /// Big-endian elements are turned around; an array in Fortran order becomes a tensor whose first
    /// dimension has stride 1. In a bool array every byte but zero is true.
    ///
    /// ```
    /// # use opsmith_runtime::Tensor;
    /// # let path = std::env::temp_dir().join(format!("opsmith-doc-{}.npy", std::process::id()));
    /// Tensor::of(&[1.5f32, 2.0]).save_npy(&path)?;
    /// assert_eq!(Tensor::load_npy(&path)?.to_vec::<f32>()?, [1.5, 2.0]);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), opsmith_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, is damaged or longer or shorter than its header says, or holds
    /// elements of a type that tensors do not have (text, dates, records, Python objects).
    pub fn load_npy(path: impl AsRef<Path>) -> Result<Tensor> {
        let path = path.as_ref();
        load(path).map_err(|problem| problem.into_error(format!("cannot read {}", path.display())))
    }

    /// Reads an array from a reader, as [`Tensor::load_npy`] does; stops after its last byte.
    ///
    /// # Errors
    /// As [`Tensor::load_npy`].
    pub fn read_npy(mut reader: impl Read) -> Result<Tensor> {
        read(&mut reader).map_err(|problem| problem.into_error("cannot read the .npy data".to_owned()))
    }

    /// Writes a `.npy` file of version 1.0, in row-major order.
    ///
    /// The file appears under its name only when it is complete; until then an older file stays.
    ///
    /// # Errors
    /// If the file cannot be written, the tensor is `bfloat16`, which NumPy does not have, or it is
    /// not on the CPU.
    pub fn save_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        replace(path, |file| write(self, file))
            .map_err(|problem| problem.into_error(format!("cannot write {}", path.display())))
    }

    /// Writes the array to a writer, as [`Tensor::save_npy`] does.
    ///
    /// # Errors
    /// As [`Tensor::save_npy`].
    pub fn write_npy(&self, mut writer: impl Write) -> Result<()> {
        write(self, &mut writer).map_err(|problem| problem.into_error("cannot write .npy data".to_owned()))
    }
}

/// Why a file cannot be read or written, before it is known which.
#[derive(Debug)]
struct Problem {
    reason: String,
    help: Option<String>,
}

impl Problem {
    fn new(reason: impl Into<String>) -> Problem {
        Problem { reason: reason.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    fn into_error(self, what: String) -> Error {
        let error = Error::io(format!("{what}: {}", self.reason));
        match self.help {
            Some(help) => error.with_help(help),
            None => error,
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::new(error.message())
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::new(error.to_string())
    }
}

fn load(path: &Path) -> Result<Tensor, Problem> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut reader = BufReader::new(file);
    // A pipe has no size to compare with.
    if !metadata.is_file() {
        return read(&mut reader);
    }
    let header = header::read(&mut reader)?;
    let needed = byte_count(&header)?;
    let there = metadata.len().saturating_sub(io::Seek::stream_position(&mut reader)?);
    if there != needed as u64 {
        return Err(Problem::new(format!(
            "its header announces {needed} bytes of elements, but {there} follow"
        ))
        .help("the file is damaged, or was not written completely"));
    }
    let storage = Storage::uninitialized(needed)?;
    // SAFETY: the storage has that many bytes and no other user; they are zeroed first, since a reader may look at
    // the buffer that it fills.
    let bytes = unsafe {
        std::ptr::write_bytes(storage.data(), 0, needed);
        std::slice::from_raw_parts_mut(storage.data(), needed)
    };
    reader.read_exact(bytes)?;
    Ok(finish(header, storage))
}

fn read(reader: &mut impl Read) -> Result<Tensor, Problem> {
    let header = header::read(reader)?;
    let needed = byte_count(&header)?;
    // Memory grows with the bytes that really arrive.
    let mut bytes = Vec::new();
    reader.take(needed as u64).read_to_end(&mut bytes)?;
    if bytes.len() != needed {
        return Err(Problem::new(format!(
            "its header announces {needed} bytes of elements, but {} follow",
            bytes.len()
        ))
        .help("the data is damaged, or was not written completely"));
    }
    let storage = Storage::uninitialized(needed)?;
    // SAFETY: the storage has that many bytes, and no other user.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), storage.data(), needed) };
    Ok(finish(header, storage))
}

fn byte_count(header: &header::Header) -> Result<usize, Problem> {
    usize::try_from(numel(&header.sizes))
        .ok()
        .and_then(|count| count.checked_mul(header.dtype.size()))
        .ok_or_else(|| Problem::new("it has more elements than memory can hold"))
}

/// Makes the bytes of a file elements, and a tensor of them.
fn finish(header: header::Header, storage: Storage) -> Tensor {
    let header::Header { dtype, big_endian, fortran_order, sizes } = header;
    // SAFETY: every byte was written, and the storage has no other user.
    let bytes = unsafe { std::slice::from_raw_parts_mut(storage.data(), storage.bytes()) };
    if dtype == DType::Bool {
        // A Rust bool is 0 or 1 and nothing else.
        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
    if big_endian != cfg!(target_endian = "big") {
        let part = dtype.to_real().size();
        bytes.chunks_exact_mut(part).for_each(<[u8]>::reverse);
    }
    let mut layout = Layout::contiguous(&sizes);
    if fortran_order {
        let reversed: Vec<i64> = sizes.iter().rev().copied().collect();
        layout.strides = Layout::contiguous(&reversed).strides.into_iter().rev().collect();
    }
    // SAFETY: the layout covers exactly the storage's elements, in one order or the other.
    unsafe { Tensor::from_parts(storage, layout, dtype, Device::CPU) }
}

fn write(tensor: &Tensor, writer: &mut impl Write) -> Result<(), Problem> {
    let header = header::write(tensor.dtype(), tensor.shape())?;
    let tensor = tensor.on_host()?.contiguous_untracked()?;
    let length = tensor.numel() as usize * tensor.dtype().size();
    let reads = [Arg::Tensor(&tensor)];
    let _held = Borrows::acquire(&reads, &[])?;
    // SAFETY: the tensor is row-major, so its elements are that many bytes, all written before; the
    // borrow is held.
    let bytes = unsafe { std::slice::from_raw_parts(tensor.data_ptr(), length) };
    writer.write_all(&header)?;
    writer.write_all(bytes)?;
    writer.flush()?;
    Ok(())
}
