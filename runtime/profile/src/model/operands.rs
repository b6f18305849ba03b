//! Operands of a call: tensors without their elements, and attributes as text.

use serde::{Deserialize, Serialize};

/// The operands of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Operands {
    /// Arguments, in the order of the signature.
    pub args: Vec<RecordedArg>,
    /// Results of a kernel, the target of a copy; of a call, none.
    pub outs: Vec<TensorShape>,
    /// Arithmetic operations of a kernel, if its entry says or implies them.
    #[serde(default)]
    pub flops: Option<u64>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RecordedArg {
    /// An optional argument that was absent.
    None,
    /// A tensor.
    Tensor(TensorShape),
    /// A list of tensors.
    Tensors(Vec<TensorShape>),
    /// A list of tensors of which some may be absent.
    OptionalTensors(Vec<Option<TensorShape>>),
    /// Something else, as people write it, and as a boxed value in Rust if a text gives it.
    Attribute {
        /// As people write it.
        text: String,
        /// As an expression of type `Value`.
        rust: Option<String>,
    },
}

/// A tensor without its elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TensorShape {
    /// Name of its dtype.
    pub dtype: String,
    /// Bytes of an element.
    pub item_bytes: u32,
    /// Sizes.
    pub sizes: Vec<i64>,
    /// Strides, in elements.
    pub strides: Vec<i64>,
    /// Its device.
    pub device: String,
}

impl TensorShape {
    /// Bytes of the elements that it reaches: of an expanded tensor, each once.
    pub fn bytes(&self) -> u64 {
        let reached = self.sizes.iter().zip(&self.strides).filter(|(_, stride)| **stride != 0);
        let count = reached.map(|(size, _)| (*size).max(0) as u64).fold(1, u64::saturating_mul);
        if self.sizes.contains(&0) { 0 } else { count.saturating_mul(u64::from(self.item_bytes)) }
    }

    /// Number of elements.
    pub fn numel(&self) -> u64 {
        self.sizes.iter().map(|size| (*size).max(0) as u64).fold(1, u64::saturating_mul)
    }
}

impl std::fmt::Display for TensorShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(i64::to_string).collect();
        write!(f, "{}[{}]", self.dtype, sizes.join(", "))
    }
}

impl Operands {
    /// Every tensor among the arguments.
    pub fn inputs(&self) -> impl Iterator<Item = &TensorShape> {
        self.args.iter().flat_map(|arg| -> Box<dyn Iterator<Item = &TensorShape>> {
            match arg {
                RecordedArg::Tensor(tensor) => Box::new(std::iter::once(tensor)),
                RecordedArg::Tensors(tensors) => Box::new(tensors.iter()),
                RecordedArg::OptionalTensors(tensors) => Box::new(tensors.iter().flatten()),
                RecordedArg::None | RecordedArg::Attribute { .. } => Box::new(std::iter::empty()),
            }
        })
    }

    /// Bytes of arguments and results: the least that a kernel has to move.
    pub fn bytes(&self) -> u64 {
        self.inputs().chain(&self.outs).map(TensorShape::bytes).fold(0, u64::saturating_add)
    }

    /// Bytes of a copy.
    pub fn copied(&self) -> u64 {
        self.outs.iter().map(TensorShape::bytes).fold(0, u64::saturating_add)
    }

    /// Shapes of tensors and texts of attributes: `float32[4, 5], 1`.
    pub fn text(&self) -> String {
        let list = |tensors: Vec<String>| format!("[{}]", tensors.join(", "));
        let text = |arg: &RecordedArg| match arg {
            RecordedArg::None => "none".to_owned(),
            RecordedArg::Tensor(tensor) => tensor.to_string(),
            RecordedArg::Tensors(tensors) => list(tensors.iter().map(TensorShape::to_string).collect()),
            RecordedArg::OptionalTensors(tensors) => {
                let text =
                    |tensor: &Option<TensorShape>| tensor.as_ref().map_or("none".into(), |t| t.to_string());
                list(tensors.iter().map(text).collect())
            }
            RecordedArg::Attribute { text, .. } => text.clone(),
        };
        self.args.iter().map(text).collect::<Vec<_>>().join(", ")
    }
}
