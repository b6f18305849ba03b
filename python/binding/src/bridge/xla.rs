//! Calls of operators from programs of XLA, by its interface for foreign functions: without the interpreter.
//!
//! In: a call frame, as that interface lays it out, whose attribute `call` describes the operator and the arguments that are no
//! arrays. Out: elements in the frame's result buffers, or an error. A description is decoded once in a process, by Python. On a device
//! of CUDA a call's work is in the program's stream, for which the host does not wait.

mod frame;

use std::collections::HashMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use opsmith_abi::Lists;
use opsmith_runtime::autograd::no_grad;
use opsmith_runtime::backend::ForeignStream;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{DType, Device, Tensor, Value, boxed, copy};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCapsule;

use super::definition::PyDefinition;
use crate::argument;
use crate::call::library;
use frame::{EXECUTE, Frame, INTERNAL, INVALID_ARGUMENT, Place, tell, tensors};

/// An argument of a call: a value, or the places of its arrays among the buffers.
enum Template {
    Value(Value),
    Array(usize),
    Arrays(Vec<Option<usize>>),
}

/// A derivative of a call. The program's buffers are the arrays, the results that are kept, and those that the lists name.
struct Derivative {
    is_forward: bool,
    /// Number of results of the call among the buffers.
    kept: usize,
    /// For each result: its gradient is among the buffers; in forward mode its tangent is a result.
    flows: Vec<bool>,
    /// For each array: a tangent is among the buffers.
    moved: Vec<bool>,
    /// For each array: a second tangent is among the buffers; in reverse mode its gradient is a result.
    others: Vec<bool>,
}

/// A decoded call.
struct Plan {
    op: &'static OpDef,
    arguments: Vec<(String, Template, Vec<DType>)>,
    derivative: Option<Derivative>,
}

static PLANS: Mutex<Option<HashMap<String, Arc<Plan>>>> = Mutex::new(None);
static DECODER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The plan of a description: a function of Python decodes one that is new to the process.
fn plan(text: &str) -> Result<Arc<Plan>> {
    let known = |text: &str| {
        let plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
        plans.as_ref().and_then(|plans| plans.get(text).cloned())
    };
    if let Some(plan) = known(text) {
        return Ok(plan);
    }
    let made = Python::attach(|py| decode(py, text)).map_err(|error| {
        Error::argument(format!("a call of XLA cannot be decoded: {error}"))
            .with_help("import opsmith.jax before programs that were saved are loaded")
    })?;
    let made = Arc::new(made);
    let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    plans.get_or_insert_with(HashMap::new).insert(text.to_owned(), made.clone());
    Ok(made)
}

type Decoded<'py> = (
    Bound<'py, PyDefinition>,
    Vec<(String, String, Bound<'py, PyAny>, Vec<String>)>,
    Option<(bool, usize, Vec<bool>, Vec<bool>, Vec<bool>)>,
);

fn decode(py: Python<'_>, text: &str) -> PyResult<Plan> {
    let decoder = DECODER.get(py).ok_or_else(|| PyValueError::new_err("no decoder is set"))?;
    let (definition, listed, derivative): Decoded<'_> = decoder.bind(py).call1((text,))?.extract()?;
    let one = |(name, kind, value, accepted): (String, String, Bound<'_, PyAny>, Vec<String>)| {
        let template = match kind.as_str() {
            "array" => Template::Array(value.extract()?),
            "arrays" => Template::Arrays(value.extract()?),
            _ => Template::Value(argument::read(&value)?),
        };
        let accepted = accepted.iter().filter_map(|name| DType::from_name(name)).collect();
        Ok((name, template, accepted))
    };
    let arguments = listed.into_iter().map(one).collect::<PyResult<Vec<_>>>()?;
    let derivative = derivative.map(|(is_forward, kept, flows, moved, others)| Derivative {
        is_forward,
        kept,
        flows,
        moved,
        others,
    });
    Ok(Plan { op: definition.get().0, arguments, derivative })
}

