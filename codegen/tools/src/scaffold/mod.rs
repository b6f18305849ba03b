//! File templates: a new crate (`opsmith init`), a new package of Python (`opsmith init --python`), a new operator (`opsmith new`).
//!
//! In: names and a signature. Out: [`FileChange`]s to files, which the command makes all or not at all. Only reads from the
//! disk. The templates are beside this file.

mod krate;
mod op;
mod python;
mod sample;

use std::path::PathBuf;

use minijinja::{Environment, Value};

use opsmith_codegen::diagnostics::{Diagnostics, SourceMap};

pub use krate::{Dependencies, krate};
pub use op::{KernelLanguage, NewOperator, operator};
pub use python::python;

/// A file to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// The new contents.
    pub text: String,
    /// Whether it exists already.
    pub exists: bool,
}

/// The reason why nothing can be written.
#[derive(Debug)]
pub enum Refusal {
    /// The spec would have mistakes: the diagnostics, and the texts they refer to.
    Mistakes(SourceMap, Diagnostics),
    /// Another reason, in words.
    Because(String),
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal::Because(text)
    }
}

/// A template with its holes filled.
pub(crate) fn render(template: &str, context: Value) -> Result<String, Refusal> {
    let rendered = Environment::new().render_str(template, context);
    let text = rendered.map_err(|error| format!("a template failed, which is a defect: {error}"))?;
    Ok(format!("{}\n", text.trim_end()))
}

/// Whether a text can be the name of a package, and, with underscores for hyphens, of its library.
pub fn is_package_name(name: &str) -> bool {
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    letters && opsmith_codegen::expr::path::is_identifier(&name.replace('-', "_"))
}
