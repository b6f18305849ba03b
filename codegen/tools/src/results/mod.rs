//! Results of a test run: outcomes of checks, examples with their output, timings.
//!
//! In: a file of lines of JSON that a test run wrote, or a folder of such files, among which may be the lines of the
//! program that times operators. Out: [`Results`] by operator. Files may be damaged or made to harm: their size is
//! bounded, no text in them is trusted, and a line that is cut off at the end of a file is a run that was ended.

mod line;
mod merge;
mod sizes;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use opsmith_codegen::analysis::fingerprint::fingerprint;
use opsmith_codegen::model::Model;

use merge::Part;
pub use sizes::{RecordedArgument, RecordedSizes, RecordedTensor, SizeOfRun};

/// The version of the lines that this reader knows.
pub const VERSION: u64 = 1;
/// The most bytes of one file.
const MOST_BYTES: u64 = 256 << 20;
/// The most files of a folder.
const MOST_FILES: usize = 4096;

/// Results of test runs, by operator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Results {
    parts: Vec<Part>,
    merged: BTreeMap<String, OperatorResults>,
}

/// The results of one operator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OperatorResults {
    /// The outcome of each check, in the order of backend, dtype and check.
    pub cells: Vec<Cell>,
    /// Calls with their printed results.
    pub examples: Vec<Example>,
    /// Sizes of results as formulas, at samples.
    pub sizes: Vec<RecordedSizes>,
    /// Times of calls, in the order of their cases.
    pub timings: Vec<Timing>,
}

/// The outcome of a check of an operator, on a backend and in a dtype.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The backend, `CPU`.
    pub backend: String,
    /// The dtype, `float32`; `any` if the check is of all at once.
    pub dtype: String,
    /// The check: `forward`, `gradient`, `inplace`, `graph`.
    pub check: String,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The outcome of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It passed, with the number of comparisons.
    Passed(u64),
    /// It failed, with its findings.
    Failed(Vec<String>),
    /// It was left out, with the reason.
    Skipped(String),
}

/// A call with its printed result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example {
    /// The call, in Rust.
    pub code: String,
    /// Its result as printed.
    pub output: String,
}

/// The time of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Timing {
    /// The case that was timed, with sizes and threads: `ew.exp.1e6, 2 threads`.
    pub case: String,
    /// The median of one call.
    pub nanoseconds: f64,
    /// Bytes read and written in a second, if the case counts them.
    pub bytes_per_second: Option<f64>,
}

/// The reason why results cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultsError {
    /// The file.
    pub file: PathBuf,
    /// The mistake and its cure.
    pub message: String,
}

impl fmt::Display for ResultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.message)
    }
}

impl std::error::Error for ResultsError {}

impl Results {
    /// Reads a file of results, or all of a folder that end in `.jsonl`.
    ///
    /// # Errors
    /// If a file cannot be read or is not one of results.
    pub fn read(path: &Path) -> Result<Results, ResultsError> {
        let error = |file: &Path, message: String| ResultsError { file: file.to_owned(), message };
        let metadata = |file: &Path| {
            std::fs::metadata(file).map_err(|why| {
                error(
                    file,
                    format!(
                        "it cannot be read ({why}); give the file or folder that `OPSMITH_RESULTS` named"
                    ),
                )
            })
        };
        let mut files = Vec::new();
        if metadata(path)?.is_dir() {
            let entries = std::fs::read_dir(path).map_err(|why| error(path, why.to_string()))?;
            for entry in entries {
                let file = entry.map_err(|why| error(path, why.to_string()))?.path();
                if file.extension().is_some_and(|ending| ending == "jsonl") {
                    files.push(file);
                }
                if files.len() > MOST_FILES {
                    return Err(error(
                        path,
                        format!("more than {MOST_FILES} files; remove those of earlier runs"),
                    ));
                }
            }
            files.sort();
        } else {
            files.push(path.to_owned());
        }
        let mut parts = Vec::new();
        for file in files {
            let found = metadata(&file)?;
            if !found.is_file() {
                return Err(error(&file, "it is no plain file; remove it".to_owned()));
            }
            if found.len() > MOST_BYTES {
                return Err(error(
                    &file,
                    format!("it has more than {MOST_BYTES} bytes; a run writes far fewer"),
                ));
            }
            let bytes = std::fs::read(&file).map_err(|why| error(&file, why.to_string()))?;
            parts.extend(line::parts(&bytes).map_err(|message| error(&file, message))?);
        }
        Ok(Results::of_parts(parts))
    }

    fn of_parts(parts: Vec<Part>) -> Results {
        let merged = merge::merged(&parts);
        Results { parts, merged }
    }

    /// The results of an operator, by its full name.
    pub fn operator(&self, name: &str) -> Option<&OperatorResults> {
        self.merged.get(name)
    }

    /// The names of the operators that have results, sorted.
    pub fn operators(&self) -> impl Iterator<Item = &str> {
        self.merged.keys().map(String::as_str)
    }

    /// The names of the libraries that have results, sorted.
    pub fn libraries(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.parts.iter().map(|part| part.library.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether some results are of this model: of the same entries. Others are stale, or of another library.
    pub fn is_of(&self, model: &Model) -> bool {
        let wanted = format!("{:016x}", fingerprint(model));
        self.parts.iter().any(|part| part.fingerprint.as_deref() == Some(&wanted))
    }

    /// The results of this model alone, with the timings, which have no fingerprint.
    #[must_use]
    pub fn of(self, model: &Model) -> Results {
        let wanted = format!("{:016x}", fingerprint(model));
        let is_wanted = |part: &Part| part.fingerprint.as_ref().is_none_or(|found| *found == wanted);
        Results::of_parts(self.parts.into_iter().filter(is_wanted).collect())
    }
}
