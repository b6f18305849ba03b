//! Signatures of functions, from definitions.
//!
//! In: the overloads of a name. Out: the parameters as Python has them, and the text of a function's signature, which `inspect`
//! reads, before its description. The stubs for type checkers are written from the same parameters.

mod description;
mod printed;
mod words;

use opsmith_core::python_name;
use opsmith_runtime::op::{ArgDef, ArgKind, DefaultValue, OpDef};

use crate::call::Overloads;

pub use description::{sample_dtype, sample_text, sampled};
pub use printed::{learn_package, package};
pub use words::learn;

/// One parameter of a function.
#[derive(Clone, PartialEq)]
pub struct Parameter {
    /// Its name in Python.
    pub name: String,
    /// Its default as Python writes it.
    pub default: Option<String>,
    /// Whether it is given by name alone.
    pub keyword_only: bool,
    /// Its type for type checkers.
    pub hint: String,
}

/// The name of an argument in Python: the tensor of a method has its first other name, so that no function takes `self`.
pub fn argument_name(def: &ArgDef) -> String {
    match (def.name, def.aliases.first()) {
        ("self", Some(alias)) => python_name(alias),
        ("self", None) => "input".to_owned(),
        (name, _) => python_name(name),
    }
}

/// The parameters of one overload.
pub fn parameters(op: &OpDef) -> Vec<Parameter> {
    let all = op.schema.args.iter().map(|def| Parameter {
        name: argument_name(def),
        default: def.default.map(default),
        keyword_only: def.keyword_only,
        hint: hint(def),
    });
    let mut all: Vec<Parameter> = all.collect();
    // A default before a parameter without one is none in Python.
    let last = all.iter().rposition(|one| !one.keyword_only && one.default.is_none()).unwrap_or(0);
    all.iter_mut().take(last).filter(|one| !one.keyword_only).for_each(|one| one.default = None);
    all
}

/// The type of an argument for type checkers.
fn hint(def: &ArgDef) -> String {
    let plain = match def.ty.kind {
        ArgKind::Tensor => "TensorLike",
        ArgKind::Tensors => "Sequence[TensorLike]",
        ArgKind::OptionalTensors => "Sequence[TensorLike | None]",
        ArgKind::Bool => "bool",
        ArgKind::Int
            if def
                .constraints
                .iter()
                .any(|known| matches!(known, opsmith_runtime::constraint::Constraint::Named(_))) =>
        {
            "int | str"
        }
        ArgKind::Int => "int",
        ArgKind::Float => "float",
        ArgKind::Scalar => "Number",
        ArgKind::Str => "str",
        ArgKind::Ints(_) => "int | Sequence[int]",
        ArgKind::Floats => "Sequence[float]",
        ArgKind::Bools(Some(_)) => "bool | Sequence[bool]",
        ArgKind::Bools(None) => "Sequence[bool]",
        ArgKind::Scalars => "Sequence[Number]",
        ArgKind::Strs => "Sequence[str]",
        ArgKind::DTypes => "Sequence[DTypeLike]",
        ArgKind::Lists(_) => "Sequence[Sequence[Any]]",
        ArgKind::DType => "DTypeLike",
        ArgKind::Device => "DeviceLike",
        ArgKind::MemoryFormat => "memory_format | str",
        ArgKind::MemoryLayout => "str",
        ArgKind::Generator => "Generator",
    };
    if def.ty.optional { format!("{plain} | None") } else { plain.to_owned() }
}

/// A default as Python writes it.
fn default(value: DefaultValue) -> String {
    fn list<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
        format!("[{}]", items.iter().map(item).collect::<Vec<_>>().join(", "))
    }
    fn truth(value: bool) -> String {
        if value { "True" } else { "False" }.to_owned()
    }
    match value {
        DefaultValue::None | DefaultValue::Lists(_) => "None".to_owned(),
        DefaultValue::Bool(value) => truth(value),
        DefaultValue::Int(value) => value.to_string(),
        DefaultValue::Float(value) => float(value),
        DefaultValue::Str(text) => format!("{text:?}"),
        DefaultValue::Ints(items) => list(items, |item| item.to_string()),
        DefaultValue::Floats(items) => list(items, |item| float(*item)),
        DefaultValue::Bools(items) => list(items, |item| truth(*item)),
        DefaultValue::Scalars(items) => list(items, |item| item.to_string()),
        DefaultValue::Strs(items) => list(items, |item| format!("{item:?}")),
        DefaultValue::DTypes(items) => list(items, |item| format!("{:?}", item.name())),
        DefaultValue::DType(dtype) => format!("{:?}", dtype.name()),
        DefaultValue::MemoryFormat(format) => {
            let name = opsmith_runtime::MemoryFormat::NAMES.iter().find(|(_, known)| *known == format);
            format!("{:?}", name.map_or("", |(name, _)| name))
        }
    }
}

