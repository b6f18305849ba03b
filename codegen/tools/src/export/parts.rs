//! The pieces of an operator as JSON.

use opsmith_core::DTypeSet;
use serde_json::{Map, Value, json};

use super::{by_backend, expression};
use opsmith_codegen::model::{
    Arg, Body, Combination, Default, Element, Kernel, KernelSource, Lines, Model, NotationPart, Note,
    NumberUse, Op, Output, Role, Supplied, ValueUse,
};

pub(super) fn argument(arg: &Arg) -> Value {
    let Arg {
        name,
        doc,
        ty,
        default,
        keyword_only,
        element: of,
        contiguous,
        rounded,
        number,
        constraints,
        aliases,
        value,
    } = arg;
    json!({
        "name": name,
        "doc": doc,
        "type": ty.to_string(),
        // An argument without a default has no such key: `null` is a value.
        "required": default.is_none(),
        "default": default.as_ref().map(default_value),
        "keyword_only": keyword_only,
        "element": element(*of),
        "contiguous": contiguous,
        "rounded": rounded,
        "constraints": constraints.iter().map(|constraint| constraint.to_string()).collect::<Vec<_>>(),
        "aliases": aliases,
        "number": number.map(NumberUse::word),
        "value_depends": match value {
            ValueUse::None => Value::Null,
            ValueUse::Optional => json!("optional"),
            ValueUse::Masks => json!("masks"),
            ValueUse::Required => json!("required"),
        },
    })
}

/// A result; the condition for its presence is an expression, exported by the caller.
pub(super) fn output(output: &Output, condition: Option<Value>) -> Value {
    let Output { name, doc, ty, element: of, differentiable, constant, hidden, present: _ } = output;
    json!({
        "name": name,
        "doc": doc,
        "type": ty.to_string(),
        "element": element(*of),
        "differentiable": differentiable,
        "constant": constant,
        "hidden": hidden,
        "present": condition,
    })
}

/// A row of an allowed combination of dtypes.
pub(super) fn combination(row: &Combination, op: &Op) -> Value {
    let Combination { inputs, outputs } = row;
    json!({
        "inputs": inputs.iter().map(|(argument, dtype)| json!({
            "argument": op.args[*argument].name, "dtype": dtype.name(),
        })).collect::<Vec<_>>(),
        "outputs": outputs.iter().map(|dtype| dtype.name()).collect::<Vec<_>>(),
    })
}

/// A default as a JSON value.
pub(crate) fn default_value(default: &Default) -> Value {
    match default {
        Default::None => Value::Null,
        Default::Bool(value) => json!(value),
        Default::Int(value) => json!(value),
        Default::Float(value) if value.is_finite() => json!(value),
        Default::Float(value) => json!(value.to_string()),
        Default::Str(text) => json!(text),
        Default::List(items) => items.iter().map(default_value).collect(),
        Default::DType(dtype) => json!(dtype.name()),
        Default::MemoryFormat(format) => json!(format.ident()),
    }
}

/// The element type that kernels receive for a tensor.
fn element(element: Element) -> Value {
    match element {
        Element::NotTensor => Value::Null,
        Element::Dispatch => json!({ "is": "compute" }),
        Element::Real => json!({ "is": "real part of compute" }),
        Element::Opmath => json!({ "is": "opmath of compute" }),
        Element::Any => json!({ "is": "any" }),
        Element::Fixed { kernel: dtype, accepted } => {
            json!({ "is": "fixed", "dtype": dtype.name(), "accepted": dtypes(accepted) })
        }
    }
}

pub(super) fn body(body: &Body, op: &Op, model: &Model) -> Value {
    let Body { pointwise, kernels, view, composite, host, dtypes: supported, recursive: _, device_loops: _ } =
        body;
    json!({
        "pointwise": pointwise.as_ref().map(|expr| expression(expr, op, model)),
        "kernels": kernels.iter().map(|kernel| self::kernel(kernel, op)).collect::<Vec<_>>(),
        "view": view,
        "decompose": composite.as_ref().map(|expr| expression(expr, op, model)),
        "host": host,
        "dtypes": by_backend(supported, |set| dtypes(*set)),
    })
}

fn kernel(kernel: &Kernel, op: &Op) -> Value {
    let Kernel { backend, source, text, span: _, is_built: _, place: _ } = kernel;
    let source = match source {
        KernelSource::Rust { path, arguments } => json!({
            "rust": path,
            "arguments": arguments.iter().map(|index| op.args[*index].name.as_str()).collect::<Vec<_>>(),
        }),
        KernelSource::Foreign { file, symbol } => {
            json!({ "file": file.display().to_string().replace('\\', "/"), "symbol": symbol })
        }
        KernelSource::Aot { file, symbol } => json!({
            "file": file.display().to_string().replace('\\', "/"), "symbol": symbol, "loaded": true,
        }),
    };
    json!({ "backend": backend.key(), "text": text, "source": source })
}

pub(super) fn role(role: Role) -> &'static str {
    Role::ALL.iter().find(|(known, _)| *known == role).map_or("", |(_, name)| name)
}

pub(super) fn supplied(supplied: &Supplied) -> Value {
    let Supplied { kernels, declared, writes } = supplied;
    json!({
        "kernels": kernels.iter().map(|kernel| json!({
            "form": kernel.form, "backend": kernel.backend, "function": kernel.function,
        })).collect::<Vec<_>>(),
        "declared": declared,
        "writes": writes,
    })
}

/// A part of the formula that documents write for a call.
pub(super) fn notation(part: &NotationPart, args: &[Arg]) -> Value {
    match part {
        NotationPart::Argument(index) => json!({ "argument": args[*index].name }),
        NotationPart::Subscript(index) => json!({ "subscript": args[*index].name }),
        NotationPart::Exponent(index) => json!({ "exponent": args[*index].name }),
        NotationPart::Superscript(text) => json!({ "superscript": text }),
        NotationPart::Symbol(text) => json!({ "symbol": text }),
    }
}

/// The lines that an operator computes each alone.
pub(super) fn lines(lines: Lines, args: &[Arg]) -> Value {
    match lines {
        Lines::Along(index) => json!({ "along": args[usize::from(index)].name }),
        Lines::Last(index) => json!({ "last": args[usize::from(index)].name }),
    }
}

/// A value kept as written.
pub(super) fn note(note: &Note) -> Value {
    match note {
        Note::Null => Value::Null,
        Note::Text(text) => json!(text),
        Note::List(items) => items.iter().map(self::note).collect(),
        Note::Map(entries) => {
            let entries: Map<String, Value> =
                entries.iter().map(|(key, value)| (key.clone(), self::note(value))).collect();
            Value::Object(entries)
        }
    }
}

/// The names of a set's dtypes, in their order.
pub(super) fn dtypes(set: DTypeSet) -> Value {
    set.iter().map(|dtype| dtype.name()).collect()
}
