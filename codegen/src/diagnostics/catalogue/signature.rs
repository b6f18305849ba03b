//! Mistakes inside a signature.

use super::super::{Diagnostic, Span, nearest};

const EXAMPLE: &str = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";

/// The signature has no text.
pub fn signature_empty(span: Span) -> Diagnostic {
    Diagnostic::error("E0101", "the signature is empty", span, "expected a signature")
        .with_help(format!("write one such as `{EXAMPLE}`"))
}

/// A signature too long to be parsed.
pub fn signature_too_long(span: Span, bytes: usize, limit: usize) -> Diagnostic {
    let message = format!("the signature has {bytes} bytes, more than the limit of {limit}");
    Diagnostic::error("E0129", message, span, "not read").with_help("is a quote or a line break missing?")
}

/// No name before the parenthesis.
pub fn signature_without_name(span: Span) -> Diagnostic {
    Diagnostic::error("E0102", "the operator has no name", span, "expected a name here")
        .with_help("a signature starts with the operator's name, as in `relu(Tensor self) -> Tensor`")
}

/// The name is not `name` or `name.overload`.
pub fn op_name_malformed(span: Span, spelling: &str) -> Diagnostic {
    let message = format!("`{spelling}` is not an operator name");
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._:".contains(c);
    let label = match spelling.chars().find(|&c| !allowed(c)) {
        Some(c) if c.is_whitespace() => "contains a space".to_owned(),
        Some(c) => format!("`{c}` cannot be part of a name"),
        None => "expected `name` or `name.overload`".to_owned(),
    };
    Diagnostic::error("E0103", message, span, label).with_help(
        "a name is letters, digits and underscores and may have one overload, as in `add` or `add.Tensor`",
    )
}

/// The name ends in `_out`.
pub fn op_name_reserved_out(span: Span, name: &str) -> Diagnostic {
    let base = name.strip_suffix("_out").unwrap_or(name);
    let message = format!("the operator name `{name}` ends in `_out`");
    Diagnostic::error("E0104", message, span, "reserved for generated functions")
        .with_help(format!("make it an overload: `{base}.out(…)`"))
}

/// No parenthesis follows the name.
pub fn signature_without_arguments(span: Span) -> Diagnostic {
    Diagnostic::error("E0105", "the signature has no argument list", span, "expected `(`")
        .with_help("write the arguments in parentheses, or `()` if there are none")
}

/// A parenthesis is open at the arrow or the end.
pub fn parenthesis_not_closed(span: Span) -> Diagnostic {
    Diagnostic::error("E0106", "this parenthesis is never closed", span, "no `)` follows")
        .with_help("add `)` after the last item of the list")
}

/// No arrow follows the arguments.
pub fn arrow_missing(span: Span) -> Diagnostic {
    Diagnostic::error("E0107", "the signature has no return type", span, "expected `->`")
        .with_help("end it with `-> Tensor`, or with `-> ()` if it returns nothing")
}

/// No returned value after the arrow.
pub fn returns_missing(span: Span) -> Diagnostic {
    Diagnostic::error("E0138", "the signature has no return type", span, "expected a type")
        .with_help("write a type such as `Tensor`, or `()` if it returns nothing")
}

/// Several returned values stand without parentheses.
pub fn returns_without_parentheses(span: Span, written: &str) -> Diagnostic {
    let message = "several returned values need parentheses";
    Diagnostic::error("E0108", message, span, "not in parentheses").with_help(format!("write `({written})`"))
}

/// Text follows the returned values.
pub fn signature_trailing(span: Span) -> Diagnostic {
    Diagnostic::error("E0109", "the signature goes on after its end", span, "not part of a signature")
        .with_help("remove it; several returned values go into parentheses, as in `-> (Tensor, Tensor)`")
}

/// A type that does not exist.
pub fn unknown_type(span: Span, name: &str, known: &[&str]) -> Diagnostic {
    // Names for the same thing in Rust, C++, Python and NumPy.
    let foreign = match name {
        "double" | "f32" | "f64" | "float32" | "float64" => Some("float"),
        "long" | "i32" | "i64" | "int32" | "int64" | "int64_t" | "usize" | "integer" => Some("int"),
        "boolean" => Some("bool"),
        "string" | "String" => Some("str"),
        "dtype" | "DType" => Some("ScalarType"),
        "number" | "Number" | "complex" => Some("Scalar"),
        "device" => Some("Device"),
        "TensorList" => Some("Tensor[]"),
        "IntArrayRef" | "IntList" => Some("int[]"),
        "Option" | "Optional" => {
            return unknown_type_hint(span, name, "an optional type is written `Tensor?`");
        }
        "List" | "Vec" | "list" => return unknown_type_hint(span, name, "a list is written `Tensor[]`"),
        _ => None,
    };
    match foreign.or_else(|| nearest(name, known.iter().copied())) {
        Some(known) => unknown_type_hint(span, name, super::did_you_mean(known)),
        None => {
            unknown_type_hint(span, name, format!("the types are {}", super::ticked(known.iter().copied())))
        }
    }
}

