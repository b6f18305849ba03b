//! The names of generated code, as text: what emitters write and the checks compare.

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

/// Functions of the generated library that no operator may have, with what they do.
pub const RESERVED_FUNCTIONS: [(&str, &str); 2] =
    [("call", "calls operators by name"), ("as_tensor", "belongs to the trait of methods")];

/// The trait of methods of the stock library.
pub const STOCK_METHODS: &str = "TensorOps";

/// The end of the name of any other library's trait of methods.
const METHODS_END: &str = "Ext";

/// The end of the name of a struct of options.
const OPTIONS_END: &str = "Options";

/// Types that no enum may have the name of: the generated library's own, and those that Rust's prelude gives
/// to every module, since generated code and that of users would find the enum in their place.
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

/// Whether no enum may have a name of a type.
pub fn is_reserved_type(name: &str) -> bool {
    RESERVED_TYPES.contains(&name) || name.ends_with(METHODS_END) || name.ends_with(OPTIONS_END)
}

/// The trait of methods of a library that is not the stock one: `MyOpsExt` for `my-ops`, so that one program may import
/// those of several libraries.
pub fn methods(library: &str) -> String {
    format!("{}{METHODS_END}", camel(&library.replace('-', "_")))
}

/// The names of an integer argument's values, if they have some; they become a Rust enum.
pub fn named_values(arg: &Arg) -> Option<&[(Cow<'static, str>, i64)]> {
    arg.constraints.iter().find_map(|constraint| match constraint {
        Constraint::Named(names) => Some(&names[..]),
        _ => None,
    })
}

/// What generated code calls an operator's own items: the function that takes every argument, and the
/// definition. The names of the rest begin with the stem.
pub fn identifiers(name: &str) -> [String; 2] {
    let stem = stem(name);
    [identifier(&stem), definition(&stem)]
}

/// The definition of an operator of that stem: `ADD_TENSOR`. Capital letters tell it from every parameter.
fn definition(stem: &str) -> String {
    match stem.contains(|letter: char| letter.is_ascii_lowercase()) {
        true => stem.to_uppercase(),
        false => format!("OP{stem}"),
    }
}

/// What generated code calls a name that an expression binds: itself, unless it could be taken for something
/// else there. Capital and small letters tell the new name from every parameter and every definition.
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

/// A full name in snake case, as identifiers and file names want it: `add_tensor` for `add.Tensor`.
pub fn stem(name: &str) -> String {
    name.replace("::", "_").replace('.', "_").to_lowercase()
}

/// The function's parameter for an argument, in snake case.
pub fn parameter(argument: &str) -> String {
    identifier(&argument.to_lowercase())
}

/// A name with an underscore behind it if it is a keyword of Rust.
pub(crate) fn identifier(name: &str) -> String {
    match crate::expr::path::is_identifier(name) {
        true => name.to_owned(),
        false => format!("{name}_"),
    }
}

/// Whether some arguments may be left out.
pub fn has_options(op: &Op) -> bool {
    op.args.iter().any(|arg| arg.default.is_some())
}

/// The argument that is a tensor or a number in a form, because the function is that of two overloads.
pub fn operand(op: &Op, form: Form) -> Option<(usize, OpId)> {
    let merged = op.merged?;
    let in_both = match form {
        Form::Functional => true,
        Form::Inplace => merged.inplace,
        Form::Out => merged.out,
    };
    in_both.then_some((merged.argument, merged.with))
}

/// Whether a form's function is written at another overload, the one that takes a tensor where this takes a number.
pub fn stands_elsewhere(op: &Op, form: Form) -> bool {
    op.merged.is_some_and(|merged| !merged.leads) && operand(op, form).is_some()
}

/// Every public function of an operator: its form, and whether it takes options.
pub fn forms(op: &Op) -> Vec<(Form, bool)> {
    // Only formulas call what is declared.
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

/// The same for a Rust name alone.
pub fn function_of(rust_name: &str, form: Form, with_options: bool) -> String {
    // A keyword's underscore makes way for a suffix: `where_`, but `where_out`.
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

/// The same for a Rust name alone.
pub fn options_of(rust_name: &str) -> String {
    format!("{}{OPTIONS_END}", camel(rust_name))
}

/// A name in camel case, as types and variants want it: `SumDim` for `sum_dim`.
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
