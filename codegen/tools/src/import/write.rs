//! Folded entries, formulas and declarations to the text of a spec.

use std::fmt::Write;
use std::ops::Range;

use super::derivatives::Direction;
use super::fold::Folded;
use super::native::Native;
use super::{Formulas, Place, State, Work};
use opsmith_codegen::model::Note;

/// Fields that a key of the spec expresses.
pub(super) const TRANSLATED: [&str; 2] = ["dispatch", "tags"];

/// The text of the spec.
pub(super) fn spec(work: &Work<'_>, head: &str) -> (String, Vec<(Range<usize>, Place)>) {
    let mut places = Vec::new();
    let mut out = String::with_capacity(2 << 20);
    for line in head.lines() {
        let _ = writeln!(out, "# {line}");
    }
    out.push_str("edition: 1\n");
    if !work.declarations.is_empty() {
        out.push_str("\n# Functions of the C++ library that formulas call. Their types are those of every call of them.\n");
        out.push_str("declarations:\n");
        for (index, declaration) in work.declarations.iter().enumerate() {
            let start = out.len();
            let _ = writeln!(out, "- func: {}", scalar(&declaration.func));
            if let Some(symbol) = &declaration.operator {
                let _ = writeln!(out, "  operator: {}", scalar(symbol));
            }
            places.push((start..out.len(), Place::Declaration(index)));
        }
    }
    out.push_str("\nops:\n");
    for (index, entry) in work.entries.iter().enumerate() {
        self::entry(&mut out, work, entry, (index, work.formulas.get(&index)), &mut places);
    }
    (out, places)
}