fn unknown_type_hint(span: Span, name: &str, help: impl Into<super::Help>) -> Diagnostic {
    Diagnostic::error("E0110", format!("unknown type `{name}`"), span, "no such type").with_help(help)
}

/// An argument that is only a type.
pub fn argument_without_name(span: Span, written: &str) -> Diagnostic {
    let name = match written.starts_with("Tensor") {
        true => "self",
        false => "n",
    };
    Diagnostic::error("E0111", "this argument has no name", span, "only a type")
        .with_help(format!("add a name: `{written} {name}`"))
}

/// An argument that is only a name.
pub fn argument_without_type(span: Span, written: &str) -> Diagnostic {
    Diagnostic::error("E0112", format!("the argument `{written}` has no type"), span, "only one word")
        .with_help(format!("write the type before the name: `Tensor {written}`"))
}

/// `name: type`
pub fn argument_type_after_name(span: Span, name: &str, ty: &str) -> Diagnostic {
    Diagnostic::error(
        "E0139",
        format!("the type of `{name}` must stand before its name"),
        span,
        "a name and a colon",
    )
    .with_help(format!("write `{ty} {name}`"))
}

/// A comma without an argument.
pub fn argument_empty(span: Span) -> Diagnostic {
    Diagnostic::error("E0113", "an argument is missing", span, "expected an argument before this")
        .with_help("remove the comma, or write the argument")
}

/// A comma without a returned value.
pub fn return_empty(span: Span) -> Diagnostic {
    Diagnostic::error("E0140", "a returned value is missing", span, "expected a type before this")
        .with_help("remove the comma, or write the type")
}

/// A token that fits nowhere.
pub fn unexpected_token(span: Span, expected: &str, found: &str) -> Diagnostic {
    let message = match found {
        "" => format!("expected {expected}, found the end of the signature"),
        _ => format!("expected {expected}, found `{found}`"),
    };
    let help = match found {
        "&" | "const" => "leave `const` and `&` out; an argument that is written has the type `Tensor(a!)`",
        "<" => "a list is written `int[]` and an optional type `int?`",
        "[" => "a list is written `Tensor[]`, and several values go into parentheses",
        "=" => "a default follows the name, as in `int n=1`",
        "+" | "-" | "*" | "/" => "a default is one value; write the result",
        _ if expected.contains("`]`") => "end the list with `]`",
        _ if expected.contains("`,`") => "separate items with a comma",
        _ if expected.contains("returned") => "write a type such as `Tensor`, or `()` if nothing is returned",
        _ => "an argument is a type and a name, as in `Tensor self`",
    };
    Diagnostic::error("E0114", message, span, format!("expected {expected}")).with_help(help)
}

/// A second `*`.
pub fn second_star(span: Span, first: Span) -> Diagnostic {
    Diagnostic::error("E0115", "`*` stands twice", span, "second `*`")
        .with_secondary(first, "arguments after this are keyword-only already")
        .with_help("remove the second `*`")
}

/// `*` at the end.
pub fn star_without_arguments(span: Span) -> Diagnostic {
    Diagnostic::error("E0141", "no argument follows `*`", span, "makes nothing keyword-only")
        .with_help("remove `*`, or move it before the arguments that callers must name")
}

/// Two arguments of one name.
pub fn argument_twice(span: Span, first: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0116",
        format!("two arguments are named `{name}`"),
        span,
        "second argument of this name",
    )
    .with_secondary(first, "first argument of this name")
    .with_help("rename one of them")
}

/// Two returned values of one name.
pub fn return_twice(span: Span, first: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0142",
        format!("two returned values are named `{name}`"),
        span,
        "second value of this name",
    )
    .with_secondary(first, "first value of this name")
    .with_help("rename one of them")
}

/// A positional argument without a default follows one with a default.
pub fn required_after_default(span: Span, first: (Span, &str), name: &str) -> Diagnostic {
    let (first, with_default) = first;
    let message = format!("`{name}` has no default, but an argument before it has one");
    Diagnostic::error("E0117", message, span, "no default")
        .with_secondary(first, "may be left out")
        .with_help(format!(
            "give `{name}` a default, move it before `{with_default}`, or put `*` before `{with_default}`"
        ))
}

