//! Operators of the library in terms of ONNX's, for graphs that are saved.
//!
//! In: a call in a graph, and the writer of a model. Out: nodes of the model, or that there are none for this operator.

use opsmith_core::DType;
use opsmith_graph::{Argument, Node, SymbolicScalar, TensorId};
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::Result;
use opsmith_runtime::infer::symbolic::Size;
use opsmith_runtime::scalar::Scalar;

use super::written_layers::{layer, several};
use crate::messages::{int_attribute, ints_attribute};
use crate::save::Writer;

/// Operators on tensors alone, whose operands and result have the dtype of the computation.
const PLAIN: &[(&str, &str)] = &[
    ("abs", "Abs"),
    ("acos", "Acos"),
    ("acosh", "Acosh"),
    ("asin", "Asin"),
    ("asinh", "Asinh"),
    ("atan", "Atan"),
    ("atanh", "Atanh"),
    ("bmm", "MatMul"),
    ("ceil", "Ceil"),
    ("cos", "Cos"),
    ("cosh", "Cosh"),
    ("eq.Tensor", "Equal"),
    ("erf", "Erf"),
    ("exp", "Exp"),
    ("floor", "Floor"),
    ("ge.Tensor", "GreaterOrEqual"),
    ("gt.Tensor", "Greater"),
    ("hardswish", "HardSwish"),
    ("isnan", "IsNaN"),
    ("le.Tensor", "LessOrEqual"),
    ("log", "Log"),
    ("logical_and", "And"),
    ("logical_not", "Not"),
    ("logical_or", "Or"),
    ("lt.Tensor", "Less"),
    ("matmul", "MatMul"),
    ("maximum", "Max"),
    ("minimum", "Min"),
    ("mish", "Mish"),
    ("mm", "MatMul"),
    ("mul.Tensor", "Mul"),
    ("neg", "Neg"),
    ("pow.Tensor_Tensor", "Pow"),
    ("reciprocal", "Reciprocal"),
    ("relu", "Relu"),
    ("round", "Round"),
    ("sigmoid", "Sigmoid"),
    ("sign", "Sign"),
    ("sin", "Sin"),
    ("sinh", "Sinh"),
    ("softsign", "Softsign"),
    ("sqrt", "Sqrt"),
    ("tan", "Tan"),
    ("tanh", "Tanh"),
];

/// Operators on a tensor and a number.
const WITH_NUMBER: &[(&str, &str)] = &[
    ("add.Scalar", "Add"),
    ("div.Scalar", "Div"),
    ("eq.Scalar", "Equal"),
    ("ge.Scalar", "GreaterOrEqual"),
    ("gt.Scalar", "Greater"),
    ("le.Scalar", "LessOrEqual"),
    ("lt.Scalar", "Less"),
    ("mul.Scalar", "Mul"),
    ("pow.Tensor_Scalar", "Pow"),
    ("sub.Scalar", "Sub"),
];

/// Reductions over dimensions: `(x, dims, keep, …)`.
const REDUCTIONS: &[(&str, &str)] = &[
    ("amax", "ReduceMax"),
    ("amin", "ReduceMin"),
    ("mean.dim", "ReduceMean"),
    ("sum.dim_IntList", "ReduceSum"),
];

fn find(table: &[(&'static str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator)
}

/// The arguments of a call, read one by one.
pub(super) struct Arguments<'n> {
    pub node: &'n Node,
    pub compute: DType,
}

impl Arguments<'_> {
    pub fn id(&self, at: usize) -> Option<TensorId> {
        match self.node.args.get(at) {
            Some(Argument::Tensor(id)) => Some(*id),
            _ => None,
        }
    }

    /// A tensor in the dtype of the computation.
    pub fn tensor(&self, writer: &mut Writer<'_>, at: usize) -> Result<Option<String>> {
        let Some(id) = self.id(at) else { return Ok(None) };
        let name = writer.name(id)?;
        Ok(Some(writer.cast(name, writer.dtype(id), self.compute)))
    }

    pub fn scalar(&self, at: usize) -> Option<Scalar> {
        match self.node.args.get(at)? {
            Argument::Value(Value::Scalar(number)) => Some(*number),
            Argument::Value(Value::Int(number)) => Some(Scalar::Int(*number)),
            Argument::Value(Value::Float(number)) => Some(Scalar::Float(*number)),
            _ => None,
        }
    }

    pub fn int(&self, at: usize) -> Option<i64> {
        match self.node.args.get(at)? {
            Argument::Value(Value::Int(number)) => Some(*number),
            Argument::Int(size) => size.known(),
            _ => None,
        }
    }

    pub fn flag(&self, at: usize) -> Option<bool> {
        match self.node.args.get(at)? {
            Argument::Value(Value::Bool(truth)) => Some(*truth),
            _ => None,
        }
    }

    pub fn ints(&self, at: usize) -> Option<Vec<i64>> {
        match self.node.args.get(at)? {
            Argument::Value(Value::Ints(numbers)) => Some(numbers.clone()),
            Argument::Ints(sizes) => sizes.iter().map(Size::known).collect(),
            _ => None,
        }
    }
}

