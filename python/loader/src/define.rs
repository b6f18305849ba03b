//! Definitions of a loaded spec's operators.
//!
//! In: the checked model. Out: a library of definitions, field by field those that the generator writes for the same spec.

use std::collections::HashMap;
use std::sync::OnceLock;

use opsmith_codegen::analysis::fingerprint::fingerprint;
use opsmith_codegen::analysis::rows::has_rules;
use opsmith_codegen::analysis::rule_trees::{Memory, rules};
use opsmith_codegen::analysis::uniform::{Uniform, uniform};
use opsmith_codegen::analysis::{elements, flops};
use opsmith_codegen::emit::words;
use opsmith_codegen::model::{self, Model, Op, Role};
use opsmith_codegen::pipeline::Checked;
use opsmith_runtime::error::Result;
use opsmith_runtime::facts::{Deprecated, Facts};
use opsmith_runtime::infer::expr::Rules;
use opsmith_runtime::library::{Documentation, Form, Library, Words};
use opsmith_runtime::op::{Flops, Forms, OpDef, Schema, UniformCall};

use crate::arguments::{argument, list, result, samples, text};
use crate::check::{Failure, Source, needs_compiler};
use crate::gradients;
use crate::kernel;
use crate::operator::{Held, Operator, Spec, Target};
use crate::slots::{self, Functions};