/// `=` without a value.
pub fn default_missing(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0118",
        format!("the default of `{name}` is missing"),
        span,
        "expected a value after this",
    )
    .with_help("write a value such as `1`, `True`, `\"mean\"`, `[0, 1]` or `None`, or remove `=`")
}

/// Malformed text of a default value.
pub fn default_malformed(span: Span, written: &str) -> Diagnostic {
    let (message, help) = match written {
        "" => ("the default ends too early".to_owned(), "close the list with `]`"),
        "(" | "{" => {
            (format!("`{written}` cannot start a default"), "a list is written in brackets, as in `[0, 1]`")
        }
        _ if written.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') => (
            format!("`{written}` is not a number that fits"),
            "write a 64-bit integer such as `-1`, or a finite float such as `1e-05`",
        ),
        _ => (
            format!("`{written}` is not a default value"),
            "a default is `None`, `True`, `False`, a number, a quoted string, a list in brackets or a constant such as `Mean`",
        ),
    };
    Diagnostic::error("E0143", message, span, "expected a value").with_help(help)
}

/// A quote without its pair.
pub fn string_not_closed(span: Span) -> Diagnostic {
    Diagnostic::error("E0119", "this string is never closed", span, "the quote that opens it has no pair")
        .with_help("end the string with the same quote")
}

/// `None` for an argument that is not optional.
pub fn default_none(span: Span, ty: &str) -> Diagnostic {
    Diagnostic::error("E0120", format!("`{ty}` cannot be `None`"), span, "not optional")
        .with_help(format!("make the argument optional: `{ty}?`"))
}

/// A default of another kind than the type.
pub fn default_of_wrong_kind(
    span: Span,
    ty: &str,
    text: &str,
    (is_item, found): (bool, &str),
    expected: &str,
) -> Diagnostic {
    let message = match text.len() {
        0..40 => format!("`{text}` is no default for `{ty}`"),
        _ if is_item => format!("this list is no default for `{ty}`"),
        _ => format!("{found} is no default for `{ty}`"),
    };
    let label = if is_item { format!("an item is {found}") } else { format!("this is {found}") };
    Diagnostic::error("E0121", message, span, label).with_help(format!("write {expected}"))
}

/// `none`, `true`
pub fn default_spelling(span: Span, name: &str, meant: &str) -> Diagnostic {
    Diagnostic::error("E0123", format!("unknown constant `{name}`"), span, "unknown constant")
        .with_help(super::did_you_mean(meant))
}

/// A list whose length contradicts the type.
pub fn default_length(span: Span, ty: &str, wanted: u32, found: usize) -> Diagnostic {
    Diagnostic::error(
        "E0122",
        format!("the default of `{ty}` has {found} item{}", if found == 1 { "" } else { "s" }),
        span,
        format!("the type wants {wanted}"),
    )
    .with_help(format!("write {wanted} items, or one value without brackets that stands for all"))
}

/// A constant that the type does not have.
pub fn default_name_unknown(span: Span, ty: &str, name: &str, known: &[&str]) -> Diagnostic {
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => super::did_you_mean(near),
        _ => format!("known are {}", super::ticked(known.iter().copied())).into(),
    };
    Diagnostic::error("E0144", format!("`{name}` is no value of `{ty}`"), span, "unknown constant")
        .with_help(help)
}

/// A default on a returned value.
pub fn return_with_default(span: Span) -> Diagnostic {
    Diagnostic::error("E0124", "a returned value cannot have a default", span, "default of a returned value")
        .with_help("remove it")
}

