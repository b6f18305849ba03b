//! The index of an archive: its kernels, and the places of their images in compressed blocks.
//!
//! In: JSON. Out: structures whose places lie inside their blocks. Must not know files.

use serde::{Deserialize, Serialize};

use super::KernelResources;
use super::target::ImageTarget;

/// The largest size that a block may have when it is decompressed.
pub const MAX_BLOCK: u64 = 1 << 28;

/// The index.
#[derive(Default, Debug, Serialize, Deserialize)]
pub struct Index {
    /// Compressed parts of the file.
    pub blocks: Vec<Stored>,
    /// Kernels, sorted by name and line.
    pub kernels: Vec<ArchivedKernel>,
}

/// A compressed part of the file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Stored {
    /// The position of its first byte.
    pub start: u64,
    /// The number of its bytes.
    pub stored: u64,
    /// The number of bytes when it is decompressed.
    pub bytes: u64,
}

/// A kernel of an archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArchivedKernel {
    /// The hash of text and options ([`text_key`](super::text_key)).
    pub key: String,
    /// The name of the source.
    pub name: String,
    /// The last line of the text, which defines the kernel.
    pub line: String,
    /// One for each architecture.
    pub images: Vec<ArchivedImage>,
}

/// An image of a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArchivedImage {
    /// The architecture: `sm_90`, `compute_75`.
    #[serde(with = "as_text")]
    pub target: ImageTarget,
    /// The compiler and its version.
    pub compiler: String,
    /// Registers and memory; PTX has none.
    pub resources: Option<KernelResources>,
    /// The number of its bytes.
    pub bytes: u64,
    /// Its hash.
    pub(super) hash: String,
    pub(super) block: usize,
    /// The position of its first byte in the block.
    pub(super) start: u64,
}

impl Index {
    /// Reads an index.
    ///
    /// # Errors
    /// If it is no index, or a place lies outside of its block.
    pub fn read(text: &[u8]) -> Result<Index, String> {
        let index: Index =
            serde_json::from_slice(text).map_err(|error| format!("its index cannot be read: {error}"))?;
        for image in index.kernels.iter().flat_map(|kernel| &kernel.images) {
            let block = index.blocks.get(image.block).map_or(0, |block| block.bytes.min(MAX_BLOCK));
            if image.start.checked_add(image.bytes).is_none_or(|end| end > block) {
                return Err("a place in its index lies outside of its block".to_owned());
            }
        }
        Ok(index)
    }
}

/// Targets as text.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::ImageTarget;

    pub fn serialize<S: Serializer>(target: &ImageTarget, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(target)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ImageTarget, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|_| D::Error::custom(format!("`{text}` is no architecture")))
    }
}
