//! Mistakes inside expressions.

use super::super::{Diagnostic, Span, nearest};
use super::{article, did_you_mean, ticked};

/// Text that is not an expression, in the parser's words.
pub fn not_an_expression(span: Span, message: &str, hint: Option<&str>) -> Diagnostic {
    let diagnostic = Diagnostic::error("E0301", "this is not an expression", span, message);
    diagnostic.with_help(
        hint.unwrap_or(
            "an expression is written as in Rust: names, numbers, calls, methods, `+ - * /`, `if`",
        ),
    )
}

/// A bracket of an expression without its pair.
pub fn expression_bracket(span: Span, bracket: char) -> Diagnostic {
    let (message, label, help) = match bracket {
        '(' | '[' | '{' => {
            ("this bracket is never closed", "opened here", "add the closing bracket, or remove this one")
        }
        _ => ("nothing opened this bracket", "closes nothing", "remove it, or add the opening bracket"),
    };
    Diagnostic::error("E0318", message, span, label).with_help(help)
}

/// An expression so deep that it would overflow the checker's stack.
pub fn expression_too_deep(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error("E0316", format!("the expression has more than {what}"), span, "too much to be read")
        .with_help("name parts of it: `{ let part = …; … }`, or declare an operator for a part")
}

/// Rust syntax without a meaning in a spec.
pub fn syntax_without_meaning(span: Span, label: &str) -> Diagnostic {
    Diagnostic::error("E0302", "this syntax has no meaning in a spec", span, label).with_help(
        "use names, numbers, calls, methods, operators, `if`/`else`, `[…]` lists and `{ let name = …; … }`",
    )
}

/// A symbol that is not an operator here.
pub fn operator_without_meaning(span: Span) -> Diagnostic {
    Diagnostic::error("E0319", "this operator has no meaning in a spec", span, "not supported here")
        .with_help("the operators are `+ - * / % & | ^ == != < <= > >= && || !`")
}

/// `let (a, b) = …`
pub fn binding_not_a_name(span: Span) -> Diagnostic {
    Diagnostic::error("E0332", "only a plain name can be bound here", span, "not a plain name")
        .with_help("write `let name = …;`; a part of several values is taken with `value[0]`")
}

/// `let a;`
pub fn binding_without_value(span: Span) -> Diagnostic {
    Diagnostic::error("E0334", "a name needs a value", span, "no value")
        .with_help("write `let name = …;`, without `else`")
}

/// A statement that is neither a binding nor the value.
pub fn statement_without_effect(span: Span) -> Diagnostic {
    Diagnostic::error("E0335", "this statement has no effect in a spec", span, "its value is dropped")
        .with_help("write `let name = …;` for every statement but the last, which is the value")
}

/// A literal of another kind, size or with a suffix.
pub fn literal(span: Span, message: &str, label: &str) -> Diagnostic {
    Diagnostic::error("E0303", message, span, label).with_help(
        "write an integer of 64 bits, a float such as `1e-5`, a text in `\"` quotes, `true` or `false`",
    )
}

/// `a::b` as a value.
pub fn path_is_no_value(span: Span) -> Diagnostic {
    Diagnostic::error("E0304", "a path is not a value", span, "only functions have paths")
        .with_help("call it: `infer::function(…)`; dtypes are written by name, as in `float32`")
}

/// A path that is invalid in generated code.
pub fn path_malformed(span: Span, label: &str, root: &str) -> Diagnostic {
    Diagnostic::error("E0337", "this is not the path of a Rust function", span, label).with_help(format!(
        "write names separated by `::`, starting inside the {root}, as in `module::function`"
    ))
}

/// An unknown name.
pub fn name_unknown(span: Span, name: &str, known: &[String]) -> Diagnostic {
    let foreign = match name {
        "true_" | "TRUE" => Some("write `true`"),
        "null" | "nullptr" | "none" | "nullopt" => Some("an absent value is `None`"),
        "M_PI" => Some("write `pi`"),
        "float" | "double" => Some("the dtypes are called `float32` and `float64`"),
        _ => None,
    };
    let help = match (foreign, nearest(name, known.iter().map(String::as_str))) {
        (Some(hint), _) => hint.into(),
        (None, Some(near)) => did_you_mean(near),
        (None, None) => format!("known here: {}", known.join(", ")).into(),
    };
    Diagnostic::error("E0305", format!("nothing is called `{name}` here"), span, "unknown name")
        .with_help(help)
}

