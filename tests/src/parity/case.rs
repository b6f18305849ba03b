//! A recorded call, parsed from its file.

use std::path::Path;

use serde_json::Value as Json;

/// One recorded call.
#[derive(Clone, Debug)]
pub struct Case {
    /// The sample of the recording library's own tests that made the call.
    pub from: String,
    /// Positional arguments.
    pub args: Vec<Recorded>,
    /// Keyword arguments, in order.
    pub kwargs: Vec<(String, Recorded)>,
    /// Results; those of a list one by one.
    pub outputs: Vec<Recorded>,
    /// Gradients, if the call was differentiated.
    pub gradients: Option<Gradients>,
    /// The recording library's error, if it rejected the call, which then has no results.
    pub raises: Option<String>,
}

/// The recorded gradients of a call.
#[derive(Clone, Debug)]
pub struct Gradients {
    /// The outputs that were differentiated, by position.
    pub of_outputs: Vec<usize>,
    /// The gradient each of them started from.
    pub cotangents: Vec<Recorded>,
    /// The gradients of the floating-point tensors among the arguments, in order.
    pub of_inputs: Vec<Recorded>,
}

/// One recorded value.
#[derive(Clone, PartialEq, Debug)]
pub enum Recorded {
    /// Nothing.
    None,
    /// A tensor: its key among the stored ones, dtype, sizes and strides in elements.
    Tensor {
        /// The key.
        key: String,
        /// The element type.
        dtype: String,
        /// The sizes.
        shape: Vec<i64>,
        /// The strides.
        strides: Vec<i64>,
    },
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
    /// A text.
    Str(String),
    /// The name of a dtype.
    DType(String),
    /// The name of a memory format.
    MemoryFormat(String),
    /// The name of a storage layout.
    Layout(String),
    /// A list.
    List(Vec<Recorded>),
}

/// Reads the cases of one overload.
pub fn read(path: &Path) -> Result<Vec<Case>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let json: Json = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let cases = json.as_array().and_then(|cases| cases.iter().map(Case::read).collect());
    cases.ok_or_else(|| format!("{}: not a list of recorded calls", path.display()))
}

impl Case {
    fn read(json: &Json) -> Option<Case> {
        let kwargs = json.get("kwargs")?.as_object()?;
        Some(Case {
            from: json.get("from")?.as_str()?.to_owned(),
            args: read_list(json.get("args")?)?,
            kwargs: kwargs
                .iter()
                .map(|(name, value)| Some((name.clone(), Recorded::read(value)?)))
                .collect::<Option<_>>()?,
            outputs: read_list(json.get("outputs")?)?,
            gradients: match json.get("grads") {
                Some(json) => Some(Gradients::read(json)?),
                None => None,
            },
            raises: json.get("raises").and_then(Json::as_str).map(str::to_owned),
        })
    }

    /// A short text of the arguments, for a failure.
    pub fn describe_arguments(&self) -> String {
        let positional = self.args.iter().map(Recorded::to_string);
        let named = self.kwargs.iter().map(|(name, value)| format!("{name}={value}"));
        format!("arguments: ({})", positional.chain(named).collect::<Vec<_>>().join(", "))
    }
}

impl Gradients {
    fn read(json: &Json) -> Option<Gradients> {
        let of_outputs = json.get("of_outputs")?.as_array()?;
        Some(Gradients {
            of_outputs: of_outputs
                .iter()
                .map(|position| position.as_u64().map(|position| position as usize))
                .collect::<Option<_>>()?,
            cotangents: read_list(json.get("cotangents")?)?,
            of_inputs: read_list(json.get("of_float_inputs_in_order")?)?,
        })
    }
}

fn read_list(json: &Json) -> Option<Vec<Recorded>> {
    json.as_array()?.iter().map(Recorded::read).collect()
}

impl Recorded {
    fn read(json: &Json) -> Option<Recorded> {
        Some(match json {
            Json::Null => Recorded::None,
            Json::Bool(value) => Recorded::Bool(*value),
            Json::Number(value) => match value.as_i64() {
                Some(value) => Recorded::Int(value),
                None => Recorded::Float(value.as_f64()?),
            },
            Json::String(text) => Recorded::Str(text.clone()),
            Json::Array(items) => Recorded::List(items.iter().map(Recorded::read).collect::<Option<_>>()?),
            Json::Object(fields) => {
                let text = |key: &str| fields.get(key).and_then(Json::as_str).map(str::to_owned);
                if let Some(key) = text("tensor") {
                    let sizes = |key: &str| -> Option<Vec<i64>> {
                        fields.get(key)?.as_array()?.iter().map(Json::as_i64).collect()
                    };
                    let (dtype, shape, strides) = (text("dtype")?, sizes("shape")?, sizes("strides")?);
                    return Some(Recorded::Tensor { key, dtype, shape, strides });
                }
                if let Some(value) = text("float") {
                    return Some(Recorded::Float(value.parse().ok()?));
                }
                if let Some(parts) = fields.get("complex").and_then(Json::as_array) {
                    let part = |index: usize| match parts.get(index)? {
                        Json::String(text) => text.parse().ok(),
                        number => number.as_f64(),
                    };
                    return Some(Recorded::Complex(part(0)?, part(1)?));
                }
                if let Some(name) = text("dtype") {
                    return Some(Recorded::DType(name));
                }
                if let Some(name) = text("memory_format") {
                    return Some(Recorded::MemoryFormat(name));
                }
                Recorded::Layout(text("layout")?)
            }
        })
    }

    /// Calls `visit` with every tensor, lists flattened.
    pub fn for_each_tensor<'a>(&'a self, visit: &mut dyn FnMut(&'a Recorded)) {
        match self {
            Recorded::Tensor { .. } => visit(self),
            Recorded::List(items) => items.iter().for_each(|item| item.for_each_tensor(visit)),
            _ => {}
        }
    }
}

impl std::fmt::Display for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Recorded::None => write!(f, "None"),
            Recorded::Tensor { key, dtype, shape, strides } => {
                write!(f, "{key}: {dtype}{shape:?}")?;
                let contiguous = opsmith_runtime::layout::is_contiguous(shape, strides);
                if contiguous { Ok(()) } else { write!(f, " strides {strides:?}") }
            }
            Recorded::Bool(value) => write!(f, "{value}"),
            Recorded::Int(value) => write!(f, "{value}"),
            Recorded::Float(value) => write!(f, "{value:?}"),
            Recorded::Complex(re, im) => write!(f, "{re}{im:+}j"),
            Recorded::Str(text) => write!(f, "{text:?}"),
            Recorded::DType(name) | Recorded::MemoryFormat(name) | Recorded::Layout(name) => {
                write!(f, "{name}")
            }
            Recorded::List(items) => {
                let items: Vec<String> = items.iter().map(Recorded::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
        }
    }
}
