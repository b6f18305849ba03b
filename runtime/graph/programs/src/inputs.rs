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

use crate::expression::Formula;
use crate::model::{InputKind, Model};
use crate::sizes::{self, ProgramSize};

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

impl fmt::Display for ProgramInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self
            .sizes
            .iter()
            .map(|size| match size {
                ProgramSize::Fixed(size) => size.to_string(),
                ProgramSize::Symbol { name, .. } | ProgramSize::Sum { name, .. } => name.clone(),
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
            Dim::Sum { terms, plus } => {
                ProgramSize::Sum { name: dim.to_string(), terms: terms.clone(), plus: *plus }
            }
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
            ProgramSize::Sum { terms, plus, .. } => Dim::Sum { terms: terms.clone(), plus: *plus },
        };
        InputSpec::new(self.dtype, self.sizes.iter().map(dim)).named(self.name.clone()).on(device)
    }
}

/// The dtype and the sizes of an input that each run gets.
fn given(kind: &InputKind) -> Option<(DType, &[Formula])> {
    match kind {
        InputKind::Tensor(spec) => Some((spec.dtype, &spec.sizes)),
        InputKind::Number(dtype) => Some((*dtype, &[])),
        InputKind::Weight { .. } | InputKind::Value(_) => None,
    }
}

/// The inputs of each run, in the order of the program's; and the mistakes of their sizes.
pub(crate) fn of(model: &Model) -> (Vec<ProgramInput>, Vec<Error>) {
    let (mut inputs, mut mistakes) = (Vec::new(), Vec::new());
    let formulas = model.inputs.iter().filter_map(|input| given(&input.kind)).flat_map(|(_, sizes)| sizes);
    let mut solved = sizes::sizes(&formulas.collect::<Vec<_>>(), &model.ranges).into_iter();
    for input in &model.inputs {
        let Some((dtype, given)) = given(&input.kind) else { continue };
        let mut sizes = Vec::with_capacity(given.len());
        for (dim, size) in solved.by_ref().take(given.len()).enumerate() {
            sizes.push(size.unwrap_or_else(|error| {
                mistakes.push(error.with_note(format!("for dimension {dim} of input `{}`", input.name)));
                ProgramSize::Fixed(0)
            }));
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
        ProgramSize::Sum { name, terms, plus } => {
            let renamed = |(factor, name): &(i64, String)| {
                (*factor, if name == b { a.to_owned() } else { name.clone() })
            };
            ProgramSize::Sum { name: name.clone(), terms: terms.iter().map(renamed).collect(), plus: *plus }
        }
        other => other.clone(),
    };
    let unified = |input: &ProgramInput| ProgramInput {
        sizes: input.sizes.iter().map(size).collect(),
        ..input.clone()
    };
    Some(inputs.iter().map(unified).collect())
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
                // The sizes that determine it may follow.
                ProgramSize::Sum { .. } => {}
            }
        }
    }
    let value = |name: &str| values.get(name).map(|(value, ..)| *value);
    inputs.iter().zip(given).try_for_each(|(input, tensor)| check_sums(input, tensor.borrow(), &value))
}

/// Checks the sizes that others determine.
///
/// # Errors
/// If one differs.
fn check_sums(input: &ProgramInput, tensor: &Tensor, value: &dyn Fn(&str) -> Option<i64>) -> Result<()> {
    for (dim, (size, given)) in input.sizes.iter().zip(tensor.shape()).enumerate() {
        let ProgramSize::Sum { name, terms, plus } = size else { continue };
        let sum = terms
            .iter()
            .try_fold(*plus, |sum, (factor, name)| sum.checked_add(factor.checked_mul(value(name)?)?));
        if sum == Some(*given) {
            continue;
        }
        let of: Vec<String> = terms
            .iter()
            .map(|(_, name)| {
                format!("`{name}` = {}", value(name).map_or("?".to_owned(), |size| size.to_string()))
            })
            .collect();
        let text = format!(
            "input `{}` has the shape {}: dimension {dim}, `{name}`, is {given}, not {}, for {}",
            input.name,
            ShapeText(tensor.shape()),
            sum.map_or("any size".to_owned(), |sum| sum.to_string()),
            of.join(", ")
        );
        return Err(Error::shape(text).with_help(format!("the program takes {input}")));
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
