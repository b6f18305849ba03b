//! The names and classes of changes between specs. Every rule has a case.

#[allow(dead_code, reason = "the stock spec alone")]
mod support;

use std::collections::BTreeSet;

use opsmith_codegen::{diagnostics, pipeline};
use opsmith_tools::diff::{self, Class, RULES, Report, Version};

/// Two operators that stay, so that formulas have something to call.
const BASE: &str = "\
edition: 1
functions:
- {func: grow(x), rust: math::grow, dtypes: inexact, derivative: {x: result}}
ops:
- func: add(Tensor self, Tensor other) -> Tensor
  doc: The sum.
  pointwise: self + other
  operator: \"+\"
  derivatives: {self: grad, other: grad}
- func: twice(Tensor self) -> Tensor
  doc: Twice.
  shape: follow(self)
  dtype: follow(self)
  dispatch: {CPU: kernels::twice}
  derivatives: {self: twice(grad)}
";

fn report(old: &str, new: &str) -> Report {
    let model = |text: &str| {
        let checked = pipeline::check_text("spec.yaml", text);
        if let Some(first) =
            checked.diagnostics.sorted().find(|one| one.severity == diagnostics::Severity::Error)
        {
            panic!("{}\n{text}", diagnostics::render(&checked.sources, first, false));
        }
        checked.model
    };
    diff::diff(&model(old), &model(new))
}

/// A case: an entry before, the entry after, and the rules that name the difference, in order.
type Case = (&'static str, &'static str, &'static [&'static str]);

const OP: &str = "func: op(Tensor x, int n, *, float eps=0.5) -> Tensor|shape: follow(x)|dtype: follow(x)|dispatch: {CPU: k::op}|derivatives: {x: grad}";

