//! The ways from the text of a kernel to a function, in the order in which they are tried.
//!
//! In: a text. Out: a function and its origin, or an error that lists all that was searched. Must not know the driver's
//! modules.

use std::env;
use std::ffi::c_int;
use std::fs;
use std::path::Path;
use std::sync::Once;
use std::sync::OnceLock;

use opsmith_runtime::backend::DeviceSource;
use opsmith_runtime::{Error, Result};

use super::cache::Cache;
use super::load::load;
use super::nvrtc::Nvrtc;
use super::search::{self, nvrtc};
use super::{Function, KernelOrigin};
use crate::driver::{Context, codes};
use crate::images::{self, Found, options_for, text_key, text_of};
use crate::key::Key;
use crate::status::Status;

/// A kernel that is wanted on a device.
struct Wanted<'a> {
    context: &'static Context,
    status: &'a Status,
    /// The name of the source.
    source: &'static str,
    /// The source and its line, for messages.
    name: String,
    text: String,
    /// The key in archives of images.
    key: String,
    /// The architecture of the device.
    architecture: c_int,
}

/// The function of a line of a source.
///
/// # Errors
/// If no archive has it and no compiler is found, the source has a mistake, or errors of the device.
pub fn build(
    context: &'static Context,
    status: &Status,
    source: &DeviceSource,
    line: &str,
) -> Result<Function> {
    let text = text_of(source, line);
    let wanted = Wanted {
        context,
        status,
        source: source.name,
        name: format!("{} ({})", source.name, line.trim()),
        key: text_key(&text),
        text,
        architecture: architecture(context)?,
    };
    keep_text(&wanted);
    let mut refused = Vec::new();
    if let Some(function) = wanted.of_archives(true, &mut refused) {
        return Ok(function);
    }
    let error = match wanted.of_compiler() {
        Ok(function) => return Ok(function),
        // The user names a compiler, and means it.
        Err(error) if search::is_named() => return Err(error),
        Err(error) => error,
    };
    match wanted.of_archives(false, &mut refused) {
        Some(function) => {
            if search::found() {
                warn_of_compiler(&error);
            }
            Ok(function)
        }
        None => Err(wanted.not_found(error, refused)),
    }
}

impl Wanted<'_> {
    /// The function from an image of an archive: machine code, or PTX. Images that the driver refuses are noted, and are a
    /// warning, once.
    fn of_archives(&self, cubin: bool, refused: &mut Vec<String>) -> Option<Function> {
        for Found { archive, image } in images::images_of(&self.key, self.architecture, cubin) {
            let (place, target) = (archive.place(), image.target);
            let origin = KernelOrigin::Archive { place: place.to_owned(), target };
            let loaded = archive
                .image(image)
                .and_then(|bytes| load(self.context, self.status, &bytes, &self.name, origin));
            match loaded {
                Ok(function) => return Some(function),
                Err(error) => {
                    static WARNED: Once = Once::new();
                    WARNED.call_once(|| {
                        images::warn(&format!(
                            "an image for {target} of {place} is not used, and another way to the kernel is tried: {error}"
                        ));
                    });
                    refused.push(format!("{place}, {target}: {}", error.message()));
                }
            }
        }
        None
    }

    /// The function from the user's cache, or from the compiler.
    fn of_compiler(&self) -> Result<Function> {
        let compiler = nvrtc(self.context.driver.version / 1000)?;
        let target = compiler.target(self.architecture)?;
        let options = options_for(target);
        let key = self.key_of_image(compiler, &options);
        if let Some(image) = disk().and_then(|disk| disk.read(&key))
            && let Ok(function) = load(self.context, self.status, &image, &self.name, KernelOrigin::Cache)
        {
            return Ok(function);
        }
        let image = compiler.compile(self.source, &self.text, target, &options)?.image;
        let function = load(self.context, self.status, &image, &self.name, KernelOrigin::Compiler)?;
        if let Some(disk) = disk() {
            disk.write(&key, &image);
        }
        Ok(function)
    }

    fn key_of_image(&self, compiler: &Nvrtc, options: &[String]) -> String {
        let mut key = Key::new("opsmith image 1");
        key.add(&format!("{}.{}", compiler.version.0, compiler.version.1));
        key.add(self.source);
        key.add(&self.text);
        for option in options {
            key.add(option);
        }
        key.finish()
    }

    /// The error of the compiler, with the other ways that were tried.
    #[cold]
    fn not_found(&self, error: Error, refused: Vec<String>) -> Error {
        if search::found() && refused.is_empty() {
            return error;
        }
        let searched = images::searched(&self.key, self.architecture);
        let notes = refused.into_iter().chain(searched).map(|place| format!("images: {place}"));
        let error = notes.fold(error, Error::with_note);
        error.with_note(format!("wanted: {} for sm_{}", self.name, self.architecture))
    }
}

/// Warns, once, of a compiler that fails where PTX serves.
#[cold]
fn warn_of_compiler(error: &Error) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        images::warn(&format!("kernels are PTX of archives, since the compiler fails: {error}"))
    });
}

/// Writes the text to the folder that the environment names for it, for reading and for compilation ahead of time.
fn keep_text(wanted: &Wanted<'_>) {
    if let Some(folder) = env::var_os("OPSMITH_CUDA_KEEP_TEXT") {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let name: String =
            wanted.source.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
        let path = Path::new(&folder).join(format!("{name}.{}.cu", wanted.key));
        // The call does not fail because of it.
        if let Err(error) = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, &wanted.text)) {
            eprintln!("opsmith: OPSMITH_CUDA_KEEP_TEXT: cannot write {}: {error}", path.display());
        }
    }
}

fn disk() -> Option<&'static Cache> {
    static DISK: OnceLock<Option<Cache>> = OnceLock::new();
    DISK.get_or_init(Cache::of_user).as_ref()
}

/// The architecture of a device, as 10 × major + minor.
fn architecture(context: &Context) -> Result<c_int> {
    let major = context.attribute(codes::COMPUTE_CAPABILITY_MAJOR)?;
    let minor = context.attribute(codes::COMPUTE_CAPABILITY_MINOR)?;
    c_int::try_from(10 * major + minor).map_err(|_| Error::device("the device has no architecture"))
}

/// The image of an instance for an architecture, from the compiler.
///
/// # Errors
/// If no compiler is found, or the source has a mistake.
#[cfg(test)]
pub fn image_for(source: &DeviceSource, line: &str, architecture: c_int) -> Result<Vec<u8>> {
    let compiler = Nvrtc::find()?;
    let target = compiler.target(architecture)?;
    compiler
        .compile(source.name, &text_of(source, line), target, &options_for(target))
        .map(|compiled| compiled.image)
}
