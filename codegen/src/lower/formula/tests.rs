//! Formulas against the trees that they are.

use super::*;
use crate::diagnostics::{Diagnostics, SourceMap, Span};
use crate::model::{FormulaScripts, Strength};

fn signature(text: &str) -> Schema {
    let mut sources = SourceMap::default();
    let source = sources.add("spec.yaml", text);
    Schema::parse(text, &|range| Span::new(source, range), &mut Diagnostics::default()).expect("a signature")
}

/// The tree of a formula of `f(Tensor self, int n) -> Tensor`, with all parentheses.
fn tree(text: &str) -> String {
    let schema = signature("f(Tensor self, int n) -> Tensor");
    match parse(text, &Signature::new(&schema), 1) {
        Ok(formula) => formula.lines.iter().map(|line| show(&line.node)).collect::<Vec<_>>().join(" \\ "),
        Err(Mistake { range, kind }) => format!("{range:?} {kind:?}"),
    }
}

fn all(nodes: &[FormulaNode]) -> String {
    nodes.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn marks(scripts: &FormulaScripts) -> String {
    let mark = |sign: &str, part: &Option<Box<FormulaNode>>| {
        part.as_ref().map_or(String::new(), |part| format!("{sign}{{{}}}", show(part)))
    };
    format!("{}{}", mark("_", &scripts.below), mark("^", &scripts.above))
}

fn show(node: &FormulaNode) -> String {
    match node {
        FormulaNode::Argument(index) => format!("arg{index}"),
        FormulaNode::Result(index) => format!("res{index}"),
        FormulaNode::Name(text) | FormulaNode::Number(text) => text.clone(),
        FormulaNode::Words(text) => format!("{text:?}"),
        FormulaNode::All => ":".to_owned(),
        FormulaNode::Ellipsis => "…".to_owned(),
        FormulaNode::Script(base, scripts) => format!("{}{}", show(base), marks(scripts)),
        FormulaNode::Call(base, items) => format!("{}<{}>", show(base), all(items)),
        FormulaNode::Fence(open, items, close) => format!("{open}{}{close}", all(items)),
        FormulaNode::Root(inner) => format!("√({})", show(inner)),
        FormulaNode::Cases(rows) => {
            let row = |(value, condition): &(FormulaNode, Option<FormulaNode>)| {
                format!("{}: {}", show(value), condition.as_ref().map_or("else".to_owned(), show))
            };
            format!("cases({})", rows.iter().map(row).collect::<Vec<_>>().join("; "))
        }
        FormulaNode::Over(operator, scripts, body) => {
            format!("{}{}({})", operator.text, marks(scripts), show(body))
        }
        FormulaNode::Negative(inner) => format!("(−{})", show(inner)),
        FormulaNode::Not(inner) => format!("(¬{})", show(inner)),
        FormulaNode::Infix(left, sign, right) => format!("({} {} {})", show(left), sign.text, show(right)),
        FormulaNode::Product(left, right) => format!("({} {})", show(left), show(right)),
        FormulaNode::Relation(first, rest) => {
            let rest = rest.iter().map(|(sign, operand)| format!(" {} {}", sign.text, show(operand)));
            format!("{}{}", show(first), rest.collect::<String>())
        }
        FormulaNode::Row(parts) => format!("[{}]", parts.iter().map(show).collect::<Vec<_>>().join(" ")),
        FormulaNode::List(items) => all(items),
    }
}

#[test]
fn signs_have_their_strength() {
    for (text, expected) in [
        ("y = a + b c / d", "res0 = (a + ((b c) / d))"),
        ("y = (a + b) c − d", "res0 = (((a + b) c) − d)"),
        ("y = −a^2 b + −c", "res0 = ((−(a^{2} b)) + (−c))"),
        ("y = a mod b + c", "res0 = (a mod (b + c))"),
        ("y = a / b / c", "res0 = ((a / b) / c)"),
        ("y = (i = j ∨ a < b ∧ ¬c)", "res0 = (i = j ∨ (a < b ∧ (¬c)))"),
        ("0 ≤ y < {n}, i ∈ S", "0 ≤ res0 < arg1, i ∈ S"),
        ("y = Σ_{k=0}^{{n} − 1} a_k b_k − c", "res0 = (Σ_{k = 0}^{(arg1 − 1)}((a_{k} b_{k})) − c)"),
        ("y = Σ_i ∏_j x_{i, j} / 2", "res0 = Σ_{i}(∏_{j}((x_{i, j} / 2)))"),
        ("y = max_i(a_i) b + max(c, d)", "res0 = ((max_{i}((a_{i})) b) + max<c, d>)"),
    ] {
        assert_eq!(tree(text), expected, "{text}");
    }
}

#[test]
fn names_marks_and_fences() {
    for (text, expected) in [
        ("y_i = exp({self}_i) / Σ_j exp({self}_j)", "res0_{i} = (exp<arg0_{i}> / Σ_{j}(exp<arg0_{j}>))"),
        ("y_{…, i, :} = {self}_i^{n}", "res0_{…, i, :} = arg0_{i}^{arg1}"),
        ("y = {self}^T {self}^∗", "res0 = (arg0^{T} arg0^{∗})"),
        ("y = x_{{self}_i, {n} + 1}", "res0 = x_{arg0_{i}, (arg1 + 1)}"),
        ("y = f (a) + f(a)", "res0 = ((f a) + f<a>)"),
        ("y = ||a| − b| + ⌊x⌋ ‖z‖", "res0 = (|(|a| − b)| + (⌊x⌋ ‖z‖))"),
        ("y ~ U[0, 1)", "res0 ~ (U [0, 1))"),
        ("y = √(a b) √c", "res0 = (√((a b)) √(c))"),
        (
            "y = cases(1 if i = j, a < b; 2 if \"absent\"; 0 otherwise)",
            "res0 = cases(1: i = j, a < b; 2: \"absent\"; 0: else)",
        ),
        ("y = \"the rank of\" r \"in\" S", "res0 = [\"the rank of\" r \"in\" S]"),
        (
            "y = lo + hi\nlo = 1, hi = cases(2 if\n a; 3 otherwise)",
            "res0 = (lo + hi) \\ lo = 1, hi = cases(2: a; 3: else)",
        ),
    ] {
        assert_eq!(tree(text), expected, "{text}");
    }
}

#[test]
fn lines_are_text_without_braces_of_names_and_quotes() {
    let schema = signature("f(Tensor self, int n) -> Tensor");
    let formula = parse(
        "y_{i}  = {self}_{i, {n}}^{n}\n\n z_j = cases(\"the\" j \"of\" {n} if {n} = \"all\")",
        &Signature::new(&schema),
        1,
    )
    .expect("a formula");
    let lines: Vec<&str> = formula.lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(lines, ["y_{i} = self_{i, n}^{n}", "z_j = cases(the j of n if n = all)"]);
}

#[test]
fn several_results_and_a_taken_name() {
    let of = |text_of_signature: &str, text: &str, results: usize| {
        let schema = signature(text_of_signature);
        match parse(text, &Signature::new(&schema), results) {
            Ok(formula) => formula.lines.iter().map(|line| show(&line.node)).collect::<Vec<_>>().join(" \\ "),
            Err(Mistake { kind, .. }) => format!("{kind:?}"),
        }
    };
    assert_eq!(
        of("f(Tensor x) -> (Tensor, Tensor)", "y_0_i = {x}_i\ny_1 = y_0", 2),
        "res0_{i} = arg0_{i} \\ res1 = res0"
    );
    assert_eq!(
        of("f(Tensor x) -> (Tensor, Tensor)", "y_0 = {x}", 2),
        "Malformed(\"the result `y_1` is not in it\")"
    );
    assert_eq!(
        of("f(Tensor x) -> (Tensor, Tensor)", "y_0 = y_2", 1),
        "Malformed(\"there is no result y_2\")"
    );
    assert_eq!(of("f(Tensor x, Tensor y) -> Tensor", "{result} = {x} + {y}", 1), "res0 = (arg0 + arg1)");
    assert_eq!(of("f(Tensor x) -> (Tensor values, Tensor hidden)", "{values} = {x}", 1), "res0 = arg0");
}

#[test]
fn signs_are_distinct() {
    let mut texts: Vec<&str> = crate::model::SIGNS.iter().map(|sign| sign.text).collect();
    texts.extend(crate::model::RANGE_OPERATORS.iter().map(|operator| operator.text));
    texts.extend(crate::model::formula_words().chain(crate::model::GRAMMAR_WORDS));
    let count = texts.len();
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), count);
    assert!(Strength::Or < Strength::Relation && Strength::Sum < Strength::Product);
}