impl Plan {
    /// The arguments by name, with tensors in the places of arrays.
    fn bound(&self, arrays: &[Tensor]) -> Result<Vec<(String, Value)>> {
        let array = |place: usize| {
            arrays
                .get(place)
                .cloned()
                .ok_or_else(|| Error::argument("the program has fewer arrays than its call"))
        };
        let one = |(name, template, accepted): &(String, Template, Vec<DType>)| {
            let value = match template {
                Template::Value(value) => value.clone(),
                Template::Array(place) => Value::Tensor(accept(array(*place)?, accepted)?),
                Template::Arrays(places) if places.iter().all(Option::is_some) => {
                    Value::Tensors(places.iter().flatten().map(|place| array(*place)).collect::<Result<_>>()?)
                }
                Template::Arrays(places) => Value::OptionalTensors(
                    places.iter().map(|place| place.map(array).transpose()).collect::<Result<_>>()?,
                ),
            };
            Ok((name.clone(), value))
        };
        self.arguments.iter().map(one).collect()
    }

    fn run(&self, arrays: Vec<Tensor>) -> Result<Vec<Option<Tensor>>> {
        if let Some(derivative) = &self.derivative {
            return self.derived(derivative, &arrays);
        }
        let named = self.bound(&arrays)?;
        let named: Vec<(&str, Value)> =
            named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let mut found = Vec::new();
        for value in boxed::call_definition(self.op, &[], &named)? {
            value.as_arg().for_each_tensor(|tensor| found.push(Some(tensor.clone())));
        }
        Ok(found)
    }

    fn derived(&self, derivative: &Derivative, arrays: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let Derivative { is_forward, kept, flows, moved, others } = derivative;
        let (arrays, rest) = arrays.split_at(moved.len().min(arrays.len()));
        let (results, rest) = rest.split_at((*kept).min(rest.len()));
        let mut rest = rest.iter();
        let mut given = (Vec::new(), self.bound(arrays)?);
        let mut listed = |list: &[bool]| -> Vec<Option<Tensor>> {
            list.iter().map(|is_there| is_there.then(|| rest.next().cloned()).flatten()).collect()
        };
        let is_first = |list: &[bool]| list.iter().all(|one| !one);
        if *is_forward {
            let (steps, second) = (listed(moved), listed(others));
            let lists = [steps.as_slice(), second.as_slice()];
            let along = if is_first(others) { &lists[..1] } else { &lists[..] };
            let (_, found) = no_grad(|| opsmith_abi::tangents(self.op, &given, along))?;
            let wanted = found.into_iter().zip(flows).filter(|(_, flows)| **flows);
            return Ok(wanted.map(|(found, _)| found).collect());
        }
        let mut gradients = listed(flows);
        if is_first(moved) {
            let results = (*kept > 0).then(|| results.to_vec());
            let found = opsmith_abi::gradients(self.op, &mut given, results, &gradients, others);
            return found.map(|(_, found)| found);
        }
        let cotangents: Vec<Option<Tensor>> = listed(moved).into_iter().flatten().map(Some).collect();
        let present = gradients.iter().flatten().count();
        let needed: Vec<bool> = std::iter::repeat_n(false, present).chain(others.iter().copied()).collect();
        let lists = Lists { cotangents: &cotangents, needed: &needed, wanted: moved };
        opsmith_abi::second(self.op, &mut given, &mut gradients, results, &lists).map(|(_, found)| found)
    }
}

/// A tensor of a dtype that an argument accepts: frameworks may have integers of 32 bits alone.
fn accept(tensor: Tensor, accepted: &[DType]) -> Result<Tensor> {
    match accepted.first() {
        Some(first) if !accepted.contains(&tensor.dtype()) => {
            let target = Value::DType(*first);
            let found = boxed::call(library(), "to.dtype", &[Value::Tensor(tensor), target], &[])?;
            found.into_iter().next().map_or_else(|| Err(Error::dtype("no conversion")), Value::into_tensor)
        }
        _ => Ok(tensor),
    }
}

