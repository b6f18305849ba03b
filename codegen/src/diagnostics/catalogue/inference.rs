//! Mistakes of `shape`, `dtype` and `compute`.

use super::super::{Diagnostic, Span};

/// A shape without a dtype, or the other way round.
pub fn inference_half(span: Span, name: &str, there: &str, missing: &str) -> Diagnostic {
    let help = match missing {
        "dtype" => "add `dtype: promote(…)`, `dtype: same(…)` or a dtype's name",
        _ => {
            "add `shape: broadcast(…)`, `shape: follow(…)` or an expression such as `shape: \"[self.size(0)]\"`"
        }
    };
    Diagnostic::error(
        "E0430",
        format!("`{name}` has a {there} but no {missing}"),
        span,
        format!("no `{missing}`"),
    )
    .with_help(help)
}

/// Another number of rules than of outputs.
pub fn rule_count(span: Span, key: &str, name: &str, outputs: usize, rules: usize) -> Diagnostic {
    let plural = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    let message = format!("`{name}` has {}", plural(outputs, "output"));
    let help = match (key, outputs) {
        ("shape", 1) => {
            "one list of sizes is one expression, which must be quoted: `shape: \"[a, b]\"`".to_owned()
        }
        (_, 1) => format!("write one expression after `{key}:`"),
        _ => format!("list one expression for each output: `{key}: [\"…\", \"…\"]`"),
    };
    Diagnostic::error("E0431", message, span, format!("{} given", plural(rules, "rule"))).with_help(help)
}

/// A rule for results that inference has nothing to say about.
pub fn inference_not_here(span: Span, key: &str, why: &str) -> Diagnostic {
    Diagnostic::error("E0432", format!("`{key}` has no meaning here"), span, why)
        .with_help(format!("remove `{key}`"))
}
