//! Python's operators between tensors, numbers and arrays.
//!
//! In: two operands, of which one is a tensor. Out: the result of the operator with the symbol's name, whose overloads take
//! tensors and numbers; or `NotImplemented`, so that Python tries the other operand.

use std::sync::OnceLock;

use opsmith_runtime::{DType, Tensor, Value};
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::argument;
use crate::bind::{self, Given};
use crate::call::{Overloads, tensor_by_name};
use crate::construct;
use crate::errors::OrRaise;
use crate::tensor::{PyTensor, is_tensor, tensor_of};

/// The operator of a symbol, and its overloads once it was called.
struct Symbol {
    name: &'static str,
    overloads: OnceLock<Overloads>,
}

impl Symbol {
    const fn new(name: &'static str) -> Symbol {
        Symbol { name, overloads: OnceLock::new() }
    }

    #[inline]
    fn call(&self, py: Python<'_>, operands: &[*mut ffi::PyObject]) -> PyResult<Py<PyAny>> {
        let overloads = match self.overloads.get() {
            Some(overloads) => overloads,
            None => {
                let found = Overloads::of(self.name).or_raise(py)?;
                self.overloads.get_or_init(|| found)
            }
        };
        let given = Given { objects: operands, positional: operands.len(), names: std::ptr::null_mut() };
        // SAFETY: the operands are valid while the call runs, and the result is a new reference.
        unsafe { overloads.call(py, given).map(|object| Bound::from_owned_ptr(py, object).unbind()) }
    }

    /// The call with two operands, if `other`, the one of them that is not the tensor of the method, can be an operand.
    #[inline]
    fn between(
        &self,
        first: &Bound<'_, PyAny>,
        second: &Bound<'_, PyAny>,
        other: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let py = other.py();
        if !is_operand(other)? {
            return Ok(py.NotImplemented());
        }
        self.call(py, &[first.as_ptr(), second.as_ptr()])
    }
}

/// Whether an object can be an operand: a tensor, a number or an array.
#[inline]
fn is_operand(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if is_tensor(object.as_ptr()) || bind::is_plain_number(object.as_ptr()) {
        return Ok(true);
    }
    is_other_operand(object)
}

#[cold]
fn is_other_operand(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if argument::number(object).is_ok_and(|number| number.is_some()) {
        return Ok(true);
    }
    Ok(object.is_instance_of::<PyTensor>()
        || construct::is_array(object)?
        || construct::is_numpy_number(object))
}

/// A number on the left as a tensor without dimensions, where the operator has no overload that takes a number first. Its
/// element type follows the tensor's, as that of a number on the right does.
fn lifted(tensor: &Tensor, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = other.py();
    let Some(number) = argument::number(other)? else { return Ok(other.clone().unbind()) };
    let own = number.dtype();
    let dtype = match (tensor.dtype(), own) {
        (dtype, _) if dtype.is_complex() || dtype.is_stored() => dtype,
        (DType::F32 | DType::F64 | DType::F16 | DType::BF16, DType::C64) => own,
        (dtype @ (DType::F32 | DType::F64 | DType::F16 | DType::BF16), _) => dtype,
        (DType::Bool, own) => own,
        (_, DType::F32 | DType::C64) => own,
        (dtype, _) => dtype,
    };
    Ok(Py::new(py, PyTensor(Tensor::scalar(number, dtype)))?.into_any())
}