fn entry(
    out: &mut String,
    work: &Work<'_>,
    entry: &Folded,
    (position, formulas): (usize, Option<&Formulas<'_>>),
    places: &mut Vec<(Range<usize>, Place)>,
) {
    let start = out.len();
    let _ = writeln!(out, "- func: {}", scalar(&entry.schema.to_string()));
    if let Some(name) = &entry.rust_name {
        let _ = writeln!(out, "  rust_name: {name}");
    }
    if entry.inplace.is_some() || entry.out.is_some() {
        let forms = [("inplace", &entry.inplace), ("out", &entry.out)];
        let there = || forms.iter().filter_map(|(word, form)| Some((*word, (*form).as_ref()?)));
        let words: Vec<&str> = there().map(|(word, _)| word).collect();
        let _ = writeln!(out, "  variants: [functional, {}]", words.join(", "));
        let names: Vec<String> = there().map(|(word, form)| format!("{word}: {}", form.name)).collect();
        let _ = writeln!(out, "  names: {{{}}}", names.join(", "));
    }
    if let Some(symbols) = work.symbols.get(&entry.schema.name.to_string()) {
        let symbols: Vec<String> = symbols.iter().map(|symbol| format!("\"{symbol}\"")).collect();
        let _ = writeln!(out, "  operator: [{}]", symbols.join(", "));
    }
    let members: Vec<&Native> = entry.members().map(|index| &work.natives[index]).collect();
    let tags = members.first().map_or(Vec::new(), |native| native.words("tags"));
    if !tags.is_empty() {
        let _ = writeln!(out, "  tags: [{}]", tags.join(", "));
    }
    supplied(out, &members);
    if let Some(formulas) = formulas {
        self::formulas(out, formulas, position, places);
    }
    origin(out, &members, &tags, formulas);
    places.push((start..out.len(), Place::Entry(position)));
}

fn supplied(out: &mut String, members: &[&Native]) {
    if members.is_empty() {
        out.push_str("  supplied: {}\n");
        return;
    }
    out.push_str("  supplied:\n");
    for native in members {
        let kernels = native.kernels();
        if kernels.is_empty() {
            let _ = writeln!(out, "    {}: {{}}", native.name());
            continue;
        }
        let _ = writeln!(out, "    {}:", native.name());
        for (backend, function) in kernels {
            let _ = writeln!(out, "      {backend}: {}", scalar(&function));
        }
    }
}

fn formulas(
    out: &mut String,
    formulas: &Formulas<'_>,
    entry: usize,
    places: &mut Vec<(Range<usize>, Place)>,
) {
    let flags = &formulas.output_differentiability;
    if !flags.is_empty() && formulas.flags_are_plain() {
        let _ = writeln!(out, "  output_differentiability: [{}]", flags.join(", ").to_lowercase());
    }
    for (key, direction) in [("derivatives", Direction::Backward), ("forward", Direction::Forward)] {
        let listed = formulas.list.iter().enumerate();
        let of_direction = listed.filter(|(_, formula)| formula.source.direction == direction);
        let mut default =
            of_direction.filter(|(_, formula)| !matches!(formula.state, State::Kept(_))).peekable();
        let Some((_, first)) = default.peek() else { continue };
        if let State::Word(word) = &first.state
            && direction == Direction::Forward
        {
            let _ = writeln!(out, "  {key}: {word}");
            continue;
        }
        let _ = writeln!(out, "  {key}:");
        for (index, formula) in default {
            let start = out.len();
            let text = match &formula.state {
                State::Word(word) | State::Translated(word) => word.clone(),
                State::Opaque(_) | State::Kept(_) => format!("opaque({:?})", formula.source.text),
            };
            let _ = writeln!(out, "    {}: {}", scalar(&formula.source.key), scalar(&text));
            places.push((start..out.len(), Place::Formula { entry, index }));
        }
    }
}

/// The fields that no key expresses, by form.
fn origin(out: &mut String, members: &[&Native], tags: &[&str], formulas: Option<&Formulas<'_>>) {
    let mut rows: Vec<(String, Vec<(String, Note)>)> = Vec::new();
    for native in members {
        let mut kept: Vec<(String, Note)> = super::fold::kept(native, &TRANSLATED)
            .into_iter()
            .map(|(field, value)| (field.to_owned(), value.clone()))
            .collect();
        if let Some(value) = native.field("tags").filter(|_| native.words("tags") != tags) {
            kept.push(("tags".to_owned(), value.clone()));
        }
        if !kept.is_empty() {
            rows.push((native.name(), kept));
        }
    }
    let derivatives = formulas.map(Formulas::kept).unwrap_or_default();
    if rows.is_empty() && derivatives.is_empty() {
        return;
    }
    out.push_str("  origin:\n");
    for (form, kept) in rows {
        let _ = writeln!(out, "    {form}:");
        for (field, value) in kept {
            let _ = writeln!(out, "      {field}: {}", flow(&value));
        }
    }
    if !derivatives.is_empty() {
        out.push_str("    derivatives:\n");
        for (key, value) in derivatives {
            let _ = writeln!(out, "      {}: {}", scalar(&key), flow(&value));
        }
    }
}

/// A value on one line.
fn flow(note: &Note) -> String {
    match note {
        Note::Null => "null".to_owned(),
        Note::Text(text) => quoted(text),
        Note::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Note::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{}: {}", quoted(key), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A text inside brackets, where commas and brackets are special.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    match !text.is_empty() && text.chars().all(plain) && !is_special(text) {
        true => text.to_owned(),
        false => single_quoted(text),
    }
}

/// A text on a line of its own.
fn scalar(text: &str) -> String {
    let first = text.chars().next().unwrap_or(' ');
    let starts = first.is_ascii_alphabetic() || first == '_' || first == '(';
    let harmless =
        !text.contains(": ") && !text.contains(" #") && !text.ends_with([':', ' ']) && !text.contains('\n');
    match starts && harmless && !is_special(text) {
        true => text.to_owned(),
        false => single_quoted(text),
    }
}

fn single_quoted(text: &str) -> String {
    match text.contains('\n') {
        true => format!("{text:?}"),
        false => format!("'{}'", text.replace('\'', "''")),
    }
}

/// Words that YAML does not parse as text.
fn is_special(text: &str) -> bool {
    matches!(text, "null" | "Null" | "NULL" | "~" | "")
}
