//! Specifications of a function's inputs: dtypes, sizes, devices.
//!
//! In: numbers and names from callers. Out: the layout of each input, in which named sizes are symbols.

use std::fmt;

use opsmith_core::DType;
use opsmith_runtime::device::Device;
use opsmith_runtime::infer::symbolic::{Size, Symbol};
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use super::sample_points::InputSymbol;
use crate::ir::SymbolicLayout;

/// The specification of an input: dtype, dimensions, device.
#[derive(Clone, Debug)]
pub struct InputSpec {
    /// Its name, for messages and pictures.
    pub name: Option<String>,
    /// Its element type.
    pub dtype: DType,
    /// Its device.
    pub device: Device,
    /// Its sizes.
    pub dims: Vec<Dim>,
    /// Whether the function computes gradients with respect to it.
    pub requires_grad: bool,
}

/// One size of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dim {
    /// A number.
    Fixed(i64),
    /// A size that differs from run to run, independent of all others.
    Unknown,
    /// As the only dimension: any rank.
    AnyRank,
    /// A size that differs from run to run; equal names are equal sizes.
    Symbol {
        /// Its name.
        name: String,
        /// A divisor of all its values.
        multiple_of: i64,
        /// Its least value.
        least: i64,
        /// Its greatest value; `None` if there is no bound.
        most: Option<i64>,
    },
    /// A sum of multiples of sizes that have names of their own, and a number: see [`Dim::sum`].
    Sum {
        /// The factors and the names.
        terms: Vec<(i64, String)>,
        /// The number.
        plus: i64,
    },
}

impl Dim {
    /// A size that differs from run to run and is always a multiple of a number.
    pub fn multiple(name: impl Into<String>, of: i64) -> Dim {
        Dim::Symbol { name: name.into(), multiple_of: of.max(1), least: 0, most: None }
    }

    /// A size that differs from run to run between bounds, both inclusive: `Dim::between("length", 2, Some(16))`. The
    /// function is traced within them, and a run at another size is an error.
    pub fn between(name: impl Into<String>, least: i64, most: Option<i64>) -> Dim {
        Dim::Symbol { name: name.into(), multiple_of: 1, least: least.max(0), most }
    }

    /// A size that others determine: a sum of multiples of sizes and a number. `Dim::sum([(1, "past"), (1, "length")], 0)` is
    /// the length of a mask over `past` cached tokens and `length` new ones. Each name has to be a dimension of an input; a
    /// run with another sum is an error.
    pub fn sum<'a>(terms: impl IntoIterator<Item = (i64, &'a str)>, plus: i64) -> Dim {
        Dim::Sum { terms: terms.into_iter().map(|(factor, name)| (factor, name.to_owned())).collect(), plus }
    }

    /// The size as a formula of the symbols that names are.
    pub(crate) fn size(&self, symbol: &dyn Fn(&str) -> Size) -> Size {
        match self {
            Dim::Fixed(size) => Size::Const(*size),
            Dim::Unknown | Dim::AnyRank => Size::Unknown,
            Dim::Symbol { name, .. } => symbol(name),
            Dim::Sum { terms, plus } => terms
                .iter()
                .fold(Size::Const(*plus), |sum, (factor, name)| sum + symbol(name) * Size::Const(*factor)),
        }
    }

    /// The same size, with a number for a name.
    pub(crate) fn with_fixed(&self, fixed: &str, value: i64) -> Dim {
        match self {
            Dim::Symbol { name, .. } if name == fixed => Dim::Fixed(value),
            Dim::Sum { terms, plus } if terms.iter().any(|(_, name)| name == fixed) => {
                let (known, open): (Vec<_>, Vec<_>) =
                    terms.iter().cloned().partition(|(_, name)| name == fixed);
                let add =
                    |sum: i64, (factor, _): &(i64, String)| sum.saturating_add(factor.saturating_mul(value));
                let plus = known.iter().fold(*plus, add);
                if open.is_empty() { Dim::Fixed(plus) } else { Dim::Sum { terms: open, plus } }
            }
            other => other.clone(),
        }
    }
}

