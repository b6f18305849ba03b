//! The folder for ONNX Runtime.
//!
//! In: operators of the model. Out: a library of custom operators in C++, with the part of ONNX Runtime's C interface that it needs, and
//! a package of Python with the library's path and a function that makes nodes.

use minijinja::{Value, context};
use opsmith_codegen::model::expr::{Expr, ExprKind};
use opsmith_codegen::model::{Kind, Model, Op};
use opsmith_core::DType;

use super::{Chosen, render_all};
use crate::scaffold::Refusal;

const FILES: [(&str, &str); 6] = [
    ("src/LIBRARY_onnxruntime.cpp", include_str!("templates/onnxruntime.cpp")),
    ("src/onnxruntime_interface.h", include_str!("templates/onnxruntime_interface.h")),
    ("setup.py", include_str!("templates/native_setup.py.j2")),
    ("pyproject.toml", include_str!("templates/native_pyproject.toml.j2")),
    ("LIBRARY_onnxruntime/__init__.py", include_str!("templates/onnxruntime_init.py.j2")),
    ("README.md", include_str!("templates/onnxruntime_readme.md.j2")),
];

/// The reason for which ONNX Runtime cannot have an operator that other frameworks can: an argument that calls have to give, and no
/// attribute can be. `None` if there is none.
pub fn refusal(op: &Op) -> Option<String> {
    let is_missing = |kind: &Kind| matches!(kind, Kind::Strs | Kind::DTypes | Kind::Generator);
    let found =
        op.args.iter().find(|arg| is_missing(&arg.ty.kind) && arg.default.is_none() && !arg.ty.optional)?;
    Some(format!("no attribute of ONNX has values of `{}`, {}", found.name, found.ty))
}

/// The number of an element type in ONNX; 0 without one.
fn element_type(dtype: DType) -> u8 {
    match dtype {
        DType::F32 => 1,
        DType::U8 => 2,
        DType::I8 => 3,
        DType::U16 => 4,
        DType::I16 => 5,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::Bool => 9,
        DType::F16 => 10,
        DType::F64 => 11,
        DType::U32 => 12,
        DType::U64 => 13,
        DType::BF16 => 16,
        _ => 0,
    }
}

/// The dtype that a rule gives whatever the arguments are.
fn constant(rule: &Expr) -> Option<DType> {
    match &rule.kind {
        ExprKind::DType(dtype) => Some(*dtype),
        ExprKind::Convert(inner) => constant(inner),
        _ => None,
    }
}

/// The number in ONNX of the element type of each result, 0 for one that depends on arguments.
fn types(op: &Op) -> String {
    let rules =
        op.infer.as_ref().filter(|infer| infer.function.is_none()).map_or(&[][..], |infer| &infer.dtypes);
    let one = |at: usize| rules.get(at).and_then(constant).map_or(0, element_type).to_string();
    (0..op.visible().len()).map(one).collect::<Vec<_>>().join(", ")
}

/// The arguments as a tuple of Python: name, type, and whether a node may leave it out.
fn arguments(op: &Op) -> String {
    let one = |arg: &opsmith_codegen::model::Arg| {
        let kind = arg.ty.required().to_string();
        let may_lack = if arg.default.is_some() || arg.ty.optional { "True" } else { "False" };
        format!("(\"{}\", \"{kind}\", {may_lack}), ", arg.name)
    };
    let all: String = op.args.iter().map(one).collect();
    format!("({})", all.trim_end_matches(' '))
}

/// The files, with their paths in the folder.
pub fn files(
    model: &Model,
    chosen: &Chosen,
    library: &str,
    shared: &Value,
) -> Result<Vec<(String, String)>, Refusal> {
    let row = |place: &usize| {
        let op = &model.ops[*place];
        context! {
            name => op.name.as_str(),
            signature => format!("{:?}", op.signature),
            types => types(op),
            arguments => arguments(op),
        }
    };
    let rows: Vec<Value> = chosen.operators.iter().map(row).collect();
    let context = context! {
        framework => "onnxruntime",
        module => "onnxruntime",
        is_without_headers => true,
        includes => "[]",
        links => "",
        rows,
        ..shared.clone()
    };
    render_all(&FILES, library, &context)
}
