//! Inputs of a program: the arguments of each run.
//!
//! In: the model. Out: specifications for tracing, in which formulas of sizes are symbols with bounds; and checks of
//! given tensors in the program's words.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;

use opsmith_core::DType;
use opsmith_graph::{Dim, InputSpec};
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, ErrorKind, Result, ShapeText};
use opsmith_runtime::tensor::Tensor;

use crate::errors::unsupported;
use crate::expression::Formula;
use crate::model::{InputKind, Model, Range};

/// An input that each run gets.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgramInput {
    /// Its name in Python.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its sizes.
    pub sizes: Vec<ProgramSize>,
}

/// A size of an input.
#[derive(Clone, PartialEq, Debug)]
pub enum ProgramSize {
    /// A number.
    Fixed(i64),
    /// A size that differs from run to run; equal names are equal sizes.
    Symbol {
        /// Its name, or the formula of a symbol: `2*s0`.
        name: String,
        /// A divisor of all its values.
        multiple_of: i64,
        /// Its least value.
        least: i64,
        /// Its greatest value; `None` if there is no bound.
        most: Option<i64>,
    },
}

impl fmt::Display for ProgramInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self
            .sizes
            .iter()
            .map(|size| match size {
                ProgramSize::Fixed(size) => size.to_string(),
                ProgramSize::Symbol { name, .. } => name.clone(),
            })
            .collect();
        write!(f, "{}: {} ({})", self.name, self.dtype, sizes.join(", "))
    }
}

impl ProgramInput {
    /// The input of a specification.
    pub(crate) fn of_spec(spec: &InputSpec) -> ProgramInput {
        let size = |dim: &Dim| match dim {
            Dim::Fixed(size) => ProgramSize::Fixed(*size),
            Dim::Symbol { name, multiple_of, least, most } => ProgramSize::Symbol {
                name: name.clone(),
                multiple_of: *multiple_of,
                least: *least,
                most: *most,
            },
            Dim::Unknown | Dim::AnyRank => unreachable!("a model names its sizes"),
        };
        let name = spec.name.clone().unwrap_or_default();
        ProgramInput { name, dtype: spec.dtype, sizes: spec.dims.iter().map(size).collect() }
    }

    /// The specification for tracing on a device.
    pub(crate) fn spec(&self, device: Device) -> InputSpec {
        let dim = |size: &ProgramSize| match size {
            ProgramSize::Fixed(size) => Dim::Fixed(*size),
            ProgramSize::Symbol { name, multiple_of, least, most } => {
                Dim::Symbol { name: name.clone(), multiple_of: *multiple_of, least: *least, most: *most }
            }
        };
        InputSpec::new(self.dtype, self.sizes.iter().map(dim)).named(self.name.clone()).on(device)
    }
}

/// The inputs of each run, in the order of the program's; and the mistakes of their sizes.
pub(crate) fn of(model: &Model) -> (Vec<ProgramInput>, Vec<Error>) {
    let (mut inputs, mut mistakes) = (Vec::new(), Vec::new());
    let mut formulas: BTreeMap<&str, &Formula> = BTreeMap::new();
    for input in &model.inputs {
        let (dtype, given): (DType, &[Formula]) = match &input.kind {
            InputKind::Tensor(spec) => (spec.dtype, &spec.sizes),
            InputKind::Number(dtype) => (*dtype, &[]),
            InputKind::Weight { .. } | InputKind::Value(_) => continue,
        };
        let mut sizes = Vec::with_capacity(given.len());
        for (dim, formula) in given.iter().enumerate() {
            let place = || format!("dimension {dim} of input `{}`", input.name);
            let known = formula.symbols().into_iter().find_map(|symbol| formulas.get(symbol).copied());
            match size(formula, known, &model.ranges) {
                Ok(size) => sizes.push(size),
                Err(error) => {
                    mistakes.push(error.with_note(format!("for {}", place())));
                    sizes.push(ProgramSize::Fixed(0));
                }
            }
            formula.symbols().into_iter().for_each(|symbol| {
                formulas.entry(symbol).or_insert(formula);
            });
        }
        inputs.push(ProgramInput { name: input.name.clone(), dtype, sizes });
    }
    (inputs, mistakes)
}

/// The names of the symbols of inputs, in their order.
pub(crate) fn symbols(inputs: &[ProgramInput]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for size in inputs.iter().flat_map(|input| &input.sizes) {
        if let ProgramSize::Symbol { name, .. } = size
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    }
    names
}

/// The inputs with one symbol for two; `None` if no size is both.
pub(crate) fn unified(inputs: &[ProgramInput], a: &str, b: &str) -> Option<Vec<ProgramInput>> {
    let find = |name: &str| {
        let mut sizes = inputs.iter().flat_map(|input| &input.sizes);
        sizes.find_map(|size| match size {
            ProgramSize::Symbol { name: known, multiple_of, least, most } if known == name => {
                Some((*multiple_of, *least, *most))
            }
            _ => None,
        })
    };
    let ((multiple, least, most), (other_multiple, other_least, other_most)) = (find(a)?, find(b)?);
    let least = least.max(other_least);
    let most = [most, other_most].into_iter().flatten().min();
    if multiple != other_multiple || most.is_some_and(|most| most < least) {
        return None;
    }
    let size = |size: &ProgramSize| match size {
        ProgramSize::Symbol { name, .. } if name == a || name == b => {
            ProgramSize::Symbol { name: a.to_owned(), multiple_of: multiple, least, most }
        }
        other => other.clone(),
    };
    let unified = |input: &ProgramInput| ProgramInput {
        sizes: input.sizes.iter().map(size).collect(),
        ..input.clone()
    };
    Some(inputs.iter().map(unified).collect())
}

