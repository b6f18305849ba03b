//! The folder for JAX.
//!
//! In: operators of the model. Out: a library in C++ with three handlers of XLA, and the package of Python that calls them, with the
//! rules of primitives that the package `opsmith` has, too.

use minijinja::{Value, context};

use super::{python, render_all};
use crate::scaffold::Refusal;

const FILES: [(&str, &str); 7] = [
    ("src/LIBRARY_jax.cpp", include_str!("templates/jax.cpp")),
    ("setup.py", include_str!("templates/native_setup.py.j2")),
    ("pyproject.toml", include_str!("templates/native_pyproject.toml.j2")),
    ("LIBRARY_jax/__init__.py", include_str!("templates/jax_init.py.j2")),
    ("LIBRARY_jax/_abi.py", python::INTERFACE),
    ("LIBRARY_jax/_rules.py", concat!("# {{ generated }}\n", include_str!("templates/jax_rules.py"))),
    ("README.md", include_str!("templates/jax_readme.md.j2")),
];

/// The files, with their paths in the folder.
pub fn files(library: &str, shared: &Value) -> Result<Vec<(String, String)>, Refusal> {
    let context = context! {
        framework => "jax",
        module => "jax",
        distribution => "jax",
        includes => "[jax.ffi.include_dir()]",
        links => "",
        ..python::numbers(shared)
    };
    render_all(&FILES, library, &context)
}
