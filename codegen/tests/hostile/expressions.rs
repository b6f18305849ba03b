//! Expressions without end, in every key: error E0316 with its place, on a small stack.

use std::fmt::Write as _;

use opsmith_codegen::check_text;
use opsmith_codegen::diagnostics::{Diagnostic, render};
use opsmith_codegen::spec::document::keys::{DECLARATION_KEYS, FILE_KEYS, FUNCTION_KEYS, OP_KEYS};
use opsmith_codegen::spec::document::{KeyName, KeySpec, ValueKind};

/// The keys whose values are expressions, wherever they stand.
const EXPRESSIONS: [KeyName; 16] = [
    KeyName::Check,
    KeyName::Present,
    KeyName::Length,
    KeyName::Shape,
    KeyName::RunSizes,
    KeyName::RunShape,
    KeyName::Dtype,
    KeyName::Compute,
    KeyName::Pointwise,
    KeyName::Decompose,
    KeyName::Flops,
    KeyName::Derivatives,
    KeyName::Forward,
    KeyName::Samples,
    KeyName::Derivative,
    KeyName::Wirtinger,
];

/// A way to make an expression deep: the beginning, the middle and the end, of which the first and the last repeat.
type Deep = (&'static str, &'static str, &'static str);

const DEEP: [Deep; 22] = [
    ("(", "self", ")"),
    ("[", "self", "]"),
    ("{", "self", "}"),
    ("!", "self", ""),
    ("-", "self", ""),
    ("&", "self", ""),
    ("*", "self", ""),
    ("if true {", "self", "} else { self }"),
    ("if true { self } else ", "{ self }", ""),
    ("|x| ", "self", ""),
    ("|x, y| ", "self", ""),
    ("f::<x, ", "self", ">"),
    ("self as A<x, ", "self", ">"),
    ("1 as fn() -> ", "self", ""),
    ("", "self", ".f()"),
    ("", "self", "[0]"),
    ("", "self", " as f64"),
    ("self + ", "self", ""),
    ("self = ", "self", ""),
    ("spread(", "2", ")"),
    // A quote that quotes nothing must not hide the text behind it.
    ("/*\"*/ (", "self", ") /*\"*/"),
    ("'\"' + (", "self", ") + '\"'"),
];

fn deep((before, middle, after): Deep, count: usize) -> String {
    format!("{}{middle}{}", before.repeat(count), after.repeat(count))
}

/// The ways to write a text as the value of a key.
fn values(spec: &KeySpec, text: &str) -> Vec<String> {
    let text = format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let own = match spec.key {
        KeyName::RunSizes => Some(format!("{{n: {text}}}")),
        KeyName::Present => Some(format!("{{y: {text}}}")),
        KeyName::Samples => Some(format!("[{{self: {text}}}]")),
        KeyName::Derivatives => Some(format!("{{self: {text}}}")),
        KeyName::Derivative => Some(format!("{{x: {text}}}")),
        KeyName::Wirtinger => Some(format!("{{x: [{text}, {text}]}}")),
        KeyName::Forward => Some(format!("{{result: {text}}}")),
        KeyName::Shape | KeyName::Dtype | KeyName::RunShape => Some(text.clone()),
        _ => None,
    };
    match (own, spec.kind) {
        (Some(own), _) => vec![own],
        (None, ValueKind::Text | ValueKind::Flag) => vec![text],
        (None, ValueKind::TextList) => vec![format!("[{text}]")],
        (None, ValueKind::TextMap) => vec![format!("{{self: {text}}}"), format!("{{CPU: {text}}}")],
        (None, ValueKind::TextListMap) => vec![format!("{{self: [{text}]}}")],
        (None, ValueKind::Entries | ValueKind::Any) => {
            vec![
                text.clone(),
                format!("[{text}]"),
                format!("{{self: {text}}}"),
                format!("[{{self: {text}}}]"),
            ]
        }
    }
}

/// The other keys of an entry whose key `key` is read.
fn others(key: KeyName) -> Vec<(KeyName, &'static str)> {
    let func = match key {
        KeyName::Length => "f(Tensor self) -> Tensor[]",
        KeyName::Present => "f(Tensor self) -> Tensor? y",
        _ => "f(Tensor self) -> Tensor",
    };
    let mut keys = vec![
        (KeyName::Func, func),
        (KeyName::Doc, "One."),
        (KeyName::Shape, "self.sizes()"),
        (KeyName::Dtype, "self.dtype()"),
        (KeyName::Dispatch, "{CPU: k::f}"),
    ];
    match key {
        KeyName::Pointwise => keys.truncate(2),
        KeyName::Decompose => keys.truncate(4),
        KeyName::RunSizes => keys.push((KeyName::RunShape, "\"[n]\"")),
        KeyName::RunShape => keys.push((KeyName::RunSizes, "{n: self.numel()}")),
        KeyName::Forward => keys.push((KeyName::Derivatives, "{self: grad}")),
        _ => {}
    }
    keys.retain(|(known, _)| *known != key);
    keys
}

/// A kind of entry, with its keys.
#[derive(Clone, Copy, PartialEq)]
enum Entry {
    File,
    Op,
    Declaration,
    Function,
}

const TABLES: [(Entry, &[KeySpec]); 4] = [
    (Entry::File, FILE_KEYS),
    (Entry::Op, OP_KEYS),
    (Entry::Declaration, DECLARATION_KEYS),
    (Entry::Function, FUNCTION_KEYS),
];

/// The keys of all kinds of entries whose value is an expression, or all others.
fn rows(expressions: bool) -> impl Iterator<Item = (Entry, &'static KeySpec)> {
    let all = TABLES.into_iter().flat_map(|(entry, table)| table.iter().map(move |row| (entry, row)));
    all.filter(move |(entry, row)| {
        (EXPRESSIONS.contains(&row.key) && *entry != Entry::Declaration) == expressions
    })
}

/// A spec with a value of a key, and the value's line.
fn spec(entry: Entry, key: KeyName, value: &str) -> (String, usize) {
    let (list, others) = match entry {
        Entry::File => return (format!("edition: 1\n{}: {value}\n", key.name()), 2),
        Entry::Op => ("ops", others(key)),
        Entry::Declaration => ("declarations", others(key)[..2].to_vec()),
        Entry::Function => {
            ("functions", vec![(KeyName::Func, "f(x)"), (KeyName::Doc, "One."), (KeyName::Rust, "k::f")])
        }
    };
    let mut text = format!("edition: 1\n{list}:\n- ");
    for (name, value) in others.into_iter().filter(|(known, _)| *known != key) {
        _ = write!(text, "{}: {value}\n  ", name.name());
    }
    let line = text.lines().count();
    _ = writeln!(text, "{}: {value}", key.name());
    (text, line)
}

/// The results of checking a key with every value that these counts make deep.
fn check_all(expressions: bool, counts: impl Fn() -> Vec<usize>, judge: fn(&str, Vec<Diagnostic>, bool)) {
    for (entry, row) in rows(expressions) {
        for (way, count) in DEEP.iter().flat_map(|way| counts().into_iter().map(move |count| (*way, count))) {
            for value in values(row, &deep(way, count)) {
                let (text, line) = spec(entry, row.key, &value);
                let (all, found) = mistakes(&text, line);
                judge(&format!("`{}`, {way:?} × {count}", row.name), all, found);
            }
        }
    }
}

/// The mistakes, and whether one is E0316 at a line.
fn mistakes(text: &str, line: usize) -> (Vec<Diagnostic>, bool) {
    let (sources, diagnostics) = check_text("spec.yaml", text);
    let place = format!("spec.yaml:{line}:");
    let mut found = false;
    for diagnostic in diagnostics.sorted() {
        let shown = render(&sources, diagnostic, false);
        found |= diagnostic.code == "E0316" && shown.contains(&place);
    }
    (diagnostics.sorted().cloned().collect(), found)
}

/// Runs with less stack than any thread of the command has.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(work).expect("a thread starts");
    thread.join().unwrap_or_else(|problem| std::panic::resume_unwind(problem));
}

#[test]
fn an_expression_without_end_is_an_error_at_its_place() {
    on_a_small_stack(|| {
        check_all(true, || vec![500, 20_000, 200_000], |what, all, found| assert!(found, "{what}: {all:?}"));
    });
}

#[test]
fn no_other_key_reads_a_text_without_a_limit() {
    on_a_small_stack(|| check_all(false, || vec![5_000], |_, _, _| {}));
}

#[test]
fn the_deepest_expression_that_is_read_fits_into_the_stack() {
    on_a_small_stack(|| check_all(true, || (20..130).step_by(7).collect(), |_, _, _| {}));
}
