//! Shared code of several test files.

#![allow(dead_code, reason = "each test file is a crate of its own and uses some of this")]

use std::path::{Path, PathBuf};

use opsmith_runtime::{Element, Layout, Tensor};

/// A tensor over the given elements of a vector: sizes and strides in elements, and an offset.
pub fn strided<T: Element>(storage: &[T], sizes: &[i64], strides: &[i64], offset: i64) -> Tensor {
    let base = Tensor::of(storage);
    let layout = Layout { sizes: sizes.into(), strides: strides.into(), offset };
    if let Some((low, high)) = layout.extent() {
        assert!(low >= 0 && high <= storage.len() as i64, "the test's layout leaves its storage");
    }
    // SAFETY: the layout stays inside the storage, whose elements are all written.
    unsafe { Tensor::from_parts(base.storage().clone(), layout, T::DTYPE, base.device()) }
}

/// A new, empty folder for files of a test, named after it.
pub fn temporary_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    folder
}
