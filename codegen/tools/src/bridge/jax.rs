//! The folder for JAX.
//!
//! In: operators of the model. Out: a library in C++ with two handlers of XLA, and the package of Python that calls them.

use minijinja::{Value, context};
use opsmith_core::DType;
use opsmith_core::abi::{CODES, KINDS, VERSION, element};

use super::render_all;
use crate::scaffold::Refusal;

const FILES: [(&str, &str); 5] = [
    ("src/LIBRARY_jax.cpp", include_str!("templates/jax.cpp")),
    ("setup.py", include_str!("templates/native_setup.py.j2")),
    ("pyproject.toml", include_str!("templates/native_pyproject.toml.j2")),
    ("LIBRARY_jax/__init__.py", include_str!("templates/jax_init.py.j2")),
    ("README.md", include_str!("templates/jax_readme.md.j2")),
];

/// Numbers by name, as a dictionary of Python.
fn dictionary(rows: &[(&str, i32, &str)]) -> String {
    let one = |(name, number, _): &(&str, i32, &str)| {
        format!("\"{}\": {number}", name.strip_prefix("OPSMITH_").unwrap_or(name))
    };
    format!("{{{}}}", rows.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// The element types that JAX has, each with its category and bits.
fn dtypes() -> String {
    let known = DType::ALL.into_iter().filter(|dtype| dtype.bits() >= 8);
    let one = |dtype: DType| {
        let (code, bits) = element(dtype);
        format!("\"{}\": ({code}, {bits})", dtype.name())
    };
    format!("{{{}}}", known.map(one).collect::<Vec<_>>().join(", "))
}

/// The files, with their paths in the folder.
pub fn files(library: &str, shared: &Value) -> Result<Vec<(String, String)>, Refusal> {
    let context = context! {
        framework => "jax",
        module => "jax",
        distribution => "jax",
        includes => "[jax.ffi.include_dir()]",
        links => "",
        kinds => dictionary(KINDS),
        codes => dictionary(CODES),
        dtypes => dtypes(),
        version => VERSION,
        ..shared.clone()
    };
    render_all(&FILES, library, &context)
}
