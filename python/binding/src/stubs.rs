//! Stubs for type checkers, from definitions.
//!
//! In: the names of a library. Out: the text of a `.pyi` file: a declaration for each function and method, with one for each
//! overload whose parameters differ. The parameters are those of the documentation.

use std::fmt::Write as _;

use opsmith_core::python_name;
use opsmith_runtime::library::Form;
use opsmith_runtime::op::{ArgKind, OpDef};
use pyo3::prelude::*;

use crate::call::{Overloads, library};
use crate::documentation::{Parameter, of_overloads, sampled, takes_out};
use crate::errors::OrRaise;
use crate::functions::{is_method, names};

/// A declaration: parameters, and the type of the result.
#[derive(Clone, PartialEq)]
struct Declaration {
    parameters: Vec<Parameter>,
    result: String,
}

/// The declarations of a name. Overloads with the same parameter names and result are one, whose types are unions.
fn declarations(overloads: &Overloads) -> Vec<Declaration> {
    let mut found: Vec<Declaration> = Vec::new();
    for ((op, form), own) in overloads.candidates.iter().zip(of_overloads(overloads)) {
        let result = result(op, *form);
        let same = |known: &&mut Declaration| {
            known.result == result
                && known.parameters.len() == own.len()
                && known.parameters.iter().zip(&own).all(|(a, b)| {
                    a.name == b.name
                        && a.keyword_only == b.keyword_only
                        && a.default.is_some() == b.default.is_some()
                })
        };
        match found.iter_mut().find(same) {
            Some(known) => {
                for (a, b) in known.parameters.iter_mut().zip(own) {
                    a.hint = union(&a.hint, &b.hint);
                }
            }
            None => found.push(Declaration { parameters: own, result }),
        }
    }
    found.sort_by_key(|one| one.parameters.len());
    // Where another overload takes an integer, a number means that one.
    let second = |one: &Declaration, hint: &str| one.parameters.get(1).is_some_and(|own| own.hint == hint);
    if found.iter().any(|one| second(one, "int")) {
        for one in found.iter_mut().filter(|one| second(one, "TensorLike")) {
            "Tensor".clone_into(&mut one.parameters[1].hint);
        }
    }
    let sizes: Vec<Declaration> = found.iter().filter_map(one_by_one).collect();
    found.extend(sizes.into_iter().take(1));
    found
}

/// The declaration with sizes one by one instead of a list of them, which the last argument by position may be.
fn one_by_one(given: &Declaration) -> Option<Declaration> {
    let mut one = given.clone();
    let last = one.parameters.iter_mut().rfind(|one| !one.keyword_only)?;
    if !last.hint.contains("Sequence[int]") {
        return None;
    }
    last.name.insert(0, '*');
    "int".clone_into(&mut last.hint);
    last.default = None;
    Some(one)
}

/// The union of two types, each member once.
fn union(a: &str, b: &str) -> String {
    let mut members: Vec<&str> = Vec::new();
    for member in a.split(" | ").chain(b.split(" | ")) {
        if !members.contains(&member) {
            members.push(member);
        }
    }
    // `TensorLike`, a tensor or a value that converts to one, includes numbers.
    if members.contains(&"TensorLike") {
        members.retain(|member| *member != "Number");
    }
    members.join(" | ")
}

