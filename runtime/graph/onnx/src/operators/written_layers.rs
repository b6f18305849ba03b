//! Layers of the library in terms of ONNX's operators, for graphs that are saved.
//!
//! In: a call in a graph, and the writer of a model. Out: the names of its values, or that ONNX has no such operator.

use opsmith_core::DType;
use opsmith_graph::Argument;
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::Result;
use opsmith_runtime::infer::symbolic::Size;
use opsmith_runtime::scalar::Scalar;

use super::written::{Arguments, joined};
use crate::messages::{float_attribute, int_attribute, ints_attribute, text_attribute};
use crate::proto::AttributeProto;
use crate::save::Writer;

/// The values of a call with several results, of which ONNX has at least those that are read.
///
/// # Errors
/// Errors of the writer.
pub(super) fn several(
    writer: &mut Writer<'_>,
    name: &str,
    arguments: &Arguments<'_>,
) -> Result<Option<Vec<String>>> {
    let outs = &arguments.node.outs;
    let first_alone = !outs[1..].iter().any(|id| writer.is_used(*id));
    let Some(x) = arguments.tensor(writer, 0)? else { return Ok(None) };
    match name {
        "native_layer_norm" => {
            let (Some(shape), Some(scale)) = (arguments.ints(1), arguments.tensor(writer, 2)?) else {
                return Ok(None);
            };
            let mut input = vec![x, scale];
            input.extend(arguments.tensor(writer, 3)?);
            let Some(epsilon) = arguments.scalar(4).filter(|_| first_alone) else { return Ok(None) };
            let attribute = vec![
                int_attribute("axis", -(shape.len() as i64)),
                float_attribute("epsilon", epsilon.to_f64()),
            ];
            Ok(Some(writer.values("LayerNormalization", input, attribute, 1)))
        }
        "max_pool1d_with_indices" | "max_pool2d_with_indices" | "max_pool3d_with_indices" if first_alone => {
            let Some(mut attribute) = window(arguments) else { return Ok(None) };
            let (Some(dilations), Some(ceil)) = (arguments.ints(4), arguments.flag(5)) else {
                return Ok(None);
            };
            attribute.extend([
                ints_attribute("dilations", dilations),
                int_attribute("ceil_mode", i64::from(ceil)),
            ]);
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
            Ok(Some(writer.values(
                "BatchNormalization",
                input,
                vec![float_attribute("epsilon", epsilon.to_f64())],
                1,
            )))
        }
        "_scaled_dot_product_attention" if first_alone => {
            attention(writer, x, arguments).map(|one| one.map(|one| vec![one]))
        }
        _ => Ok(None),
    }
}

/// Kernel, strides and borders: `(x, kernel, stride, padding, …)`.
fn window(arguments: &Arguments<'_>) -> Option<Vec<AttributeProto>> {
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
    let (Some(key), Some(value)) = (arguments.tensor(writer, 1)?, arguments.tensor(writer, 2)?) else {
        return Ok(None);
    };
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
///
/// # Errors
/// Errors of the writer.
pub(super) fn layer(
    writer: &mut Writer<'_>,
    name: &str,
    arguments: &Arguments<'_>,
) -> Result<Option<String>> {
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
            let (Some(a), Some(b)) = (arguments.tensor(writer, 1)?, arguments.tensor(writer, 2)?) else {
                return Ok(None);
            };
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
            let (Some(a), Some(b)) = (arguments.tensor(writer, 1)?, arguments.tensor(writer, 2)?) else {
                return Ok(None);
            };
            let condition = (writer.name(condition)?, writer.dtype(condition));
            let condition = writer.cast(condition.0, condition.1, DType::Bool);
            writer.value("Where", vec![condition, a, b], Vec::new())
        }
        "index.Tensor" => {
            let Some(Argument::OptionalTensors(indices)) = arguments.node.args.get(1) else {
                return Ok(None);
            };
            let given: Vec<_> =
                indices.iter().enumerate().filter_map(|(dim, id)| Some((dim, (*id)?))).collect();
            let [(dim, id)] = given.as_slice() else { return Ok(None) };
            if writer.dtype(*id) != DType::I64 {
                return Ok(None);
            }
            let indices = writer.name(*id)?;
            writer.value("Gather", vec![x, indices], vec![int_attribute("axis", *dim as i64)])
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
            let attribute =
                vec![ints_attribute("kernel_shape", kernel.clone()), ints_attribute("strides", kernel)];
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
    let parts =
        (arguments.ints(3), arguments.ints(4), arguments.ints(5), arguments.flag(6), arguments.ints(7));
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
