//! Exceptions: errors of the runtime as classes of Python.
//!
//! In: an error. Out: an exception of the class of its kind, which is also Python's own class for such mistakes, with the
//! error's whole text and its parts as attributes. An exception that a Python function raised inside a call of the runtime
//! comes out unchanged.

use std::cell::RefCell;

use opsmith_runtime::embedder::Embedder;
use opsmith_runtime::error::{Error, ErrorKind, ErrorOperand, ShapeText};
use pyo3::exceptions;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// The classes, in the order of [`KINDS`].
static CLASSES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

thread_local! {
    /// The exception that a Python function raised inside a call of the runtime, with the message of the error that carries it:
    /// the runtime may drop that error, and report another one later.
    static RAISED: RefCell<Option<(String, PyErr)>> = const { RefCell::new(None) };
}

/// Kinds with the names of their classes and a sentence each.
const KINDS: [(ErrorKind, &str, &str); 14] = [
    (ErrorKind::Shape, "ShapeError", "Incompatible shapes."),
    (ErrorKind::DType, "DTypeError", "An element type that is not supported or does not match."),
    (ErrorKind::Device, "DeviceError", "A tensor on the wrong device."),
    (ErrorKind::Index, "OutOfRangeError", "An index or dimension out of range."),
    (ErrorKind::Value, "AttributeValueError", "An attribute whose value is not allowed."),
    (ErrorKind::Argument, "ArgumentError", "The wrong number or type of arguments."),
    (ErrorKind::Memory, "OutOfMemoryError", "More memory than the system has."),
    (ErrorKind::Aliasing, "AliasingError", "Memory shared where a kernel does not support it."),
    (ErrorKind::Autograd, "AutogradError", "A mistake in differentiation."),
    (ErrorKind::NotFound, "NotFoundError", "An unknown name."),
    (ErrorKind::NotImplemented, "UnsupportedError", "A kernel or derivative that does not exist."),
    (ErrorKind::Io, "FileError", "A file that cannot be read or written."),
    (ErrorKind::Kernel, "KernelError", "A failure reported by a kernel outside the project."),
    (
        ErrorKind::Graph,
        "GraphError",
        "A function that cannot become a graph, or a graph whose arguments do not fit.",
    ),
];

/// Python's own class for a kind of mistake.
fn base(py: Python<'_>, kind: ErrorKind) -> Bound<'_, PyType> {
    match kind {
        ErrorKind::Shape | ErrorKind::Value => py.get_type::<exceptions::PyValueError>(),
        ErrorKind::DType | ErrorKind::Argument => py.get_type::<exceptions::PyTypeError>(),
        ErrorKind::Index => py.get_type::<exceptions::PyIndexError>(),
        ErrorKind::Memory => py.get_type::<exceptions::PyMemoryError>(),
        ErrorKind::NotFound => py.get_type::<exceptions::PyLookupError>(),
        ErrorKind::NotImplemented => py.get_type::<exceptions::PyNotImplementedError>(),
        ErrorKind::Io => py.get_type::<exceptions::PyOSError>(),
        _ => py.get_type::<exceptions::PyRuntimeError>(),
    }
}

/// Makes the classes.
pub fn install<'py>(module: &Bound<'py, PyModule>, package: &str) -> PyResult<()> {
    let py = module.py();
    let make = |name: &str, bases: Bound<'py, PyTuple>, doc: &str| -> PyResult<Bound<'py, PyType>> {
        let members = PyDict::new(py);
        members.set_item("__module__", package)?;
        members.set_item("__doc__", doc)?;
        let class = py.get_type::<PyType>().call1((name, bases, members))?;
        module.add(name, &class)?;
        Ok(class.cast_into::<PyType>()?)
    };
    let doc = "A mistake that the library found.\n\n`operator` is the called operator or None, `message` the mistake, `help` the \
               cure or None, `operands` the tensors of the call as pairs of a name and a text, `notes` its places.";
    let all = make("Error", PyTuple::new(py, [py.get_type::<exceptions::PyException>()])?, doc)?;
    for name in ["operator", "help"] {
        all.setattr(name, py.None())?;
    }
    let classes = KINDS.iter().map(|(kind, name, doc)| {
        Ok(make(name, PyTuple::new(py, [all.clone(), base(py, *kind)])?, doc)?.unbind())
    });
    let classes = classes.collect::<PyResult<Vec<_>>>()?;
    CLASSES.set(py, classes).map_err(|_| exceptions::PyImportError::new_err("the module is filled twice"))
}

/// The exception of an error.
#[cold]
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    if let Some((message, raised)) = RAISED.take()
        && error.message() == message
    {
        return raised;
    }
    exception(py, &error).unwrap_or_else(|_| exceptions::PyRuntimeError::new_err(error.to_string()))
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let position = KINDS.iter().position(|(kind, ..)| *kind == error.kind());
    let class = CLASSES.get(py).zip(position).and_then(|(classes, position)| classes.get(position));
    let Some(class) = class else { return Ok(exceptions::PyRuntimeError::new_err(error.to_string())) };
    let value = class.bind(py).call1((error.to_string(),))?;
    value.setattr("operator", error.op())?;
    value.setattr("message", error.message())?;
    value.setattr("help", error.help())?;
    value.setattr("notes", error.notes().to_vec())?;
    let text = |operand: &ErrorOperand| match &operand.formulas {
        Some(formulas) => format!("{} {formulas}", operand.dtype),
        None => format!("{} {}", operand.dtype, ShapeText(&operand.shape)),
    };
    let operands: Vec<_> =
        error.operands().iter().map(|operand| (operand.name.clone(), text(operand))).collect();
    value.setattr("operands", operands)?;
    Ok(PyErr::from_value(value))
}

/// The error that carries an exception of a Python function through the runtime.
pub fn carry(error: PyErr) -> Error {
    let text = Python::attach(|py| error.value(py).to_string());
    let message = format!("a Python function raised: {text}");
    RAISED.set(Some((message.clone(), error)));
    Error::new(ErrorKind::Argument, message)
}

/// The words after an unknown name: `; did you mean "NAME"?`, or none if no known one is near.
pub fn near(py: Python<'_>, name: &str, known: &[&str]) -> String {
    let find = || -> PyResult<String> {
        let found = py.import("difflib")?.call_method1("get_close_matches", (name, known.to_vec(), 1))?;
        Ok(format!("; did you mean {:?}?", found.get_item(0)?.extract::<String>()?))
    };
    find().unwrap_or_default()
}

/// Has a long call ask for signals, whose handlers run in the main thread, and lets other threads of Python run where a call waits for
/// memory that one of them uses.
pub fn embed() {
    opsmith_runtime::embedder::set(Embedder {
        // At the end of the interpreter no handler runs any more.
        poll: || Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(())).map_err(carry),
        sleep: |time| {
            let slept = Python::try_attach(|py| py.detach(|| std::thread::sleep(time)));
            slept.unwrap_or_else(|| std::thread::sleep(time));
        },
    });
}

/// Forgets a carried exception whose error was dropped.
pub fn forget() {
    RAISED.take();
}

/// The result of the runtime as one of Python.
pub trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for opsmith_runtime::Result<T> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raise(py, error))
    }
}
