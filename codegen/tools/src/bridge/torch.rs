//! The folder for PyTorch.
//!
//! In: operators of the model. Out: a library in C++ that registers them, and the package of Python that builds and loads it, with the
//! rules of batches that the package `opsmith` has, too.

use minijinja::{Value, context};
use opsmith_codegen::model::{Kind, Model, Op};

use super::{Chosen, render_all};
use crate::scaffold::Refusal;

const FILES: [(&str, &str); 6] = [
    ("src/LIBRARY_torch.cpp", include_str!("templates/torch.cpp")),
    ("setup.py", include_str!("templates/torch_setup.py.j2")),
    ("pyproject.toml", include_str!("templates/torch_pyproject.toml.j2")),
    ("LIBRARY_torch/__init__.py", include_str!("templates/torch_init.py.j2")),
    ("LIBRARY_torch/_batches.py", concat!("# {{ generated }}\n", include_str!("templates/torch_batches.py"))),
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

/// A form that writes into tensors: its name and its signature, as literals of C++; null if there is none.
struct Form {
    name: String,
    schema: String,
}

impl Form {
    fn of(made: Option<(&str, String)>) -> Form {
        match made {
            Some((name, schema)) => Form { name: literal(name), schema: literal(&schema) },
            None => Form { name: "nullptr".to_owned(), schema: "nullptr".to_owned() },
        }
    }
}

/// The form in place: of the first argument, which is a tensor or a list of them, like the only result.
fn inplace(op: &Op) -> Form {
    let [only] = op.visible() else { return Form::of(None) };
    let is_plain = op.forms.pairs.is_empty() || op.forms.pairs == [(0, 0)];
    let Some(name) = op.forms.inplace.as_deref().filter(|_| is_plain && !only.ty.optional) else {
        return Form::of(None);
    };
    let rest = |prefix| parameters(op).strip_prefix(prefix);
    Form::of(match only.ty.kind {
        Kind::Tensor => {
            rest("Tensor ").map(|rest| (name, format!("{name}(Tensor(a!) {rest}) -> Tensor(a!)")))
        }
        Kind::Tensors => rest("Tensor[] ").map(|rest| (name, format!("{name}(Tensor(a!)[] {rest}) -> ()"))),
        _ => None,
    })
}

/// An argument of `out` forms alone, which no call gives. `PyTorch`'s compiler Inductor replaces a call by one of the `out` form if both have
/// the same arguments, and writes that call without regard to names and lists, or to several results. With another argument it has no such
/// form. The package of Python declares it, too (`NOT_FUNCTIONAL`).
const NOT_FUNCTIONAL: &str = "bool? _form=None";

/// The form that writes into given tensors, one for each result: `out`, or arguments with the names of results.
fn out(op: &Op) -> Form {
    let visible = op.visible();
    let is_plain = visible.iter().all(|output| output.ty.kind == Kind::Tensor && !output.ty.optional);
    let Some(name) = op.forms.out.as_deref().filter(|_| is_plain && visible.len() <= 26) else {
        return Form::of(None);
    };
    let separator = if parameters(op).contains('*') { ", " } else { ", *, " };
    let given = format!("{}{separator}{NOT_FUNCTIONAL}", parameters(op));
    if let [_] = visible {
        return Form::of(Some((name, format!("{name}({given}, Tensor(a!) out) -> Tensor(a!)"))));
    }
    let one = |(letter, (at, output)): (char, (usize, &opsmith_codegen::model::Output))| {
        let is_free = |name: &&String| op.args.iter().all(|arg| arg.name != **name);
        let known = output.name.as_ref().filter(is_free);
        format!("Tensor({letter}!) {}", known.cloned().unwrap_or_else(|| format!("out{at}")))
    };
    let outs: Vec<String> = ('a'..='z').zip(visible.iter().enumerate()).map(one).collect();
    let outs = outs.join(", ");
    Form::of(Some((name, format!("{name}({given}, {outs}) -> ({outs})"))))
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
        let (inplace, out) = (inplace(op), out(op));
        context! {
            name,
            parameters,
            returns => literal(&returns(op)),
            inplace => inplace.name,
            inplace_schema => inplace.schema,
            out => out.name,
            out_schema => out.schema,
        }
    };
    let rows: Vec<Value> = chosen.operators.iter().map(row).collect();
    let context = context! { rows, ..shared.clone() };
    render_all(&FILES, library, &context)
}