/// Runs a frame, on the host or on a device in the program's stream.
///
/// # Safety
/// The frame is one of XLA's, of a version that is known here, and of a program on that place.
unsafe fn run(frame: &Frame, place: Place) -> Result<()> {
    // SAFETY: the caller's promise.
    let plan = plan(unsafe { frame.text()? })?;
    let device = place.map_or(Device::CPU, |(device, _)| device);
    // SAFETY: streams of XLA's devices live as long as the devices, which go with the process.
    let enter = |(device, stream)| unsafe { ForeignStream::enter(device, stream) };
    let entered = place.map(enter).transpose()?;
    // SAFETY: tensors over buffers go at the end of this function, as do results that share their memory.
    let (arrays, targets) = unsafe { (tensors(&frame.arguments, device)?, tensors(&frame.results, device)?) };
    let found = plan.run(arrays)?;
    if found.len() != targets.len() {
        return Err(Error::argument(format!("{} results for {} buffers", found.len(), targets.len())));
    }
    for (target, found) in targets.iter().zip(found) {
        match found {
            Some(found) if found.shape() != target.shape() => {
                return Err(Error::shape("a result has another shape than the program expects"));
            }
            Some(found) => copy::copy(target, &found.detach())?,
            None => copy::copy(target, &Tensor::scalar(0.0, target.dtype()))?,
        }
    }
    entered.map_or(Ok(()), ForeignStream::leave)
}

/// The body of a handler: answers questions, runs a call, and makes an error of XLA of one of opsmith.
///
/// # Safety
/// XLA calls it with a frame, whose place the function finds.
unsafe fn handled(frame: *mut Frame, place: unsafe fn(&Frame) -> Result<Place>) -> *mut c_void {
    // SAFETY: the frame is valid during the call.
    let frame = unsafe { &*frame };
    // SAFETY: as above.
    if unsafe { tell(frame) } || frame.stage != EXECUTE {
        return std::ptr::null_mut();
    }
    // SAFETY: as above.
    let run = || unsafe { place(frame).and_then(|place| run(frame, place)) };
    let (message, code) = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return std::ptr::null_mut(),
        Ok(Err(error)) => (error.to_string(), INVALID_ARGUMENT),
        Err(_) => ("a mistake in opsmith itself, please report it".to_owned(), INTERNAL),
    };
    // SAFETY: as above.
    unsafe { frame.error(&message, code) }
}

/// The handler of programs on the host.
///
/// # Safety
/// XLA calls it with a frame.
unsafe extern "C" fn on_host(frame: *mut Frame) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { handled(frame, |_| Ok(None)) }
}

/// The handler of programs on devices of CUDA.
///
/// # Safety
/// XLA calls it with a frame of such a program.
unsafe extern "C" fn on_cuda(frame: *mut Frame) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { handled(frame, Frame::place_on_cuda) }
}

/// A handler, as frameworks register it, and the function that decodes its descriptions.
#[pyfunction]
fn _xla_handler(py: Python<'_>, decoder: Py<PyAny>, is_on_device: bool) -> PyResult<Bound<'_, PyCapsule>> {
    _ = DECODER.set(py, decoder);
    let handler: unsafe extern "C" fn(*mut Frame) -> *mut c_void =
        if is_on_device { on_cuda } else { on_host };
    // SAFETY: a function is valid for ever, and the capsule has no destructor.
    unsafe {
        Bound::from_owned_ptr_or_err(
            py,
            pyo3::ffi::PyCapsule_New(handler as *mut c_void, c"xla._CUSTOM_CALL_TARGET".as_ptr(), None),
        )
        .and_then(|capsule| Ok(capsule.cast_into::<PyCapsule>()?))
    }
}

/// Adds the function.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_xla_handler, module)?)
}
