//! NumPy archives: arrays by name in a zip file.
//!
//! In: files. Out: tensors, and the reverse.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use opsmith::Tensor;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Maximal size of an array, in bytes.
const LARGEST: u64 = 1 << 36;

/// An archive, open for reading.
pub struct Arrays(ZipArchive<BufReader<File>>);

impl Arrays {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Arrays> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let zip = ZipArchive::new(BufReader::new(file));
        Ok(Arrays(zip.with_context(|| format!("{} is no NumPy archive", path.display()))?))
    }

    /// The names of the arrays.
    pub fn names(&self) -> Vec<String> {
        let name = |name: &str| name.strip_suffix(".npy").map(str::to_owned);
        self.0.file_names().flatten().filter_map(|full| name(&full)).collect()
    }

    /// The array of a name.
    pub fn read(&mut self, name: &str) -> Result<Tensor> {
        let known = self.names();
        let Ok(member) = self.0.by_name(&format!("{name}.npy")) else {
            bail!("there is no array {name:?}; there are {}", known.join(", "));
        };
        Tensor::read_npy(member.take(LARGEST)).with_context(|| format!("the array {name:?} cannot be read"))
    }
}

/// Writes tensors as `out0`, `out1` and so on. The file appears when it is complete.
pub fn write(path: &Path, outputs: &[Tensor]) -> Result<()> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (number, output) in outputs.iter().enumerate() {
        let mut bytes = Vec::new();
        output.write_npy(&mut bytes).with_context(|| format!("out{number} cannot be written"))?;
        zip.start_file(format!("out{number}.npy"), options)?;
        zip.write_all(&bytes)?;
    }
    let bytes = zip.finish()?.into_inner();
    let file = path.file_name().with_context(|| format!("{} is no file", path.display()))?;
    let part = path.with_file_name(format!(".{}.{}", file.to_string_lossy(), std::process::id()));
    std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path)).with_context(|| {
        _ = std::fs::remove_file(&part);
        format!("cannot write {}", path.display())
    })
}
