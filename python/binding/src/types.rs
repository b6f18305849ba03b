//! Element types, devices and memory formats as Python objects.
//!
//! In: names, and the objects of NumPy and Python for element types. Out: one object for each element type.

use opsmith_runtime::error::Error;
use opsmith_runtime::{DType, Device, MemoryFormat};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyType};

use crate::errors::{near, raise};

/// An element type.
#[pyclass(name = "dtype", module = "opsmith", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyDType(pub DType);

/// One object for each element type, in the order of `DType::ALL`.
static DTYPES: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();

/// The object of an element type.
pub fn dtype_object(py: Python<'_>, dtype: DType) -> PyResult<Py<PyDType>> {
    let all =
        DTYPES.get_or_try_init(py, || DType::ALL.iter().map(|dtype| Py::new(py, PyDType(*dtype))).collect());
    all.map(|all: &Vec<Py<PyDType>>| all[dtype as usize].clone_ref(py))
}

#[pymethods]
impl PyDType {
    /// The element type of a name, of NumPy's object for it, or of a Python type.
    #[new]
    #[pyo3(signature = (value, /))]
    fn new(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyDType>> {
        dtype_object(py, read_dtype(value)?)
    }

    /// The name, such as `float32`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Bytes of an element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// Whether elements are real numbers with a point.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }

    /// Whether elements are complex numbers.
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_complex()
    }

    fn __repr__(&self) -> String {
        format!("opsmith.{}", self.python_name())
    }

    fn __reduce__(&self) -> &'static str {
        self.python_name()
    }
}

impl PyDType {
    /// The name in the module, which Python's own `bool` must not be hidden by.
    pub fn python_name(&self) -> &'static str {
        if self.0 == DType::Bool { "bool_" } else { self.0.name() }
    }
}

/// The element type of one of ours, a name, NumPy's object, or a Python type.
pub fn read_dtype(value: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Ok(own) = value.cast::<PyDType>() {
        return Ok(own.get().0);
    }
    let py = value.py();
    if let Ok(class) = value.cast::<PyType>() {
        let python = [
            (py.get_type::<PyBool>(), DType::Bool),
            (py.get_type::<PyInt>(), DType::I64),
            (py.get_type::<PyFloat>(), DType::F64),
            (py.get_type::<PyComplex>(), DType::C128),
        ];
        if let Some((_, dtype)) = python.iter().find(|(known, _)| known.is(class)) {
            return Ok(*dtype);
        }
    }
    let name = match value.cast::<PyString>() {
        Ok(name) => name.clone(),
        // NumPy's types have a name of Python, its objects one of their own.
        Err(_) => match value.getattr("name").or_else(|_| value.getattr("__name__")) {
            Ok(name) => name.str()?,
            Err(_) => {
                let error = Error::argument(format!("{} is no element type", value.repr()?));
                return Err(raise(py, error.with_help(element_types())));
            }
        },
    };
    dtype_of_name(py, &name.to_cow()?)
}

/// The element type of a name.
pub fn dtype_of_name(py: Python<'_>, name: &str) -> PyResult<DType> {
    let known = name.strip_prefix("torch.").unwrap_or(name).trim_end_matches('_');
    DType::from_name(known).ok_or_else(|| {
        let near = near(py, known, &DType::ALL.map(DType::name));
        let error = Error::argument(format!("there is no element type {name:?}{near}"));
        raise(py, error.with_help(element_types()))
    })
}

fn element_types() -> String {
    format!("the element types are {}", DType::ALL.map(DType::name).join(", "))
}

/// A device: `device("cpu")`, `device("cuda:0")`.
#[pyclass(name = "device", module = "opsmith", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyDevice(pub Device);

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (device, index=None))]
    fn new(device: &Bound<'_, PyAny>, index: Option<usize>) -> PyResult<PyDevice> {
        match index {
            None => read_device(device).map(PyDevice),
            Some(index) => device_of_name(device.py(), &format!("{}:{index}", device.str()?)).map(PyDevice),
        }
    }

    /// The family of devices: `cpu` or `cuda`.
    #[getter(r#type)]
    fn kind(&self) -> String {
        let name = self.0.to_string();
        name.split(':').next().unwrap_or_default().to_owned()
    }

    /// The number of the device in its family; None for the CPU.
    #[getter]
    fn index(&self) -> Option<usize> {
        self.0.to_string().split_once(':')?.1.parse().ok()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("opsmith.device(\"{}\")", self.0)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String,)) {
        (py.get_type::<PyDevice>(), (self.0.to_string(),))
    }
}

/// The device of one of ours, or of a name.
pub fn read_device(value: &Bound<'_, PyAny>) -> PyResult<Device> {
    match value.cast::<PyDevice>() {
        Ok(own) => Ok(own.get().0),
        Err(_) => device_of_name(value.py(), &value.str()?.to_cow()?),
    }
}

/// The device of a name.
pub fn device_of_name(py: Python<'_>, name: &str) -> PyResult<Device> {
    Device::from_name(name).ok_or_else(|| {
        let error = Error::value(format!("there is no device {name:?}"));
        raise(py, error.with_help("devices are \"cpu\", \"cuda\" and \"cuda:1\""))
    })
}

/// The order of a tensor's elements in memory.
#[pyclass(name = "memory_format", module = "opsmith", frozen, eq, hash)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyMemoryFormat(pub MemoryFormat);

#[pymethods]
impl PyMemoryFormat {
    fn __repr__(&self) -> String {
        format!("opsmith.{}", format_name(self.0))
    }

    fn __reduce__(&self) -> &'static str {
        format_name(self.0)
    }
}

fn format_name(format: MemoryFormat) -> &'static str {
    MemoryFormat::NAMES.iter().find(|(_, known)| *known == format).map_or("", |(name, _)| name)
}

/// Adds the classes and an object for each element type and memory format.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<PyDType>()?;
    module.add_class::<PyDevice>()?;
    module.add_class::<PyMemoryFormat>()?;
    for dtype in DType::ALL {
        module.add(PyDType(dtype).python_name(), dtype_object(py, dtype)?)?;
    }
    for (name, format) in MemoryFormat::NAMES {
        module.add(name, PyMemoryFormat(format))?;
    }
    Ok(())
}