/// Writes a call; whether ONNX has its operator.
///
/// # Errors
/// Errors of the writer.
pub(crate) fn call(writer: &mut Writer<'_>, name: &str, compute: DType, node: &Node) -> Result<bool> {
    let arguments = Arguments { node, compute };
    let [out] = node.outs.as_slice() else {
        // Results that nothing reads need no name.
        let Some(values) = several(writer, name, &arguments)? else { return Ok(false) };
        for (id, value) in node.outs.iter().zip(values) {
            let value = writer.cast(value, compute, writer.dtype(*id));
            writer.define(*id, value)?;
        }
        return Ok(true);
    };
    match expression(writer, name, &arguments)? {
        None => Ok(false),
        Some((value, dtype)) => {
            let value = writer.cast(value, dtype, writer.dtype(*out));
            writer.define(*out, value)?;
            Ok(true)
        }
    }
}

/// The value of a call with its dtype; `None` if ONNX has no such operator.
fn expression(
    writer: &mut Writer<'_>,
    name: &str,
    arguments: &Arguments<'_>,
) -> Result<Option<(String, DType)>> {
    let compute = arguments.compute;
    if compute.category() == opsmith_core::DTypeCategory::Complex {
        return Ok(None);
    }
    let result = |operator: &str| match operator {
        "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "And" | "Or" | "Not" | "IsNaN" => {
            DType::Bool
        }
        _ => compute,
    };
    if let Some(operator) = find(PLAIN, name) {
        let mut input = Vec::new();
        for at in 0..arguments.node.args.len() {
            match arguments.tensor(writer, at)? {
                Some(tensor) => input.push(tensor),
                None => return Ok(None),
            }
        }
        if matches!(operator, "And" | "Or" | "Not") && compute != DType::Bool {
            return Ok(None);
        }
        return Ok(Some((writer.value(operator, input, Vec::new()), result(operator))));
    }
    if let Some(operator) = find(WITH_NUMBER, name) {
        let (Some(tensor), Some(number)) = (arguments.tensor(writer, 0)?, arguments.scalar(1)) else {
            return Ok(None);
        };
        // A third argument is a factor.
        if arguments.node.args.len() > 2 && arguments.scalar(2).is_none_or(|factor| factor.to_f64() != 1.0) {
            return Ok(None);
        }
        let number = writer.number(number, compute)?;
        return Ok(Some((writer.value(operator, vec![tensor, number], Vec::new()), result(operator))));
    }
    if let Some(operator) = find(REDUCTIONS, name) {
        let (Some(tensor), Some(dims)) = (arguments.tensor(writer, 0)?, arguments.ints(1)) else {
            return Ok(None);
        };
        let keep = arguments.flag(2).unwrap_or(false);
        let dims = writer.ints(&dims)?;
        let attribute = vec![int_attribute("keepdims", i64::from(keep))];
        return Ok(Some((writer.value(operator, vec![tensor, dims], attribute), compute)));
    }
    Ok(layer(writer, name, arguments)?.map(|value| (value, compute)))
}

/// Operators without a tensor first: joined lists, and new tensors.
pub(super) fn joined(
    writer: &mut Writer<'_>,
    name: &str,
    arguments: &Arguments<'_>,
) -> Result<Option<String>> {
    match (name, arguments.node.args.first()) {
        ("cat" | "concat", Some(Argument::Tensors(ids))) => {
            let mut input = Vec::with_capacity(ids.len());
            for id in ids {
                let name = writer.name(*id)?;
                input.push(writer.cast(name, writer.dtype(*id), arguments.compute));
            }
            let Some(dim) = arguments.int(1) else { return Ok(None) };
            Ok(Some(writer.value("Concat", input, vec![int_attribute("axis", dim)])))
        }
        ("arange" | "arange.start" | "arange.start_step", _) => {
            let (start, end, step) = match name {
                "arange" => (None, 0, None),
                "arange.start" => (Some(0), 1, None),
                _ => (Some(0), 1, Some(2)),
            };
            let mut input = Vec::new();
            for (at, default) in [(start, 0), (Some(end), 0), (step, 1)] {
                let name = match at.and_then(|at| arguments.node.args.get(at)) {
                    Some(Argument::Scalar(SymbolicScalar::Int(size))) | Some(Argument::Int(size)) => {
                        let vector = writer.shape(std::slice::from_ref(size))?;
                        let none = writer.ints(&[])?;
                        let one = writer.value("Reshape", vec![vector, none], Vec::new());
                        writer.cast(one, DType::I64, arguments.compute)
                    }
                    Some(_) => match at.and_then(|at| arguments.scalar(at)) {
                        Some(number) => writer.number(number, arguments.compute)?,
                        None => return Ok(None),
                    },
                    None => writer.number(Scalar::Int(default), arguments.compute)?,
                };
                input.push(name);
            }
            Ok(Some(writer.value("Range", input, Vec::new())))
        }
        ("full", _) => {
            let Some(number) = arguments.scalar(1) else { return Ok(None) };
            let out = arguments.node.outs[0];
            let (number, shape) =
                (writer.number(number, arguments.compute)?, writer.shape(writer.sizes(out))?);
            Ok(Some(writer.value("Expand", vec![number, shape], Vec::new())))
        }
        _ => Ok(None),
    }
}

