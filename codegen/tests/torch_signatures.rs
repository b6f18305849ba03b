//! Every signature of PyTorch's `native_functions.yaml` parses and prints back byte for byte.
//!
//! The signatures are in `data/pytorch/signatures.txt`; their licence is beside them.

use opsmith_codegen::diagnostics::{Diagnostics, SourceMap, Span, render};
use opsmith_codegen::spec::schema::{Schema, SchemaKind};

const SIGNATURES: &str = include_str!("data/pytorch/signatures.txt");

/// The schema, or all diagnostics.
fn parse(text: &str) -> Result<Schema, String> {
    let mut sources = SourceMap::new();
    let source = sources.add("signature", text);
    let mut diagnostics = Diagnostics::new();
    let schema = Schema::parse(text, &|range| Span::new(source, range), &mut diagnostics);
    let said: Vec<String> = diagnostics.sorted().map(|d| render(&sources, d, false)).collect();
    schema.ok_or_else(|| said.join("\n\n"))
}

#[test]
fn every_signature_prints_back() {
    let mut failures = Vec::new();
    let mut count = 0;
    for text in SIGNATURES.lines() {
        count += 1;
        match parse(text) {
            Ok(schema) if schema.to_string() == text => {}
            Ok(schema) => failures.push(format!("{text}\nprints as\n{schema}")),
            Err(said) => failures.push(said),
        }
    }
    assert!(failures.is_empty(), "{} of {count} fail:\n\n{}", failures.len(), failures.join("\n\n"));
    assert_eq!(count, 2590);
}

#[test]
fn kinds_are_as_many_as_published() {
    let count = |kind| {
        let schemas = SIGNATURES.lines().filter_map(|text| parse(text).ok());
        schemas.filter(|schema| schema.kind() == kind).count()
    };
    // PyTorch counts 1608 and 11: `set_data`, `retain_grad` and `record_stream` write `self`
    // without being in-place by name, and it calls them functional.
    assert_eq!(count(SchemaKind::Functional), 1608 - 3);
    assert_eq!(count(SchemaKind::Mutable), 11 + 3);
    assert_eq!(count(SchemaKind::Out), 632);
    assert_eq!(count(SchemaKind::Inplace), 339);
}

#[test]
fn blanks_are_free_and_literals_may_hold_commas() {
    let cases = [
        ("f( Tensor  self,Tensor other )->Tensor", "f(Tensor self, Tensor other) -> Tensor"),
        (r#"f(str s="a, b") -> ()"#, r#"f(str s="a, b") -> ()"#),
        (r#"f(str s="a=b)") -> ()"#, r#"f(str s="a=b)") -> ()"#),
        ("f(int[2] s=[0, 0]) -> ()", "f(int[2] s=[0, 0]) -> ()"),
        ("f(Tensor(a|b|c) x) -> Tensor(a|b|c)", "f(Tensor(a|b|c) x) -> Tensor(a|b|c)"),
        ("f(int[][] x) -> (Tensor)", "f(int[][] x) -> Tensor"),
    ];
    for (text, printed) in cases {
        assert_eq!(parse(text).map(|schema| schema.to_string()), Ok(printed.to_owned()));
    }
}
