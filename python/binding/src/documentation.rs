//! Signatures and documentation of functions, from definitions.
//!
//! In: the overloads of a name. Out: the parameters as Python has them, the text of a function's signature, which `inspect`
//! reads, and its documentation in NumPy's style. The stubs for type checkers are written from the same parameters.

use std::fmt::Write as _;

use opsmith_runtime::op::{ArgDef, ArgKind, DefaultValue, ElementType, OpDef};
use opsmith_runtime::sample::{Sample, SampleValue};
use opsmith_runtime::{Backend, DType};

use crate::call::Overloads;

/// Words that Python reserves, which arguments and functions cannot have as names.
const RESERVED: [&str; 36] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "print",
];

/// A name as Python can have it: a reserved word gets an underscore.
pub fn python_name(name: &str) -> String {
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

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
    describe(&mut text, overloads);
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
    let summary = summary(overloads.candidates[0].0.doc);
    format!(
        "{name}({signature})\n--\n\n{summary}\n\nSee `opsmith.{name}`, with this tensor as the first argument."
    )
}

/// The first sentence of a documentation.
fn summary(doc: &str) -> &str {
    let end = doc.find(".\n").or_else(|| doc.find(". ")).map_or(doc.len(), |end| end + 1);
    doc[..end].trim()
}

fn describe(text: &mut String, overloads: &Overloads) {
    let (first, form) = overloads.candidates[0];
    text.push_str(first.doc.trim());
    if form == opsmith_runtime::library::Form::Inplace {
        text.push_str("\n\nThe result is written into the first argument, which is returned.");
    }
    text.push_str("\n\nParameters\n----------\n");
    let mut known: Vec<String> = Vec::new();
    for def in overloads.candidates.iter().flat_map(|(op, _)| op.schema.args) {
        let name = argument_name(def);
        if known.contains(&name) {
            continue;
        }
        _ = write!(text, "{name} : {}", def.ty);
        if let Some(value) = def.default {
            _ = write!(text, ", default {}", default(value));
        }
        text.push('\n');
        for constraint in def.constraints {
            _ = writeln!(text, "    Must be {constraint}.");
        }
        let others: Vec<String> =
            def.aliases.iter().filter(|alias| **alias != name).map(|alias| format!("`{alias}`")).collect();
        if !others.is_empty() {
            _ = writeln!(text, "    By name also {}.", others.join(", "));
        }
        known.push(name);
    }
    if takes_out(overloads) {
        text.push_str("out : a tensor, optional\n    The tensor to write into, which is returned.\n");
    }
    returns(text, first);
    text.push_str("\nNotes\n-----\n");
    facts(text, first);
    if overloads.candidates.len() > 1 {
        text.push_str("\nIt has several overloads; a call uses the one that takes its arguments:\n\n");
        for (op, _) in &overloads.candidates {
            _ = writeln!(text, "    {}", op.schema.text);
        }
    }
    if let Some(sample) = first.samples.first()
        && form == opsmith_runtime::library::Form::Functional
    {
        example(text, overloads, first, sample);
    }
}

/// Dtypes, gradient, determinism, versions and the place of the entry, a sentence each.
fn facts(text: &mut String, op: &OpDef) {
    for backend in Backend::ALL {
        let dtypes: Vec<&str> = op.kernels.dtypes(backend).iter().map(DType::name).collect();
        if !dtypes.is_empty() {
            let source = match op.kernels.source(backend) {
                "" => String::new(),
                source => format!(", by the kernel `{source}`"),
            };
            _ = writeln!(text, "{}: computes in {}{source}.", backend.key(), dtypes.join(", "));
        }
    }
    if op.composite.is_some() {
        text.push_str("It is a composition of other operators.\n");
    }
    let has_formula = |index: usize| {
        let formulas = op.grad.into_iter().flat_map(|grad| grad.formulas);
        formulas.flat_map(|formula| formula.arguments).any(|argument| usize::from(*argument) == index)
    };
    let with_formula: Vec<String> = (0..op.schema.args.len())
        .filter(|index| has_formula(*index))
        .map(|index| format!("`{}`", argument_name(&op.schema.args[index])))
        .collect();
    text.push_str(&match (with_formula.is_empty(), op.composite.is_some()) {
        (false, _) => format!("Gradients: of {}.\n", with_formula.join(", ")),
        (true, true) => "Gradients: those of the operators that it calls.\n".to_owned(),
        (true, false) => "Gradients: none.\n".to_owned(),
    });
    text.push_str(match op.facts.deterministic {
        true => "Equal inputs give equal results, whatever the number of threads.\n",
        false => "Not deterministic: equal inputs may give other results.\n",
    });
    if let Some(version) = op.facts.since {
        _ = writeln!(text, "Since version {version}.");
    }
    if let Some(deprecated) = op.facts.deprecated {
        let since = deprecated.since.map_or(String::new(), |version| format!(" since version {version}"));
        let instead = deprecated.instead.map_or(String::new(), |name| format!("; use `{name}`"));
        _ = writeln!(text, "Deprecated{since}{instead}.");
    }
    _ = writeln!(text, "Declared at {}.", op.location);
}

