//! The signature of an operator in Python, as the module of a library's definitions has it.
//!
//! In: an operator. Out: a declaration for each of its functions there. The names of parameters, and which of them have a
//! default, are those of `opsmith_python_binding::documentation`; a test compares them with the stubs of the stock package.

use opsmith_core::{MemoryFormat, python_name};

use opsmith_codegen::model::{Arg, Default, Op};

/// The declarations of an operator's functions in Python; none of an operator that is for formulas alone. An alias has the
/// parameters of the operator that is meant.
pub fn declarations(op: &Op, meant: &Op) -> Vec<String> {
    if op.facts.backward_only {
        return Vec::new();
    }
    let declaration = |text: &str, out: bool| {
        format!("{}({})", python_name(text.split('.').next().unwrap_or_default()), listed(&meant.args, out))
    };
    let mut all = vec![declaration(&op.name, op.forms.out.is_some())];
    all.extend(op.forms.inplace.as_deref().map(|text| declaration(text, false)));
    all
}

/// Parameters as Python writes them, without parentheses.
fn listed(args: &[Arg], out: bool) -> String {
    // A default before a parameter without one is none in Python.
    let required = |arg: &Arg| !arg.keyword_only && arg.default.is_none();
    let last = args.iter().rposition(required).unwrap_or(0);
    let positional = args.iter().enumerate().filter(|(_, arg)| !arg.keyword_only);
    let mut items: Vec<String> = positional
        .map(|(place, arg)| parameter(arg, arg.default.as_ref().filter(|_| place >= last)))
        .collect();
    let mut named: Vec<String> =
        args.iter().filter(|arg| arg.keyword_only).map(|arg| parameter(arg, arg.default.as_ref())).collect();
    if out {
        named.push("out=None".to_owned());
    }
    if !named.is_empty() {
        items.push("*".to_owned());
    }
    items.append(&mut named);
    items.join(", ")
}

fn parameter(arg: &Arg, default: Option<&Default>) -> String {
    // The tensor of a method has its first other name, so that no function takes `self`.
    let own = match arg.name.as_str() {
        "self" => arg.aliases.first().map_or("input", String::as_str),
        other => other,
    };
    match default {
        Some(default) => format!("{}={}", python_name(own), value(default)),
        None => python_name(own),
    }
}

fn value(default: &Default) -> String {
    match default {
        Default::None => "None".to_owned(),
        Default::Bool(true) => "True".to_owned(),
        Default::Bool(false) => "False".to_owned(),
        Default::Int(value) => value.to_string(),
        Default::Float(value) if value.is_nan() => "None".to_owned(),
        Default::Float(value) if value.is_infinite() => {
            if *value > 0.0 { "1e999" } else { "-1e999" }.to_owned()
        }
        Default::Float(value) => format!("{value:?}"),
        Default::Str(text) => format!("{text:?}"),
        Default::List(items) => format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join(", ")),
        Default::DType(dtype) => format!("{:?}", dtype.name()),
        Default::MemoryFormat(format) => {
            let named = MemoryFormat::NAMES.iter().find(|(_, known)| known == format);
            format!("{:?}", named.map_or("", |(name, _)| name))
        }
    }
}
