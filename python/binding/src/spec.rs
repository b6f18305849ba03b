//! Operators of a spec that a program of Python loads.
//!
//! In: a file or a text. Out: its functions, or every mistake with its place. Checking and interpreting are `opsmith_loader`'s.

use std::path::PathBuf;

use opsmith_loader::{Failure, Mistake, Source, load_documented};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bridge::PyDefinition;
use crate::call::library;
use crate::errors::raise;
use crate::{documentation, functions};

/// A mistake as keywords of the class of Python that shows it.
fn keywords<'py>(py: Python<'py>, mistake: Mistake) -> PyResult<Bound<'py, PyDict>> {
    let one = PyDict::new(py);
    one.set_item("severity", if mistake.is_error { "error" } else { "warning" })?;
    one.set_item("code", mistake.code)?;
    one.set_item("message", mistake.message)?;
    one.set_item("file", mistake.file)?;
    one.set_item("line", mistake.start.0)?;
    one.set_item("column", mistake.start.1)?;
    one.set_item("end_line", mistake.end.0)?;
    one.set_item("end_column", mistake.end.1)?;
    one.set_item("label", mistake.label)?;
    one.set_item("help", mistake.help)?;
    one.set_item("notes", mistake.notes)?;
    one.set_item("text", mistake.text)?;
    Ok(one)
}

/// Functions by name, definitions, mistakes, and their number in words.
type Loaded<'py> = (Vec<(String, Bound<'py, PyAny>)>, Vec<PyDefinition>, Vec<Bound<'py, PyDict>>, String);

/// Loads a spec: see `opsmith.load_spec`, which makes an object of the functions, or an exception of the mistakes.
#[pyfunction]
#[pyo3(signature = (path, text, package))]
fn _load_spec<'py>(
    py: Python<'py>,
    path: PathBuf,
    text: Option<String>,
    package: &str,
) -> PyResult<Loaded<'py>> {
    let name = path.display().to_string();
    let source = match text {
        Some(text) => Source::text(&name, &text),
        None => Source::file(path),
    };
    match py.detach(|| load_documented(library(), &source)) {
        Ok(documentation) => {
            documentation::learn(documentation);
            let library = documentation.library;
            let functions = functions::of_spec(py, library, package, name.leak())?;
            let definitions = library.ops.iter().map(|op| PyDefinition(op)).collect();
            Ok((functions, definitions, Vec::new(), String::new()))
        }
        Err(Failure::Mistakes(mistakes, count)) => {
            let mistakes =
                mistakes.into_iter().map(|mistake| keywords(py, mistake)).collect::<PyResult<_>>()?;
            Ok((Vec::new(), Vec::new(), mistakes, count))
        }
        Err(Failure::Error(error)) => Err(raise(py, error)),
    }
}

/// Adds the function.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_load_spec, module)?)
}