/// A size, given another formula of the same symbol.
///
/// # Errors
/// If the symbol has no bounds, or several formulas of it are sizes.
fn size(formula: &Formula, known: Option<&Formula>, ranges: &BTreeMap<String, Range>) -> Result<ProgramSize> {
    if let Formula::Integer(number) = formula {
        return match number {
            0.. => Ok(ProgramSize::Fixed(*number)),
            _ => Err(Error::shape(format!("a size is {number}"))),
        };
    }
    let symbols = formula.symbols();
    let symbol = match symbols.first() {
        Some(symbol) if symbols.len() == 1 => *symbol,
        _ => return Err(unsupported(format!("a size of several symbols, {formula},"))),
    };
    let Some(range) = ranges.get(symbol) else {
        return Err(Error::graph(format!("the symbol `{symbol}` has no bounds"))
            .with_help("the program is damaged: each symbol has a row in `range_constraints`"));
    };
    if known.is_some_and(|known| known != formula) {
        let known = known.map_or(String::new(), Formula::to_string);
        return Err(unsupported(format!("a program with the sizes {known} and {formula} of inputs"))
            .with_help("export the program with only one of them dynamic"));
    }
    let at = |steps: i64| {
        let value = range.least.checked_add(steps)?;
        formula.evaluate(&|_| Some(value))
    };
    let beyond =
        || Error::graph(format!("the size {formula} has no value for a `{symbol}` within its bounds"));
    let least = at(0).ok_or_else(beyond)?;
    let step = at(1).ok_or_else(beyond)?.saturating_sub(least);
    let most = range.most.map(|most| formula.evaluate(&|_| Some(most)).ok_or_else(beyond)).transpose()?;
    let linear =
        (2..5).all(|steps| at(steps) == step.checked_mul(steps).and_then(|more| least.checked_add(more)));
    // A multiple is checked when a program runs; another remainder could not be.
    if !linear || step < 1 || step > 1 && least % step != 0 || least < 0 {
        return Err(unsupported(format!("a size {formula} of an input"))
            .with_help("export the program with sizes that are symbols or multiples of one"));
    }
    Ok(ProgramSize::Symbol { name: formula.to_string(), multiple_of: step, least, most })
}

/// Checks tensors for a run.
///
/// # Errors
/// If one has another dtype or shape than the program takes, is on another device, or a size is out of bounds.
pub(crate) fn check<T: Borrow<Tensor>>(inputs: &[ProgramInput], given: &[T], device: Device) -> Result<()> {
    if inputs.len() != given.len() {
        let names: Vec<String> = inputs.iter().map(ProgramInput::to_string).collect();
        let text = format!("the program takes {} inputs, and got {}", inputs.len(), given.len());
        return Err(Error::argument(text).with_help(format!("they are {}", names.join("; "))));
    }
    let mut values: BTreeMap<&str, (i64, &str, usize)> = BTreeMap::new();
    for (input, tensor) in inputs.iter().zip(given) {
        let tensor = tensor.borrow();
        check_elements(input, tensor, device)?;
        let misfit = |problem: String| {
            let text =
                format!("input `{}` has the shape {}: {problem}", input.name, ShapeText(tensor.shape()));
            Err(Error::shape(text).with_help(format!("the program takes {input}")))
        };
        if tensor.dim() != input.sizes.len() {
            return misfit(format!("the program takes {} dimensions", input.sizes.len()));
        }
        for (dim, (size, given)) in input.sizes.iter().zip(tensor.shape()).enumerate() {
            match size {
                ProgramSize::Fixed(size) if size == given => {}
                ProgramSize::Fixed(size) => {
                    return misfit(format!(
                        "dimension {dim} is {given}, and the program was exported for {size}"
                    ));
                }
                ProgramSize::Symbol { name, multiple_of, least, most } => {
                    if given < least || most.is_some_and(|most| *given > most) {
                        let bounds =
                            most.map_or(format!("at least {least}"), |most| format!("{least} to {most}"));
                        return misfit(format!(
                            "dimension {dim}, `{name}`, is {given}, and its bounds are {bounds}"
                        ));
                    }
                    if given % multiple_of != 0 {
                        return misfit(format!(
                            "dimension {dim}, `{name}`, is {given}, no multiple of {multiple_of}"
                        ));
                    }
                    let (known, other, at) = *values.entry(name).or_insert((*given, &input.name, dim));
                    if known != *given {
                        return misfit(format!(
                            "dimension {dim}, `{name}`, is {given}, and dimension {at} of `{other}` is {known}"
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Checks the dtype and the device of a tensor for a run.
///
/// # Errors
/// If the program takes another dtype, or is on another device.
fn check_elements(input: &ProgramInput, tensor: &Tensor, device: Device) -> Result<()> {
    let ProgramInput { name, dtype, .. } = input;
    if tensor.dtype() != *dtype {
        let text = format!("input `{name}` is {}, and the program takes {dtype}", tensor.dtype());
        return Err(Error::new(ErrorKind::DType, text).with_help("convert it before the run"));
    }
    if tensor.device() != device {
        let text = format!("input `{name}` is on {}, and the program on {device}", tensor.device());
        return Err(Error::device(text).with_help("move it to that device before the run: `to_device`"));
    }
    Ok(())
}
