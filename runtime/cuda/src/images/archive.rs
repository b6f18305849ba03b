//! An archive of images: one file, or bytes of the program.
//!
//! In: a file, or bytes. Out: its index when it is opened, an image at each request, with its hash verified. Must not know
//! devices.
//!
//! ```text
//! header (48 bytes): magic, format, size of the index when decompressed, its size, its start, its hash
//! blocks: images one after another, up to some MiB, compressed (Zstandard)
//! index: JSON, compressed
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use opsmith_runtime::{Error, Result};
use ruzstd::decoding::StreamingDecoder;
use sha2::{Digest, Sha256};

use super::index::{ArchivedImage, ArchivedKernel, Index, MAX_BLOCK, Stored};

/// The first bytes of an archive.
pub const MAGIC: &[u8; 8] = b"OPSMIMGS";
/// The version of the format.
pub const FORMAT: u32 = 1;
/// Bytes of the header.
pub const HEADER: usize = 48;

/// An archive of images.
pub struct ImageArchive {
    place: String,
    content: Content,
    index: Index,
    by_key: HashMap<String, usize>,
    /// The block that was decompressed last, with its number.
    last: Mutex<Option<(usize, Arc<Vec<u8>>)>>,
}

enum Content {
    Bytes(&'static [u8]),
    File(File),
}

impl Content {
    fn read(&self, start: u64, bytes: u64) -> Result<Cow<'_, [u8]>, String> {
        let short = || "it is shorter than its parts".to_owned();
        match self {
            Content::Bytes(all) => {
                let start = usize::try_from(start).map_err(|_| short())?;
                let end = usize::try_from(bytes).ok().and_then(|bytes| start.checked_add(bytes));
                end.and_then(|end| all.get(start..end)).map(Cow::Borrowed).ok_or_else(short)
            }
            Content::File(file) => {
                let length = file.metadata().map_err(|error| error.to_string())?.len();
                if start.checked_add(bytes).is_none_or(|end| end > length) {
                    return Err(short());
                }
                let mut read = vec![0; usize::try_from(bytes).map_err(|_| short())?];
                file.read_exact_at(&mut read, start).map_err(|error| error.to_string())?;
                Ok(Cow::Owned(read))
            }
        }
    }

    fn decompressed(&self, part: Stored) -> Result<Vec<u8>, String> {
        if part.bytes > MAX_BLOCK {
            return Err(format!("a part would have {} bytes", part.bytes));
        }
        let stored = self.read(part.start, part.stored)?;
        let refused = |error: String| format!("a part cannot be decompressed: {error}");
        let decoder = StreamingDecoder::new(&stored[..]).map_err(|error| refused(error.to_string()))?;
        let mut bytes = Vec::with_capacity(part.bytes as usize);
        decoder.take(part.bytes + 1).read_to_end(&mut bytes).map_err(|error| refused(error.to_string()))?;
        if bytes.len() as u64 == part.bytes { Ok(bytes) } else { Err("a part has another size".to_owned()) }
    }
}

/// The first 16 bytes of a hash, as text.
pub fn hash_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl ImageArchive {
    /// Opens a file and reads its index.
    ///
    /// # Errors
    /// If it cannot be read, is no archive, has another format, or its index is damaged.
    pub fn open(path: &Path) -> Result<ImageArchive> {
        let place = path.display().to_string();
        let file = File::open(path)
            .map_err(|error| Error::io(format!("the archive of images {place} cannot be read: {error}")))?;
        ImageArchive::new(place, Content::File(file))
    }

    /// An archive of these bytes, under a name for messages.
    ///
    /// # Errors
    /// As [`ImageArchive::open`].
    pub fn of_bytes(name: &str, bytes: &'static [u8]) -> Result<ImageArchive> {
        ImageArchive::new(name.to_owned(), Content::Bytes(bytes))
    }

    fn new(place: String, content: Content) -> Result<ImageArchive> {
        let index = index_of(&place, &content)?;
        let by_key = index.kernels.iter().enumerate().map(|(at, kernel)| (kernel.key.clone(), at)).collect();
        Ok(ImageArchive { place, content, index, by_key, last: Mutex::new(None) })
    }

    /// The file, or the name of the bytes.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// All kernels, sorted by name and line.
    pub fn kernels(&self) -> &[ArchivedKernel] {
        &self.index.kernels
    }

    /// The kernel of a key.
    pub fn kernel(&self, key: &str) -> Option<&ArchivedKernel> {
        self.by_key.get(key).and_then(|at| self.index.kernels.get(*at))
    }

    /// Bytes of all images, and of all compressed blocks.
    pub fn sizes(&self) -> (u64, u64) {
        let blocks = &self.index.blocks;
        let sum = |of: fn(&Stored) -> u64| blocks.iter().map(of).fold(0, u64::saturating_add);
        (sum(|block| block.bytes), sum(|block| block.stored))
    }

    /// The bytes of an image.
    ///
    /// # Errors
    /// If the file is damaged, or cannot be read any more.
    pub fn image(&self, image: &ArchivedImage) -> Result<Vec<u8>> {
        let block = self.block(image.block).map_err(|reason| damaged(&self.place, &reason))?;
        // The index was checked for places outside of blocks.
        let bytes = &block[image.start as usize..][..image.bytes as usize];
        if hash_of(bytes) != image.hash {
            return Err(damaged(&self.place, "the hash of an image is another"));
        }
        Ok(bytes.to_vec())
    }

    fn block(&self, number: usize) -> Result<Arc<Vec<u8>>, String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, block)) = &*last
            && *known == number
        {
            return Ok(block.clone());
        }
        let block = Arc::new(self.content.decompressed(self.index.blocks[number])?);
        *last = Some((number, block.clone()));
        Ok(block)
    }
}

fn index_of(place: &str, content: &Content) -> Result<Index> {
    let damaged = |reason: String| damaged(place, &reason);
    let header = match content.read(0, HEADER as u64) {
        Ok(header) if header.starts_with(MAGIC) => header,
        Ok(_) | Err(_) => {
            return Err(Error::io(format!("{place} is no archive of images")).with_help(HELP));
        }
    };
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| header[at + byte]));
    let format = word(8) as u32;
    if format != FORMAT {
        return Err(Error::io(format!(
            "the archive of images {place} has format {format}, and this version of opsmith reads {FORMAT}"
        ))
        .with_help(HELP));
    }
    let part = Stored { bytes: word(8) >> 32, stored: word(16), start: word(24) };
    let stored = content.read(part.start, part.stored).map_err(damaged)?;
    if Sha256::digest(&stored)[..16] != header[32..] {
        return Err(damaged("the hash of its index is another".to_owned()));
    }
    Index::read(&content.decompressed(part).map_err(damaged)?).map_err(damaged)
}

const HELP: &str = "make it with this version: opsmith cuda build TEXTS -o FILE";

#[cold]
fn damaged(place: &str, reason: &str) -> Error {
    Error::io(format!("the archive of images {place} is damaged: {reason}")).with_help(HELP)
}
