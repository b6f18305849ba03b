//! NumPy archives (`.npz`): tensors by name, each read when it is needed.
//!
//! In: a file, and tensors of the program. Out: the tensors of the same names. Sizes that the file declares are not trusted: an
//! array has no more bytes than one of the program's shape can have.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::tensor::Tensor;
use zip::ZipArchive;

use super::HELP;

/// The most bytes of an array before its elements, and of an element.
const HEADER: u64 = 1 << 17;
const ELEMENT: u64 = 16;

/// The first bytes of zip files: of one with members, and of one without.
const STARTS: [[u8; 4]; 2] = [*b"PK\x03\x04", *b"PK\x05\x06"];

/// A NumPy archive, open for reading.
pub(crate) struct Arrays {
    /// The file, for messages.
    file: String,
    zip: ZipArchive<BufReader<File>>,
    /// The names of the arrays, sorted.
    names: Vec<String>,
}

impl Arrays {
    /// Whether a file is a zip file, by its name or content. One that cannot be read is none: its reader reports it.
    pub fn is_archive(path: &Path) -> bool {
        if path.extension().is_some_and(|extension| extension == "npz") {
            return true;
        }
        let mut start = [0u8; 4];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && STARTS.contains(&start)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read, is no zip file, or has members that are no arrays.
    pub fn open(path: &Path) -> Result<Arrays> {
        let name = path.display().to_string();
        let refused =
            |problem: String| Error::io(format!("{name} cannot be read: {problem}")).with_help(HELP);
        let file = File::open(path).map_err(|error| refused(error.to_string()))?;
        let zip = ZipArchive::new(BufReader::new(file))
            .map_err(|error| refused(format!("it is no NumPy archive: {error}")))?;
        let mut names = Vec::with_capacity(zip.len());
        for member in zip.file_names() {
            let member = member.map_err(|error| refused(error.to_string()))?;
            let Some(array) = member.strip_suffix(".npy") else {
                return Err(refused(format!("its member {member:?} is no array")));
            };
            names.push(array.to_owned());
        }
        names.sort();
        Ok(Arrays { file: name, zip, names })
    }

    /// The names of the arrays, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The array of a name, row-major; `None` if there is none.
    ///
    /// # Errors
    /// If it is damaged, has more bytes than one of the other's shape, or no tensor has its elements.
    pub fn read(&mut self, name: &str, like: &Tensor) -> Result<Option<Tensor>> {
        if self.names.binary_search_by(|known| known.as_str().cmp(name)).is_err() {
            return Ok(None);
        }
        let place = format!("in the array `{name}` of {}", self.file);
        let refused = |problem: String| {
            let error = Error::io(format!("the weight `{name}` cannot be read: {problem}"));
            error.with_note(place.clone()).with_help("the file is damaged: save it again")
        };
        let member = self.zip.by_name(&format!("{name}.npy")).map_err(|error| refused(error.to_string()))?;
        let most = (like.numel() as u64).saturating_mul(ELEMENT).saturating_add(HEADER);
        if member.size() > most {
            return Err(Error::shape(format!(
                "the new weight `{name}` has {} bytes, and the program's has the shape {:?}",
                member.size(),
                like.shape()
            ))
            .with_note(place.clone())
            .with_help("take the weights of a model of the same sizes"));
        }
        let mut rest = member.take(most.saturating_add(1));
        let tensor = Tensor::read_npy(&mut rest).map_err(|error| error.with_note(place.clone()))?;
        // The check sum is compared at the end of the member.
        match io::copy(&mut rest, &mut io::sink()) {
            Ok(0) => tensor.contiguous_untracked().map(Some),
            Ok(more) => Err(refused(format!("{more} bytes follow its elements"))),
            Err(error) => Err(refused(error.to_string())),
        }
    }
}
