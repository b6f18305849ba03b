//! The objects of a call as values of the runtime, by the facts that its signatures have of each argument.
//!
//! In: the overloads of a name, and an object with its place in the call. Out: its value. An object that the call writes into is a
//! tensor, or an array whose own memory a tensor can have: a copy would be written in its place, and the result be lost. Names of
//! element types and devices are read here, so that a wrong one is an error with its text.

use opsmith_runtime::error::Error;
use opsmith_runtime::library::{Form, Named};
use opsmith_runtime::op::{ArgDef, ArgKind, OpDef};
use opsmith_runtime::{Tensor, Value};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::documentation::argument_name;
use crate::errors::raise;
use crate::tensor::PyTensor;
use crate::{argument, construct, types};

/// The place of an argument in a call.
#[derive(Clone, Copy)]
enum Place<'a> {
    At(usize),
    Named(&'a str),
}

/// Reads the objects of one call.
pub struct Reader<'a> {
    /// The name that is called.
    name: &'a str,
    candidates: &'a [Named],
    /// Arrays without elements that the call writes into, with the names of their arguments.
    empty: Vec<(String, Tensor)>,
}

impl<'a> Reader<'a> {
    /// For a call of a name with these overloads.
    pub fn new(name: &'a str, candidates: &'a [Named]) -> Reader<'a> {
        Reader { name, candidates, empty: Vec::new() }
    }

    /// The value of an object by position.
    pub fn at(&mut self, position: usize, object: &Bound<'_, PyAny>) -> PyResult<Value> {
        self.read(Place::At(position), object)
    }

    /// The value of an object by name.
    pub fn named(&mut self, name: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
        self.read(Place::Named(name), object)
    }

    /// Checks, after the call, that no array had to get the shape of a result: only a tensor can.
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        match self.empty.iter().find(|(_, tensor)| tensor.numel() != 0) {
            None => Ok(()),
            Some((name, made)) => Err(self.refused(
                py,
                format!(
                    "`{name}` is an array without elements, which cannot get the shape {} of the result",
                    opsmith_runtime::error::ShapeText(made.shape())
                ),
            )),
        }
    }

    fn read(&mut self, place: Place<'_>, object: &Bound<'_, PyAny>) -> PyResult<Value> {
        let py = object.py();
        if self.is_written(place) {
            return self.written(place, object);
        }
        match argument::read(object)? {
            Value::Str(name) if self.is_of_kind(place, ArgKind::DType) => {
                types::dtype_of_name(py, &name).map(Value::DType)
            }
            Value::Str(name) if self.is_of_kind(place, ArgKind::Device) => {
                types::device_of_name(py, &name).map(Value::Device)
            }
            value => Ok(value),
        }
    }

    /// The declarations of the argument, of the overloads that have it.
    fn defs(&self, place: Place<'_>) -> impl Iterator<Item = (&'a ArgDef, usize, Named)> {
        self.candidates.iter().filter_map(move |(op, form)| {
            let position = match place {
                Place::At(position) => position,
                Place::Named(name) => op.argument(name)?,
            };
            op.schema.args.get(position).map(|def| (def, position, (*op, *form)))
        })
    }

    /// Whether every overload with the argument declares it so.
    fn is_of_kind(&self, place: Place<'_>, kind: ArgKind) -> bool {
        self.defs(place).next().is_some() && self.defs(place).all(|(def, ..)| def.ty.kind == kind)
    }

    /// Whether an overload has a number in the place of another one's tensor.
    fn takes_numbers(&self, place: Place<'_>) -> bool {
        let tensors = [ArgKind::Tensor, ArgKind::Tensors, ArgKind::OptionalTensors];
        self.defs(place).any(|(def, ..)| !tensors.contains(&def.ty.kind))
    }

    /// Whether a form writes into the argument: it is that of an in-place form, or no argument but a result.
    fn is_written(&self, place: Place<'_>) -> bool {
        if let Place::Named(name) = place
            && self.defs(place).next().is_none()
        {
            return self.candidates.iter().any(|(op, _)| is_output(op, name));
        }
        self.defs(place).any(|(_, position, (op, form))| {
            form == Form::Inplace
                && match op.inplace_pairs {
                    [] => position == 0,
                    pairs => pairs.iter().any(|(argument, _)| usize::from(*argument) == position),
                }
        })
    }

    /// The value of an object that the call writes into.
    fn written(&mut self, place: Place<'_>, object: &Bound<'_, PyAny>) -> PyResult<Value> {
        let items: Option<Vec<Bound<'_, PyAny>>> = match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
            (Ok(list), _) => Some(list.iter().collect()),
            (_, Ok(tuple)) => Some(tuple.iter().collect()),
            _ => None,
        };
        if let Some(items) = items {
            let read = |item: &Bound<'_, PyAny>| match item.is_none() {
                true => Ok(Some(None)),
                false => self.shared(place, item).map(|found| found.map(Some)),
            };
            let tensors = items.iter().map(read).collect::<PyResult<Option<Vec<Option<Tensor>>>>>()?;
            return match tensors {
                Some(tensors) if !tensors.is_empty() => {
                    let all = tensors.iter().cloned().collect::<Option<Vec<Tensor>>>();
                    Ok(all.map_or(Value::OptionalTensors(tensors), Value::Tensors))
                }
                _ => argument::read(object),
            };
        }
        if let Some(tensor) = self.shared(place, object)? {
            return Ok(Value::Tensor(tensor));
        }
        match argument::read(object)? {
            number @ (Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Scalar(_))
                if !self.takes_numbers(place) =>
            {
                let argument = self.argument(place);
                let kind = number.as_arg().kind();
                Err(self.refused(object.py(), format!("`{argument}` is written, and {kind} cannot be")))
            }
            value => Ok(value),
        }
    }

    /// The tensor, or that over an array's own memory; `None` for other objects.
    fn shared(&mut self, place: Place<'_>, object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
        if let Ok(own) = object.cast::<PyTensor>() {
            return Ok(Some(own.get().0.clone()));
        }
        if construct::is_numpy_number(object) || !construct::is_array(object)? {
            return Ok(None);
        }
        let py = object.py();
        let argument = self.argument(place);
        let tensor = construct::writable(object).map_err(|error| {
            let class = argument::class_name(object);
            let text = error.value(py).str().map(|text| text.to_string()).unwrap_or_default();
            let reason = text.lines().next().unwrap_or_default();
            self.refused(
                py,
                format!(
                    "`{argument}` is written, and a tensor cannot have the memory of this `{class}`: {reason}"
                ),
            )
        })?;
        if tensor.numel() == 0 {
            self.empty.push((argument, tensor.clone()));
        }
        Ok(Some(tensor))
    }

    /// The name of an argument in Python.
    fn argument(&self, place: Place<'_>) -> String {
        match (place, self.defs(place).next()) {
            (_, Some((def, ..))) => argument_name(def),
            (Place::Named(name), None) => name.to_owned(),
            (Place::At(position), None) => format!("argument {position}"),
        }
    }

    fn refused(&self, py: Python<'_>, message: String) -> PyErr {
        let error = Error::argument(message).in_op(self.name.to_owned(), Vec::new());
        raise(py, error.with_help("give a tensor, or an array of a known element type that may be written"))
    }
}

