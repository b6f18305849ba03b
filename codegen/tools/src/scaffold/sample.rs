//! A call of a new operator: as a sample of its entry, and as a test.

use minijinja::context;

use super::{Refusal, render};
use opsmith_codegen::analysis::naming;
use opsmith_codegen::lower::types;
use opsmith_codegen::model::{Arg, Element, ItemKind, Kind, Op, Ty};
use opsmith_codegen::spec::schema::Schema;

/// The value of `samples` of an entry: one call, with optional arguments omitted. `None` if an argument has a type that
/// samples do not support.
pub(super) fn entry(schema: &Schema) -> Option<String> {
    let required = schema.args.iter().filter(|arg| arg.default.is_none() && !arg.ty.is_optional());
    let values =
        required.map(|arg| Some(format!("{}: {}", arg.name, sample_value(&types::of_signature(&arg.ty)?)?)));
    Some(format!("[{{{}}}]", values.collect::<Option<Vec<_>>>()?.join(", ")))
}

/// A value in a sample's notation.
fn sample_value(ty: &Ty) -> Option<String> {
    Some(match &ty.kind {
        Kind::Tensor => "\"spread(2, 3)\"".to_owned(),
        Kind::Tensors => "[\"spread(2, 3)\", \"spread(2, 3)\"]".to_owned(),
        Kind::OptionalTensors => "[\"spread(2, 3)\"]".to_owned(),
        Kind::Bool => "true".to_owned(),
        Kind::Int => "1".to_owned(),
        Kind::Float => "0.5".to_owned(),
        Kind::Scalar => "2.0".to_owned(),
        Kind::Str => "text".to_owned(),
        Kind::DType => "float32".to_owned(),
        Kind::Ints(Some(length)) | Kind::Bools(Some(length)) => {
            let item = sample_value(&ty.kind.item()?)?;
            format!("[{}]", vec![item; *length as usize].join(", "))
        }
        list => format!("[{}]", sample_value(&list.item()?)?),
    })
}

/// The text of a test file. Arguments with defaults are omitted.
pub(super) fn test(op: &Op, stem: &str, library: &str) -> Result<String, Refusal> {
    let mut imports = std::collections::BTreeSet::new();
    let (mut bindings, mut arguments) = (Vec::new(), Vec::new());
    for arg in op.args.iter().filter(|arg| arg.default.is_none()) {
        let name = naming::parameter(&arg.name);
        let (value, passed) = value(arg, &name);
        for import in ["Tensor", "DType", "Device", "MemoryFormat", "Generator", "Scalar"] {
            if value.contains(import) {
                imports.insert(import);
            }
        }
        bindings.push(format!("let {name}{} = {value};", annotation(arg)));
        arguments.push(passed);
    }
    let compared = op
        .args
        .iter()
        .find(|arg| arg.ty.is_tensor())
        .filter(|_| op.outputs.len() == 1 && op.outputs[0].ty.is_tensor());
    render(
        include_str!("templates/op/test.rs.j2"),
        context! {
            name => op.name.as_str(),
            function => stem,
            library,
            rust_name => op.rust_name.as_str(),
            bindings,
            arguments => arguments.join(", "),
            compared => compared.map(|arg| naming::parameter(&arg.name)),
            imports => imports.iter().map(|name| format!(", {name}")).collect::<String>(),
        },
    )
}

/// A type annotation where the value alone is ambiguous.
fn annotation(arg: &Arg) -> &'static str {
    match (&arg.ty.kind, arg.ty.optional) {
        (Kind::Tensors, false) => ": [Tensor; 2]",
        (Kind::OptionalTensors, false) => ": [Option<Tensor>; 1]",
        _ => "",
    }
}

/// A value of an argument's type, and the expression that passes it.
fn value(arg: &Arg, name: &str) -> (String, String) {
    let tensor = match arg.element {
        Element::Fixed { kernel, .. } if kernel.is_int() => {
            "Tensor::from_slice(&[0i64, 1, 0, 1, 1, 0], &[2, 3])?"
        }
        Element::Fixed { kernel, .. } if !kernel.is_float() && !kernel.is_complex() => {
            "Tensor::from_slice(&[true, false, true, true, false, false], &[2, 3])?"
        }
        _ => "Tensor::from_slice(&[0.5f32, -1.0, 2.0, 3.5, 0.0, -2.25], &[2, 3])?",
    };
    let plain = |text: &str| (text.to_owned(), name.to_owned());
    let borrowed = |text: &str| (text.to_owned(), format!("&{name}"));
    if arg.ty.optional {
        return plain("None");
    }
    match arg.ty.kind {
        Kind::Tensor => borrowed(tensor),
        Kind::Tensors => (format!("[{tensor}, {tensor}]"), format!("&{name}")),
        Kind::OptionalTensors => (format!("[Some({tensor})]"), format!("&{name}")),
        Kind::Bool => plain("true"),
        Kind::Int => plain("1"),
        Kind::Float => plain("0.5"),
        Kind::Scalar => plain("2.0"),
        Kind::Str => plain("\"text\""),
        Kind::Ints(length) => plain(&format!("[{}]", vec!["1"; length.unwrap_or(1) as usize].join(", "))),
        Kind::Floats => borrowed("[0.5]"),
        Kind::Bools(length) => {
            borrowed(&format!("[{}]", vec!["true"; length.unwrap_or(1) as usize].join(", ")))
        }
        Kind::Scalars => borrowed("[opsmith::Scalar::Float(2.0)]"),
        Kind::Strs => borrowed("[\"text\"]"),
        Kind::DTypes => borrowed("[DType::F32]"),
        Kind::Lists(item) => plain(match item {
            ItemKind::Bool => "[[true]]",
            ItemKind::Int => "[[1, 2], [3, 4]]",
            ItemKind::Float => "[[0.5, 1.5]]",
            ItemKind::Scalar => "[[opsmith::Scalar::Float(2.0)]]",
            ItemKind::Str => "[[\"text\"]]",
            ItemKind::DType => "[[DType::F32]]",
        }),
        Kind::DType => plain("DType::F32"),
        Kind::Device => plain("Device::CPU"),
        Kind::MemoryFormat => plain("MemoryFormat::Contiguous"),
        Kind::MemoryLayout => plain("opsmith::runtime::MemoryLayout::Strided"),
        Kind::Generator => borrowed("Generator::new(0)"),
        _ => plain("()"),
    }
}
