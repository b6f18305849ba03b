//! The description of a function in NumPy's style.
//!
//! In: the overloads of a name, and the sentences that the generator wrote about each. Out: text with the sections that tools
//! for Python's documentation know.

use std::fmt::Write as _;

use opsmith_core::python_name;
use opsmith_runtime::library::{Form, Words};
use opsmith_runtime::op::{ElementType, OpDef};
use opsmith_runtime::sample::{Sample, SampleValue};
use opsmith_runtime::{Backend, DType};

use super::printed::{package, printed};
use super::words::{OfOperator, sentence};
use super::{argument_name, default, float, takes_out};
use crate::call::Overloads;

/// The first sentence of a documentation.
pub fn summary(doc: &str) -> &str {
    let end = doc.find(".\n").or_else(|| doc.find(". ")).map_or(doc.len(), |end| end + 1);
    doc[..end].trim()
}

/// Writes the sections of a function.
pub fn describe(text: &mut String, overloads: &Overloads) {
    let (first, form) = overloads.candidates[0];
    let words = OfOperator::of(first);
    text.push_str(&words.in_python(first.doc.trim()));
    if form == Form::Inplace {
        text.push_str("\n\nThe result is written into the first argument, which is returned.");
    }
    parameters(text, overloads);
    returns(text, first, &words);
    text.push_str("\nRaises\n------\nError\n");
    items(text, "    ", &words.errors());
    other_form(text, overloads);
    text.push_str("\nNotes\n-----\n");
    facts(text, first, &words);
    if overloads.candidates.len() > 1 {
        text.push_str("\nIt has several overloads; a call uses the one that takes its arguments:\n\n");
        for (number, (op, _)) in overloads.candidates.iter().enumerate() {
            _ = writeln!(text, "    {}", op.schema.text);
            // Those of the first are above.
            let words = OfOperator::of(op);
            for rules in words.results().iter().filter(|rules| number > 0 && !rules.is_empty()) {
                _ = writeln!(text, "        {}", sentence(rules));
            }
        }
    }
    if form == Form::Functional
        && let Some((op, sample)) = sampled(overloads)
    {
        example(text, overloads, op, sample);
    }
}

/// The functions of the operator's other form.
fn other_form(text: &mut String, overloads: &Overloads) {
    let base = |name: &str| python_name(name.split('.').next().unwrap_or(name));
    let (op, form) = overloads.candidates[0];
    let other = match (form, op.forms.inplace) {
        (Form::Inplace, _) => Some((base(op.name), "Gives a new tensor.")),
        (_, Some(name)) => Some((base(name), "Writes the result into the first argument.")),
        (_, None) => None,
    };
    if let Some((name, difference)) = other {
        _ = write!(text, "\nSee Also\n--------\n{name} : {difference}\n");
    }
}

/// The first sample of an overload.
pub fn sampled(overloads: &Overloads) -> Option<(&'static OpDef, &'static Sample)> {
    let functional = overloads.candidates.iter().filter(|(_, form)| *form == Form::Functional);
    functional.into_iter().find_map(|(op, _)| Some((*op, op.samples.first()?)))
}

/// The parameters of all overloads, each once.
fn parameters(text: &mut String, overloads: &Overloads) {
    let args = || overloads.candidates.iter().flat_map(|(op, _)| op.schema.args);
    if args().next().is_none() && !takes_out(overloads) {
        return;
    }
    text.push_str("\n\nParameters\n----------\n");
    let mut known: Vec<String> = Vec::new();
    for (op, _) in &overloads.candidates {
        let words = OfOperator::of(op);
        for (position, def) in op.schema.args.iter().enumerate() {
            let name = argument_name(def);
            if known.contains(&name) {
                continue;
            }
            _ = write!(text, "{name} : {}", def.ty);
            if let Some(value) = def.default {
                _ = write!(text, ", default {}", default(value));
            }
            text.push('\n');
            let meaning = words.argument(position);
            if !meaning.is_empty() {
                _ = writeln!(text, "    {}", sentence(&meaning));
            }
            for constraint in def.constraints {
                _ = writeln!(text, "    Must be {constraint}.");
            }
            let others: Vec<String> = def
                .aliases
                .iter()
                .filter(|alias| **alias != name)
                .map(|alias| format!("`{alias}`"))
                .collect();
            if !others.is_empty() {
                _ = writeln!(text, "    By name also {}.", others.join(", "));
            }
            known.push(name);
        }
    }
    if takes_out(overloads) {
        text.push_str("out : a tensor, optional\n    The tensor to write into, which is returned.\n");
    }
}

/// Lines as a sentence, or as a list if there are several.
fn items(text: &mut String, indent: &str, lines: &[String]) {
    match lines {
        [only] => _ = writeln!(text, "{indent}{}", sentence(only)),
        several => several.iter().for_each(|line| _ = writeln!(text, "{indent}- {}", sentence(line))),
    }
}

/// Formula, dtypes, gradient, determinism, versions and the place of the entry, a sentence each.
fn facts(text: &mut String, op: &OpDef, words: &OfOperator) {
    definition(text, &words.definition());
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
    match &words.gradients()[..] {
        [only] => _ = writeln!(text, "Gradients: {}.", only.trim_end_matches('.')),
        several => {
            text.push_str("Gradients:\n\n");
            items(text, "", several);
            text.push('\n');
        }
    }
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

/// A sentence for each item; the parts of one are a block below it.
fn definition(text: &mut String, lines: &[String]) {
    let mut is_part = false;
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let part = line.strip_prefix(Words::PART).map(|part| part.trim_matches('`'));
        if is_part != part.is_some() {
            text.push('\n');
        }
        is_part = part.is_some();
        _ = match part {
            Some(part) => writeln!(text, "    {part}"),
            None if line.ends_with(':') => writeln!(text, "{}", sentence(line).trim_end_matches('.')),
            None => writeln!(text, "{}", sentence(line)),
        };
    }
    if is_part {
        text.push('\n');
    }
}

fn returns(text: &mut String, op: &OpDef, words: &OfOperator) {
    let visible = op.schema.returns.len() - op.hidden.min(op.schema.returns.len());
    if visible == 0 {
        return;
    }
    text.push_str("\nReturns\n-------\n");
    for (position, result) in op.schema.returns[..visible].iter().enumerate() {
        match result.name {
            Some(name) => _ = writeln!(text, "{name} : {}", result.ty),
            None => _ = writeln!(text, "{}", result.ty),
        }
        let rules = words.result(position, result.name);
        if !rules.is_empty() {
            _ = writeln!(text, "    {}", sentence(&rules));
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
    let package = package();
    _ = write!(text, "\nExamples\n--------\n>>> import {package}\n>>> from {package}.testing import *\n");
    let module = match overloads.spec {
        Some(spec) => {
            _ = writeln!(text, ">>> ops = {package}.load_spec({spec:?})");
            "ops"
        }
        None => package,
    };
    let mut session = printed(&name, op).filter(|_| overloads.spec.is_none()).peekable();
    if !op.facts.deterministic && session.peek().is_some() {
        _ = writeln!(text, ">>> {package}.manual_seed(1)");
    }
    _ = writeln!(text, ">>> result = {module}.{name}({})", arguments.join(", "));
    session.for_each(|line| _ = writeln!(text, "{line}"));
}

/// The value of a sample as Python writes it, with the functions of the package's `testing`.
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