/// The type of an operator's result.
fn result(op: &OpDef, form: Form) -> String {
    if form == Form::Inplace && op.inplace_pairs.is_empty() {
        return "Tensor".to_owned();
    }
    let visible = op.schema.returns.len() - op.hidden.min(op.schema.returns.len());
    let one = |ty: opsmith_runtime::op::ArgType| {
        let plain = match ty.kind {
            ArgKind::Tensor => "Tensor",
            ArgKind::Tensors => "tuple[Tensor, ...]",
            ArgKind::Bool => "bool",
            ArgKind::Int => "int",
            ArgKind::Float => "float",
            ArgKind::Str => "str",
            ArgKind::Ints(_) => "list[int]",
            ArgKind::DType => "dtype",
            _ => "Any",
        };
        if ty.optional { format!("{plain} | None") } else { plain.to_owned() }
    };
    match &op.schema.returns[..visible] {
        [] => "None".to_owned(),
        [only] => one(only.ty),
        several if several.iter().all(|result| result.name.is_some()) => class_name(op),
        several => {
            format!("tuple[{}]", several.iter().map(|result| one(result.ty)).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The name of the class of an operator's results, which have names.
fn class_name(op: &OpDef) -> String {
    format!("{}_result", op.name.replace('.', "_"))
}

/// The classes of results with names.
fn classes() -> String {
    let mut text = String::new();
    for op in library().all_ops() {
        let visible = op.schema.returns.len() - op.hidden.min(op.schema.returns.len());
        let results = &op.schema.returns[..visible];
        if results.len() < 2 || results.iter().any(|result| result.name.is_none()) || op.facts.backward_only {
            continue;
        }
        _ = writeln!(text, "class {}(NamedTuple):", class_name(op));
        for result in results {
            let kind = if result.ty.kind == ArgKind::Tensors { "tuple[Tensor, ...]" } else { "Tensor" };
            let absent = if result.ty.optional { " | None" } else { "" };
            _ = writeln!(text, "    {}: {kind}{absent}", result.name.unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

fn listed(parameters: &[Parameter], out: bool) -> String {
    let mut items: Vec<String> = Vec::new();
    let mut keywords = false;
    let stars = parameters.iter().any(|one| one.name.starts_with('*'));
    for one in parameters {
        if one.keyword_only && !std::mem::replace(&mut keywords, true) && !stars {
            items.push("*".to_owned());
        }
        let default = if one.default.is_some() { " = ..." } else { "" };
        items.push(format!("{}: {}{default}", one.name, one.hint));
    }
    if out {
        if !keywords && !stars {
            items.push("*".to_owned());
        }
        items.push("out: Tensor | Sequence[Tensor] | None = ...".to_owned());
    }
    items.join(", ")
}

/// The declarations of a name as text, as functions or as methods.
fn write(text: &mut String, overloads: &Overloads, method: bool) {
    let mut found = declarations(overloads);
    if method {
        // An overload that takes no tensor first is a function alone.
        found.retain(|one| one.parameters.first().is_some_and(|first| first.hint.starts_with("TensorLike")));
    }
    let (indent, name) = (if method { "    " } else { "" }, python_name(overloads.name));
    for one in &found {
        if found.len() > 1 {
            _ = writeln!(text, "{indent}@overload");
        }
        let parameters =
            if method { &one.parameters[1.min(one.parameters.len())..] } else { &one.parameters[..] };
        let listed = listed(parameters, takes_out(overloads));
        let slf = match (method, listed.is_empty()) {
            (false, _) => "",
            (true, true) => "self",
            (true, false) => "self, ",
        };
        _ = writeln!(text, "{indent}def {name}({slf}{listed}) -> {}: ...", one.result);
    }
}

/// The declarations of all functions, and the class of all methods, of the module's library, as the text of a stub file.
/// `skipped` are names that have declarations of their own, of functions and of methods.
#[pyfunction]
fn _stubs(py: Python<'_>, skipped: (Vec<String>, Vec<String>)) -> PyResult<String> {
    let (mut functions, mut methods) = (String::new(), String::new());
    for name in names(library()) {
        let overloads = Overloads::of(name).or_raise(py)?;
        let python = python_name(name);
        if !skipped.0.contains(&python) {
            write(&mut functions, &overloads, false);
        }
        if is_method(&overloads) && !skipped.1.contains(&python) {
            write(&mut methods, &overloads, true);
        }
    }
    Ok(format!("{}class TensorOperators:\n{methods}\n{functions}", classes()))
}

/// The names of the functions whose example calls an operator of the library itself, not one of those that it builds on.
#[pyfunction]
fn _own_examples() -> Vec<String> {
    let is_own = |name: &&'static str| {
        let overloads = Overloads::of(name).ok();
        let sampled = overloads.as_ref().and_then(sampled);
        sampled.is_some_and(|(op, _)| op.library.name == library().name)
    };
    names(library()).into_iter().filter(is_own).map(python_name).collect()
}

/// Adds the functions.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_stubs, module)?)?;
    module.add_function(wrap_pyfunction!(_own_examples, module)?)
}
