//! Mistakes in the declarations of an entry: arguments, results, forms, roles.

use super::super::{Diagnostic, Span};
use super::near_or_all;

/// A signature of a form that is generated, not declared.
pub fn not_functional(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0402", format!("`{name}` writes its arguments"), span, "not a functional form")
        .with_help(
            "declare the form that returns new tensors and add `variants: [functional, inplace, out]`; \
         the others are generated from it",
        )
}

/// `Tensor(a)` without a view.
pub fn alias_without_view(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error(
        "E0403",
        format!("`{name}` returns its argument's memory, but is no view"),
        span,
        "shared memory",
    )
    .with_help("add `view: true` and a layout function, `dispatch: {View: …}`, or remove the annotation")
}

/// A default without a value in the runtime.
pub fn default_unsupported(span: Span, written: &str, ty: &str) -> Diagnostic {
    Diagnostic::error("E0404", format!("`{written}` is not a default for `{ty}`"), span, "of another type")
        .with_help("remove the default, so that callers give the argument, or make the type optional: `…?` with `=None`")
}

/// A schema type that the runtime does not support.
pub fn type_unsupported(span: Span, ty: &str) -> Diagnostic {
    Diagnostic::error("E0405", format!("the runtime has no values of type `{ty}`"), span, "unsupported type")
        .with_help(
            "use Tensor, Scalar, int, float, bool, str, ScalarType, Device, Layout, MemoryFormat, Generator, \
             an optional of them, or a list of tensors, numbers, texts or dtypes; of the last three also a \
             list of lists, without lengths: `int[][]`",
        )
}

/// More arguments than the bit sets of the runtime hold.
pub fn too_many_arguments(span: Span, name: &str, count: usize, limit: usize) -> Diagnostic {
    let message = format!("`{name}` has {count} arguments, at most {limit} are possible");
    Diagnostic::error("E0418", message, span, "one too many")
        .with_help("give values of one kind as a list: `Tensor[] tensors`, `int[] sizes`")
}

/// `types` or `names` that is not a mapping.
pub fn not_a_mapping(span: Span, key: &str, example: &str) -> Diagnostic {
    Diagnostic::error("E0406", format!("`{key}` is a mapping"), span, "not a mapping")
        .with_help(format!("write `{key}: {example}`"))
}

/// A nested value that is not text, in a key with several kinds of values.
pub fn nested_not_text(span: Span, key: &str, example: &str) -> Diagnostic {
    Diagnostic::error("E0425", format!("`{key}` holds something other than text"), span, "not text")
        .with_help(format!("write `{key}: {example}`; text that starts with a bracket must be quoted"))
}

/// A dtype or set of dtypes that does not exist.
pub fn dtype_unknown(span: Span, name: &str, known: &[&str], hint: &str) -> Diagnostic {
    let foreign = match name {
        "float" | "f32" | "Float" | "single" => Some("float32"),
        "double" | "f64" | "Double" => Some("float64"),
        "half" | "f16" | "Half" => Some("float16"),
        "bf16" | "BFloat16" => Some("bfloat16"),
        "int" | "i32" | "Int" => Some("int32"),
        "long" | "i64" | "Long" => Some("int64"),
        "byte" | "u8" | "Byte" => Some("uint8"),
        "char" | "i8" | "Char" => Some("int8"),
        "short" | "i16" | "Short" => Some("int16"),
        "boolean" | "Bool" => Some("bool"),
        _ => None,
    };
    let near = foreign.or_else(|| super::super::nearest(name, known.iter().copied()));
    Diagnostic::error("E0407", format!("there is no dtype `{name}`"), span, "unknown dtype")
        .with_help(near.map_or_else(|| hint.into(), super::did_you_mean))
}

/// A key that refers to an unknown argument or one that is not a tensor.
pub fn tensor_argument_unknown(
    span: Span,
    op: &str,
    name: &str,
    ty: Option<String>,
    tensors: &[&str],
) -> Diagnostic {
    let label = ty.map_or_else(|| "no such argument".to_owned(), |ty| format!("its type is `{ty}`"));
    Diagnostic::error("E0408", format!("`{op}` has no tensor argument `{name}`"), span, label)
        .with_help(near_or_all(name, tensors, "tensor arguments"))
}

/// A key that refers to an unknown argument or one that is not a number.
pub fn number_argument_unknown(span: Span, op: &str, name: &str, numbers: &[&str]) -> Diagnostic {
    Diagnostic::error("E0426", format!("`{op}` has no number `{name}`"), span, "not a `Scalar` or `float`")
        .with_help(near_or_all(name, numbers, "numbers"))
}

/// Lines by an argument that numbers no dimensions, or gives no sizes.
pub fn lines_argument(span: Span, op: &str, name: &str, known: &[&str]) -> Diagnostic {
    let message = format!("no lines follow from an argument `{name}` of `{op}`");
    Diagnostic::error("E0711", message, span, "not an `int` or `int[]`; within `last(…)`, not an `int[]`")
        .with_help(near_or_all(name, known, "arguments that lines may follow from"))
}

/// A key that refers to an unknown argument.
pub fn argument_unknown(span: Span, op: &str, name: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error("E0427", format!("`{op}` has no argument `{name}`"), span, "no such argument")
        .with_help(near_or_all(name, known, "arguments"))
}

/// A description of neither an argument nor a named result.
pub fn description_unknown(span: Span, op: &str, name: &str, known: &[&str]) -> Diagnostic {
    let message = format!("`{op}` has neither an argument nor a result `{name}`");
    Diagnostic::error("E0500", message, span, "described, but not in the signature").with_help(near_or_all(
        name,
        known,
        "arguments and results",
    ))
}