/// The library of a checked spec, with its documentation.
///
/// # Errors
/// If the program has no room for so many operators.
pub fn library(
    parent: &'static Library,
    source: &Source,
    checked: Checked,
) -> std::result::Result<&'static Documentation, Failure> {
    let fingerprint = text(&format!("{:016x}", fingerprint(&checked.model)));
    let all = checked.model.ops.iter().filter(|op| !op.is_external());
    let words: Vec<Words> = all.map(|op| words(op, &checked.model)).collect();
    let Model { ops, functions, .. } = checked.model;
    let first = ops.iter().position(|op| !op.is_external()).unwrap_or(ops.len());
    let (external, own) = ops.split_at(first);
    let known: HashMap<&str, &'static OpDef> = parent.all_ops().into_iter().map(|op| (op.name, op)).collect();
    let mut targets: Vec<Option<Target>> = external.iter().map(|op| found(op, &ops, &known)).collect();
    let (is_stock, targets_of_formulas) = (source.is_stock(), OnceLock::new());
    let spec: &'static Spec =
        leak(Spec { ops: own.to_vec(), functions, is_stock, targets: targets_of_formulas });
    let slots = slots::reserve(own.len())?;
    // Definitions refer to the library that their calls begin at, which need not have them.
    let name = text(&source.library_name());
    let home = leak(Library { name, fingerprint, parents: list([parent]), ..Library::EMPTY });
    let defined = std::iter::zip(slots, 0..own.len()).map(|(slot, index)| match own[index].alias_of {
        None if needs_compiler(&own[index]).is_none() => operator(spec, index, slot, source, home).map(Some),
        _ => Ok(None),
    });
    let defined: Vec<Option<&'static OpDef>> = defined.collect::<Result<_>>()?;
    for (op, definition) in std::iter::zip(own, &defined) {
        let of_alias = || match op.alias_of {
            Some(id) if id.0 < first => targets[id.0].map(|target| target.definition),
            Some(id) => defined[id.0 - first],
            // Of the stock library's own spec, the compiled definition.
            None => known.get(op.name.as_str()).copied().filter(|_| is_stock),
        };
        let definition = definition.or_else(of_alias);
        targets.push(definition.map(|definition| target(op, definition)));
    }
    let names = names(own, &targets[first..]);
    let _ = spec.targets.set(targets);
    // Of an operator without a definition here there is nothing to say.
    let described = defined.into_iter().zip(words).filter_map(|(op, words)| Some((op?, words)));
    let (defined, words): (Vec<_>, Vec<_>) = described.unzip();
    let library = leak(Library { ops: defined.leak(), names: names.leak(), ..*home });
    let words = list(words.into_iter().map(|words| -> &'static Words { leak(words) }));
    Ok(leak(Documentation { library, words, parents: &[] }))
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn target(op: &Op, definition: &'static OpDef) -> Target {
    Target { definition, conjugates: op.role == Some(Role::Conjugate) }
}

/// The definition of an operator of the parent library.
fn found(op: &Op, ops: &[Op], known: &HashMap<&str, &'static OpDef>) -> Option<Target> {
    let mut meant = op;
    while let Some(id) = meant.alias_of {
        meant = &ops[id.0];
    }
    known.get(meant.name.as_str()).map(|definition| target(meant, definition))
}

/// Every name of the library, sorted.
fn names(ops: &[Op], targets: &[Option<Target>]) -> Vec<(&'static str, &'static OpDef, Form)> {
    let mut rows = Vec::new();
    for (op, target) in std::iter::zip(ops, targets) {
        let Some(Target { definition, .. }) = *target else { continue };
        rows.push((text(&op.name), definition, Form::Functional));
        let forms = [(&op.forms.inplace, Form::Inplace), (&op.forms.out, Form::Out)];
        rows.extend(
            forms.into_iter().filter_map(|(name, form)| Some((text(name.as_ref()?), definition, form))),
        );
    }
    rows.sort_by_key(|(name, ..)| *name);
    rows
}

/// The definition of one operator.
fn operator(
    spec: &'static Spec,
    index: usize,
    slot: usize,
    source: &Source,
    home: &'static Library,
) -> Result<&'static OpDef> {
    let op = &spec.ops[index];
    let kernels = kernel::custom(op, source.folder());
    let operator = leak(Operator { spec, index, kernels, definition: OnceLock::new() });
    let functions = slots::fill(slot, operator);
    let args = op.args.iter().map(argument).collect::<Result<Vec<_>>>()?;
    let returns = op.outputs.iter().map(result).collect::<Result<Vec<_>>>()?;
    let schema = Schema { text: text(&op.signature), args: args.leak(), returns: returns.leak() };
    let definition = OpDef {
        doc: text(&op.doc),
        custom: Some(leak(Held(operator))),
        kernels: kernel::table(operator),
        grad: gradients::definition(op),
        samples: samples(op),
        tolerances: list(op.tolerances.iter().cloned()),
        facts: facts(&op.facts),
        ..inferred(op, functions, schema, home)
    };
    Ok(operator.definition.get_or_init(|| leak(definition)))
}

/// A definition with signature, forms and inference.
fn inferred(op: &'static Op, functions: Functions, schema: Schema, home: &'static Library) -> OpDef {
    let contiguous = op.args.iter().enumerate();
    // Custom kernels see no strides.
    let contiguous =
        contiguous.filter(|(_, arg)| arg.contiguous || op.body.is_aot() && arg.ty.holds_tensors());
    let rules: Option<&'static Rules<'static>> = has_rules(op).then(|| {
        let memory: &'static Memory<'static> = leak(Memory::default());
        leak(rules(memory, op))
    });
    OpDef {
        forms: Forms {
            inplace: op.forms.inplace.as_deref().map(text),
            out: op.forms.out.as_deref().map(text),
            elementwise: op.body.pointwise.is_some(),
            updates: op.facts.updates,
        },
        infer: op.infer.is_some().then_some(functions.infer),
        composite: op.body.composite.is_some().then_some(functions.composite),
        present: op.may_lack_results().then_some(functions.present),
        rules,
        uniform: match uniform(op) {
            None => UniformCall::No,
            Some(Uniform::Same) => UniformCall::Same,
            Some(Uniform::SameIfInexact) => UniformCall::SameIfInexact,
            Some(Uniform::Fixed(dtype)) => UniformCall::Fixed(dtype),
        },
        element_types: list(op.args.iter().map(|arg| arg.element)),
        contiguous: contiguous.fold(0, |set, (index, _)| set | 1 << index),
        numbers: list(elements::numbers(op).into_iter().map(|(index, number)| (index as u8, number))),
        flops: match (&op.flops, &op.body.pointwise) {
            (None, Some(expr)) => Flops::Element(flops::of_element(expr)),
            _ => Flops::Unknown,
        },
        combinations: list(op.combinations.iter().cloned()),
        hidden: op.outputs.len() - op.visible().len(),
        inplace_pairs: list(op.forms.pairs.iter().map(|(at, output)| (*at as u8, *output as u8))),
        ..OpDef::new(text(&op.name), schema, text(&op.location), home)
    }
}

fn facts(facts: &model::Facts) -> Facts {
    let optional = |value: Option<&str>| value.map(text);
    Facts {
        since: optional(facts.since.as_deref()),
        deprecated: facts.deprecated.as_ref().map(|deprecated| Deprecated {
            since: optional(deprecated.since.as_deref()),
            instead: optional(deprecated.instead.as_ref().map(|(full, _)| full.as_str())),
        }),
        deterministic: facts.deterministic,
        tags: list(facts.tags.iter().map(|tag| text(tag))),
        backward_only: facts.backward_only,
        lines: facts.lines,
    }
}
