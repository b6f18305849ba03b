//! Libraries of the vendor, found at run time: which are allowed, which are there.
//!
//! In: the environment. Out: opened libraries, and a list of them. Without them, kernels of our own run. Must not know tensors.
//!
//! ```text
//! requests::product ─────► cublaslt: problem (layouts) ─► plans of the device ─► cublasLtMatmul, in the thread's stream
//! requests::transform ───► cufft ───────────────────────► plans of the device ─► cufftXtExec
//! requests::convolution ─► cudnn: key (layouts) ────────► plans of the device ─► cudnnConvolutionForward and so on
//!    │ no library, or a request that it does not compute
//!    └─► false: the caller's kernel
//! ```

pub mod cublaslt;
pub mod cudnn;
pub mod cufft;
mod library;
pub mod search;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use opsmith_runtime::{Error, Result};

/// The variable that selects libraries.
const VARIABLE: &str = "OPSMITH_CUDA_LIBRARIES";
/// The names of libraries in it.
const NAMES: [&str; 3] = ["cublaslt", "cufft", "cudnn"];

/// A library of the vendor as this process has it.
#[derive(Clone, Debug)]
pub struct LibraryReport {
    /// Its name in `OPSMITH_CUDA_LIBRARIES`.
    pub name: &'static str,
    /// Whether it is used.
    pub state: LibraryState,
    /// Requests that it computed in this process.
    pub computed: u64,
    /// Requests that were left to kernels of our own because of their dtype or layout, or since it had no algorithm.
    pub left: u64,
}

/// Whether a library is used.
#[derive(Clone, Debug)]
pub enum LibraryState {
    /// It is.
    Found {
        /// Its file.
        path: PathBuf,
        /// Its version, as `13.1.0`.
        version: String,
    },
    /// The variable `OPSMITH_CUDA_LIBRARIES` excludes it.
    Off,
    /// It was not found, or cannot be used.
    Missing {
        /// Places that were searched, with a reason where one has a file.
        places: Vec<String>,
    },
}

/// Counts of requests to a library.
pub struct Requests {
    computed: AtomicU64,
    left: AtomicU64,
}

impl Requests {
    /// None.
    pub const fn new() -> Requests {
        Requests { computed: AtomicU64::new(0), left: AtomicU64::new(0) }
    }

    /// Notes a request, and returns whether the library computed it.
    pub fn note(&self, is_computed: bool) -> bool {
        let count = if is_computed { &self.computed } else { &self.left };
        count.fetch_add(1, Ordering::Relaxed);
        is_computed
    }

    fn report(&self, name: &'static str, state: LibraryState) -> LibraryReport {
        let [computed, left] = [&self.computed, &self.left].map(|count| count.load(Ordering::Relaxed));
        LibraryReport { name, state, computed, left }
    }
}

/// The libraries of the vendor, those of which are searched for that have not been.
///
/// # Errors
/// If there is no driver, or the variable `OPSMITH_CUDA_LIBRARIES` has another name.
pub fn libraries() -> Result<Vec<LibraryReport>> {
    let driver_major = crate::driver::driver()?.version / 1000;
    Ok(vec![
        cublaslt::DESCRIBED.report(driver_major)?,
        cufft::DESCRIBED.report(driver_major)?,
        cudnn::DESCRIBED.report(driver_major)?,
    ])
}

/// Whether a library is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// If it is found.
    IfFound,
    /// It must be found.
    Demanded,
    /// It is not.
    Off,
}

/// The choice of the environment for a library.
///
/// # Errors
/// If the variable has another name.
pub fn choice(name: &str) -> Result<Choice> {
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    let text = CHOSEN.get_or_init(|| std::env::var(VARIABLE).ok());
    choice_of(text.as_deref(), name)
}

fn choice_of(text: Option<&str>, name: &str) -> Result<Choice> {
    let names = text.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let (mut count, mut is_named, mut is_off) = (0, false, false);
    for one in names {
        count += 1;
        is_off |= one == "off";
        is_named |= one == name;
        if one != "off" && !NAMES.contains(&one) {
            return Err(wrong_choice(text, &format!("there is no library `{one}`")));
        }
    }
    match (is_off, count) {
        (true, 1) => Ok(Choice::Off),
        (true, _) => Err(wrong_choice(text, "`off` excludes every library, and others are named")),
        (false, 0) => Ok(Choice::IfFound),
        (false, _) => Ok(if is_named { Choice::Demanded } else { Choice::Off }),
    }
}

#[cold]
fn wrong_choice(text: Option<&str>, reason: &str) -> Error {
    Error::value(format!("{VARIABLE} is `{}`: {reason}", text.unwrap_or_default())).with_help(format!(
        "write `off` for kernels of opsmith alone, or the libraries that must be used, of {}; unset, those that are found are",
        NAMES.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::{Choice, choice_of};

    #[test]
    fn names_are_those_of_libraries() {
        let all =
            [super::cublaslt::DESCRIBED.name, super::cufft::DESCRIBED.name, super::cudnn::DESCRIBED.name];
        assert_eq!(super::NAMES, all);
    }

    #[test]
    fn the_variable_names_libraries() {
        let chosen = |text: &str| choice_of(Some(text), "cublaslt");
        for (text, choice) in [
            ("", Choice::IfFound),
            ("off", Choice::Off),
            ("cublaslt", Choice::Demanded),
            (" cublaslt, ", Choice::Demanded),
        ] {
            assert_eq!(chosen(text).unwrap(), choice, "{text}");
        }
        assert_eq!(choice_of(None, "cublaslt").unwrap(), Choice::IfFound);
        assert_eq!(chosen("cufft").unwrap(), Choice::Off);
        assert_eq!(chosen("cufft,cublaslt").unwrap(), Choice::Demanded);
        for (text, reason) in [("cublas", "no library `cublas`"), ("off,cublaslt", "others are named")] {
            let error = chosen(text).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("OPSMITH_CUDA_LIBRARIES"), "{error}");
        }
    }
}
