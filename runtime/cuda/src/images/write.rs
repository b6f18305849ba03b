//! Writing of archives.
//!
//! In: kernels with their images. Out: the bytes of an archive, the same for the same images in any order. Must not know
//! compilers.

use std::io;

use opsmith_runtime::{Error, Result};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use sha2::{Digest, Sha256};

use super::KernelResources;
use super::archive::{FORMAT, HEADER, MAGIC, hash_of};
use super::index::{ArchivedImage, ArchivedKernel, Index, MAX_BLOCK, Stored};
use super::target::ImageTarget;

/// The size from which a block is complete. Similar kernels share a block; a kernel that is loaded decompresses one.
const BLOCK: usize = 4 << 20;
/// A function that compresses a part of an archive.
pub type Compress<'a> = dyn Fn(&[u8]) -> io::Result<Vec<u8>> + 'a;

/// A kernel compiled for an architecture.
#[derive(Clone, Debug)]
pub struct CompiledImage {
    /// The hash of text and options.
    pub key: String,
    /// The name of the source.
    pub name: String,
    /// The last line of the text.
    pub line: String,
    /// The architecture.
    pub target: ImageTarget,
    /// The compiler and its version.
    pub compiler: String,
    /// Registers and memory, of machine code.
    pub resources: Option<KernelResources>,
    /// The image.
    pub image: Vec<u8>,
}

/// The bytes of an archive with these images, compressed a little. Of two with one key and architecture, the first is taken.
///
/// # Errors
/// If an image is larger than a block may be.
pub fn archive(images: Vec<CompiledImage>) -> Result<Vec<u8>> {
    archive_compressed(images, &|bytes| Ok(compress_to_vec(bytes, CompressionLevel::Fastest)))
}

/// As [`archive`], compressed by a function that writes frames of Zstandard.
///
/// # Errors
/// If an image is larger than a block may be, and errors of the function.
pub fn archive_compressed(mut images: Vec<CompiledImage>, compress: &Compress<'_>) -> Result<Vec<u8>> {
    images.sort_by(|a, b| (a.target, &a.name, &a.line, &a.key).cmp(&(b.target, &b.name, &b.line, &b.key)));
    images.dedup_by(|b, a| (a.target, &a.key) == (b.target, &b.key));
    let mut file = vec![0; HEADER];
    let mut index = Index::default();
    let mut block = Vec::new();
    let mut target = None;
    for image in images {
        if image.image.len() as u64 > MAX_BLOCK / 2 {
            return Err(Error::io(format!("the image of {} has {} bytes", image.name, image.image.len())));
        }
        if block.len() >= BLOCK || target.is_some_and(|target| target != image.target) {
            index.blocks.push(store(&mut file, &std::mem::take(&mut block), compress)?);
        }
        target = Some(image.target);
        let found = ArchivedImage {
            target: image.target,
            compiler: image.compiler,
            resources: image.resources,
            bytes: image.image.len() as u64,
            hash: hash_of(&image.image),
            block: index.blocks.len(),
            start: block.len() as u64,
        };
        block.extend_from_slice(&image.image);
        let (key, name, line, images) = (image.key, image.name, image.line, vec![found]);
        index.kernels.push(ArchivedKernel { key, name, line, images });
    }
    if !block.is_empty() {
        index.blocks.push(store(&mut file, &block, compress)?);
    }
    index.kernels = joined(index.kernels);
    let text = serde_json::to_vec(&index)
        .map_err(|error| Error::io(format!("the index cannot be written: {error}")))?;
    let part = store(&mut file, &text, compress)?;
    let hash = Sha256::digest(&file[part.start as usize..]);
    file[..8].copy_from_slice(MAGIC);
    let sizes = u64::from(FORMAT) | part.bytes << 32;
    for (at, word) in [(8, sizes), (16, part.stored), (24, part.start)] {
        file[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    file[32..HEADER].copy_from_slice(&hash[..16]);
    Ok(file)
}

/// Kernels by name and line, each with the images of all architectures.
fn joined(mut kernels: Vec<ArchivedKernel>) -> Vec<ArchivedKernel> {
    kernels.sort_by(|a, b| (&a.name, &a.line, &a.key).cmp(&(&b.name, &b.line, &b.key)));
    kernels.dedup_by(|next, kernel| {
        let same = next.key == kernel.key;
        if same {
            kernel.images.append(&mut next.images);
        }
        same
    });
    kernels
}

/// Compresses bytes to the end of a file.
fn store(file: &mut Vec<u8>, bytes: &[u8], compress: &Compress<'_>) -> Result<Stored> {
    let stored =
        compress(bytes).map_err(|error| Error::io(format!("images cannot be compressed: {error}")))?;
    let start = file.len() as u64;
    file.extend_from_slice(&stored);
    Ok(Stored { start, stored: stored.len() as u64, bytes: bytes.len() as u64 })
}
