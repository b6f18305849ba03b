//! Exported programs and recorded results for tests.

#![allow(dead_code, reason = "each test uses a part")]

use std::fs::File;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use opsmith::{DType, Tensor, TensorOps};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

// The operators of programs are found in libraries that are linked.
pub use opsmith::LIBRARY;

/// The folders with programs that exist.
pub fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = [root.join("data/programs"), root.join("../../shared/data/programs")];
    // The operators are linked only if the library is named.
    assert!(!LIBRARY.ops.is_empty());
    all.into_iter().filter(|folder| folder.is_dir()).collect()
}

/// The bytes of a program in the repository.
pub fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("data/programs").join(name)).unwrap()
}

/// NumPy arrays in a `.npz` file.
pub struct Archive(Mutex<ZipArchive<File>>);

impl Archive {
    pub fn open(path: &Path) -> Archive {
        Archive(Mutex::new(ZipArchive::new(File::open(path).unwrap()).unwrap()))
    }

    /// The array of a name.
    pub fn array(&self, name: &str) -> Option<Tensor> {
        let mut zip = self.0.lock().unwrap();
        let mut member = zip.by_name(&format!("{name}.npy")).ok()?;
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        Some(Tensor::read_npy(bytes.as_slice()).unwrap())
    }

    /// The names of arrays that begin so.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let zip = self.0.lock().unwrap();
        let names = zip.file_names().map(|name| name.unwrap().into_owned());
        names.filter(|name| name.starts_with(prefix)).collect()
    }

    /// The arrays `PREFIX0`, `PREFIX1` and so on; `None` if there is none.
    pub fn arrays(&self, prefix: &str) -> Option<Vec<Tensor>> {
        let arrays: Vec<Tensor> =
            (0..).map_while(|number| self.array(&format!("{prefix}{number}"))).collect();
        (!arrays.is_empty()).then_some(arrays)
    }
}

/// Compares results: floats by `max|a-b| ≤ 1e-4 · max(1, max|b|)`, others exactly.
#[track_caller]
pub fn compare(place: &str, outputs: &[Tensor], expected: &[Tensor]) {
    compare_from(1.0, place, outputs, expected);
}

/// As [`compare`], with another size of the largest element from which on differences are relative.
#[track_caller]
pub fn compare_from(least: f64, place: &str, outputs: &[Tensor], expected: &[Tensor]) {
    assert_eq!(outputs.len(), expected.len(), "{place}: number of outputs");
    for (number, (output, expected)) in outputs.iter().zip(expected).enumerate() {
        let place = format!("{place}, output {number}");
        assert_eq!(output.shape(), expected.shape(), "{place}: shape");
        assert_eq!(output.dtype(), expected.dtype(), "{place}: dtype");
        let numbers = |tensor: &Tensor| tensor.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        if !matches!(expected.dtype(), DType::F32 | DType::F64) {
            assert_eq!(numbers(output), numbers(expected), "{place}");
            continue;
        }
        let (output, expected) = (numbers(output), numbers(expected));
        let bound = 1e-4 * expected.iter().fold(least, |most, value| most.max(value.abs()));
        for (index, (a, b)) in output.iter().zip(&expected).enumerate() {
            assert!(
                a == b || (a - b).abs() <= bound,
                "{place}: element {index} is {a}, expected {b} within {bound}"
            );
        }
    }
}

/// The same archive with other members: each is given to a function, which returns the new bytes, or `None` to drop it.
pub fn changed(archive: &[u8], mut change: impl FnMut(&str, Vec<u8>) -> Option<Vec<u8>>) -> Vec<u8> {
    let mut zip = ZipArchive::new(Cursor::new(archive)).unwrap();
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for number in 0..zip.len() {
        let mut member = zip.by_index(number).unwrap();
        let name = member.name().unwrap().into_owned();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        if let Some(bytes) = change(&name, bytes) {
            writer.start_file(name, options).unwrap();
            writer.write_all(&bytes).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}