/// An operator symbol that does not exist.
pub fn symbol_unknown(span: Span, spelling: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error("E0409", format!("`{spelling}` is not an operator"), span, "unknown symbol")
        .with_help(format!("the operators are {}; `reversed -` swaps the operands", known.join("  ")))
}

/// A symbol on an operator with an unsuitable signature.
pub fn symbol_misfit(span: Span, symbol: &str, signature: Span, wanted: &str) -> Diagnostic {
    Diagnostic::error(
        "E0415",
        format!("`{symbol}` cannot call this operator"),
        span,
        "does not fit the signature",
    )
    .with_secondary(signature, "declared here")
    .with_help(format!("`{symbol}` calls operators like `{wanted}`; further arguments need defaults"))
}

/// One symbol twice for the same operands.
pub fn symbol_twice(span: Span, symbol: &str, first: Span) -> Diagnostic {
    let message = format!("`{symbol}` stands for two operators with the same operands");
    Diagnostic::error("E0416", message, span, "declared again here")
        .with_secondary(first, "first declared here")
        .with_help("remove one of them")
}

/// A role that does not exist.
pub fn role_unknown(span: Span, name: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error("E0410", format!("there is no role `{name}`"), span, "unknown role")
        .with_help(near_or_all(name, known, "roles"))
}

/// A role on an operator with an unsuitable signature.
pub fn role_misfit(span: Span, role: &str, signature: Span, wanted: &str) -> Diagnostic {
    Diagnostic::error(
        "E0417",
        format!("this operator cannot play the role `{role}`"),
        span,
        "does not fit the signature",
    )
    .with_secondary(signature, "declared here")
    .with_help(format!("the runtime calls it like `{wanted}`; further arguments need defaults"))
}

/// A role with two operators.
pub fn role_twice(span: Span, role: &str, first: Span) -> Diagnostic {
    Diagnostic::error("E0436", format!("two operators play the role `{role}`"), span, "again here")
        .with_secondary(first, "first here")
        .with_help("remove one of them")
}

/// An in-place form where it is impossible.
pub fn inplace_impossible(span: Span, name: &str, reason: &str) -> Diagnostic {
    Diagnostic::error("E0411", format!("`{name}` cannot have an in-place form"), span, reason).with_help(
        "an in-place form writes the one result, a tensor, into the first argument; remove `inplace`, or say which result goes into which argument: `inplace: {self: 0, m: 1}`",
    )
}

/// An out form where it is impossible.
pub fn out_impossible(span: Span, name: &str, reason: &str) -> Diagnostic {
    Diagnostic::error("E0428", format!("`{name}` cannot have an out form"), span, reason)
        .with_help("an out form writes every result into a given tensor; remove `out`")
}

/// A form that does not exist.
pub fn form_unknown(span: Span, name: &str, known: &[&str]) -> Diagnostic {
    let foreign = match name {
        "function" | "method" => Some(
            "remove it: the functional form is always there, and a method comes with the argument `self`"
                .into(),
        ),
        _ => None,
    };
    Diagnostic::error("E0412", format!("there is no form `{name}`"), span, "unknown form")
        .with_help(foreign.unwrap_or_else(|| near_or_all(name, known, "forms")))
}

/// A name for an unknown form.
pub fn form_unnamed(span: Span, key: &str) -> Diagnostic {
    Diagnostic::error(
        "E0429",
        format!("the form `{key}` has no name of its own"),
        span,
        "not a form with a name",
    )
    .with_help("name `inplace` or `out`; the functional form has the name of the signature")
}

/// A name for a form that is not generated.
pub fn form_absent(span: Span, key: &str) -> Diagnostic {
    Diagnostic::error("E0413", format!("there is no {key} form to name"), span, "not generated")
        .with_help(format!("add `{key}` to `variants`"))
}

/// `output_differentiability` of another length.
pub fn flag_count(span: Span, name: &str, outputs: usize, flags: usize) -> Diagnostic {
    let plural = if outputs == 1 { "" } else { "s" };
    let message = format!("`{name}` has {outputs} output{plural}");
    let label = if flags == 1 { "1 flag given".to_owned() } else { format!("{flags} flags given") };
    Diagnostic::error("E0414", message, span, label)
        .with_help("list `true` or `false` for each output, in order")
}

/// A value that is not a flag.
pub fn flag_malformed(span: Span) -> Diagnostic {
    Diagnostic::error("E0435", "this is not a flag", span, "neither `true`, `false` nor `constant`")
        .with_help("write `true` if the output can have a gradient, else `false`; `constant` if no input with a gradient changes it")
}

/// `-> ()` of a functional form.
pub fn returns_nothing(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0419", format!("`{name}` returns nothing"), span, "no result")
        .with_help("an operator returns tensors, or one value that is not a tensor: `-> Tensor`, `-> bool`")
}

/// Results that generated code cannot return.
pub fn results_unsupported(span: Span, name: &str, label: &str) -> Diagnostic {
    Diagnostic::error("E0437", format!("the results of `{name}` are not supported"), span, label).with_help(
        "an operator returns one or several `Tensor` (`Tensor?` with `present:`), one `Tensor[]`, or one bool, int, float, Scalar, str, \
         int[] or ScalarType",
    )
}

/// A malformed version in `since`.
pub fn version_malformed(span: Span, text: &str) -> Diagnostic {
    Diagnostic::error("E0542", format!("`{text}` is not a version"), span, "not numbers with points")
        .with_help("write the version of this library, such as `0.2` or `1.4.0`")
}

/// A malformed tag.
pub fn tag_malformed(span: Span, text: &str) -> Diagnostic {
    Diagnostic::error("E0543", format!("`{text}` is not a tag"), span, "not a word").with_help(
        "a tag is a word of letters, digits, `_` and `-` that starts with a letter: `tags: [linear-algebra]`",
    )
}
