//! The profiler as a context of Python.
//!
//! In: the calls of a `with` block. Out: tables, traces and pages of them.

use std::path::PathBuf;

use opsmith_profile::{Group, Profile, ProfileError, ProfileOptions, Profiler, SortBy};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Records the operators that run in a `with` block.
#[pyclass(name = "profile", module = "opsmith", unsendable)]
pub struct PyProfile {
    options: ProfileOptions,
    running: Option<Profiler>,
    done: Option<Profile>,
}

/// A row of a table: name, detail, calls, self and total nanoseconds.
type Row = (String, String, u64, u64, u64);

fn raised(error: ProfileError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

impl PyProfile {
    fn done(&self) -> PyResult<&Profile> {
        self.done.as_ref().ok_or_else(|| {
            PyRuntimeError::new_err("the profile is not complete\n  help: read it after the `with` block")
        })
    }
}

fn group(name: &str) -> PyResult<Group> {
    Ok(match name {
        "operator" => Group::Operator,
        "shapes" => Group::Shapes,
        "kernel" => Group::Kernel,
        "site" => Group::Site,
        other => {
            return Err(PyValueError::new_err(format!(
                "{other:?} is no group\n  help: groups are \"operator\", \"shapes\", \"kernel\" and \"site\""
            )));
        }
    })
}

fn order(name: &str) -> PyResult<SortBy> {
    Ok(match name {
        "self_time" => SortBy::SelfTime,
        "total_time" => SortBy::TotalTime,
        "average_time" => SortBy::AverageTime,
        "calls" => SortBy::Calls,
        "self_memory" => SortBy::SelfMemory,
        "self_device_time" => SortBy::SelfDeviceTime,
        "name" => SortBy::Name,
        other => {
            return Err(PyValueError::new_err(format!(
                "{other:?} is no order\n  help: orders are \"self_time\", \"total_time\", \"average_time\", \"calls\", \
                 \"self_memory\", \"self_device_time\" and \"name\""
            )));
        }
    })
}

#[pymethods]
impl PyProfile {
    #[new]
    #[pyo3(signature = (name="profile", *, shapes=true, memory=true, sites=true, devices=true))]
    fn new(name: &str, shapes: bool, memory: bool, sites: bool, devices: bool) -> PyProfile {
        let options = ProfileOptions::new().name(name).shapes(shapes).memory(memory);
        PyProfile { options: options.sites(sites).devices(devices), running: None, done: None }
    }

    fn __enter__(mut slf: PyRefMut<'_, Self>) -> PyResult<PyRefMut<'_, Self>> {
        slf.running = Some(Profiler::start(slf.options.clone()).map_err(raised)?);
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&mut self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.done = self.running.take().map(Profiler::stop);
    }

    /// Ends a step and begins the next.
    fn step(&mut self) -> PyResult<()> {
        match &mut self.running {
            Some(running) => running.step().map_err(raised),
            None => Err(PyRuntimeError::new_err(
                "the profiler does not run\n  help: call this in the `with` block",
            )),
        }
    }

    /// A table of operators, slowest first.
    #[pyo3(signature = (group="operator", *, sort_by="self_time", row_limit=20))]
    fn table(&self, group: &str, sort_by: &str, row_limit: usize) -> PyResult<String> {
        let group = self::group(group)?;
        Ok(self.done()?.key_averages(group).sort_by(order(sort_by)?).row_limit(row_limit).table())
    }

    /// The rows of the table: name, detail, calls, and self and total nanoseconds.
    #[pyo3(signature = (group="operator"))]
    fn rows(&self, group: &str) -> PyResult<Vec<Row>> {
        let rows = self.done()?.key_averages(self::group(group)?).rows;
        Ok(rows.into_iter().map(|row| (row.name, row.detail, row.calls, row.self_ns, row.total_ns)).collect())
    }

    /// Writes a trace for `chrome://tracing` and Perfetto.
    fn save_trace(&self, path: PathBuf) -> PyResult<()> {
        self.done()?.save_trace(path).map_err(raised)
    }

    /// Writes a page to open in a browser.
    fn save_report(&self, path: PathBuf) -> PyResult<()> {
        self.done()?.save_report(path).map_err(raised)
    }

    /// Writes the profile for the command `opsmith profile`.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        self.done()?.save(path).map_err(raised)
    }
}

/// Adds the class.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyProfile>()
}
