//! Facts of an entry beyond its computation: versions, determinism, tags, aliases of arguments, use of values.
//!
//! In: an entry and its signature. Out: [`Facts`], and for each argument its aliases and whether its elements determine
//! a result's shape.

use super::Context;
use super::types;
use crate::diagnostics::{Span, catalogue, nearest};
use crate::model::expr::ExprKind;
use crate::model::{Deprecated, Facts, Kind, Lines, NumberUse, Op, ValueUse};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};
use crate::spec::schema::{Argument, Schema};
use crate::spec::yaml::Key;

/// All facts except the operator in `deprecated`, which is resolved once all heads are known.
pub(super) fn lower(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Facts {
    let tags: Vec<Text> = raw.texts(KeyName::Tags);
    for tag in &tags {
        if !is_tag(tag.as_str()) {
            context.push(catalogue::tag_malformed(tag.span(), tag.as_str()));
        }
    }
    let tags = tags.iter().map(|tag| tag.as_str().to_owned()).collect();
    Facts {
        since: raw.text(KeyName::Since).map(|text| version(context, &text)),
        deprecated: None,
        deterministic: raw.flag(KeyName::Deterministic).unwrap_or(true),
        updates: raw.flag(KeyName::Updates) == Some(true),
        tags,
        known_as: super::known::known_as(context, raw),
        backward_only: raw.flag(KeyName::BackwardOnly) == Some(true),
        lines: lines(context, raw, schema),
        notation: super::notation::lower(context, raw, schema),
        formula: super::formula::lower(context, raw, schema),
    }
}

/// `lines: dim` or `lines: last(normalized_shape)`
fn lines(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Option<Lines> {
    let text = raw.text(KeyName::Lines)?;
    let last = text.as_str().strip_prefix("last(").and_then(|rest| rest.strip_suffix(')'));
    let name = last.unwrap_or(text.as_str()).trim();
    let fits = |arg: &&Argument| match types::of_signature(&arg.ty).map(|ty| ty.kind) {
        Some(Kind::Ints(_)) => true,
        Some(Kind::Int) => last.is_none(),
        _ => false,
    };
    let found = schema.args.iter().position(|arg| arg.name == name && fits(&arg));
    let Some(found) = found.and_then(|found| u8::try_from(found).ok()) else {
        let known: Vec<&str> = schema.args.iter().filter(fits).map(|arg| arg.name.as_str()).collect();
        context.push(catalogue::lines_argument(text.span(), &schema.name.to_string(), name, &known));
        return None;
    };
    Some(if last.is_some() { Lines::Last(found) } else { Lines::Along(found) })
}

/// A composition that calls a nondeterministic operator is nondeterministic itself.
pub(super) fn follow_calls(ops: &mut [Op]) {
    loop {
        let differs = |op: &Op| {
            let mut calls_one = false;
            let composite = op.body.composite.as_ref().filter(|_| op.facts.deterministic);
            composite.into_iter().for_each(|body| {
                body.walk(&mut |part| {
                    calls_one |= matches!(&part.kind, ExprKind::Op(id, _) if !ops[id.0].facts.deterministic);
                });
            });
            calls_one && op.body.kernels.is_empty()
        };
        let found: Vec<usize> = (0..ops.len()).filter(|&index| differs(&ops[index])).collect();
        if found.is_empty() {
            return;
        }
        found.into_iter().for_each(|index| ops[index].facts.deterministic = false);
    }
}

/// The names that `deprecated` may refer to: full name, base name, Rust function.
pub(super) struct Known<'a> {
    pub names: Vec<(&'a str, &'a str, &'a str)>,
}

/// `deprecated: {since: 0.2, use: add.Tensor}`
pub(super) fn deprecated(
    context: &mut Context<'_>,
    raw: &RawOp,
    op: &str,
    known: &Known<'_>,
) -> Option<Deprecated> {
    raw.entry(KeyName::Deprecated)?;
    let mut found = Deprecated { since: None, instead: None };
    for (key, text) in raw.text_map(KeyName::Deprecated) {
        match key.text.as_str() {
            "since" => found.since = Some(version(context, &text)),
            "use" => found.instead = instead(context, &text, op, known),
            other => context.push(catalogue::deprecated_key(key.span, other)),
        }
    }
    Some(found)
}

fn instead(context: &mut Context<'_>, text: &Text, op: &str, known: &Known<'_>) -> Option<(String, String)> {
    let name = text.as_str();
    let by_full = known.names.iter().find(|(full, ..)| *full == name);
    let found = by_full.or_else(|| known.names.iter().find(|(full, base, _)| *base == name && *full != op));
    match found {
        Some((full, ..)) if *full == op => {
            context.push(catalogue::deprecated_for_itself(text.span(), op));
            None
        }
        Some((full, _, rust)) => Some(((*full).to_owned(), (*rust).to_owned())),
        None => {
            let near = nearest(name, known.names.iter().map(|(full, ..)| *full));
            context.push(catalogue::deprecated_use_unknown(text.span(), name, near));
            None
        }
    }
}

/// The aliases of each argument: the entry's own, and those of the whole file where the argument exists and the name is
/// free.
pub(super) fn argument_aliases(
    context: &mut Context<'_>,
    raw: &RawOp,
    schema: &Schema,
    of_file: &[(Key, Vec<Text>)],
) -> Vec<Vec<String>> {
    let mut aliases: Vec<Vec<String>> = vec![Vec::new(); schema.args.len()];
    let position = |name: &str| schema.args.iter().position(|arg| arg.name == name);
    let mut taken: Vec<String> = schema.args.iter().map(|arg| arg.name.clone()).collect();
    for (key, names) in raw.text_list_map(KeyName::ArgumentAliases) {
        let Some(index) = position(&key.text) else {
            let known: Vec<&str> = schema.args.iter().map(|arg| arg.name.as_str()).collect();
            context.push(catalogue::argument_unknown(key.span, &schema.name.to_string(), &key.text, &known));
            continue;
        };
        for name in names {
            if !is_name(name.as_str()) {
                context.push(catalogue::argument_alias_malformed(name.span(), name.as_str()));
            } else if taken.iter().any(|known| known == name.as_str()) {
                context.push(catalogue::argument_alias_taken(name.span(), name.as_str(), &key.text));
            } else {
                taken.push(name.as_str().to_owned());
                aliases[index].push(name.as_str().to_owned());
            }
        }
    }
    for (key, names) in of_file {
        let Some(index) = position(&key.text) else { continue };
        for name in names {
            if !taken.iter().any(|known| known == name.as_str()) {
                taken.push(name.as_str().to_owned());
                aliases[index].push(name.as_str().to_owned());
            }
        }
    }
    aliases
}

/// The meaning of an argument or result by the entry, or else by the file.
pub(super) fn description(of_entry: &[(Key, Text)], of_file: &[(Key, Text)], name: &str) -> String {
    let found = of_entry.iter().chain(of_file).find(|(key, _)| key.text == name);
    found.map(|(_, text)| text.as_str().trim().to_owned()).unwrap_or_default()
}

/// Reports descriptions of things that the signature does not name.
pub(super) fn check_descriptions(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) {
    for (key, _) in raw.text_map(KeyName::Descriptions) {
        let results = schema.returns.iter().filter_map(|result| result.name.as_deref());
        let known: Vec<&str> = schema.args.iter().map(|arg| arg.name.as_str()).chain(results).collect();
        if !known.contains(&key.text.as_str()) {
            context.push(catalogue::description_unknown(
                key.span,
                &schema.name.to_string(),
                &key.text,
                &known,
            ));
        }
    }
}

/// Reports invalid names among the file's aliases.
pub(super) fn check_file_aliases(context: &mut Context<'_>, of_file: &[(Key, Vec<Text>)]) {
    for name in of_file.iter().flat_map(|(_, names)| names) {
        if !is_name(name.as_str()) {
            context.push(catalogue::argument_alias_malformed(name.span(), name.as_str()));
        }
    }
}

/// `value_depends: {repeats: required}`
pub(super) fn value_uses(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Vec<ValueUse> {
    let mut uses = vec![ValueUse::None; schema.args.len()];
    for (key, text) in raw.text_map(KeyName::ValueDepends) {
        let position = schema.args.iter().position(|arg| arg.name == key.text && arg.ty.is_tensor_like());
        let Some(index) = position else {
            context.push(super::args::unknown_argument(&key.text, key.span, schema));
            continue;
        };
        match ValueUse::WORDS.iter().find(|(word, _)| *word == text.as_str()) {
            Some((_, found)) => uses[index] = *found,
            None => context.push(unknown_use(text.span(), text.as_str())),
        }
    }
    uses
}

/// `numbers: {fill_value: held}`
pub(super) fn number_uses(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Vec<Option<NumberUse>> {
    let mut uses = vec![None; schema.args.len()];
    let is_number =
        |arg: &Argument| types::of_signature(&arg.ty).is_some_and(|ty| matches!(ty.kind, Kind::Scalar));
    for (key, text) in raw.text_map(KeyName::Numbers) {
        let Some(index) = schema.args.iter().position(|arg| arg.name == key.text && is_number(arg)) else {
            let numbers: Vec<&str> =
                schema.args.iter().filter(|arg| is_number(arg)).map(|arg| arg.name.as_str()).collect();
            let op = schema.name.to_string();
            context.push(catalogue::number_argument_unknown(key.span, &op, &key.text, &numbers));
            continue;
        };
        match NumberUse::WORDS.iter().find(|(word, _)| *word == text.as_str()) {
            Some((_, found)) => uses[index] = Some(*found),
            None => context.push(catalogue::number_use_unknown(
                text.span(),
                text.as_str(),
                &NumberUse::WORDS.map(|(word, _)| word),
            )),
        }
    }
    uses
}

fn unknown_use(place: Span, word: &str) -> crate::diagnostics::Diagnostic {
    catalogue::value_use_unknown(place, word, &ValueUse::WORDS.map(|(word, _)| word))
}

/// A version as written, which must be comparable: `0.2`, `1.2.3`, `1.0.0-beta.1`.
fn version(context: &mut Context<'_>, text: &Text) -> String {
    let (numbers, suffix) = match text.as_str().split_once(['-', '+']) {
        Some((numbers, suffix)) => (numbers, Some(suffix)),
        None => (text.as_str(), None),
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|letter| letter.is_ascii_digit());
    let in_suffix = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'-' | b'+');
    let is_version = numbers.split('.').count() <= 3
        && numbers.split('.').all(is_number)
        && suffix.is_none_or(|suffix| !suffix.is_empty() && suffix.bytes().all(in_suffix));
    if !is_version {
        context.push(catalogue::version_malformed(text.span(), text.as_str()));
    }
    text.as_str().to_owned()
}

/// Whether a text is a valid tag.
fn is_tag(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