/// A size as text: `4`, `batch`, `past + 2*length - 1`; `?` if it is unknown.
impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(size) => write!(f, "{size}"),
            Dim::Unknown => f.write_str("?"),
            Dim::AnyRank => f.write_str("..."),
            Dim::Symbol { name, .. } => f.write_str(name),
            Dim::Sum { terms, plus } => {
                for (number, (factor, name)) in terms.iter().enumerate() {
                    match (number, *factor < 0) {
                        (0, false) => {}
                        (0, true) => f.write_str("-")?,
                        (_, false) => f.write_str(" + ")?,
                        (_, true) => f.write_str(" - ")?,
                    }
                    match factor.unsigned_abs() {
                        1 => f.write_str(name)?,
                        factor => write!(f, "{factor}*{name}")?,
                    }
                }
                match (*plus, terms.is_empty()) {
                    (0, false) => Ok(()),
                    (plus, true) => write!(f, "{plus}"),
                    (plus, false) if plus < 0 => write!(f, " - {}", plus.unsigned_abs()),
                    (plus, false) => write!(f, " + {plus}"),
                }
            }
        }
    }
}

/// A number; −1 is an unknown size, and −2, alone, an unknown rank.
impl From<i64> for Dim {
    fn from(size: i64) -> Dim {
        match size {
            -1 => Dim::Unknown,
            -2 => Dim::AnyRank,
            size => Dim::Fixed(size),
        }
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Dim {
        Dim::multiple(name, 1)
    }
}

/// The name of an input, given or from its position.
pub(crate) fn input_name(inputs: &[InputSpec], position: usize) -> String {
    let given = inputs.get(position).and_then(|input| input.name.clone());
    given.unwrap_or_else(|| format!("input{position}"))
}

impl InputSpec {
    /// An input on the CPU: `InputSpec::new(DType::F32, ["batch".into(), 64.into()])`.
    pub fn new(dtype: DType, dims: impl IntoIterator<Item = Dim>) -> InputSpec {
        InputSpec {
            name: None,
            dtype,
            device: Device::CPU,
            dims: dims.into_iter().collect(),
            requires_grad: false,
        }
    }

    /// An input on the CPU of any rank, for [`crate::GraphBuilder::open`].
    pub fn of_any_rank(dtype: DType) -> InputSpec {
        InputSpec::new(dtype, [Dim::AnyRank])
    }

    /// Whether it may have any rank.
    pub fn is_of_any_rank(&self) -> bool {
        self.dims == [Dim::AnyRank]
    }

    /// The same input with a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> InputSpec {
        self.name = Some(name.into());
        self
    }

    /// The same input on a device.
    #[must_use]
    pub fn on(mut self, device: Device) -> InputSpec {
        self.device = device;
        self
    }

    /// The same input, with respect to which the function computes gradients.
    #[must_use]
    pub fn requiring_grad(mut self) -> InputSpec {
        self.requires_grad = true;
        self
    }
}

impl InputSpec {
    /// The row-major layout of the sizes, with the positions of the symbols.
    pub(crate) fn layout(&self, symbols: &[InputSymbol]) -> SymbolicLayout {
        let symbol = |name: &str| {
            let number = symbols.iter().position(|symbol| symbol.name == name).unwrap_or(0);
            Size::from(Symbol(number as u32))
        };
        let sizes: SmallVec<[Size; 4]> = self.dims.iter().map(|dim| dim.size(&symbol)).collect();
        let mut strides: SmallVec<[Size; 4]> = SmallVec::new();
        let mut stride = Size::Const(1);
        for size in sizes.iter().rev() {
            strides.push(stride.clone());
            stride = stride * size.clone();
        }
        strides.reverse();
        SymbolicLayout { sizes, strides, offset: Size::Const(0) }
    }
}

impl From<&Tensor> for InputSpec {
    fn from(tensor: &Tensor) -> InputSpec {
        InputSpec {
            name: None,
            dtype: tensor.dtype(),
            device: tensor.device(),
            dims: tensor.shape().iter().map(|size| Dim::Fixed(*size)).collect(),
            requires_grad: tensor.requires_grad(),
        }
    }
}

impl From<&&Tensor> for InputSpec {
    fn from(tensor: &&Tensor) -> InputSpec {
        InputSpec::from(*tensor)
    }
}

impl From<&InputSpec> for InputSpec {
    fn from(spec: &InputSpec) -> InputSpec {
        spec.clone()
    }
}
