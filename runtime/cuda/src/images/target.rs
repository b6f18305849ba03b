//! Architectures that an image is for.
//!
//! In: text such as `sm_90`. Out: a value that is compared with the architecture of a device. Must not know images.

use std::ffi::c_int;
use std::fmt;
use std::str::FromStr;

use opsmith_runtime::{Error, Result};

/// The kind of an image, with its architecture as 10 × major + minor: 90 is that of compute capability 9.0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ImageTarget {
    /// Machine code of an architecture: `sm_90`.
    Cubin(c_int),
    /// PTX, text for the driver's own compiler: `compute_75`.
    Ptx(c_int),
}

impl ImageTarget {
    /// The option of NVRTC and nvcc.
    pub fn option(self) -> String {
        format!("--gpu-architecture={self}")
    }

    /// Whether a device of an architecture runs it: machine code of the same major version, no newer minor one; PTX of the
    /// same or an older architecture.
    pub fn fits(self, device: c_int) -> bool {
        match self {
            ImageTarget::Cubin(own) => own / 10 == device / 10 && own <= device,
            ImageTarget::Ptx(own) => own <= device,
        }
    }

    /// The architecture.
    pub fn architecture(self) -> c_int {
        let (ImageTarget::Cubin(own) | ImageTarget::Ptx(own)) = self;
        own
    }

    /// Whether it is machine code.
    pub fn is_cubin(self) -> bool {
        matches!(self, ImageTarget::Cubin(_))
    }
}

impl fmt::Display for ImageTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageTarget::Cubin(own) => write!(formatter, "sm_{own}"),
            ImageTarget::Ptx(own) => write!(formatter, "compute_{own}"),
        }
    }
}

impl FromStr for ImageTarget {
    type Err = Error;

    fn from_str(text: &str) -> Result<ImageTarget> {
        let number = |digits: &str| digits.parse().ok().filter(|own| (10..1000).contains(own));
        let cubin = text.strip_prefix("sm_").and_then(number).map(ImageTarget::Cubin);
        let ptx = || text.strip_prefix("compute_").and_then(number).map(ImageTarget::Ptx);
        cubin.or_else(ptx).ok_or_else(|| {
            Error::argument(format!("`{text}` is no architecture")).with_help(
                "write sm_90 for machine code of compute capability 9.0, compute_75 for PTX from 7.5 on",
            )
        })
    }
}