/// `grad` of an operator that returns a list.
pub fn gradient_of_list(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0338",
        "the operator returns a list of tensors",
        span,
        "each has a gradient of its own",
    )
    .with_help("use `grads`, the list of their gradients, of which some may be absent")
}

/// `result` of an operator with several.
pub fn result_of_several(span: Span, known: &[String]) -> Diagnostic {
    Diagnostic::error("E0339", "the operator has several results", span, "which one?")
        .with_help(format!("name one: {}", known.join(", ")))
}

/// `if` without `else`, or a block without a value.
pub fn no_value(span: Span, message: &str, label: &str) -> Diagnostic {
    Diagnostic::error("E0306", message, span, label)
        .with_help("every branch and block ends in an expression without `;`, which is its value")
}

/// `x[i]` of a value that is not a list.
pub fn not_indexable(span: Span, found: &str, optional: bool) -> Diagnostic {
    let diagnostic = Diagnostic::error(
        "E0307",
        "this cannot be indexed",
        span,
        format!("this is {} `{found}`", article(found)),
    );
    match optional {
        true => {
            diagnostic.with_help("it may be absent: test it with `is_some()` and take it with `unwrap()`")
        }
        false => diagnostic.with_help(
            "lists of numbers or tensors can be indexed, and several values by a literal, as in `values[0]`",
        ),
    }
}

/// `values[5]` of three.
pub fn index_out_of_range(span: Span, count: usize) -> Diagnostic {
    Diagnostic::error("E0340", "there is no such value", span, format!("there are {count}, numbered from 0"))
        .with_help("several values are indexed by a literal integer")
}

/// `grads[i]` of an unknown output, or with an index that is not a literal.
pub fn gradient_unknown(span: Span, outputs: usize) -> Diagnostic {
    let label = match outputs {
        1 => "the operator has one output, number 0".to_owned(),
        _ => format!("the operator has {outputs} outputs, numbered from 0"),
    };
    Diagnostic::error("E0308", "there is no such gradient", span, label)
        .with_help("gradients are indexed by a literal integer, as in `grads[0]`")
}

/// `grad` and `grads[0]` of one output.
pub fn gradients_mixed(span: Span, other: Span) -> Diagnostic {
    Diagnostic::error(
        "E0309",
        "`grad` and `grads[…]` of one output do not go together",
        span,
        "may be absent here",
    )
    .with_secondary(other, "always there here")
    .with_help("use one of them: with `grad`, the formula runs only if that gradient is there")
}

/// A value of another type than required.
pub fn type_mismatch(span: Span, want: &str, found: &str, hint: Option<String>) -> Diagnostic {
    Diagnostic::error(
        "E0310",
        format!("{} `{want}` is needed here", article(want)),
        span,
        format!("this is {} `{found}`", article(found)),
    )
    .with_help(hint.unwrap_or_else(|| format!("write something that gives {} `{want}`", article(want))))
}

/// A wrong number of values.
pub fn value_count(span: Span, want: usize, found: usize) -> Diagnostic {
    let label = match found {
        1 => "this is one".to_owned(),
        _ => format!("these are {found}"),
    };
    Diagnostic::error("E0311", format!("{want} values are needed here"), span, label)
        .with_help(format!("write `({})`", vec!["…"; want].join(", ")))
}

/// Branches of two types.
pub fn branch_types(span: Span, found: &str, first: Span, first_found: &str) -> Diagnostic {
    let message = "the two branches have different types";
    Diagnostic::error("E0312", message, span, format!("this is {} `{found}`", article(found)))
        .with_secondary(first, format!("this is {} `{first_found}`", article(first_found)))
        .with_help("let both give the same type")
}

/// Operands that an operator does not accept.
pub fn operands(span: Span, symbol: &str, types: &[String], hint: Option<&str>) -> Diagnostic {
    let message = match types {
        [_] => format!("`{symbol}` does not go before this"),
        _ => format!("`{symbol}` does not go between these"),
    };
    let types: Vec<String> = types.iter().map(|ty| format!("`{ty}`")).collect();
    Diagnostic::error("E0313", message, span, types.join(" and "))
        .with_help(hint.unwrap_or("use values of types the operator is defined for"))
}