/// `(a)` on a type other than a tensor.
pub fn alias_on_other_type(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` cannot have an alias annotation");
    Diagnostic::error("E0125", message, span, "only tensors share memory")
        .with_help("remove the annotation; it belongs after `Tensor`, as in `Tensor(a!)`")
}

/// An annotation that is not one of the known forms.
pub fn alias_malformed(span: Span) -> Diagnostic {
    Diagnostic::error("E0126", "malformed alias annotation", span, "not an annotation").with_help(
        "write `(a)` if the tensor is returned as a view, `(a!)` if it is written, `(a -> *)` if views of it go into a list; \
         the name is one small letter",
    )
}

/// `T??`
pub fn optional_twice(span: Span) -> Diagnostic {
    Diagnostic::error("E0127", "the type is optional twice", span, "second `?`").with_help("remove one `?`")
}

/// `T[x]`
pub fn list_length_malformed(span: Span, written: &str) -> Diagnostic {
    let label = match written.parse::<u64>() {
        Ok(0) => "a list of length 0",
        _ => "expected a length or nothing, and `]`",
    };
    Diagnostic::error("E0128", "malformed list type", span, label)
        .with_help("write `int[]` for a list of any length, or `int[2]` for one of length 2")
}

/// A returned letter that no argument has.
pub fn return_alias_unbound(span: Span, letter: char) -> Diagnostic {
    let message = format!("no argument has the alias `{letter}` that is returned");
    Diagnostic::error("E0130", message, span, "shares memory with nothing").with_help(format!(
        "annotate the argument whose memory is returned with `Tensor({letter})`, or remove the annotation here"
    ))
}

/// Returned as written, but the argument is not.
pub fn return_written_argument_not(span: Span, arg: Span, letter: char) -> Diagnostic {
    let message = format!("`{letter}` is returned as written, but its argument is not");
    Diagnostic::error("E0131", message, span, "has `!`")
        .with_secondary(arg, "has no `!`")
        .with_help(format!("write `({letter}!)` in both places if the operator writes it, else `({letter})`"))
}

/// The argument is written, the returned value says it is not.
pub fn return_not_written_argument_is(span: Span, arg: Span, letter: char) -> Diagnostic {
    let message = format!("`{letter}` is written, but is returned as if it were not");
    Diagnostic::error("E0145", message, span, "has no `!`")
        .with_secondary(arg, "has `!`")
        .with_help(format!("write `({letter}!)` in both places if the operator writes it, else `({letter})`"))
}

/// A written positional argument is returned, which only `self` and out arguments are.
pub fn written_positional_returned(span: Span, arg: Span, name: &str) -> Diagnostic {
    let message = format!("the written argument `{name}` is returned, but is not an out argument");
    Diagnostic::error("E0132", message, span, "returned here")
        .with_secondary(arg, "positional")
        .with_help(format!("put `*` before `{name}` to make it an out argument, or do not return it"))
}

/// An ordinary argument after the out arguments.
pub fn argument_after_out(span: Span, out: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` stands after an out argument");
    Diagnostic::error("E0133", message, span, "not an out argument")
        .with_secondary(out, "out arguments come last")
        .with_help(format!("move `{name}` before the out arguments"))
}

/// A default on an out argument.
pub fn out_with_default(span: Span, name: &str) -> Diagnostic {
    let message = format!("the out argument `{name}` has a default");
    Diagnostic::error("E0134", message, span, "default of an out argument")
        .with_help("remove it; callers who pass no output use the functional form")
}

/// `name_` without `self`.
pub fn inplace_without_self(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` is in-place by its name, but has no argument `self`");
    Diagnostic::error("E0135", message, span, "ends in `_`").with_help(
        "name the argument that is written `self`, as in `Tensor(a!) self`, or remove the underscore",
    )
}

/// `name_` that does not write `self`.
pub fn inplace_self_not_written(span: Span, name: &str) -> Diagnostic {
    let message = format!("`{name}` is in-place by its name, but does not write `self`");
    Diagnostic::error("E0146", message, span, "not written")
        .with_help("write `Tensor(a!) self`, or remove the underscore from the name")
}

/// `name_` that does not return `self`.
pub fn inplace_returns_other(span: Span, this: Span, name: &str, wanted: &str) -> Diagnostic {
    let message = format!("`{name}` is in-place by its name, but does not return `self`");
    Diagnostic::error("E0136", message, span, format!("expected `{wanted}`"))
        .with_secondary(this, "written in place")
        .with_help(format!("end the signature with `-> {wanted}`"))
}

/// As many returned values as out arguments.
pub fn out_count(span: Span, outs: &[Span], returned: usize, wanted: &str) -> Diagnostic {
    let plural = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    let message =
        format!("{}, but {}", plural(outs.len(), "out argument"), plural(returned, "returned value"));
    let mut diagnostic = Diagnostic::error("E0137", message, span, plural(returned, "value"));
    for out in outs {
        diagnostic = diagnostic.with_secondary(*out, "out argument");
    }
    diagnostic.with_help(format!("return every out argument: `-> {wanted}`"))
}

/// An out argument and the returned value at its place differ.
pub fn out_order(span: Span, out: Span, name: &str, wanted: &str) -> Diagnostic {
    Diagnostic::error(
        "E0147",
        format!("the out argument `{name}` is not returned in its place"),
        span,
        "another alias",
    )
    .with_secondary(out, "expected this one's annotation")
    .with_help(format!("return the out arguments in order: `-> {wanted}`"))
}
