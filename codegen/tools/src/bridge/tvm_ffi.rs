//! The folder for tvm-ffi.
//!
//! In: operators of the model. Out: a library in C++ with packed functions, and the package of Python that loads it.

use minijinja::{Value, context};

use super::render_all;
use crate::scaffold::Refusal;

const FILES: [(&str, &str); 5] = [
    ("src/LIBRARY_tvm_ffi.cpp", include_str!("templates/tvm_ffi.cpp")),
    ("setup.py", include_str!("templates/native_setup.py.j2")),
    ("pyproject.toml", include_str!("templates/native_pyproject.toml.j2")),
    ("LIBRARY_tvm_ffi/__init__.py", include_str!("templates/tvm_ffi_init.py.j2")),
    ("README.md", include_str!("templates/tvm_ffi_readme.md.j2")),
];

/// The files, with their paths in the folder.
pub fn files(library: &str, shared: &Value) -> Result<Vec<(String, String)>, Refusal> {
    let context = context! {
        framework => "tvm-ffi",
        module => "tvm_ffi",
        distribution => "apache-tvm-ffi",
        includes => "tvm_ffi.libinfo.include_paths()",
        links => ", f\"-L{pathlib.Path(tvm_ffi.libinfo.find_libtvm_ffi()).parent}\", \"-ltvm_ffi\"",
        ..shared.clone()
    };
    render_all(&FILES, library, &context)
}
