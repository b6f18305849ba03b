//! Running recorded calls of another library's operators through ours, values and gradients.
//!
//! In: a folder with a pair of files per overload, `NAME.OVERLOAD.json` (a list of cases) and
//! `NAME.OVERLOAD.safetensors` (their tensors). Out: a [`Report`] per overload. Calls go through the boxed call, so an
//! overload exists only because the spec declares it; one that does not counts as failed, with all its cases.

mod case;
mod compare;
mod run;
mod tensors;

use std::fmt;
use std::path::{Path, PathBuf};

use opsmith::Device;

pub use case::{Case, Gradients, Recorded};
pub use compare::{Tolerance, difference};
pub use run::run_case;
pub use tensors::Tensors;

/// The selection of overloads to run.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only those whose name contains this text.
    pub only: Option<String>,
    /// Only those that the library declares.
    pub declared: bool,
    /// The device of the calls; the host by default.
    pub device: Option<Device>,
}

/// The result of one overload's cases.
#[derive(Clone, Debug)]
pub struct Report {
    /// The overload as recorded, e.g. `mm.default`.
    pub name: String,
    /// Number of cases.
    pub total: usize,
    /// The failures, a text for each failed case.
    pub failures: Vec<String>,
}

impl Report {
    /// Number of cases with the recorded results.
    pub fn passed(&self) -> usize {
        self.total - self.failures.len()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.name, self.passed(), self.total)?;
        match self.failures.first() {
            Some(failure) => write!(f, "\n    {}", failure.replace('\n', "\n    ")),
            None => Ok(()),
        }
    }
}

/// The name that our library gives a recorded overload: `mm.default` is `mm`.
pub fn our_name(recorded: &str) -> &str {
    recorded.strip_suffix(".default").unwrap_or(recorded)
}

/// The overloads recorded in a folder, sorted, and the number that the selection excludes because the library does not
/// declare them.
///
/// # Errors
/// If the folder cannot be read.
pub fn overloads(folder: &Path, selection: &Selection) -> Result<(Vec<String>, usize), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path: PathBuf = entry.ok()?.path();
            let is_case_list = path.extension().is_some_and(|extension| extension == "json");
            is_case_list.then(|| path.file_stem()?.to_str().map(str::to_owned)).flatten()
        })
        .filter(|name| selection.only.as_ref().is_none_or(|text| name.contains(text.as_str())))
        .collect();
    names.sort_unstable();
    let found = names.len();
    if selection.declared {
        names.retain(|name| opsmith::LIBRARY.find(our_name(name)).is_some());
    }
    let left_out = found - names.len();
    Ok((names, left_out))
}

/// Runs every case of one overload on a device.
///
/// # Errors
/// If its files cannot be read. That a case fails is not an error but part of the report.
pub fn run_overload(folder: &Path, name: &str, device: Device) -> Result<Report, String> {
    let cases = case::read(&folder.join(format!("{name}.json")))?;
    let mut report = Report { name: name.to_owned(), total: cases.len(), failures: Vec::new() };
    if let Err(unknown) = opsmith::LIBRARY.get(our_name(name)) {
        report.failures = vec![unknown.to_string(); cases.len()];
        return Ok(report);
    }
    let tensors = Tensors::read(&folder.join(format!("{name}.safetensors")))?;
    for (index, case) in cases.iter().enumerate() {
        if let Err(failure) = run_case(our_name(name), case, &tensors, device) {
            let arguments = case.describe_arguments();
            report.failures.push(format!("case {index} (from {}): {failure}\n{arguments}", case.from));
        }
    }
    Ok(report)
}