fn returns(text: &mut String, op: &OpDef) {
    let visible = op.schema.returns.len() - op.hidden.min(op.schema.returns.len());
    if visible == 0 {
        return;
    }
    text.push_str("\nReturns\n-------\n");
    for result in &op.schema.returns[..visible] {
        match result.name {
            Some(name) => _ = writeln!(text, "{name} : {}", result.ty),
            None => _ = writeln!(text, "{}", result.ty),
        }
    }
}

/// A call of the function that runs, made of the definition's first sample.
fn example(text: &mut String, overloads: &Overloads, op: &OpDef, sample: &Sample) {
    let dtype = sample_dtype(op, sample);
    let mut arguments: Vec<String> = Vec::new();
    let mut by_name = false;
    for (index, def) in op.schema.args.iter().enumerate() {
        let dtype = match op.element_types.get(index) {
            Some(ElementType::Real) => dtype.to_real(),
            Some(ElementType::Fixed { kernel, accepted }) if !accepted.contains(dtype) => *kernel,
            _ => dtype,
        };
        let value = sample.args.iter().find(|(name, _)| *name == def.name);
        by_name |= def.keyword_only;
        match value {
            Some((_, value)) if by_name => {
                arguments.push(format!("{}={}", argument_name(def), sample_text(value, dtype)));
            }
            Some((_, value)) => arguments.push(sample_text(value, dtype)),
            None if def.default.is_none() && !by_name => arguments.push("None".to_owned()),
            None => by_name = true,
        }
    }
    let name = python_name(overloads.name);
    text.push_str("\nExamples\n--------\n>>> import opsmith\n>>> from opsmith.testing import *\n");
    let module = match overloads.spec {
        Some(spec) => {
            _ = writeln!(text, ">>> ops = opsmith.load_spec({spec:?})");
            "ops"
        }
        None => "opsmith",
    };
    _ = writeln!(text, ">>> result = {module}.{name}({})", arguments.join(", "));
}

/// The value of a sample as Python writes it, with the functions of `opsmith.testing`.
pub fn sample_text(value: &SampleValue, dtype: DType) -> String {
    match value {
        SampleValue::None => "None".to_owned(),
        SampleValue::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        SampleValue::Int(value) => value.to_string(),
        SampleValue::Float(value) => match float(*value).as_str() {
            "None" => "float('nan')".to_owned(),
            text => text.to_owned(),
        },
        SampleValue::Complex(re, im) => format!("complex({re:?}, {im:?})"),
        SampleValue::Str(text) => format!("{text:?}"),
        SampleValue::DType(dtype) => format!("{:?}", dtype.name()),
        SampleValue::List(items) => {
            format!("[{}]", items.iter().map(|item| sample_text(item, dtype)).collect::<Vec<_>>().join(", "))
        }
        SampleValue::Tensor(tensor) => tensor_text(tensor, dtype),
        SampleValue::Tensors(items) => {
            let item =
                |one: &Option<_>| one.as_ref().map_or("None".to_owned(), |tensor| tensor_text(tensor, dtype));
            format!("[{}]", items.iter().map(item).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The element type of an example: float32 if there is a kernel for it, else the first that has one.
pub fn sample_dtype(op: &OpDef, sample: &Sample) -> DType {
    let is_complex = |value: &SampleValue| matches!(value, SampleValue::Complex(..));
    if sample.args.iter().any(|(_, value)| is_complex(value)) {
        return DType::C64;
    }
    let mut all = [DType::F32, DType::C64].into_iter().chain(DType::ALL);
    let has_kernel = |dtype: &DType| op.kernels.get(Backend::Cpu, *dtype).is_some();
    if op.kernels.is_none() { DType::F32 } else { all.find(has_kernel).unwrap_or(DType::F32) }
}

fn tensor_text(tensor: &opsmith_runtime::sample::SampleTensor, dtype: DType) -> String {
    use opsmith_runtime::sample::Fill;
    let shape = format!("{:?}", tensor.shape);
    let of = if dtype == DType::F32 { String::new() } else { format!(", {:?}", dtype.name()) };
    match tensor.fill {
        Fill::Between(low, high) => format!("between({shape}, {low:?}, {high:?}{of})"),
        Fill::Integers(low, high) => format!("integers({shape}, {low}, {high})"),
        Fill::Mask => format!("mask({shape})"),
        Fill::Numbers(values) => format!("numbers({shape}, {values:?}{of})").replace("NaN", "nan"),
        Fill::Places(values) => format!("places({shape}, {values:?})"),
    }
}