/// `self + other` in a shape.
pub fn tensors_in_inference(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0314",
        "inference cannot compute with tensors",
        span,
        "only their sizes and dtypes are known here",
    )
    .with_help("use metadata: `self.size(0)`, `self.dim()`, `self.dtype()`, …")
}

/// A symbol between tensors that no operator declares.
pub fn symbol_undeclared(span: Span, symbol: &str, types: &[String]) -> Diagnostic {
    let types: Vec<String> = types.iter().map(|ty| format!("`{ty}`")).collect();
    Diagnostic::error(
        "E0315",
        format!("no operator declares `{symbol}` for these operands"),
        span,
        types.join(" and "),
    )
    .with_help(format!("add `operator: \"{symbol}\"` to the operator it should call, or call one by name"))
}

/// A call of an expression that is not a name.
pub fn call_of_no_name(span: Span) -> Diagnostic {
    Diagnostic::error("E0336", "only names can be called", span, "not a name")
        .with_help("write `name(…)` or `value.method(…)`")
}

/// A method that the value does not have.
pub fn method_unknown(span: Span, name: &str, ty: &str, known: &[&str]) -> Diagnostic {
    let foreign = match name {
        "sym_size" => Some("size"),
        "sym_sizes" | "shape" => Some("sizes"),
        "sym_numel" => Some("numel"),
        "scalar_type" => Some("dtype"),
        "ndim" | "ndimension" | "rank" => Some("dim"),
        "defined" | "has_value" => Some("is_some"),
        "is_floating_point" => Some("is_float"),
        _ => None,
    };
    let near = foreign.filter(|name| known.contains(name)).or_else(|| nearest(name, known.iter().copied()));
    let help = match near {
        Some(near) => did_you_mean(near),
        None if known.is_empty() => format!("{} `{ty}` has no methods here", article(ty)).into(),
        None => format!("{} `{ty}` has: {}", article(ty), known.join(", ")).into(),
    };
    let label = format!("not a method of `{ty}` here");
    Diagnostic::error("E0320", format!("there is no method `{name}`"), span, label).with_help(help)
}

/// `f(dim = 1, x)`
pub fn positional_after_named(span: Span) -> Diagnostic {
    let message = "a positional argument follows a named one";
    Diagnostic::error("E0321", message, span, "has no name")
        .with_help("give it by name, or before the named ones")
}

/// `not_implemented()`
pub fn not_implemented_without_reason(span: Span, name: &str) -> Diagnostic {
    let (what, help) = match name {
        "opaque" => ("a formula", "write `opaque(\"the formula\")`; it is kept as it is"),
        _ => ("a reason", "write `not_implemented(\"why\")`; users see the text"),
    };
    Diagnostic::error("E0322", format!("`{name}` needs {what}"), span, "no text").with_help(help)
}

/// A rule of inference that does not exist.
pub fn rule_unknown(span: Span, name: &str, known: &[&str]) -> Diagnostic {
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => did_you_mean(near),
        None => {
            format!("the rules are {}; or name a Rust function by its path", ticked(known.iter().copied()))
                .into()
        }
    };
    Diagnostic::error("E0323", format!("there is no rule `{name}`"), span, "unknown rule").with_help(help)
}

/// A call in a condition.
pub fn call_in_condition(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0341", format!("a condition cannot call `{name}`"), span, "not known here")
        .with_help("conditions use methods such as `size`, `dim` and `dtype`, or a Rust function by its path")
}

/// A Rust function in a pointwise expression.
pub fn native_not_here(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0324",
        "a Rust function cannot be called here",
        span,
        "a kernel for every backend is made from this expression",
    )
    .with_help("declare a scalar function under `functions:`")
}

/// Too many or too few arguments.
pub fn argument_count(span: Span, what: &str, want: usize, found: usize, hint: Option<&str>) -> Diagnostic {
    let plural = if want == 1 { "" } else { "s" };
    let message = match want {
        0 => format!("{what} takes no arguments"),
        _ => format!("{what} takes {want} argument{plural}"),
    };
    let label = match found {
        0 => "none given".to_owned(),
        _ => format!("{found} given"),
    };
    let diagnostic = Diagnostic::error("E0325", message, span, label);
    match hint {
        Some(hint) => diagnostic.with_help(hint),
        None if want < found => diagnostic.with_help("remove the others"),
        None => diagnostic.with_help("add the missing ones"),
    }
}