/// The tensors of a run, which may write into them.
pub struct Inputs {
    /// One for each input.
    pub tensors: Vec<Tensor>,
    /// Copies of arrays whose memory a tensor cannot have: the input's position, and the version before the run.
    copies: Vec<(usize, u64)>,
}

impl Inputs {
    /// The tensors of objects by position.
    pub fn read(inputs: &Bound<'_, PyTuple>) -> PyResult<Inputs> {
        let mut read = Inputs { tensors: Vec::with_capacity(inputs.len()), copies: Vec::new() };
        for (position, input) in inputs.iter().enumerate() {
            let is_array = !input.is_instance_of::<PyTensor>() && construct::is_array(&input)?;
            let shared = if is_array { construct::writable(&input).ok() } else { None };
            let is_copy = is_array && shared.is_none();
            let tensor = shared.map_or_else(|| argument::read_tensor(&input), Ok)?;
            if is_copy {
                read.copies.push((position, tensor.version()));
            }
            read.tensors.push(tensor);
        }
        Ok(read)
    }

    /// Checks, after the run, that it wrote into no copy.
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        match self.copies.iter().find(|(position, version)| self.tensors[*position].version() != *version) {
            None => Ok(()),
            Some((position, _)) => {
                let error = Error::argument(format!(
                    "the run wrote into its input {position}, an array whose memory a tensor cannot have, so that the array is unchanged"
                ));
                Err(raise(py, error.with_help("give a tensor: `opsmith.asarray(array)`")))
            }
        }
    }
}

/// Whether a keyword that is no argument means a result: `out`, `out0`, or its name.
fn is_output(op: &OpDef, key: &str) -> bool {
    let digits = key.strip_prefix("out");
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        || op.schema.returns.iter().any(|result| result.name == Some(key))
}
