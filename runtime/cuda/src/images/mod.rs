//! Archives of images: kernels compiled ahead of time.
//!
//! In: the text of a kernel, and the architecture of a device. Out: images for it, from archives that `opsmith cuda build`
//! has made. An archive is found by [`OPSMITH_CUDA_IMAGES`](VARIABLE), by [`register_images!`](crate::register_images), in
//! this crate if `OPSMITH_CUDA_EMBED` named one when it was built, and beside the program ([`FILE_NAME`]). Must not know
//! compilers, and the driver.
//!
//! ```text
//! text, options ─► key ─► archives ─► machine code for the device, the nearest architecture first
//!                                 └─► PTX for it, the newest architecture first
//! ```

mod archive;
mod index;
mod places;
mod resources;
mod target;
#[cfg(test)]
mod tests;
mod write;

use std::ffi::c_int;

use opsmith_runtime::backend::DeviceSource;

pub use archive::ImageArchive;
pub use index::{ArchivedImage, ArchivedKernel};
pub(crate) use places::warn;
pub use places::{FILE_NAME, RegisteredImages, VARIABLE};
pub use resources::KernelResources;
pub use target::ImageTarget;
pub use write::{CompiledImage, Compress, archive, archive_compressed};

use crate::key::Key;

/// Options of every compilation, besides the architecture. Products and sums are rounded each, as on the host, unless a text
/// says `fma`.
pub const OPTIONS: [&str; 2] = ["--std=c++17", "--fmad=false"];

/// All options of a compilation.
pub fn options_for(target: ImageTarget) -> Vec<String> {
    [target.option()].into_iter().chain(OPTIONS.map(str::to_owned)).collect()
}

/// Adds an archive of images to the program: a name for messages, and its bytes.
///
/// ```ignore
/// opsmith::cuda::register_images!("my kernels", include_bytes!("../kernels.images"));
/// ```
#[macro_export]
macro_rules! register_images {
    ($name:expr, $bytes:expr) => {
        $crate::images::inventory::submit! {
            $crate::images::RegisteredImages { name: $name, bytes: || $bytes }
        }
    };
}

#[doc(hidden)]
pub use opsmith_runtime::inventory;

/// The whole text of a kernel: headers, the source, and the line that defines the kernel.
pub fn text_of(source: &DeviceSource, line: &str) -> String {
    let mut text = String::new();
    for part in source.headers.iter().copied().chain([source.text, line]) {
        text.push_str(part);
        if !part.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

/// The key of a text in archives: the hash of it and of [`OPTIONS`].
pub fn text_key(text: &str) -> String {
    let mut key = Key::new("opsmith text 1");
    for part in OPTIONS {
        key.add(part);
    }
    key.add(text);
    key.finish()
}

/// The archives that this process has found, in the order of the search.
pub fn archives() -> &'static [ImageArchive] {
    &places::places().archives
}

/// An image of an archive.
pub(crate) struct Found {
    pub archive: &'static ImageArchive,
    pub image: &'static ArchivedImage,
}

/// The images of a key that a device of this architecture runs: machine code if `cubin`, else PTX. The nearest architecture
/// is first, of equal ones the image with features of that architecture alone, then that of the first archive.
pub(crate) fn images_of(key: &str, device: c_int, cubin: bool) -> Vec<Found> {
    let archives = places::places().archives.iter();
    let of_kernel = archives.filter_map(|archive| Some((archive, archive.kernel(key)?)));
    let all = of_kernel
        .flat_map(|(archive, kernel)| kernel.images.iter().map(move |image| Found { archive, image }));
    let fits = |target: ImageTarget| target.is_cubin() == cubin && target.fits(device);
    let mut found: Vec<Found> = all.filter(|found| fits(found.image.target)).collect();
    found.sort_by_key(|found| {
        let target = found.image.target;
        std::cmp::Reverse((target.architecture(), target.is_of_one()))
    });
    found
}

/// Sentences about archives without an image for a kernel, and about places without an archive.
pub(crate) fn searched(key: &str, device: c_int) -> Vec<String> {
    let places = places::places();
    let mut notes = places.without.clone();
    for archive in &places.archives {
        let (place, count) = (archive.place(), archive.kernels().len());
        let Some(kernel) = archive.kernel(key) else {
            notes.push(format!("{place}: none of its {count} kernels is this one"));
            continue;
        };
        if !kernel.images.iter().any(|image| image.target.fits(device)) {
            let targets: Vec<String> = kernel.images.iter().map(|image| image.target.to_string()).collect();
            notes
                .push(format!("{place}: it has this kernel for {}, not for sm_{device}", targets.join(", ")));
        }
    }
    notes
}
