//! Models that PyTorch trained and exported, as programs without Python: two classifiers of images, and a writer of text.
//!
//! In: the exported programs and data of this folder. Out: text on the terminal.

// Makes the devices of CUDA known to programs.
use opsmith_cuda as _;

pub mod digits;
pub mod shapes;
pub mod text;

use std::path::PathBuf;

/// A file of this folder.
pub fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), name].iter().collect()
}
