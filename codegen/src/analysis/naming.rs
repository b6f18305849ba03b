//! The names of generated code, as text, for emitters and for the checks of clashes.

use std::borrow::Cow;

use opsmith_core::constraint::Constraint;

use crate::model::{Arg, Op, OpId};

/// The forms of an operator as functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Returns new tensors.
    Functional,
    /// Writes into the first argument.
    Inplace,
    /// Writes into given tensors.
    Out,
}

/// The parameter that takes the struct of options.
pub const OPTIONS_PARAMETER: &str = "options";

/// Functions of the struct of options that a setter must not hide.
pub const RESERVED_OPTIONS: [&str; 2] = ["new", "default"];

/// Functions of the generated library whose names no operator may have, with their purpose.
pub const RESERVED_FUNCTIONS: [(&str, &str); 2] =
    [("call", "calls operators by name"), ("as_tensor", "belongs to the trait of methods")];

/// The trait of methods of the stock library.
pub const STOCK_METHODS: &str = "TensorOps";

/// The end of the name of any other library's trait of methods.
const METHODS_END: &str = "Ext";

/// The end of the name of a struct of options.
const OPTIONS_END: &str = "Options";

/// Type names that no enum may have: the generated library's own types, and those of Rust's prelude, since generated
/// and user code would find the enum instead.
const RESERVED_TYPES: &[&str] = &[
    STOCK_METHODS,
    "Self",
    "AsMut",
    "AsRef",
    "AsyncFn",
    "AsyncFnMut",
    "AsyncFnOnce",
    "Box",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "DoubleEndedIterator",
    "Drop",
    "Eq",
    "Err",
    "ExactSizeIterator",
    "Extend",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "FromIterator",
    "Future",
    "Hash",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Iterator",
    "None",
    "Ok",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Result",
    "Send",
    "Sized",
    "Some",
    "String",
    "Sync",
    "ToOwned",
    "ToString",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Vec",
];

/// Whether a type name is reserved, so that no enum may have it.
pub fn is_reserved_type(name: &str) -> bool {
    RESERVED_TYPES.contains(&name) || name.ends_with(METHODS_END) || name.ends_with(OPTIONS_END)
}

/// The trait of methods of a library that is not the stock one: `MyOpsExt` for `my-ops`, so that one program may import
/// those of several libraries.
pub fn methods(library: &str) -> String {
    format!("{}{METHODS_END}", camel(&library.replace('-', "_")))
}

