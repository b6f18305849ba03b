//! Operators of the library in terms of ONNX's, for graphs that are saved.
//!
//! In: a call in a graph, and the writer of a model. Out: nodes of the model, or that there are none for this operator.

use opsmith_core::DType;
use opsmith_graph::{Argument, Node, TensorId};
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::Result;
use opsmith_runtime::infer::symbolic::Size;
use opsmith_runtime::scalar::Scalar;

use crate::save::{Writer, float_attribute, int_attribute, ints_attribute, text_attribute};

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
const REDUCTIONS: &[(&str, &str)] =
    &[("amax", "ReduceMax"), ("amin", "ReduceMin"), ("mean.dim", "ReduceMean"), ("sum.dim_IntList", "ReduceSum")];

fn find(table: &[(&'static str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator)
}

/// The arguments of a call, read one by one.
struct Arguments<'n> {
    node: &'n Node,
    compute: DType,
}

impl Arguments<'_> {
    fn id(&self, at: usize) -> Option<TensorId> {
        match self.node.args.get(at) {
            Some(Argument::Tensor(id)) => Some(*id),
            _ => None,
        }
    }

    /// A tensor in the dtype of the computation.
    fn tensor(&self, writer: &mut Writer<'_>, at: usize) -> Result<Option<String>> {
        let Some(id) = self.id(at) else { return Ok(None) };
        let name = writer.name(id)?;
        Ok(Some(writer.cast(name, writer.dtype(id), self.compute)))
    }

    fn scalar(&self, at: usize) -> Option<Scalar> {
        match self.node.args.get(at)? {
            Argument::Value(Value::Scalar(number)) => Some(*number),
            Argument::Value(Value::Int(number)) => Some(Scalar::Int(*number)),
            Argument::Value(Value::Float(number)) => Some(Scalar::Float(*number)),
            _ => None,
        }
    }

    fn int(&self, at: usize) -> Option<i64> {
        match self.node.args.get(at)? {
            Argument::Value(Value::Int(number)) => Some(*number),
            Argument::Int(size) => size.known(),
            _ => None,
        }
    }

    fn flag(&self, at: usize) -> Option<bool> {
        match self.node.args.get(at)? {
            Argument::Value(Value::Bool(truth)) => Some(*truth),
            _ => None,
        }
    }

    fn ints(&self, at: usize) -> Option<Vec<i64>> {
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
fn expression(writer: &mut Writer<'_>, name: &str, arguments: &Arguments<'_>) -> Result<Option<(String, DType)>> {
    let compute = arguments.compute;
    if compute.category() == opsmith_core::DTypeCategory::Complex {
        return Ok(None);
    }
    let result = |operator: &str| match operator {
        "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "And" | "Or" | "Not" | "IsNaN" => DType::Bool,
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
        let (Some(tensor), Some(dims)) = (arguments.tensor(writer, 0)?, arguments.ints(1)) else { return Ok(None) };
        let keep = arguments.flag(2).unwrap_or(false);
        let dims = writer.ints(&dims)?;
        let attribute = vec![int_attribute("keepdims", i64::from(keep))];
        return Ok(Some((writer.value(operator, vec![tensor, dims], attribute), compute)));
    }
    Ok(layer(writer, name, arguments)?.map(|value| (value, compute)))
}

/// The values of a call with several results, of which ONNX has at least those that are read.
fn several(writer: &mut Writer<'_>, name: &str, arguments: &Arguments<'_>) -> Result<Option<Vec<String>>> {
    let outs = &arguments.node.outs;
    let first_alone = !outs[1..].iter().any(|id| writer.is_used(*id));
    let Some(x) = arguments.tensor(writer, 0)? else { return Ok(None) };
    match name {
        "native_layer_norm" => {
            let (Some(shape), Some(scale)) = (arguments.ints(1), arguments.tensor(writer, 2)?) else { return Ok(None) };
            let mut input = vec![x, scale];
            input.extend(arguments.tensor(writer, 3)?);
            let Some(epsilon) = arguments.scalar(4).filter(|_| first_alone) else { return Ok(None) };
            let attribute =
                vec![int_attribute("axis", -(shape.len() as i64)), float_attribute("epsilon", epsilon.to_f64())];
            Ok(Some(writer.values("LayerNormalization", input, attribute, 1)))
        }
        "max_pool1d_with_indices" | "max_pool2d_with_indices" | "max_pool3d_with_indices" if first_alone => {
            let Some(mut attribute) = window(arguments) else { return Ok(None) };
            let (Some(dilations), Some(ceil)) = (arguments.ints(4), arguments.flag(5)) else { return Ok(None) };
            attribute.extend([ints_attribute("dilations", dilations), int_attribute("ceil_mode", i64::from(ceil))]);
            Ok(Some(writer.values("MaxPool", vec![x], attribute, 1)))
        }
        "_native_batch_norm_legit_functional" if first_alone && arguments.flag(5) == Some(false) => {
            let mut input = vec![x];
            for at in 1..5 {
                match arguments.tensor(writer, at)? {
                    Some(tensor) => input.push(tensor),
                    None => return Ok(None),
                }
            }
            let Some(epsilon) = arguments.scalar(7) else { return Ok(None) };
            Ok(Some(writer.values("BatchNormalization", input, vec![float_attribute("epsilon", epsilon.to_f64())], 1)))
        }
        "_scaled_dot_product_attention" if first_alone => attention(writer, x, arguments).map(|one| one.map(|one| vec![one])),
        _ => Ok(None),
    }
}

/// Kernel, strides and borders: `(x, kernel, stride, padding, …)`.
fn window(arguments: &Arguments<'_>) -> Option<Vec<crate::proto::AttributeProto>> {
    let (kernel, strides, pads) = (arguments.ints(1)?, arguments.ints(2)?, arguments.ints(3)?);
    // Without strides, windows do not overlap.
    let strides = if strides.is_empty() { kernel.clone() } else { strides };
    Some(vec![
        ints_attribute("kernel_shape", kernel),
        ints_attribute("strides", strides),
        ints_attribute("pads", pads.iter().chain(&pads).copied().collect()),
    ])
}

/// Attention over 4 dimensions: `(query, key, value, mask, causal, scale, grouped)`.
fn attention(writer: &mut Writer<'_>, query: String, arguments: &Arguments<'_>) -> Result<Option<String>> {
    let (Some(key), Some(value)) = (arguments.tensor(writer, 1)?, arguments.tensor(writer, 2)?) else { return Ok(None) };
    let ids = [0, 1].map(|at| arguments.id(at));
    let [Some(query_id), Some(key_id)] = ids else { return Ok(None) };
    let (sizes, keys) = (writer.sizes(query_id), writer.sizes(key_id));
    let rank = sizes.len();
    let Some(features) = sizes.last().and_then(Size::known) else { return Ok(None) };
    let same_heads = rank < 3 || sizes[rank - 3] == keys[rank - 3];
    let (Some(causal), true) = (arguments.flag(4), rank >= 2 && same_heads) else { return Ok(None) };
    let scale = arguments.scalar(5).map_or(1.0 / (features as f64).sqrt(), Scalar::to_f64);
    let mut turned: Vec<i64> = (0..rank as i64).collect();
    turned.swap(rank - 1, rank - 2);
    let key = writer.value("Transpose", vec![key], vec![ints_attribute("perm", turned)]);
    let product = writer.value("MatMul", vec![query, key], Vec::new());
    let scale = writer.number(Scalar::Float(scale), arguments.compute)?;
    let mut scores = writer.value("Mul", vec![product, scale], Vec::new());
    let least = writer.number(Scalar::Float(f64::NEG_INFINITY), arguments.compute)?;
    if let Some(id) = arguments.id(3) {
        let mask = writer.name(id)?;
        scores = match writer.dtype(id) {
            DType::Bool => writer.value("Where", vec![mask, scores, least.clone()], Vec::new()),
            dtype => {
                let mask = writer.cast(mask, dtype, arguments.compute);
                writer.value("Add", vec![scores, mask], Vec::new())
            }
        };
    }
    if causal {
        let shape = writer.shape(&[sizes[rank - 2].clone(), keys[rank - 2].clone()])?;
        let truth = writer.number(Scalar::Bool(true), DType::Bool)?;
        let all = writer.value("Expand", vec![truth, shape], Vec::new());
        let seen = writer.value("Trilu", vec![all], vec![int_attribute("upper", 0)]);
        scores = writer.value("Where", vec![seen, scores, least], Vec::new());
    }
    let weights = writer.value("Softmax", vec![scores], vec![int_attribute("axis", -1)]);
    Ok(Some(writer.value("MatMul", vec![weights, value], Vec::new())))
}

/// The operators of layers, and others with attributes.
fn layer(writer: &mut Writer<'_>, name: &str, arguments: &Arguments<'_>) -> Result<Option<String>> {
    let Some(x) = arguments.tensor(writer, 0)? else { return joined(writer, name, arguments) };
    let value = match name {
        "add.Tensor" | "sub.Tensor" => {
            let Some(mut other) = arguments.tensor(writer, 1)? else { return Ok(None) };
            if let Some(factor) = arguments.scalar(2).filter(|factor| factor.to_f64() != 1.0) {
                let factor = writer.number(factor, arguments.compute)?;
                other = writer.value("Mul", vec![other, factor], Vec::new());
            }
            writer.value(if name == "add.Tensor" { "Add" } else { "Sub" }, vec![x, other], Vec::new())
        }
        "div.Tensor" => {
            let Some(other) = arguments.tensor(writer, 1)? else { return Ok(None) };
            writer.value("Div", vec![x, other], Vec::new())
        }
        "square" => writer.value("Mul", vec![x.clone(), x], Vec::new()),
        "rsqrt" => {
            let root = writer.value("Sqrt", vec![x], Vec::new());
            writer.value("Reciprocal", vec![root], Vec::new())
        }
        "silu" => {
            let gate = writer.value("Sigmoid", vec![x.clone()], Vec::new());
            writer.value("Mul", vec![x, gate], Vec::new())
        }
        "gelu" => {
            let way = match arguments.node.args.get(1) {
                Some(Argument::Value(Value::Str(way))) => way.clone(),
                _ => "none".to_owned(),
            };
            writer.value("Gelu", vec![x], vec![text_attribute("approximate", &way)])
        }
        "leaky_relu" => {
            let Some(slope) = arguments.scalar(1) else { return Ok(None) };
            writer.value("LeakyRelu", vec![x], vec![float_attribute("alpha", slope.to_f64())])
        }
        "clone" | "contiguous" => writer.value("Identity", vec![x], Vec::new()),
        "_to_copy" | "to.dtype" => x,
        "softmax.int" | "_softmax" | "log_softmax.int" | "_log_softmax" => {
            let Some(dim) = arguments.int(1) else { return Ok(None) };
            let operator = if name.contains("log") { "LogSoftmax" } else { "Softmax" };
            writer.value(operator, vec![x], vec![int_attribute("axis", dim)])
        }
        "addmm" => {
            let (Some(a), Some(b)) = (arguments.tensor(writer, 1)?, arguments.tensor(writer, 2)?) else { return Ok(None) };
            let factor = |at: usize| arguments.scalar(at).map_or(1.0, Scalar::to_f64);
            let attribute = vec![float_attribute("beta", factor(3)), float_attribute("alpha", factor(4))];
            writer.value("Gemm", vec![a, b, x], attribute)
        }
        "linear" => {
            let Some(weight) = arguments.tensor(writer, 1)? else { return Ok(None) };
            let turned = writer.value("Transpose", vec![weight], vec![ints_attribute("perm", vec![1, 0])]);
            let product = writer.value("MatMul", vec![x, turned], Vec::new());
            match arguments.tensor(writer, 2)? {
                Some(bias) => writer.value("Add", vec![product, bias], Vec::new()),
                None => product,
            }
        }
        "where.self" => {
            let Some(condition) = arguments.id(0) else { return Ok(None) };
            let (Some(a), Some(b)) = (arguments.tensor(writer, 1)?, arguments.tensor(writer, 2)?) else { return Ok(None) };
            let condition = (writer.name(condition)?, writer.dtype(condition));
            let condition = writer.cast(condition.0, condition.1, DType::Bool);
            writer.value("Where", vec![condition, a, b], Vec::new())
        }
        "embedding" => {
            let Some(indices) = arguments.id(1) else { return Ok(None) };
            let indices = writer.name(indices)?;
            writer.value("Gather", vec![x, indices], vec![int_attribute("axis", 0)])
        }
        "convolution" => return convolution(writer, x, arguments),
        "avg_pool1d" | "avg_pool2d" | "avg_pool3d" => {
            let Some(mut attribute) = window(arguments) else { return Ok(None) };
            let (Some(ceil), Some(borders)) = (arguments.flag(4), arguments.flag(5)) else { return Ok(None) };
            if arguments.int(6).is_some() {
                return Ok(None);
            }
            let flags = [("ceil_mode", ceil), ("count_include_pad", borders)];
            attribute.extend(flags.map(|(name, flag)| int_attribute(name, i64::from(flag))));
            writer.value("AveragePool", vec![x], attribute)
        }
        "_adaptive_avg_pool2d" => {
            let Some(id) = arguments.id(0) else { return Ok(None) };
            let (from, into) = (writer.sizes(id), writer.sizes(arguments.node.outs[0]));
            let mut kernel = Vec::new();
            for (from, into) in from.iter().zip(into).skip(from.len() - 2) {
                match (from.known(), into.known()) {
                    (Some(from), Some(into @ 1..)) if from % into == 0 => kernel.push(from / into),
                    _ => return Ok(None),
                }
            }
            let attribute = vec![ints_attribute("kernel_shape", kernel.clone()), ints_attribute("strides", kernel)];
            writer.value("AveragePool", vec![x], attribute)
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

/// `convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)`.
fn convolution(writer: &mut Writer<'_>, x: String, arguments: &Arguments<'_>) -> Result<Option<String>> {
    let Some(weight) = arguments.tensor(writer, 1)? else { return Ok(None) };
    let mut input = vec![x, weight];
    input.extend(arguments.tensor(writer, 2)?);
    let parts = (arguments.ints(3), arguments.ints(4), arguments.ints(5), arguments.flag(6), arguments.ints(7));
    let ((Some(strides), Some(pads), Some(dilations), Some(transposed), Some(more)), Some(groups)) =
        (parts, arguments.int(8))
    else {
        return Ok(None);
    };
    let mut attribute = vec![
        ints_attribute("strides", strides),
        ints_attribute("pads", pads.iter().chain(&pads).copied().collect()),
        ints_attribute("dilations", dilations),
        int_attribute("group", groups),
    ];
    if transposed {
        attribute.push(ints_attribute("output_padding", more));
    }
    let operator = if transposed { "ConvTranspose" } else { "Conv" };
    Ok(Some(writer.value(operator, input, attribute)))
}

/// Operators without a tensor first: joined lists, and new tensors.
fn joined(writer: &mut Writer<'_>, name: &str, arguments: &Arguments<'_>) -> Result<Option<String>> {
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
        ("full", _) => {
            let Some(number) = arguments.scalar(1) else { return Ok(None) };
            let out = arguments.node.outs[0];
            let (number, shape) = (writer.number(number, arguments.compute)?, writer.shape(writer.sizes(out))?);
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
            let sizes: Vec<Size> = node.outs.iter().map(|out| writer.sizes(*out)[dim as usize].clone()).collect();
            let sizes = writer.shape(&sizes)?;
            let values = writer.values("Split", vec![x, sizes], vec![int_attribute("axis", dim)], node.outs.len());
            return Ok(Some(values));
        }
        "alias" | "detach" | "contiguous" | "to.dtype" => writer.value("Identity", vec![x], Vec::new()),
        "select.int" => {
            let (Some(dim), Some(at)) = (arguments.int(1), arguments.int(2)) else { return Ok(None) };
            let at = writer.number(Scalar::Int(at), DType::I64)?;
            writer.value("Gather", vec![x, at], vec![int_attribute("axis", dim)])
        }
        "slice.Tensor" | "narrow" => {
            let Some(dim) = arguments.int(1).map(wrapped) else { return Ok(None) };
            let start = match node.args.get(2) {
                Some(Argument::Value(Value::None)) | None => 0,
                _ => match (arguments.int(2), writer.sizes(id)[dim as usize].known()) {
                    (Some(start @ 0..), _) => start,
                    (Some(start), Some(size)) => (start + size).max(0),
                    _ => return Ok(None),
                },
            };
            let step = if name == "narrow" { 1 } else { arguments.int(4).unwrap_or(1) };
            let length = &writer.sizes(out)[dim as usize];
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
            writer.value("Slice", vec![x, start, end, dims, steps], Vec::new())
        }
        _ => return Ok(None),
    };
    Ok(Some(vec![value]))
}