/// The values of a view; `None` if ONNX has none.
///
/// # Errors
/// Errors of the writer.
pub(crate) fn view(writer: &mut Writer<'_>, name: &str, node: &Node) -> Result<Option<Vec<String>>> {
    let arguments = Arguments { node, compute: writer.dtype(node.outs[0]) };
    let Some(id) = arguments.id(0) else { return Ok(None) };
    let (x, rank, out) = (writer.name(id)?, writer.sizes(id).len() as i64, node.outs[0]);
    let wrapped = |dim: i64| if dim < 0 { dim + rank } else { dim };
    let value = match name {
        "permute" => {
            let Some(dims) = arguments.ints(1) else { return Ok(None) };
            let dims = dims.into_iter().map(wrapped).collect();
            writer.value("Transpose", vec![x], vec![ints_attribute("perm", dims)])
        }
        "t" | "transpose.int" => {
            let mut dims: Vec<i64> = (0..rank).collect();
            let (a, b) = match name {
                "t" => (0, 1),
                _ => match (arguments.int(1), arguments.int(2)) {
                    (Some(a), Some(b)) => (wrapped(a), wrapped(b)),
                    _ => return Ok(None),
                },
            };
            if rank > 1 {
                dims.swap(a as usize, b as usize);
            }
            writer.value("Transpose", vec![x], vec![ints_attribute("perm", dims)])
        }
        "view" | "reshape" | "_unsafe_view" | "unsqueeze" | "squeeze" | "squeeze.dim" | "squeeze.dims"
        | "flatten.using_ints" | "unflatten.int" => {
            let shape = writer.shape(writer.sizes(out))?;
            writer.value("Reshape", vec![x, shape], vec![int_attribute("allowzero", 1)])
        }
        "expand" | "broadcast_to" | "expand_as" => {
            let shape = writer.shape(writer.sizes(out))?;
            writer.value("Expand", vec![x, shape], Vec::new())
        }
        "split_with_sizes" | "split.Tensor" | "chunk" => {
            let Some(dim) = arguments.int(2).map(wrapped) else { return Ok(None) };
            let sizes: Vec<Size> =
                node.outs.iter().map(|out| writer.sizes(*out)[dim as usize].clone()).collect();
            let sizes = writer.shape(&sizes)?;
            let values =
                writer.values("Split", vec![x, sizes], vec![int_attribute("axis", dim)], node.outs.len());
            return Ok(Some(values));
        }
        "alias" | "detach" | "contiguous" | "to.dtype" => writer.value("Identity", vec![x], Vec::new()),
        "select.int" => {
            let (Some(dim), Some(at)) = (arguments.int(1), arguments.int(2)) else { return Ok(None) };
            let at = writer.number(Scalar::Int(at), DType::I64)?;
            writer.value("Gather", vec![x, at], vec![int_attribute("axis", dim)])
        }
        "slice.Tensor" | "narrow" => {
            let Some(slice) = slice(writer, name, &arguments, x)? else { return Ok(None) };
            slice
        }
        _ => return Ok(None),
    };
    Ok(Some(vec![value]))
}

/// The part of a tensor along one dimension; `None` if its first element or its end is not known.
fn slice(
    writer: &mut Writer<'_>,
    name: &str,
    arguments: &Arguments<'_>,
    x: String,
) -> Result<Option<String>> {
    let (Some(id), Some(dim)) = (arguments.id(0), arguments.int(1)) else { return Ok(None) };
    let (node, rank) = (arguments.node, writer.sizes(id).len() as i64);
    let dim = if dim < 0 { dim + rank } else { dim };
    let start = match node.args.get(2) {
        Some(Argument::Value(Value::None)) | None => 0,
        _ => match (arguments.int(2), writer.sizes(id)[dim as usize].known()) {
            (Some(start @ 0..), _) => start,
            (Some(start), Some(size)) => (start + size).max(0),
            _ => return Ok(None),
        },
    };
    let step = if name == "narrow" { 1 } else { arguments.int(4).unwrap_or(1) };
    let length = &writer.sizes(node.outs[0])[dim as usize];
    let end = match (length.known(), step) {
        (Some(length), _) => writer.ints(&[start + length * step])?,
        (None, 1) => {
            let (first, length) = (writer.ints(&[start])?, writer.shape(std::slice::from_ref(length))?);
            writer.value("Add", vec![first, length], Vec::new())
        }
        _ => return Ok(None),
    };
    let start = writer.ints(&[start])?;
    let (dims, steps) = (writer.ints(&[dim])?, writer.ints(&[step])?);
    Ok(Some(writer.value("Slice", vec![x, start, end, dims, steps], Vec::new())))
}
