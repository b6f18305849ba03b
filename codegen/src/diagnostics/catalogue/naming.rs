//! Names that clash, or that are invalid in generated code.

use super::super::{Diagnostic, Span};

/// One full name twice.
pub fn operator_twice(span: Span, name: &str, first: Span) -> Diagnostic {
    let base = name.split('.').next().unwrap_or(name);
    Diagnostic::error("E0401", format!("`{name}` is declared twice"), span, "declared again here")
        .with_secondary(first, "first declared here")
        .with_help(format!("remove one of them, or give it another overload name, as in `{base}.Scalar`"))
}

/// Two forms of one full name.
pub fn form_twice(span: Span, name: &str, what: &str, first: Span, first_what: &str) -> Diagnostic {
    let message = format!("two operators are called by the name `{name}`");
    Diagnostic::error("E0460", message, span, format!("{what} has this name"))
        .with_secondary(first, format!("{first_what} has it too"))
        .with_help("name one of the forms differently, as in `names: {out: add.my_out}`, or leave it out of `variants`")
}

/// A malformed full name.
pub fn form_name_malformed(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0466",
        format!("`{name}` is not an operator name"),
        span,
        "expected `name` or `name.overload`",
    )
    .with_help(
        "a name is letters, digits and underscores and may have one overload, as in `add_` or `add.out`",
    )
}

/// Two public Rust functions of one name.
pub fn rust_function_twice(
    span: Span,
    function: &str,
    what: &str,
    first: Span,
    first_what: &str,
) -> Diagnostic {
    let message = format!("two Rust functions would be called `{function}`");
    Diagnostic::error("E0461", message, span, format!("{what} is called so"))
        .with_secondary(first, format!("{first_what} is called so too"))
        .with_help("give one of the operators another function name: `rust_name: …`")
}

/// Two operators whose names differ only in letter case or in `.` and `_`.
pub fn rust_identifier_twice(span: Span, identifier: &str, first: Span, first_name: &str) -> Diagnostic {
    let message = format!("the generated code calls two operators `{identifier}`");
    Diagnostic::error("E0462", message, span, "this one")
        .with_secondary(first, format!("and `{first_name}`"))
        .with_help(
            "names must differ in more than letter case, `.` and `_`; change one of the overload names",
        )
}

/// Two structs of options of one name.
pub fn options_twice(span: Span, name: &str, first: Span, first_name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0463",
        format!("two structs of options would be called `{name}`"),
        span,
        "of this operator",
    )
    .with_secondary(first, format!("and of `{first_name}`"))
    .with_help("give one of the operators another function name: `rust_name: …`")
}

/// A `rust_name` that is not a Rust identifier.
pub fn rust_name_malformed(span: Span, name: &str) -> Diagnostic {
    let snake: String = name
        .chars()
        .flat_map(char::to_lowercase)
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '_' })
        .collect();
    let diagnostic = Diagnostic::error(
        "E0464",
        format!("`{name}` cannot be the name of a Rust function"),
        span,
        "not a name in Rust",
    );
    match snake.starts_with(|character: char| character.is_ascii_lowercase()) && snake != name {
        true => diagnostic.with_help(format!("write it in small letters, digits and underscores: `{snake}`")),
        false => diagnostic.with_help("use small letters, digits and underscores, and no keyword of Rust"),
    }
}

/// A function name that the generated library uses itself.
pub fn rust_name_reserved(span: Span, name: &str, used_for: &str) -> Diagnostic {
    Diagnostic::error(
        "E0701",
        format!("no operator can have the Rust function `{name}`"),
        span,
        used_for.to_owned(),
    )
    .with_help("choose another function name: `rust_name: …`")
}

/// Two arguments with the same Rust identifier, or an argument and a generated parameter.
pub fn parameter_twice(span: Span, parameter: &str, first: Option<Span>, other: &str) -> Diagnostic {
    let message = format!("two parameters of the Rust function would be called `{parameter}`");
    let diagnostic = Diagnostic::error("E0465", message, span, "this argument");
    let diagnostic = match first {
        Some(first) => diagnostic.with_secondary(first, "and this one"),
        None => diagnostic.with_note(format!("{other} is called `{parameter}` too")),
    };
    diagnostic.with_help("rename the argument")
}

/// An argument whose setter would be one of the struct's own functions.
pub fn option_reserved(span: Span, name: &str) -> Diagnostic {
    let message = format!("an argument with a default cannot be called `{name}`");
    Diagnostic::error("E0702", message, span, "becomes a method of the struct of options")
        .with_help(format!("rename it, or remove its default: the struct has a function `{name}` already"))
}

/// A `method` that does not name a tensor argument.
pub fn receiver_unknown(span: Span, name: &str, known: &[&str]) -> Diagnostic {
    let help = match known {
        [] => "no argument is a tensor that callers must give; leave `method` out".to_owned(),
        known => format!("write {} or `none`", super::ticked(known.iter().copied())),
    };
    let message = format!("`{name}` cannot be the receiver of the method");
    Diagnostic::error("E0620", message, span, "not a tensor that callers must give").with_help(help)
}

