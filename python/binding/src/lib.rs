//! Python modules made of a library's definitions.
//!
//! In: a library of operators, as the data that its generator wrote. Out: a Python module with its functions, the class
//! `Tensor` with its methods, element types, devices, gradients, graphs and programs. A function of the module is a name with
//! its overloads; the arguments of a call are bound by their schemas. Nothing is generated for an operator, so a user's
//! library becomes a module by one call of [`install`].

mod argument;
mod autograd;
mod bind;
mod bridge;
mod buffer;
mod call;
mod construct;
mod custom;
mod dlpack;
mod documentation;
mod errors;
mod functions;
mod gradient;
mod graph;
mod index;
mod io;
mod numeric;
mod numpy;
mod profile;
mod program;
mod protocol;
mod random;
mod result;
mod spec;
mod stubs;
mod tensor;
mod types;
mod values;

use opsmith_runtime::library::Documentation;
use pyo3::prelude::*;

/// Fills a module with the operators of a library and all that calls of them need: `DOCUMENTATION` of the crate that the
/// library was generated in. `package` is the name by which users import it, which `help` and pickles show.
///
/// # Errors
/// If Python cannot make an object, or the module is filled twice in one process.
pub fn install(
    module: &Bound<'_, PyModule>,
    documentation: &'static Documentation,
    package: &str,
) -> PyResult<()> {
    install_with(module, documentation, package, "")
}

/// As [`install`], with the printed results of the examples in the documentation: `include_str!` of the file that
/// `python -m PACKAGE.examples FILE` recorded. A name at the beginning of a line has the indented lines of its session below.
///
/// # Errors
/// As [`install`].
pub fn install_with(
    module: &Bound<'_, PyModule>,
    documentation: &'static Documentation,
    package: &str,
    printed: &'static str,
) -> PyResult<()> {
    // The start method `fork` of `multiprocessing` copies the process while other threads compute.
    opsmith_runtime::fork::keep_usable();
    errors::embed();
    let library = documentation.library;
    call::set_library(library)?;
    documentation::learn(documentation);
    documentation::learn_package(library.name, package, printed);
    errors::install(module, package)?;
    types::install(module)?;
    random::install(module)?;
    tensor::install(module)?;
    result::install(module)?;
    call::install(module)?;
    construct::install(module)?;
    dlpack::install(module)?;
    autograd::install(module)?;
    graph::install(module)?;
    program::install(module)?;
    profile::install(module)?;
    io::install(module)?;
    bridge::install(module)?;
    custom::install(module)?;
    spec::install(module)?;
    stubs::install(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    functions::install(module, library, package)
}
