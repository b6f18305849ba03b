//! Hostile files get an error with a span, in bounded time and memory.

#[path = "hostile/expressions.rs"]
mod expressions;

use std::time::{Duration, Instant};

use opsmith_codegen::check_text;
use opsmith_codegen::diagnostics::{render, summary};

/// The first line of every message. The whole run, drawing included, takes less than `limit`.
fn refused_within(limit: Duration, text: &str) -> Vec<String> {
    let start = Instant::now();
    let (sources, diagnostics) = check_text("spec.yaml", text);
    let shown: Vec<String> = diagnostics.sorted().map(|d| render(&sources, d, false)).collect();
    let took = start.elapsed();
    assert!(diagnostics.has_errors(), "accepted: {}", &text[..text.len().min(200)]);
    assert!(shown.iter().all(|text| text.contains("spec.yaml:")), "no place: {shown:?}");
    assert!(took < limit, "took {took:?}, {}", summary(&diagnostics));
    shown.iter().map(|text| text.lines().next().unwrap_or_default().to_owned()).collect()
}

/// Generous, since tests run unoptimised and in parallel.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn deep_nesting() {
    let deep = "error[E0004]: more than 64 levels of nesting";
    for text in [
        "- ".repeat(50_000),
        "[".repeat(50_000),
        "{a: ".repeat(50_000),
        "? ".repeat(50_000),
        (0..3000).map(|level| format!("{}a:\n", " ".repeat(level))).collect(),
        format!("edition: 1\nops:\n- func: f() -> ()\n  samples: {}{}\n", "[".repeat(100), "]".repeat(100)),
    ] {
        assert_eq!(refused_within(SOON, &text), [deep], "{}", &text[..20]);
    }
}

#[test]
fn depth_through_aliases() {
    let mut text = "edition: 1\na0: &a0 [x]\n".to_owned();
    for level in 1..1000 {
        text.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert_eq!(refused_within(SOON, &text), ["error[E0004]: more than 64 levels of nesting"]);
}

#[test]
fn alias_bombs() {
    let large = "error[E0006]: aliases copy more than 8 MB";
    let wide = format!("edition: 1\na: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(1000));
    assert_eq!(refused_within(SOON, &wide), [large]);
    let mut deep = "edition: 1\na0: &a0 [x, x, x, x]\n".to_owned();
    for level in 1..40 {
        let before = level - 1;
        deep.push_str(&format!("a{level}: &a{level} [*a{before}, *a{before}, *a{before}, *a{before}]\n"));
    }
    assert_eq!(refused_within(SOON, &deep), [large]);
}

#[test]
fn large_files() {
    let large = "x".repeat(100 << 20);
    let said = refused_within(SOON, &large);
    assert_eq!(said, ["error[E0001]: the file has 100 MB, more than the limit of 32 MB"]);
    let values = "- \n".repeat(2_100_000);
    let said = refused_within(SOON, &values);
    assert_eq!(said, ["error[E0005]: more than 2000000 values in one file"]);
}

#[test]
fn more_mistakes_than_anyone_reads() {
    let mut keys = "edition: 1\nops: []\n".to_owned();
    (0..100_000).for_each(|n| keys.push_str(&format!("key{n}: x\n")));
    assert_eq!(refused_within(SOON, &keys).len(), 1000);
    let entries = format!("edition: 1\nops:\n{}", "- func: f(int a, int a)\n".repeat(20_000));
    assert_eq!(refused_within(SOON, &entries).len(), 1000);
}

#[test]
fn signatures_without_end() {
    let commas = format!("edition: 1\nops:\n- func: \"f({}\"\n", ",".repeat(16_000));
    assert_eq!(refused_within(SOON, &commas).len(), 20);
    let long = format!("edition: 1\nops:\n- func: \"f({}\"\n", ",".repeat(1 << 20));
    assert_eq!(refused_within(SOON, &long).len(), 1);
    let lists = format!("edition: 1\nops:\n- func: f(int x={}) -> ()\n", "[".repeat(10_000));
    assert_eq!(refused_within(SOON, &lists).len(), 1);
    let blanks = format!("edition: 1\nops:\n- func: \"f(Wat a{}\n) -> ()\"\n", " ".repeat(16_000));
    assert_eq!(refused_within(SOON, &blanks).len(), 1);
}

/// A spec with every kind of scalar, list and mapping.
const SPEC: &str = r#"# é
edition: 1
functions:
- {func: exp(x), rust: "math::exp", dtypes: inexact, derivative: {x: result}}
ops:
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  doc: 'it''s'
  check: ["self.dim()\u0020== 1\n", other.dim() == 1]
  derivatives: &d {self: grad}
  shape: |
    [self.size(0),

     1]
  dtype: same(self, other)
  dispatch: {CPU: m::f}
- func: >-
    f(Tensor x,
    int[2]? n=[1, 2])
    -> (Tensor, Tensor y)
  doc: Of "x".
  shape: [follow(x), follow(x)]
  dtype: [follow(x), follow(x)]
  dispatch: {CPU: "k/f.cc:f"}
  samples: *d
- func: g(Tensor self, Scalar n) -> Tensor
  doc: Both branches.
  dtypes: floating
  pointwise: "{ let x = exp(self) * n; if x > 0 && !(n == 1) { x } else { -x } }"
  derivatives: {self: "f(grad, None)[0]"}
"#;

#[test]
fn every_beginning_of_a_spec_is_read_without_panic() {
    let (_, diagnostics) = check_text("spec.yaml", SPEC);
    // It can be read; its entries are not meaningful.
    let unreadable = diagnostics.sorted().find(|diagnostic| diagnostic.code < "E0300");
    assert!(unreadable.is_none(), "{unreadable:?}");
    for end in (0..SPEC.len()).filter(|end| SPEC.is_char_boundary(*end)) {
        let (sources, diagnostics) = check_text("spec.yaml", &SPEC[..end]);
        diagnostics.sorted().for_each(|d| drop(render(&sources, d, true)));
    }
}

#[test]
fn every_small_damage_is_read_without_panic() {
    let damage = [
        "", "\t", "\n", "\r\n", "'", "\"", "[", "}", ":", ": ", "- ", "*", "&", "!", "é", "\0", "(", ")",
        "\\", "->",
    ];
    for at in (0..SPEC.len()).filter(|at| SPEC.is_char_boundary(*at)) {
        let Some(old) = SPEC[at..].chars().next() else { continue };
        for new in damage {
            let text = format!("{}{new}{}", &SPEC[..at], &SPEC[at + old.len_utf8()..]);
            let (sources, diagnostics) = check_text("spec.yaml", &text);
            diagnostics.sorted().for_each(|d| drop(render(&sources, d, false)));
        }
    }
}