/// The names of an integer argument's values, if it has any; they become a Rust enum.
pub fn named_values(arg: &Arg) -> Option<&[(Cow<'static, str>, i64)]> {
    arg.constraints.iter().find_map(|constraint| match constraint {
        Constraint::Named(names) => Some(&names[..]),
        _ => None,
    })
}

/// The generated identifiers of an operator's own items: the function with all arguments, and the definition. The names
/// of the rest begin with the stem.
pub fn identifiers(name: &str) -> [String; 2] {
    let stem = stem(name);
    [identifier(&stem), definition(&stem)]
}

/// The definition of an operator of that stem: `ADD_TENSOR`. Upper case distinguishes it from every parameter.
fn definition(stem: &str) -> String {
    match stem.contains(|letter: char| letter.is_ascii_lowercase()) {
        true => stem.to_uppercase(),
        false => format!("OP{stem}"),
    }
}

/// The generated identifier of a name that an expression binds: the name itself, unless that is ambiguous. The mixed
/// case of a new name distinguishes it from every parameter and every definition.
pub fn local(op: &Op, name: &str) -> String {
    let is_plain = crate::expr::path::is_identifier(name)
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.contains(|letter: char| {
            !letter.is_ascii_lowercase() && !letter.is_ascii_digit() && letter != '_'
        })
        && !op.args.iter().any(|arg| arg.name != name && parameter(&arg.name) == name);
    match is_plain {
        true => name.to_owned(),
        false => format!("Local_{name}"),
    }
}

/// A full name in snake case, for identifiers and file names: `add_tensor` for `add.Tensor`.
pub fn stem(name: &str) -> String {
    name.replace("::", "_").replace('.', "_").to_lowercase()
}

/// The function's parameter for an argument, in snake case.
pub fn parameter(argument: &str) -> String {
    identifier(&argument.to_lowercase())
}

/// A name, with an underscore appended if it is a Rust keyword.
pub(crate) fn identifier(name: &str) -> String {
    match crate::expr::path::is_identifier(name) {
        true => name.to_owned(),
        false => format!("{name}_"),
    }
}

/// Whether some arguments are optional in calls.
pub fn has_options(op: &Op) -> bool {
    op.args.iter().any(|arg| arg.default.is_some())
}

/// The argument that accepts a tensor or a number in a form, because two overloads share the function.
pub fn operand(op: &Op, form: Form) -> Option<(usize, OpId)> {
    let merged = op.merged?;
    let in_both = match form {
        Form::Functional => true,
        Form::Inplace => merged.inplace,
        Form::Out => merged.out,
    };
    in_both.then_some((merged.argument, merged.with))
}

/// Whether a form's function belongs to another overload, which takes a tensor where this one takes a number.
pub fn stands_elsewhere(op: &Op, form: Form) -> bool {
    op.merged.is_some_and(|merged| !merged.leads) && operand(op, form).is_some()
}

/// Every public function of an operator: its form, and whether it takes options.
pub fn forms(op: &Op) -> Vec<(Form, bool)> {
    // Only formulas call a declared operator.
    if op.supplied.as_ref().is_some_and(|supplied| supplied.declared) {
        return Vec::new();
    }
    let there = [
        (Form::Functional, true),
        (Form::Inplace, op.forms.inplace.is_some()),
        (Form::Out, op.forms.out.is_some()),
    ];
    let mut found = Vec::new();
    for (form, _) in there.into_iter().filter(|(_, there)| *there) {
        found.push((form, false));
        if has_options(op) {
            found.push((form, true));
        }
    }
    found
}

/// `add`, `add_with`, `add_`, `add_with_`, `add_out`, `add_with_out`.
pub fn function(op: &Op, form: Form, with_options: bool) -> String {
    function_of(&op.rust_name, form, with_options)
}

/// As [`function`], from a Rust name.
pub fn function_of(rust_name: &str, form: Form, with_options: bool) -> String {
    // A suffix replaces a keyword's underscore: `where_`, but `where_out`.
    let base = rust_name.trim_end_matches('_');
    let with = if with_options { "_with" } else { "" };
    let form = match form {
        Form::Functional => "",
        Form::Inplace => "_",
        Form::Out => "_out",
    };
    identifier(&format!("{base}{with}{form}"))
}

/// The parameters that the out form writes.
pub fn out_parameters(op: &Op) -> Vec<String> {
    match op.visible() {
        [_] => vec!["out".to_owned()],
        several => several
            .iter()
            .enumerate()
            .map(|(index, output)| match &output.name {
                Some(name) => format!("{}_out", name.to_lowercase()),
                None => format!("out{index}"),
            })
            .collect(),
    }
}

/// The Rust function of an operator without `rust_name`: the base name, with the overload added unless it is the
/// plain one for tensors.
pub fn usual_function(base: &str, overload: &str) -> String {
    let (base, overload) = (base.to_lowercase(), overload.to_lowercase());
    match overload.as_str() {
        "" | "tensor" | "self" | "default" if crate::expr::path::is_identifier(&base) => base,
        "" => format!("{base}_"),
        overload => format!("{base}_{overload}"),
    }
}

/// The struct of an operator's options: `SumDimOptions` for `sum_dim`.
pub fn options(op: &Op) -> String {
    options_of(&op.rust_name)
}

/// As [`options`], from a Rust name.
pub fn options_of(rust_name: &str) -> String {
    format!("{}{OPTIONS_END}", camel(rust_name))
}

/// A name in camel case, for types and variants: `SumDim` for `sum_dim`.
pub fn camel(name: &str) -> String {
    let capitalised = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_uppercase().collect::<String>());
        first.unwrap_or_default() + letters.as_str()
    };
    let camel: String = name.split('_').filter(|word| !word.is_empty()).map(capitalised).collect();
    // A name starts with a letter.
    match camel.starts_with(|first: char| first.is_ascii_alphabetic()) {
        true => camel,
        false => format!("X{camel}"),
    }
}

/// Whether a name is a keyword of C or C++.
pub fn is_c_keyword(name: &str) -> bool {
    const WORDS: &str = "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t \
        char16_t char32_t class compl concept const consteval constexpr constinit const_cast continue co_await \
        co_return co_yield decltype default delete do double dynamic_cast else enum explicit export extern \
        false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr \
        operator or or_eq private protected public register reinterpret_cast requires restrict return short \
        signed sizeof static static_assert static_cast struct switch template this thread_local throw true \
        try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq";
    WORDS.split_whitespace().any(|word| word == name)
}
