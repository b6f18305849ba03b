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

/// Data-dependent sizes without shapes that use them, or the other way round.
pub fn run_sizes_half(span: Span, there: &str, missing: &str) -> Diagnostic {
    let help = match missing {
        "run_sizes" => "add `run_sizes: {found: self.numel()}`: a name and an upper bound of the size",
        _ => "add `run_shape: \"[found]\"`: the shape in terms of these names, for each output",
    };
    Diagnostic::error("E0433", format!("`{there}` needs `{missing}`"), span, format!("no `{missing}`"))
        .with_help(help)
}

/// An invalid name of a data-dependent size.
pub fn run_size_name(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` cannot be the name of a size");
    Diagnostic::error("E0434", message, span, "an argument has this name, or it is no identifier")
        .with_help("choose a name of letters and digits that no argument has")
}

/// Rules beside an inference function.
pub fn inference_function_wins(span: Span, key: &str) -> Diagnostic {
    let message = format!("the function of `infer` decides, and this `{key}` has no effect");
    Diagnostic::warning("W0511", message, span, "ignored")
        .with_help(format!("remove `{key}`; the function has to set the shape and dtype of every output"))
}

/// A number of rules that differs from the number of outputs.
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

/// A rule for results that have no inference.
pub fn inference_not_here(span: Span, key: &str, why: &str) -> Diagnostic {
    Diagnostic::error("E0432", format!("`{key}` has no meaning here"), span, why)
        .with_help(format!("remove `{key}`"))
}

/// One number instead of a list of sizes.
pub fn shape_is_number(span: Span, written: &str) -> Diagnostic {
    Diagnostic::error("E0330", "a shape is a list of sizes", span, "one number").with_help(format!(
        "write `\"[{written}]\"`, with quotes, for a vector of so many elements (without them a list has a rule for each result), or \
         `follow(x)` for the shape of a tensor"
    ))
}

/// The common dtype of operands without a tensor.
pub fn dtype_of_no_tensor(span: Span) -> Diagnostic {
    Diagnostic::error("E0331", "`same` is the dtype that tensors share", span, "no tensor here")
        .with_help("name a dtype such as `int64`, or use `promote(…)` for the dtype that numbers have")
}
