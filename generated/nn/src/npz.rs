//! NumPy archives: arrays by name in a zip file.
//!
//! In: files. Out: tensors by name, and the reverse.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};

use opsmith::{Error, Result, Tensor};
use opsmith_runtime::internals::replace;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Maximal size of an array, in bytes.
const LARGEST: u64 = 1 << 36;

/// A NumPy archive, open for reading.
///
/// ```
/// use opsmith::Tensor;
/// use opsmith_nn::npz::{self, NpzArchive};
///
/// # fn main() -> opsmith::Result<()> {
/// let path = std::env::temp_dir().join(format!("opsmith-nn-doc-{}.npz", std::process::id()));
/// npz::save(&path, [("x", Tensor::of(&[1.0f32, 2.0]))])?;
/// let mut archive = NpzArchive::open(&path)?;
/// assert_eq!(archive.names(), ["x"]);
/// assert_eq!(archive.read("x")?.to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok(())
/// # }
/// ```
pub struct NpzArchive {
    path: PathBuf,
    zip: ZipArchive<BufReader<File>>,
}

impl NpzArchive {
    /// Opens a file.
    ///
    /// # Errors
    /// If the file cannot be read, or is no zip file.
    pub fn open(path: impl AsRef<Path>) -> Result<NpzArchive> {
        let path = path.as_ref();
        let name = path.display();
        let file = File::open(path).map_err(|error| Error::io(format!("cannot read {name}: {error}")))?;
        let zip = ZipArchive::new(BufReader::new(file)).map_err(|error| {
            Error::io(format!("{name} is no NumPy archive: {error}")).with_help("`numpy.savez` writes one")
        })?;
        Ok(NpzArchive { path: path.to_owned(), zip })
    }

    /// The names of the arrays.
    pub fn names(&self) -> Vec<String> {
        let name = |name: &str| name.strip_suffix(".npy").map(str::to_owned);
        self.zip.file_names().flatten().filter_map(|full| name(&full)).collect()
    }

    /// The array of a name.
    ///
    /// # Errors
    /// If there is no such array, it is damaged, or no tensor has its elements.
    pub fn read(&mut self, name: &str) -> Result<Tensor> {
        let file = self.path.display();
        let known = self.names();
        let member = self.zip.by_name(&format!("{name}.npy")).map_err(|error| match error {
            zip::result::ZipError::FileNotFound => {
                Error::not_found(format!("{file} has no array {name:?}; there are {}", known.join(", ")))
            }
            error => Error::io(format!("the array {name:?} of {file} cannot be read: {error}")),
        })?;
        let place = format!("in the array {name:?} of {file}");
        Tensor::read_npy(member.take(LARGEST)).map_err(|error| error.with_note(place))
    }
}

/// All arrays of a file, by name.
///
/// # Errors
/// As [`NpzArchive::open`] and [`NpzArchive::read`].
pub fn load(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let mut archive = NpzArchive::open(path)?;
    archive.names().into_iter().map(|name| Ok((name.clone(), archive.read(&name)?))).collect()
}

/// Writes tensors by name, uncompressed. The file appears when it is complete.
///
/// # Errors
/// If a tensor is `bfloat16`, which NumPy does not have, two have one name, or the file cannot be written.
pub fn save<N: AsRef<str>, T: std::borrow::Borrow<Tensor>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, T)>,
) -> Result<()> {
    let path = path.as_ref();
    let unwritable =
        |error: &dyn std::fmt::Display| Error::io(format!("cannot write {}: {error}", path.display()));
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (name, tensor) in tensors {
        let name = name.as_ref();
        let mut bytes = Vec::new();
        let written = tensor.borrow().write_npy(&mut bytes);
        written.map_err(|error| error.with_note(format!("in the array {name:?} of {}", path.display())))?;
        zip.start_file(format!("{name}.npy"), options).map_err(|error| unwritable(&error))?;
        zip.write_all(&bytes).map_err(|error| unwritable(&error))?;
    }
    let bytes = zip.finish().map_err(|error| unwritable(&error))?.into_inner();
    replace(path, |file| file.write_all(&bytes)).map_err(|error: std::io::Error| unwritable(&error))
}