/// Replacements in the entry `OP`: the old text, the new text.
const CASES: &[Case] = &[
    ("", "", &[]),
    (OP, "", &["operator-removed"]),
    ("", OP, &["operator-added"]),
    ("func: op(", "func: ops(", &["operator-renamed"]),
    (", int n", "", &["argument-removed"]),
    ("int n", "int n, int m", &["argument-added"]),
    ("float eps=0.5", "float eps=0.5, int m=1", &["option-added"]),
    ("Tensor x, int n", "int n, Tensor x", &["argument-reordered"]),
    (
        "Tensor x, int n, *,",
        "Tensor x, int m=1, int n=2, *,",
        &["default-added", "option-added", "argument-reordered"],
    ),
    ("int n", "int count", &["argument-renamed"]),
    (
        "int n, *, float eps=0.5) -> Tensor",
        "int count, *, float eps=0.5) -> Tensor|argument_aliases: {count: [n]}",
        &["argument-renamed-with-alias"],
    ),
    ("shape: follow(x)", "argument_aliases: {n: count}|shape: follow(x)", &["argument-alias-added"]),
    ("argument_aliases: {n: count}|shape: follow(x)", "shape: follow(x)", &["argument-alias-removed"]),
    ("int n", "str n", &["type-changed"]),
    ("int n", "Scalar n", &["type-widened"]),
    ("eps=0.5", "eps=0.25", &["default-changed"]),
    ("int n,", "int n=1,", &["default-added"]),
    ("eps=0.5", "eps", &["default-removed"]),
    ("int n, *,", "*, int n,", &["keyword-only"]),
    ("*, int n,", "int n, *,", &["positional"]),
    ("shape: follow(x)", "attributes: {n: {min: 1}}|shape: follow(x)", &["constraint-changed"]),
    ("attributes: {n: {min: 1}}|shape: follow(x)", "shape: follow(x)", &["constraint-removed"]),
    (
        "-> Tensor|shape: follow(x)|dtype: follow(x)",
        "-> (Tensor, Tensor)|shape: [follow(x), follow(x)]|dtype: [follow(x), follow(x)]",
        &["return-changed"],
    ),
    ("-> Tensor|", "-> Tensor y|", &["return-renamed"]),
    ("-> Tensor|", "-> Tensor|variants: [functional, out]|", &["form-added"]),
    ("-> Tensor|", "-> Tensor|variants: [functional, inplace]|", &["form-added"]),
    ("-> Tensor|variants: [functional, out]|", "-> Tensor|", &["form-removed"]),
    (
        "-> Tensor|variants: [functional, out]|",
        "-> Tensor|variants: [functional, out]|names: {out: op.other}|",
        &["form-renamed"],
    ),
    ("-> Tensor|", "-> Tensor|rust_name: other|", &["rust-name-changed"]),
    ("{CPU: k::op}", "{CPU: k::op}|dtypes: floating", &["dtypes-narrowed"]),
    ("{CPU: k::op}|dtypes: floating", "{CPU: k::op}", &["dtypes-widened"]),
    ("derivatives: {x: grad}", "derivatives: {x: 'not_implemented(\"no\")'}", &["derivative-removed"]),
    ("derivatives: {x: 'not_implemented(\"no\")'}", "derivatives: {x: grad}", &["derivative-added"]),
    ("{x: grad}", "{x: grad + grad}", &["derivative-changed"]),
    ("shape: follow(x)", "shape: \"[n]\"", &["shape-changed"]),
    ("dtype: follow(x)", "dtype: float32|compute: follow(x)", &["dtype-changed"]),
    ("shape: follow(x)", "check: [n > 0]|shape: follow(x)", &["check-added"]),
    ("check: [n > 0]|shape: follow(x)", "shape: follow(x)", &["check-removed"]),
    ("shape: follow(x)|dtype: follow(x)", "infer: s::op|dtype: follow(x)", &["inference-changed"]),
    (
        "shape: follow(x)",
        "shape: follow(x)|run_sizes: {found: x.numel()}|run_shape: '[found]'",
        &["run-shape-added"],
    ),
    (
        "shape: follow(x)|run_sizes: {found: x.numel()}|run_shape: '[found]'",
        "shape: follow(x)",
        &["run-shape-removed"],
    ),
    ("k::op", "k::other", &["kernel-changed"]),
    ("-> Tensor|", "-> Tensor|deterministic: false|", &["determinism-lost"]),
    ("-> Tensor|deterministic: false|", "-> Tensor|", &["determinism-gained"]),
    ("-> Tensor|", "-> Tensor|deprecated: {use: twice}|", &["deprecated"]),
    ("-> Tensor|deprecated: {use: twice}|", "-> Tensor|", &["not-deprecated"]),
    ("-> Tensor|", "-> Tensor|doc: Something.|", &["documentation"]),
    ("-> Tensor|", "-> Tensor|descriptions: {x: numbers}|", &["documentation"]),
    ("-> Tensor|", "-> Tensor|flops: 3 * x.numel()|", &["operations-changed"]),
    ("-> Tensor|", "-> Tensor|contiguous: [x]|", &["implementation"]),
    ("-> Tensor|", "-> Tensor|value_depends: {x: required}|", &["value-dependence-changed"]),
];

/// An entry of a case: the parts between bars are keys.
fn spec(entry: &str) -> String {
    let mut text = BASE.to_owned();
    for (index, key) in entry.split('|').filter(|key| !key.is_empty()).enumerate() {
        text.push_str(if index == 0 { "- " } else { "  " });
        text.push_str(key);
        text.push('\n');
    }
    text
}

/// The specs before and after: whole entries, or a part of `OP` and its replacement, or two texts after its result.
fn specs(before: &str, after: &str) -> (String, String) {
    if [before, after].contains(&OP) || (before.is_empty() && after.is_empty()) {
        return (spec(before), spec(after));
    }
    let op = OP.to_owned();
    let (old, new) = if op.contains(before) {
        (op.clone(), op.replacen(before, after, 1))
    } else if op.contains(after) {
        (op.replacen(after, before, 1), op.clone())
    } else {
        (op.replacen("-> Tensor|", before, 1), op.replacen("-> Tensor|", after, 1))
    };
    (spec(&old), spec(&new))
}

