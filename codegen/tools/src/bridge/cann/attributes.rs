//! The arguments of an operator as inputs and attributes of CANN.
//!
//! In: an operator. Out: its inputs, and its attributes with defaults; or the reason why CANN cannot have one.

use opsmith_codegen::model::{Arg, Default, Kind, Op};
use serde_json::{Value, json};

use super::dtypes::ORDER;
use super::rules::{element_type, literal};

/// Names that an attribute may not have, since tools in Python make it a parameter.
const TAKEN: &str = "False None True abs all and any as assert async await bin bool break bytes chr class complex \
    continue def del dict dir elif else eval except exec filter finally float for format from global \
    hash help hex id if import in input int is iter lambda len list map max min next nonlocal not object \
    oct open or ord pass pow print property raise range repr return reversed round set slice sorted str \
    sum super try tuple type vars while with yield zip";

/// Numbers of element types in CANN, in the order of [`ORDER`], and that of none.
const NUMBERS: [i64; 15] = [0, 1, 27, 11, 2, 6, 3, 9, 4, 7, 8, 10, 12, 16, 17];
const UNDEFINED: i64 = 28;

/// An input: one tensor, which may be optional, or any number of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefinedInput {
    /// The argument.
    pub argument: usize,
    /// `REQUIRED`, `OPTIONAL` or `DYNAMIC`; the function that reads it has this name in lower case.
    pub kind: &'static str,
}

