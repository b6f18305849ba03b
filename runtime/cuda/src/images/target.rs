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
    /// Machine code with the features that one architecture alone has: `sm_90a`.
    CubinOfOne(c_int),
    /// PTX, text for the driver's own compiler: `compute_75`.
    Ptx(c_int),
    /// PTX with such features: `compute_90a`.
    PtxOfOne(c_int),
}

/// The first architecture with features of its own.
const FIRST_WITH_OWN: c_int = 90;

impl ImageTarget {
    /// The option of NVRTC and nvcc.
    pub fn option(self) -> String {
        format!("--gpu-architecture={self}")
    }

    /// Whether a device of an architecture runs it: machine code of the same major version, no newer minor one; PTX of the
    /// same or an older architecture; with features of one architecture, that one alone.
    pub fn fits(self, device: c_int) -> bool {
        match self {
            ImageTarget::Cubin(own) => own / 10 == device / 10 && own <= device,
            ImageTarget::Ptx(own) => own <= device,
            ImageTarget::CubinOfOne(own) | ImageTarget::PtxOfOne(own) => own == device,
        }
    }

    /// The architecture.
    pub fn architecture(self) -> c_int {
        match self {
            ImageTarget::Cubin(own)
            | ImageTarget::Ptx(own)
            | ImageTarget::CubinOfOne(own)
            | ImageTarget::PtxOfOne(own) => own,
        }
    }

    /// Whether it is machine code.
    pub fn is_cubin(self) -> bool {
        matches!(self, ImageTarget::Cubin(_) | ImageTarget::CubinOfOne(_))
    }

    /// Whether it has features that one architecture alone has.
    pub fn is_of_one(self) -> bool {
        matches!(self, ImageTarget::CubinOfOne(_) | ImageTarget::PtxOfOne(_))
    }

    /// The same kind of image without features of one architecture. Compilers list these alone.
    #[must_use]
    pub fn of_all(self) -> ImageTarget {
        if self.is_cubin() {
            ImageTarget::Cubin(self.architecture())
        } else {
            ImageTarget::Ptx(self.architecture())
        }
    }
}

impl fmt::Display for ImageTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_cubin() { "sm" } else { "compute" };
        let own = if self.is_of_one() { "a" } else { "" };
        write!(formatter, "{kind}_{}{own}", self.architecture())
    }
}

impl FromStr for ImageTarget {
    type Err = Error;

    fn from_str(text: &str) -> Result<ImageTarget> {
        let number = |digits: &str, least: c_int| {
            let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit());
            digits.parse().ok().filter(|own| is_plain && (least..1000).contains(own))
        };
        let read = |rest: &str, of_all: fn(c_int) -> ImageTarget, of_one: fn(c_int) -> ImageTarget| match rest
            .strip_suffix('a')
        {
            Some(digits) => number(digits, FIRST_WITH_OWN).map(of_one),
            None => number(rest, 10).map(of_all),
        };
        let cubin = text.strip_prefix("sm_");
        let cubin = cubin.and_then(|rest| read(rest, ImageTarget::Cubin, ImageTarget::CubinOfOne));
        let ptx = text.strip_prefix("compute_");
        let ptx = ptx.and_then(|rest| read(rest, ImageTarget::Ptx, ImageTarget::PtxOfOne));
        cubin.or(ptx).ok_or_else(|| {
            Error::argument(format!("`{text}` is no architecture")).with_help(
                "write sm_90 for machine code of compute capability 9.0, sm_90a for code with features that it alone has, \
                 compute_75 for PTX from 7.5 on",
            )
        })
    }
}
