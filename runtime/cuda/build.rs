//! Embeds the archive of images that `OPSMITH_CUDA_EMBED` names, as `opsmith cuda build` makes it.
//!
//! In: the variable. Out: a condition of compilation, `embedded_images`, and the file for `include_bytes!`. Without the
//! variable nothing is embedded.

use std::path::Path;
use std::{env, fs};

const VARIABLE: &str = "OPSMITH_CUDA_EMBED";
/// The first bytes of an archive, as in `src/images/archive.rs`.
const MAGIC: &[u8] = b"OPSMIMGS";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rustc-check-cfg=cfg(embedded_images)");
    let Some(file) = env::var(VARIABLE).ok().filter(|file| !file.is_empty()) else { return };
    println!("cargo::rerun-if-changed={file}");
    match check(Path::new(&file)) {
        Ok(()) => {
            println!("cargo::rustc-cfg=embedded_images");
            println!("cargo::rustc-env=OPSMITH_CUDA_EMBEDDED_FILE={file}");
        }
        Err(reason) => println!("cargo::error={VARIABLE} names {file}: {reason}"),
    }
}

fn check(file: &Path) -> Result<(), String> {
    if !file.is_absolute() {
        return Err("the path must be absolute, because a build script has a folder of its own".to_owned());
    }
    let bytes = fs::read(file).map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.starts_with(MAGIC) {
        return Ok(());
    }
    Err("it is no archive of images; make one: opsmith cuda build TEXTS -o FILE".to_owned())
}