/// An attribute.
#[derive(Clone, PartialEq, Debug)]
pub struct Attribute {
    /// The argument.
    pub argument: usize,
    /// Its name in CANN.
    pub name: String,
    /// The function of `OpAttrDef` for its type, and the type in JSON.
    pub kind: [&'static str; 2],
    /// The default in C++ and in JSON, if calls may leave it out.
    pub default: Option<(String, Value)>,
    /// The function of `cann_rules.h` that reads it; empty if rules cannot.
    pub reader: &'static str,
}

/// The inputs in order.
///
/// # Errors
/// If an argument is a list with absent tensors.
pub fn inputs(op: &Op) -> Result<Vec<DefinedInput>, String> {
    let tensors = op.args.iter().enumerate().filter(|(_, arg)| arg.ty.holds_tensors());
    let one = |(argument, arg): (usize, &Arg)| {
        let kind = match arg.ty.kind {
            Kind::OptionalTensors => {
                return Err(format!(
                    "`{}` is a list with absent tensors, which CANN does not have",
                    arg.name
                ));
            }
            Kind::Tensors => "DYNAMIC",
            _ if arg.ty.optional || arg.default.is_some() => "OPTIONAL",
            _ => "REQUIRED",
        };
        Ok(DefinedInput { argument, kind })
    };
    tensors.map(one).collect()
}

/// The attributes in order: arguments that are no tensors, without those that have a default and a type that no attribute has.
///
/// # Errors
/// If calls have to give an argument that no attribute can be.
pub fn attributes(op: &Op) -> Result<Vec<Attribute>, String> {
    let plain = op.args.iter().enumerate().filter(|(_, arg)| !arg.ty.holds_tensors());
    let mut found = Vec::new();
    for (argument, arg) in plain {
        let may_lack = arg.ty.optional || arg.default.is_some();
        let Some((kind, reader)) = kind(arg) else {
            if may_lack {
                continue;
            }
            return Err(format!("no attribute of CANN has values of `{}`, {}", arg.name, arg.ty));
        };
        let default = match &arg.default {
            Some(default) => Some(value(arg, default)?),
            None if arg.ty.optional => Some(value(arg, &Default::None)?),
            None => None,
        };
        let suffix = if TAKEN.split(' ').any(|word| word == arg.name) { "_" } else { "" };
        found.push(Attribute { argument, name: format!("{}{suffix}", arg.name), kind, default, reader });
    }
    Ok(found)
}

/// The type of an attribute, and the function that reads it; `None` if there is none.
fn kind(arg: &Arg) -> Option<([&'static str; 2], &'static str)> {
    Some(match arg.ty.kind {
        Kind::Int => (["Int", "int"], if arg.ty.optional { "optional_integer" } else { "integer" }),
        Kind::Float | Kind::Scalar => (["Float", "float"], if arg.ty.optional { "" } else { "real_number" }),
        Kind::Bool => (["Bool", "bool"], if arg.ty.optional { "" } else { "truth" }),
        Kind::Str => (["String", "string"], if arg.ty.optional { "" } else { "text" }),
        Kind::Ints(_) => {
            (["ListInt", "list_int"], if arg.ty.optional { "optional_integers" } else { "integers" })
        }
        Kind::Floats | Kind::Scalars => (["ListFloat", "list_float"], ""),
        Kind::Bools(_) => (["ListBool", "list_bool"], ""),
        Kind::DType => {
            (["Int", "int"], if arg.ty.optional { "optional_element_type" } else { "element_type" })
        }
        _ => return None,
    })
}

/// A default in C++ and in JSON. An absent integer is the least one, an absent list has no items, an absent dtype is `DT_UNDEFINED`.
fn value(arg: &Arg, default: &Default) -> Result<(String, Value), String> {
    let no_value = || format!("`{}` may be absent, which no attribute of CANN of its type is", arg.name);
    Ok(match (&arg.ty.kind, default) {
        (Kind::Int, Default::None) => ("opsmith_cann::ABSENT".to_owned(), json!(i64::MIN)),
        (Kind::DType, Default::None) => {
            (format!("static_cast<int64_t>({})", "ge::DT_UNDEFINED"), json!(UNDEFINED))
        }
        (Kind::DType, Default::DType(dtype)) => {
            let name = element_type(*dtype).ok_or_else(|| format!("CANN has no tensors of {dtype}"))?;
            let place = ORDER.iter().position(|known| known == dtype).unwrap_or_default();
            (format!("static_cast<int64_t>({name})"), json!(NUMBERS[place]))
        }
        (_, Default::None) if arg.ty.is_list() => ("{}".to_owned(), json!([])),
        (_, Default::None) => return Err(no_value()),
        (Kind::Float | Kind::Scalar, default) => {
            let number = number(arg, default)?;
            (format!("{number:?}f"), json!(number))
        }
        (Kind::Floats | Kind::Scalars, Default::List(items)) => {
            let all = items.iter().map(|item| number(arg, item)).collect::<Result<Vec<_>, _>>()?;
            let texts: Vec<String> = all.iter().map(|number| format!("{number:?}f")).collect();
            (format!("{{{}}}", texts.join(", ")), json!(all))
        }
        (Kind::Bool, Default::Bool(value)) => (value.to_string(), json!(value)),
        (Kind::Int, Default::Int(value)) => (value.to_string(), json!(value)),
        (Kind::Str, Default::Str(text)) => (literal(text), json!(text)),
        (Kind::Ints(length), Default::Int(value)) => {
            let all = vec![*value; length.unwrap_or(1) as usize];
            (format!("{{{}}}", vec![value.to_string(); all.len()].join(", ")), json!(all))
        }
        (Kind::Ints(_), Default::List(items)) => {
            let one =
                |item: &Default| if let Default::Int(value) = item { Ok(*value) } else { Err(no_value()) };
            let all = items.iter().map(one).collect::<Result<Vec<i64>, _>>()?;
            let texts: Vec<String> = all.iter().map(i64::to_string).collect();
            (format!("{{{}}}", texts.join(", ")), json!(all))
        }
        (Kind::Bools(length), Default::Bool(value)) => {
            let all = vec![*value; length.unwrap_or(1) as usize];
            (format!("{{{}}}", vec![value.to_string(); all.len()].join(", ")), json!(all))
        }
        (Kind::Bools(_), Default::List(items)) => {
            let one =
                |item: &Default| if let Default::Bool(value) = item { Ok(*value) } else { Err(no_value()) };
            let all = items.iter().map(one).collect::<Result<Vec<bool>, _>>()?;
            let texts: Vec<String> = all.iter().map(bool::to_string).collect();
            (format!("{{{}}}", texts.join(", ")), json!(all))
        }
        _ => return Err(no_value()),
    })
}

fn number(arg: &Arg, default: &Default) -> Result<f64, String> {
    match default {
        Default::Int(value) => Ok(*value as f64),
        Default::Float(value) if value.is_finite() => Ok(*value),
        Default::Bool(value) => Ok(f64::from(u8::from(*value))),
        _ => Err(format!(
            "the default of `{}` is no finite number, and those of attributes of CANN are",
            arg.name
        )),
    }
}
