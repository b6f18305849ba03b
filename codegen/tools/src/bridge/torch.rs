//! The folder for PyTorch.
//!
//! In: operators of the model. Out: a library in C++ that registers them, and the package of Python that builds and loads it.

use minijinja::{Value, context};
use opsmith_codegen::model::{Kind, Model, Op};

use super::{Chosen, render_all};
use crate::scaffold::Refusal;

const FILES: [(&str, &str); 5] = [
    ("src/LIBRARY_torch.cpp", include_str!("templates/torch.cpp")),
    ("setup.py", include_str!("templates/torch_setup.py.j2")),
    ("pyproject.toml", include_str!("templates/torch_pyproject.toml.j2")),
    ("LIBRARY_torch/__init__.py", include_str!("templates/torch_init.py.j2")),
    ("README.md", include_str!("templates/torch_readme.md.j2")),
];

/// A text as a literal of C++.
fn literal(text: &str) -> String {
    let escaped = text.chars().map(|letter| match letter {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => " ".to_owned(),
        letter => letter.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// The arguments as the signature declares them, without parentheses.
fn parameters(op: &Op) -> &str {
    let start = op.signature.find('(').map_or(0, |at| at + 1);
    let end = op.signature.rfind(") ->").unwrap_or(op.signature.len());
    op.signature.get(start..end).unwrap_or_default()
}

/// The results of a call, as a schema writes them.
fn returns(op: &Op) -> String {
    let one = |output: &opsmith_codegen::model::Output| {
        let kind = if output.ty.kind == Kind::Tensors { "Tensor[]" } else { "Tensor" };
        match &output.name {
            Some(name) => format!("{kind} {name}"),
            None => kind.to_owned(),
        }
    };
    let all: Vec<String> = op.visible().iter().map(one).collect();
    match op.visible() {
        [only] if only.name.is_none() => all.join(""),
        _ => format!("({})", all.join(", ")),
    }
}

/// The name of a form, as a literal of C++, if it is one of a single tensor: a form that writes several is not registered.
fn form(op: &Op, name: Option<&String>, is_there: bool) -> String {
    let writes_one = matches!(op.visible(), [only] if only.ty.kind == Kind::Tensor && !only.ty.optional);
    match name.filter(|_| writes_one && is_there) {
        Some(name) => literal(name),
        None => "nullptr".to_owned(),
    }
}

/// The files, with their paths in the folder.
pub fn files(
    model: &Model,
    chosen: &Chosen,
    library: &str,
    shared: &Value,
) -> Result<Vec<(String, String)>, Refusal> {
    let row = |place: &usize| {
        let op = &model.ops[*place];
        let (name, parameters) = (literal(&op.name), literal(parameters(op)));
        let forms = &op.forms;
        let inplace = form(
            op,
            forms.inplace.as_ref(),
            forms.pairs.is_empty() && self::parameters(op).starts_with("Tensor "),
        );
        let out = form(op, forms.out.as_ref(), true);
        let has_keyword_only = self::parameters(op).contains('*');
        context! { name, parameters, returns => literal(&returns(op)), inplace, out, has_keyword_only }
    };
    let rows: Vec<Value> = chosen.operators.iter().map(row).collect();
    let context = context! { rows, ..shared.clone() };
    render_all(&FILES, library, &context)
}