/// A float as Python reads it; an infinite one has no literal but a product's.
fn float(value: f64) -> String {
    match value {
        value if value.is_nan() => "None".to_owned(),
        value if value == f64::INFINITY => "1e999".to_owned(),
        value if value == f64::NEG_INFINITY => "-1e999".to_owned(),
        value => format!("{value:?}"),
    }
}

/// The parameters of each overload. One that some overload takes by name alone is best given so to all.
pub fn of_overloads(overloads: &Overloads) -> Vec<Vec<Parameter>> {
    let mut all: Vec<Vec<Parameter>> = overloads.candidates.iter().map(|(op, _)| parameters(op)).collect();
    let by_name = |one: &Parameter| one.keyword_only.then(|| one.name.clone());
    let named: Vec<String> = all.iter().flatten().filter_map(by_name).collect();
    all.iter_mut().flatten().for_each(|one| one.keyword_only |= named.contains(&one.name));
    all.iter_mut().for_each(|one| one.sort_by_key(|one| one.keyword_only));
    all
}

/// The parameters that all overloads have in common, with those of some as optional ones; `None` if overloads have different
/// parameters in one place.
pub fn merged(overloads: &Overloads) -> Option<Vec<Parameter>> {
    let all = of_overloads(overloads);
    let positional = |one: &[Parameter]| one.iter().filter(|one| !one.keyword_only).count();
    let longest = all.iter().max_by_key(|one| positional(one))?;
    let mut merged: Vec<Parameter> = longest[..positional(longest)].to_vec();
    for one in &all {
        let count = positional(one);
        if one[..count].iter().zip(&merged).any(|(a, b)| a.name != b.name) {
            return None;
        }
        for (place, parameter) in merged.iter_mut().enumerate() {
            match one[..count].get(place) {
                None => _ = parameter.default.get_or_insert_with(|| "None".to_owned()),
                Some(other) if parameter.default.is_none() => parameter.default.clone_from(&other.default),
                Some(_) => {}
            }
        }
    }
    let mut optional = false;
    for parameter in &mut merged {
        optional |= parameter.default.is_some();
        if optional {
            parameter.default.get_or_insert_with(|| "None".to_owned());
        }
    }
    let count = all.len();
    for parameter in all.iter().flatten().filter(|one| one.keyword_only) {
        if merged.iter().any(|known| known.name == parameter.name) {
            continue;
        }
        let mut parameter = parameter.clone();
        if all.iter().filter(|one| one.iter().any(|known| known.name == parameter.name)).count() < count {
            parameter.default.get_or_insert_with(|| "None".to_owned());
        }
        merged.push(parameter);
    }
    Some(merged)
}

/// Whether a form writes into given tensors, so that the function takes `out`.
pub fn takes_out(overloads: &Overloads) -> bool {
    use opsmith_runtime::library::Form;
    overloads.candidates.iter().any(|(op, form)| *form == Form::Functional && op.forms.out.is_some())
}

/// Parameters as text, without parentheses.
fn listed(parameters: &[Parameter], out: bool) -> String {
    let mut items: Vec<String> = Vec::new();
    let mut keywords = false;
    let write = |one: &Parameter| match &one.default {
        Some(default) => format!("{}={default}", one.name),
        None => one.name.clone(),
    };
    for parameter in parameters {
        if parameter.keyword_only && !std::mem::replace(&mut keywords, true) {
            items.push("*".to_owned());
        }
        items.push(write(parameter));
    }
    if out {
        if !keywords {
            items.push("*".to_owned());
        }
        items.push("out=None".to_owned());
    }
    items.join(", ")
}

/// The documentation of a name's function, with its signature as `inspect` reads it.
pub fn function(overloads: &Overloads) -> String {
    let signature = match merged(overloads) {
        Some(parameters) => listed(&parameters, takes_out(overloads)),
        None => "*args, **kwargs".to_owned(),
    };
    let mut text = format!("{}({signature})\n--\n\n", python_name(overloads.name));
    description::describe(&mut text, overloads);
    text
}

/// The documentation of a name's method, with its signature as `inspect` reads it.
pub fn method(overloads: &Overloads) -> String {
    let signature = match merged(overloads) {
        Some(parameters) if parameters.len() > 1 => {
            format!("$self, {}", listed(&parameters[1..], takes_out(overloads)))
        }
        Some(_) => "$self".to_owned(),
        None => "$self, *args, **kwargs".to_owned(),
    };
    let name = python_name(overloads.name);
    let first = overloads.candidates[0].0;
    let summary = words::OfOperator::of(first).in_python(description::summary(first.doc));
    format!(
        "{name}({signature})\n--\n\n{summary}\n\nSee `{}.{name}`, with this tensor as the first argument.",
        printed::package()
    )
}