/// A malformed foreign name.
pub fn known_name_malformed(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0621", format!("`{name}` is not the name of an operator"), span, "not a name")
        .with_help("write it as its users do, without arguments, as in `known_as: [power, linalg.inv]`")
}

/// A foreign name of two operators.
pub fn known_name_twice(span: Span, name: &str, first: Option<Span>) -> Diagnostic {
    let message = format!("`{name}` is given twice as a name in other libraries");
    let diagnostic = Diagnostic::error("E0622", message, span, "given again here");
    match first {
        Some(first) => diagnostic
            .with_secondary(first, "first given here, for another operator")
            .with_help("keep it at the operator that computes the same"),
        None => diagnostic.with_help("remove one of them"),
    }
}

/// A foreign name that an operator has here.
pub fn known_name_taken(span: Span, name: &str, taken: Span) -> Diagnostic {
    Diagnostic::error("E0623", format!("an operator here is called `{name}`"), span, "taken")
        .with_secondary(taken, "by this operator")
        .with_help("a call by this name reaches that operator; remove it from `known_as`")
}

/// A notation that cannot be read.
pub fn notation_malformed(span: Span, text: &str, why: &str) -> Diagnostic {
    Diagnostic::error("E0626", format!("`{text}` is not a notation: {why}"), span, "not a notation").with_help(
        "write arguments in braces, as in `notation: \"{self} {mat2}\"`, and exponents after `^`: `{self}^T`",
    )
}

/// A notation with a name that no argument has.
pub fn notation_argument(span: Span, op: &str, name: &str, known: &[&str]) -> Diagnostic {
    let message = format!("`{op}` has no argument `{name}` for its notation");
    Diagnostic::error("E0627", message, span, "an argument that does not exist")
        .with_help(super::near_or_all(name, known, "arguments"))
}

/// A formula that cannot be read.
pub fn formula_malformed(span: Span, why: &str) -> Diagnostic {
    Diagnostic::error("E0628", format!("this is not a formula: {why}"), span, "here").with_help(
        "write names of the signature in braces, subscripts and exponents of several signs too, and words in quotes: \
         `y_{i, j} = Σ_{k=0}^{n−1} {self}_{i, k}`",
    )
}

/// A formula with a name in braces that the signature does not have.
pub fn formula_argument(span: Span, op: &str, name: &str, known: &[&str]) -> Diagnostic {
    let message = format!("`{op}` has no argument or result `{name}` for its formula");
    Diagnostic::error("E0629", message, span, "not in the signature").with_help(super::near_or_all(
        name,
        known,
        "arguments and named results",
    ))
}

/// A name of the signature that has no braces in a formula.
pub fn formula_without_braces(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` is a name of the signature, and has no braces in this formula");
    Diagnostic::error("E0630", message, span, "could be an index")
        .with_help(format!("write `{{{name}}}`, or give the index another name"))
}

/// A word in a formula that nothing defines, and those that need no definition.
pub fn formula_word<'a>(span: Span, word: &str, known: impl IntoIterator<Item = &'a str>) -> Diagnostic {
    Diagnostic::error("E0631", format!("nothing defines `{word}` in this formula"), span, "not defined").with_help(
        format!(
            "define it in a line of its own (`{word} = …`), separate factors by spaces, or write words in quotes; known are \
             {}",
            super::ticked(known)
        ),
    )
}

/// A formula of an operator whose expression is one.
pub fn formula_beside_expression(span: Span, expression: Span) -> Diagnostic {
    Diagnostic::error(
        "E0632",
        "an expression of one element is the formula already",
        span,
        "a second formula",
    )
    .with_secondary(expression, "the expression")
    .with_help("remove `formula`; documents typeset `pointwise`")
}

/// A namespace without a name.
pub fn namespace_empty(span: Span) -> Diagnostic {
    Diagnostic::error("E0624", "a namespace has no letters", span, "no prefix")
        .with_help("write the prefix with its separator, as in `namespaces: {\"aten::\": \"\"}`")
}

/// A name declared in `unlike` that is an operator's.
pub fn unlike_is_known(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0625", format!("`{name}` is the name of an operator here"), span, "not foreign")
        .with_help("write the name with its namespace, as in `unlike: {numpy.std: …}`")
}

/// One name in two libraries that are both parents, or in this one and a parent.
pub fn declared_in_two_libraries(span: Span, name: &str, first: Span, own: bool) -> Diagnostic {
    let (message, label) = match own {
        true => (
            format!("`{name}` is declared here and by a library that this spec builds on"),
            "declared again here",
        ),
        false => (
            format!("`{name}` is declared by two libraries that this spec builds on"),
            "declared by this library",
        ),
    };
    let help = match own {
        true => "give it another name, or use the library's",
        false => {
            "formulas and calls by name could not tell them apart: build on one of the two, or rename it in one"
        }
    };
    Diagnostic::error("E0467", message, span, label).with_secondary(first, "and by this one").with_help(help)
}