#[test]
fn each_change_has_its_rule() {
    let mut wrong = Vec::new();
    for (before, after, expected) in CASES {
        let (old, new) = specs(before, after);
        let found: BTreeSet<&str> = report(&old, &new).changes.iter().map(|change| change.rule).collect();
        // An operator without a gradient has no tangents either, which is a separate change.
        let found: Vec<&str> = found.into_iter().filter(|rule| !rule.starts_with("forward-")).collect();
        let mut wanted: Vec<&str> = expected.to_vec();
        wanted.sort_unstable();
        if !wanted.iter().all(|rule| found.contains(rule)) || (found.is_empty() != wanted.is_empty()) {
            wrong.push(format!("{before} => {after}: {found:?}, not {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Rules whose cases are below.
const ELSEWHERE: &[&str] = &[
    "function-removed",
    "function-changed",
    "function-added",
    "method-removed",
    "method-added",
    "method-moved",
    "known-name-removed",
    "known-name-added",
    "namespace-removed",
    "namespace-added",
    "unlike-removed",
    "unlike-added",
    "symbol-removed",
    "symbol-added",
    "expression-changed",
    "view-changed",
    "output-not-differentiable",
    "output-differentiable",
    "forward-removed",
    "forward-added",
    "alias-changed",
    "compute-changed",
    "run-shape-changed",
    "presence-changed",
    "presence-removed",
    "combination-removed",
    "combination-added",
    "form-writes",
    "argument-dtypes-narrowed",
    "argument-dtypes-widened",
    "other",
];

#[test]
fn every_rule_has_a_case() {
    let covered: BTreeSet<&str> = CASES
        .iter()
        .flat_map(|(_, _, rules)| rules.iter().copied())
        .chain(ELSEWHERE.iter().copied())
        .collect();
    for rule in RULES {
        assert!(covered.contains(rule.name), "`{}` has no case", rule.name);
        assert!(!rule.reason.is_empty());
    }
    for name in covered {
        assert!(RULES.iter().any(|rule| rule.name == name), "`{name}` is no rule");
    }
}

#[track_caller]
fn check(before: &str, after: &str, expected: &[&str]) {
    let rules: Vec<&str> = report(before, after).changes.iter().map(|change| change.rule).collect();
    assert_eq!(rules, expected, "{before}\n=>\n{after}");
}

#[test]
fn sizes_of_a_run_results_that_may_be_absent_and_rows_of_dtypes() {
    let op = |rest: &str| format!("{BASE}- func: op(Tensor x, bool keep) -> {rest}\n");
    let found = |bound: &str, shape: &str| {
        op(&format!(
            "Tensor\n  shape: k::op(x)\n  dtype: follow(x)\n  dispatch: {{CPU: k::op}}\n  run_sizes: {{found: {bound}}}\n  run_shape: '{shape}'"
        ))
    };
    let first = found("x.numel()", "[found]");
    check(&first, &first, &[]);
    check(&first, &found("x.dim()", "[found]"), &["run-shape-changed"]);
    check(&first, &found("x.numel()", "[found, x.dim()]"), &["run-shape-changed"]);
    let may_lack =
        |ty: &str, condition: &str| op(&format!("(Tensor out, {ty} mask)\n  decompose: (x, x)\n{condition}"));
    let kept = may_lack("Tensor?", "  present: {mask: keep}");
    check(&kept, &may_lack("Tensor?", "  present: {mask: '!keep'}"), &["presence-changed"]);
    assert!(
        report(&kept, &may_lack("Tensor", "")).changes.iter().any(|change| change.rule == "presence-removed")
    );
    let rows = |rows: &str| {
        op(&format!("Tensor out\n  shape: follow(x)\n  dispatch: {{CPU: k::op}}\n  combinations: [{rows}]"))
    };
    let (one, two) = ("{x: float16, out: float32}", "{x: float32, out: float32}");
    let both = format!("{one}, {two}");
    let changed = |a: &str, b: &str| -> BTreeSet<&'static str> {
        report(&rows(a), &rows(b)).changes.iter().map(|change| change.rule).collect()
    };
    assert!(changed(one, &both).contains("combination-added"));
    assert!(changed(&both, one).contains("combination-removed"));
    assert!(!changed(&both, one).contains("other"));
}

#[test]
fn functions_methods_symbols_views_and_results() {
    let replaced = |from: &str, to: &str| BASE.replacen(from, to, 1);
    check(BASE, &replaced("math::grow", "math::other"), &["function-changed"]);
    let without = replaced(
        "functions:\n- {func: grow(x), rust: math::grow, dtypes: inexact, derivative: {x: result}}\n",
        "",
    );
    check(BASE, &without, &["function-removed"]);
    check(&without, BASE, &["function-added"]);
    check(BASE, &replaced("  operator: \"+\"\n", ""), &["symbol-removed"]);
    check(&replaced("  operator: \"+\"\n", ""), BASE, &["symbol-added"]);
    check(BASE, &replaced("self + other", "other + self"), &["expression-changed"]);

    let named = |name: &str| {
        format!(
            "{BASE}- func: op(Tensor {name}) -> Tensor\n  shape: follow({name})\n  dtype: follow({name})\n  dispatch: {{CPU: k::op}}\n"
        )
    };
    check(&named("self"), &named("x"), &["argument-renamed"]);
    let without = |spec: &str| spec.replace("Tensor x) -> Tensor\n", "Tensor x) -> Tensor\n  method: none\n");
    check(&named("x"), &without(&named("x")), &["method-removed"]);
    check(&without(&named("x")), &named("x"), &["method-added"]);
    let two = |receiver: &str| {
        format!(
            "{BASE}- func: op(Tensor x, Tensor y) -> Tensor\n  method: {receiver}\n  shape: follow(x)\n  \
             dtype: follow(x)\n  dispatch: {{CPU: k::op}}\n"
        )
    };
    check(&two("x"), &two("y"), &["method-moved"]);

    let known =
        named("x").replace("  shape: follow(x)", "  known_as: [elsewhere.op, spun]\n  shape: follow(x)");
    check(&known, &known.replace("spun", "turned"), &["known-name-removed", "known-name-added"]);
    let namespace =
        BASE.replace("ops:", "namespaces: {elsewhere.: \"\"}\nunlike: {elsewhere.op: see op}\nops:");
    check(BASE, &namespace, &["unlike-added", "namespace-added"]);
    check(&namespace, BASE, &["namespace-removed", "unlike-removed"]);

    let view =
        format!("{BASE}- func: op(Tensor(a) self) -> Tensor(a)\n  view: true\n  dispatch: {{View: k::op}}\n");
    let rules: Vec<&str> = report(&named("self"), &view).changes.iter().map(|change| change.rule).collect();
    assert!(rules.contains(&"view-changed"), "{rules:?}");

    let results = |flags: &str| {
        format!(
            "{BASE}- func: op(Tensor self) -> (Tensor, Tensor)\n  shape: [follow(self), follow(self)]\n  dtype: [follow(self), follow(self)]\n  dispatch: {{CPU: k::op}}\n  derivatives: {{self: \"grads[0]\"}}\n{flags}"
        )
    };
    check(
        &results(""),
        &results("  output_differentiability: [true, false]\n"),
        &["output-not-differentiable"],
    );
    check(&results("  output_differentiability: [true, false]\n"), &results(""), &["output-differentiable"]);

    let linear = |forward: &str| named("self") + "  derivatives: {self: twice(grad)}\n" + forward;
    let rules = |before: &str, after: &str| -> Vec<&str> {
        report(before, after).changes.iter().map(|change| change.rule).collect()
    };
    assert!(rules(&named("self"), &linear("")).contains(&"forward-added"));
    assert!(rules(&linear(""), &named("self")).contains(&"forward-removed"));

    let index = |keys: &str| {
        format!(
            "{BASE}- func: op(Tensor self, Tensor index) -> Tensor\n{keys}  shape: follow(self)\n  dtype: float32\n  dispatch: {{CPU: k::op}}\n  derivatives: {{self: grad}}\n"
        )
    };
    check(
        &index("  types: {index: int64}\n"),
        &index("  types: {index: [int64, int32]}\n"),
        &["argument-dtypes-widened"],
    );
    check(
        &index("  types: {index: [int64, int32]}\n"),
        &index("  types: {index: int64}\n"),
        &["argument-dtypes-narrowed"],
    );
    assert!(
        rules(&index("  compute: follow(self)\n"), &index("  compute: float32\n"))
            .contains(&"compute-changed")
    );

    let step = |pairs: &str| {
        format!(
            "{BASE}- func: step(Tensor self, Tensor speed) -> (Tensor, Tensor)\n  variants: [functional, inplace]\n  \
             inplace: {pairs}\n  shape: [follow(self), follow(speed)]\n  dtype: [follow(self), follow(self)]\n  \
             dispatch: {{CPU: k::op}}\n  derivatives: {{self: non_differentiable, speed: non_differentiable}}\n"
        )
    };
    check(&step("{self: 0, speed: 1}"), &step("{self: 1, speed: 0}"), &["form-writes"]);

    let alias = |of: &str| {
        format!(
            "{BASE}- func: other(Tensor self) -> Tensor\n  shape: follow(self)\n  dtype: follow(self)\n  dispatch: {{CPU: k::other}}\n- func: name(Tensor self) -> Tensor\n  alias_of: {of}\n"
        )
    };
    assert!(rules(&alias("twice"), &alias("other")).contains(&"alias-changed"));
}

#[test]
fn a_change_says_what_to_write_instead() {
    let before = spec(OP);
    let after = spec(&OP.replace("eps=0.5", "eps=0.25"));
    let report = report(&before, &after);
    assert_eq!(report.changes[0].what, "`eps` was 0.5 by default and is 0.25 now");
    assert_eq!(report.changes[0].migration.as_deref(), Some("write `eps=0.5` where it was left out"));
    assert!(RULES.iter().filter(|rule| rule.class == Class::Breaking).count() > 20);
}

/// The stock spec against itself: no change; against a copy without its last operator: one change.
#[test]
fn the_stock_spec() {
    let text = support::stock_text();
    check(&text, &text, &[]);
    let last = text.rfind("\n- func: ").unwrap();
    check(&text, &text[..last + 1], &["operator-removed"]);
    check(&text, &format!("# A comment.\n{text}"), &[]);
}

#[test]
fn versions_that_follow() {
    let next = |version: &str, worst| diff::next(Version::parse(version).unwrap(), worst).to_string();
    let (breaking, additive, internal) =
        (Some(Class::Breaking), Some(Class::Additive), Some(Class::Internal));
    assert_eq!(
        [next("0.3.1", breaking), next("0.3.1", additive), next("0.3.1", internal), next("0.3.1", None)],
        ["0.4.0", "0.3.2", "0.3.2", "0.3.1"]
    );
    assert_eq!(
        [next("1.3.1", breaking), next("1.3.1", additive), next("1.3.1", internal)],
        ["2.0.0", "1.4.0", "1.3.2"]
    );
    assert_eq!(next("0.0.4", breaking), "0.0.5");
    assert_eq!(Version::parse("1.2.3-beta.1").unwrap().to_string(), "1.2.3");
    assert!(Version::parse("1.2").is_none() && Version::parse("x.1.2").is_none());
}