/// Operators with two operands. The order of operands of the reversed form is `swapped` where a sum does not depend on it, so
/// that a number takes the overload for numbers; `first` keeps it.
#[pymethods]
impl PyTensor {
    fn __add__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("add");
        SYMBOL.between(slf, other, other)
    }

    fn __radd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("add");
        SYMBOL.between(slf, other, other)
    }

    fn __iadd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("add_");
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __sub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("sub");
        SYMBOL.between(slf, other, other)
    }

    fn __rsub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("rsub");
        SYMBOL.between(slf, other, other)
    }

    fn __isub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("sub_");
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __mul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("mul");
        SYMBOL.between(slf, other, other)
    }

    fn __rmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("mul");
        SYMBOL.between(slf, other, other)
    }

    fn __imul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("mul_");
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __truediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("div");
        SYMBOL.between(slf, other, other)
    }

    fn __rtruediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("div");
        SYMBOL.between(lifted(&slf.get().0, other)?.bind(slf.py()), slf, other)
    }

    fn __itruediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("div_");
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __floordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("floor_divide");
        SYMBOL.between(slf, other, other)
    }

    fn __rfloordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("floor_divide");
        SYMBOL.between(lifted(&slf.get().0, other)?.bind(slf.py()), slf, other)
    }

    fn __ifloordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("floor_divide_");
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __mod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("remainder");
        SYMBOL.between(slf, other, other)
    }

    fn __rmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("remainder");
        SYMBOL.between(lifted(&slf.get().0, other)?.bind(slf.py()), slf, other)
    }

    fn __imod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("remainder_");
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __matmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("matmul");
        SYMBOL.between(slf, other, other)
    }

    fn __rmatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("matmul");
        SYMBOL.between(lifted(&slf.get().0, other)?.bind(slf.py()), slf, other)
    }

    fn __and__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("bitwise_and");
        SYMBOL.between(slf, other, other)
    }

    fn __rand__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("bitwise_and");
        SYMBOL.between(slf, other, other)
    }

    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("bitwise_and_");
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __or__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("bitwise_or");
        SYMBOL.between(slf, other, other)
    }

    fn __ror__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("bitwise_or");
        SYMBOL.between(slf, other, other)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("bitwise_or_");
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __xor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("bitwise_xor");
        SYMBOL.between(slf, other, other)
    }

    fn __rxor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("bitwise_xor");
        SYMBOL.between(slf, other, other)
    }

    fn __ixor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("bitwise_xor_");
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __lshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("bitwise_left_shift");
        SYMBOL.between(slf, other, other)
    }

    fn __rlshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("bitwise_left_shift");
        SYMBOL.between(lifted(&slf.get().0, other)?.bind(slf.py()), slf, other)
    }

    fn __ilshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("bitwise_left_shift_");
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __rshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("bitwise_right_shift");
        SYMBOL.between(slf, other, other)
    }

    fn __rrshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("bitwise_right_shift");
        SYMBOL.between(lifted(&slf.get().0, other)?.bind(slf.py()), slf, other)
    }

    fn __irshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("bitwise_right_shift_");
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __pow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("pow");
        without_modulo(modulo)?;
        SYMBOL.between(slf, other, other)
    }

    fn __rpow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("pow");
        without_modulo(modulo)?;
        SYMBOL.between(other, slf, other)
    }

    fn __ipow__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, modulo: &Bound<'_, PyAny>) -> PyResult<()> {
        static SYMBOL: Symbol = Symbol::new("pow_");
        without_modulo(modulo)?;
        SYMBOL.call(slf.py(), &[slf.as_ptr(), other.as_ptr()]).map(drop)
    }

    fn __divmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let quotient = Self::__floordiv__(slf, other)?;
        let remainder = Self::__mod__(slf, other)?;
        both(other.py(), quotient, remainder)
    }

    fn __rdivmod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let quotient = Self::__rfloordiv__(slf, other)?;
        let remainder = Self::__rmod__(slf, other)?;
        both(other.py(), quotient, remainder)
    }

    #[pyo3(signature = (ndigits=None))]
    fn __round__(&self, py: Python<'_>, ndigits: Option<i64>) -> PyResult<PyTensor> {
        let tensor = Value::Tensor(self.0.clone());
        let places: Vec<(&str, Value)> =
            ndigits.map(|places| ("decimals", Value::Int(places))).into_iter().collect();
        tensor_by_name(py, "round", &[tensor], &places).map(PyTensor)
    }

    fn __neg__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("neg");
        SYMBOL.call(slf.py(), &[slf.as_ptr()])
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __abs__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("abs");
        SYMBOL.call(slf.py(), &[slf.as_ptr()])
    }

    fn __invert__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        static SYMBOL: Symbol = Symbol::new("bitwise_not");
        SYMBOL.call(slf.py(), &[slf.as_ptr()])
    }

    fn __richcmp__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        symbol: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        comparison(symbol).between(slf, other, other)
    }
}

/// Refuses the third argument of `pow`.
fn without_modulo(modulo: &Bound<'_, PyAny>) -> PyResult<()> {
    if modulo.is_none() {
        return Ok(());
    }
    Err(PyTypeError::new_err("`pow` of a tensor takes no modulus\n  help: write `pow(x, y) % modulus`"))
}

/// Two results of an operator; `NotImplemented` if one of them is.
fn both(py: Python<'_>, first: Py<PyAny>, second: Py<PyAny>) -> PyResult<Py<PyAny>> {
    let missing = py.NotImplemented();
    match first.is(&missing) || second.is(&missing) {
        true => Ok(missing),
        false => (first, second).into_py_any(py),
    }
}

/// The operator of a comparison.
fn comparison(symbol: CompareOp) -> &'static Symbol {
    static SYMBOLS: [Symbol; 6] = [
        Symbol::new("lt"),
        Symbol::new("le"),
        Symbol::new("eq"),
        Symbol::new("ne"),
        Symbol::new("gt"),
        Symbol::new("ge"),
    ];
    let place = match symbol {
        CompareOp::Lt => 0,
        CompareOp::Le => 1,
        CompareOp::Eq => 2,
        CompareOp::Ne => 3,
        CompareOp::Gt => 4,
        CompareOp::Ge => 5,
    };
    &SYMBOLS[place]
}

/// The elements that compare so with an object; `None` if the object cannot be an operand.
pub fn compare(
    py: Python<'_>,
    tensor: &Tensor,
    other: &Bound<'_, PyAny>,
    symbol: CompareOp,
) -> PyResult<Option<Tensor>> {
    if !is_operand(other)? {
        return Ok(None);
    }
    let own = Py::new(py, PyTensor(tensor.clone()))?;
    let found = comparison(symbol).call(py, &[own.as_ptr(), other.as_ptr()])?;
    Ok(tensor_of(found.bind(py)).cloned())
}
