//! The folder for MindSpore.
//!
//! In: operators of the model. Out: a library in C++ with functions of the AOT form, and the package of Python that registers them.

use minijinja::{Value, context};
use opsmith_codegen::model::{Kind, Model};

use super::{Chosen, python, render_all};
use crate::scaffold::Refusal;

const FILES: [(&str, &str); 6] = [
    ("src/LIBRARY_mindspore.cpp", include_str!("templates/mindspore.cpp")),
    ("setup.py", include_str!("templates/native_setup.py.j2")),
    ("pyproject.toml", include_str!("templates/native_pyproject.toml.j2")),
    ("LIBRARY_mindspore/__init__.py", include_str!("templates/mindspore_init.py.j2")),
    ("LIBRARY_mindspore/_abi.py", python::INTERFACE),
    ("README.md", include_str!("templates/mindspore_readme.md.j2")),
];

/// The files, with their paths in the folder.
pub fn files(
    model: &Model,
    chosen: &Chosen,
    library: &str,
    shared: &Value,
) -> Result<Vec<(String, String)>, Refusal> {
    let row = |place: &usize| {
        let op = &model.ops[*place];
        let results = op.visible();
        let is_several = results.len() > 1 || results.iter().any(|one| one.ty.kind == Kind::Tensors);
        context! { name => op.name.as_str(), symbol => op.name.replace('.', "_"), is_several }
    };
    let rows: Vec<Value> = chosen.operators.iter().map(row).collect();
    let context = context! {
        rows,
        framework => "mindspore",
        module => "mindspore",
        distribution => "mindspore",
        includes => "[]",
        links => "",
        ..python::numbers(shared)
    };
    render_all(&FILES, library, &context)
}