/// A rule over operands without any.
pub fn rule_without_operands(span: Span, rule: &str) -> Diagnostic {
    Diagnostic::error("E0342", format!("`{rule}` needs operands"), span, "none given")
        .with_help(format!("name the tensors: `{rule}(self, other)`"))
}

/// An operand that a rule does not accept.
pub fn rule_operand(span: Span, rule: &str, found: &str, numbers: bool) -> Diagnostic {
    let wanted = if numbers { "tensors and numbers" } else { "tensors" };
    let label = format!("this is {} `{found}`", article(found));
    Diagnostic::error("E0317", format!("`{rule}` looks at {wanted}"), span, label)
        .with_help(format!("name arguments that are {wanted}, or lists of tensors"))
}

/// A scalar function that does not exist.
pub fn function_unknown(span: Span, name: &str, known: &[&str]) -> Diagnostic {
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => did_you_mean(near),
        None => "pointwise expressions call scalar functions; declare this one under `functions:`".into(),
    };
    Diagnostic::error("E0326", format!("there is no scalar function `{name}`"), span, "unknown function")
        .with_help(help)
}

/// The code of [`operator_unknown`].
pub const UNKNOWN_OPERATOR: &str = "E0327";

/// An operator that does not exist.
pub fn operator_unknown(span: Span, name: &str, near: Option<&str>) -> Diagnostic {
    let help = match near {
        Some(near) => did_you_mean(near),
        None => "formulas call operators of this spec and of the libraries it builds on".into(),
    };
    Diagnostic::error(UNKNOWN_OPERATOR, format!("there is no operator `{name}`"), span, "unknown operator")
        .with_help(help)
}

/// Arguments that match no overload.
pub fn no_overload(span: Span, name: &str, given: &str, signatures: &[&str]) -> Diagnostic {
    let diagnostic = Diagnostic::error(
        "E0328",
        format!("no overload of `{name}` takes these arguments"),
        span,
        format!("({given})"),
    );
    diagnostic.with_help(format!("there are {}", ticked(signatures.iter().copied())))
}

/// A name shared by operators of several namespaces.
pub fn namespace_open(span: Span, name: &str, found: &[&str]) -> Diagnostic {
    Diagnostic::error(
        "E0497",
        format!("`{name}` is the name of operators of several namespaces"),
        span,
        "any of them may be meant",
    )
    .with_help(format!(
        "they are {}; give the one that is meant another name here, with `alias_of`",
        ticked(found.iter().copied())
    ))
}

/// A required argument that is not given.
pub fn arguments_missing(span: Span, names: &[&str], signature: &str) -> Diagnostic {
    let listed = ticked(names.iter().copied());
    let (message, label) = match names {
        [name] => (format!("the argument {listed} is missing"), format!("no `{name}`")),
        several => {
            (format!("the arguments {listed} are missing"), format!("{} are not given", several.len()))
        }
    };
    Diagnostic::error("E0343", message, span, label).with_help(format!("the signature is `{signature}`"))
}

/// `n / 0`
pub fn division_by_zero(span: Span) -> Diagnostic {
    Diagnostic::error("E0333", "an integer cannot be divided by zero", span, "always zero")
        .with_help("divide by something else, or by a float")
}

/// `f(x, wat = 1)`
pub fn named_argument_unknown(span: Span, name: &str, what: &str, known: &[&str]) -> Diagnostic {
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => did_you_mean(near),
        None => format!("its arguments are {}", ticked(known.iter().copied())).into(),
    };
    Diagnostic::error("E0329", format!("`{what}` has no argument `{name}`"), span, "no such argument")
        .with_help(help)
}

/// `f(x, dim = 1, dim = 2)`, or by position and name.
pub fn named_argument_twice(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0344", format!("the argument `{name}` is given twice"), span, "given before")
        .with_help("remove one of them")
}

/// A named argument where arguments have no names.
pub fn named_argument_not_here(span: Span) -> Diagnostic {
    let message = "arguments are not given by name here";
    Diagnostic::error("E0345", message, span, "only calls of operators take names")
        .with_help("remove the name and the `=`, and give the value at its place")
}
