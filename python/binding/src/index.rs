//! Indexing: `x[1, ..., None, 2:8:2, mask]`, to read and to write.
//!
//! In: a tensor and a key of Python. Out: a view made of calls of the library's views where the key has integers, slices, `None`
//! and an ellipsis alone; the elements that tensors of positions or truth values pick otherwise; or the tensor written there.

use opsmith_runtime::{DType, Scalar, Tensor, Value};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PyRange, PySlice, PyTuple};

use crate::argument;
use crate::call::{by_name, tensor_by_name};
use crate::construct;
use crate::tensor::tensor_of;

/// One part of a key.
enum Part<'py> {
    At(i64),
    Slice(Bound<'py, PySlice>),
    NewAxis,
    Ellipsis,
    Picked(Tensor),
}

/// The parts of a key.
fn parts<'py>(key: &Bound<'py, PyAny>) -> PyResult<Vec<Part<'py>>> {
    match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|part| one(&part)).collect(),
        Err(_) => Ok(vec![one(key)?]),
    }
}

fn one<'py>(part: &Bound<'py, PyAny>) -> PyResult<Part<'py>> {
    if part.is_none() {
        return Ok(Part::NewAxis);
    }
    if part.is(PyEllipsis::get(part.py())) {
        return Ok(Part::Ellipsis);
    }
    if let Ok(slice) = part.cast::<PySlice>() {
        return Ok(Part::Slice(slice.clone()));
    }
    if part.cast::<PyBool>().is_ok() {
        return Ok(Part::Picked(Tensor::scalar(part.extract::<bool>()?, DType::Bool)));
    }
    if part.cast::<PyInt>().is_ok() {
        return position(part).map(Part::At);
    }
    if let Some(tensor) = tensor_of(part) {
        return picked(tensor.clone());
    }
    if part.cast::<PyList>().is_ok() || part.cast::<PyRange>().is_ok() {
        let tensor = construct::tensor(part, None, None, false)?.0;
        let empty = tensor.numel() == 0;
        let py = part.py();
        return picked(if empty { converted(py, tensor, DType::I64)? } else { tensor });
    }
    if construct::is_numpy_number(part) {
        return one(&part.call_method0("item")?);
    }
    if construct::is_array(part)? {
        return picked(argument::read_tensor(part)?);
    }
    if part.hasattr("__index__")? {
        return position(&part.call_method0("__index__")?).map(Part::At);
    }
    Err(PyTypeError::new_err(format!(
        "an index of type `{}`\n  help: indices are integers, slices, `...`, None, and tensors or lists of positions or truth values",
        part.get_type().qualname()?
    )))
}

/// A position, of an `int`.
fn position(index: &Bound<'_, PyAny>) -> PyResult<i64> {
    index.extract().map_err(|_| {
        let bits = index.call_method0("bit_length").map(|bits| bits.to_string()).unwrap_or_default();
        PyIndexError::new_err(format!("an index of {bits} bits is out of range in every tensor"))
    })
}

/// A tensor of positions or truth values; one integer is a position.
fn picked<'py>(tensor: Tensor) -> PyResult<Part<'py>> {
    match tensor.dtype() {
        DType::Bool => Ok(Part::Picked(tensor)),
        dtype if dtype.is_differentiable() || dtype.is_complex() => Err(PyIndexError::new_err(format!(
            "a tensor of {dtype} as an index\n  help: positions are integers, masks are bool"
        ))),
        _ => Ok(Part::Picked(tensor)),
    }
}

fn converted(py: Python<'_>, tensor: Tensor, dtype: DType) -> PyResult<Tensor> {
    if tensor.dtype() == dtype {
        return Ok(tensor);
    }
    let device = tensor.device();
    tensor_by_name(py, "to.device", &[Value::Tensor(tensor), Value::Device(device), Value::DType(dtype)], &[])
}

/// A view of a tensor, and the tensors that pick elements of it, by dimension.
struct Selected {
    view: Tensor,
    picks: Vec<Option<Tensor>>,
}

fn select(py: Python<'_>, tensor: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<Selected> {
    let parts = parts(key)?;
    let used: usize = parts
        .iter()
        .map(|part| match part {
            Part::At(_) | Part::Slice(_) => 1,
            Part::Picked(tensor) if tensor.dtype() == DType::Bool => tensor.dim(),
            Part::Picked(_) => 1,
            Part::NewAxis | Part::Ellipsis => 0,
        })
        .sum();
    if used > tensor.dim() {
        return Err(PyIndexError::new_err(format!(
            "{used} indices for a tensor of {} dimensions\n  help: its shape is {}",
            tensor.dim(),
            opsmith_runtime::error::ShapeText(tensor.shape())
        )));
    }
    if parts.iter().filter(|part| matches!(part, Part::Ellipsis)).count() > 1 {
        return Err(PyIndexError::new_err("two ellipses among the indices"));
    }
    let mut selected = Selected { view: tensor.clone(), picks: Vec::new() };
    // The dimension of the view that is next.
    let mut place = 0;
    for part in parts {
        match part {
            Part::At(at) => selected.view = at_one(py, &selected.view, place, at)?,
            Part::Slice(slice) => {
                selected.view = sliced(py, &selected.view, place, &slice)?;
                place += 1;
            }
            Part::NewAxis => {
                let args = [Value::Tensor(selected.view), Value::Int(place)];
                selected.view = tensor_by_name(py, "unsqueeze", &args, &[])?;
                place += 1;
            }
            Part::Ellipsis => place += (tensor.dim() - used) as i64,
            Part::Picked(pick) => place = pick_at(py, &mut selected, place, pick)?,
        }
    }
    Ok(selected)
}

/// Notes a tensor that picks elements along the next dimensions; returns the dimension behind them.
fn pick_at(py: Python<'_>, selected: &mut Selected, place: i64, pick: Tensor) -> PyResult<i64> {
    if pick.dtype() == DType::Bool && pick.dim() == 0 {
        // A truth value alone is a mask along a new dimension.
        selected.view =
            tensor_by_name(py, "unsqueeze", &[Value::Tensor(selected.view.clone()), Value::Int(place)], &[])?;
        let pick = tensor_by_name(py, "unsqueeze", &[Value::Tensor(pick), Value::Int(0)], &[])?;
        selected.picks.resize(place as usize, None);
        selected.picks.push(Some(pick));
        return Ok(place + 1);
    }
    selected.picks.resize(place as usize, None);
    let count = if pick.dtype() == DType::Bool { pick.dim() } else { 1 };
    let masked = &selected.view.shape()[place as usize..place as usize + count];
    if pick.dtype() == DType::Bool && pick.shape() != masked {
        return Err(PyIndexError::new_err(format!(
            "a mask of the shape {} for dimensions of the sizes {}",
            opsmith_runtime::error::ShapeText(pick.shape()),
            opsmith_runtime::error::ShapeText(masked)
        )));
    }
    if pick.dtype() == DType::Bool && count > 1 {
        // A mask of several dimensions is a tensor of positions for each.
        let found = tensor_by_name(py, "nonzero", &[Value::Tensor(pick)], &[])?;
        for dim in 0..count as i64 {
            let column = tensor_by_name(
                py,
                "select.int",
                &[Value::Tensor(found.clone()), Value::Int(1), Value::Int(dim)],
                &[],
            )?;
            selected.picks.push(Some(column));
        }
    } else {
        let pick = if pick.dtype() == DType::Bool { pick } else { converted(py, pick, DType::I64)? };
        selected.picks.push(Some(pick));
    }
    Ok(place + count as i64)
}

fn at_one(py: Python<'_>, view: &Tensor, place: i64, at: i64) -> PyResult<Tensor> {
    let size = view.shape()[place as usize];
    if !(-size..size).contains(&at) {
        return Err(PyIndexError::new_err(format!(
            "index {at} is outside a dimension of size {size}\n  help: the shape is {}",
            opsmith_runtime::error::ShapeText(view.shape())
        )));
    }
    tensor_by_name(py, "select.int", &[Value::Tensor(view.clone()), Value::Int(place), Value::Int(at)], &[])
}

fn sliced(py: Python<'_>, view: &Tensor, place: i64, slice: &Bound<'_, PySlice>) -> PyResult<Tensor> {
    let size = view.shape()[place as usize];
    let found = slice.indices(size as isize)?;
    let (start, stop, step) = (found.start as i64, found.stop as i64, found.step as i64);
    let args = |view: Tensor, start: i64, stop: i64, step: i64| {
        [
            Value::Tensor(view),
            Value::Int(place),
            Value::Int(start),
            Value::Int(stop.max(start)),
            Value::Int(step),
        ]
    };
    if step > 0 {
        let whole = start == 0 && stop == size && step == 1;
        let end = if whole { return Ok(view.clone()) } else { stop };
        return tensor_by_name(py, "slice.Tensor", &args(view.clone(), start, end, step), &[]);
    }
    // From the end: the reverse, of which every element is a copy.
    let flipped = tensor_by_name(py, "flip", &[Value::Tensor(view.clone()), Value::Ints(vec![place])], &[])?;
    let mirrored = |position: i64| size - 1 - position;
    let (start, stop) = (mirrored(start), mirrored(stop));
    tensor_by_name(py, "slice.Tensor", &args(flipped, start, stop, -step), &[])
}

/// The part of a tensor.
pub fn get(py: Python<'_>, tensor: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let Selected { view, picks } = select(py, tensor, key)?;
    if picks.iter().all(Option::is_none) {
        // A key that keeps all is a view of its own.
        return if view.same(tensor) { alias(py, view) } else { Ok(view) };
    }
    tensor_by_name(py, "index.Tensor", &[Value::Tensor(view), Value::OptionalTensors(picks)], &[])
}

/// A view of all elements.
fn alias(py: Python<'_>, tensor: Tensor) -> PyResult<Tensor> {
    let sizes = tensor.shape().to_vec();
    tensor_by_name(py, "expand", &[Value::Tensor(tensor), Value::Ints(sizes)], &[])
}

/// Writes into the part of a tensor.
pub fn set(
    py: Python<'_>,
    tensor: &Tensor,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    if let Ok(parts) = parts(key)
        && parts.iter().any(|part| matches!(part, Part::Slice(slice) if is_reversed(slice)))
    {
        return Err(PyValueError::new_err(
            "a slice from the end is a copy, which cannot be written\n  help: flip the value instead",
        ));
    }
    let Selected { view, picks } = select(py, tensor, key)?;
    let value = match argument::number(value)? {
        Some(number) => Tensor::scalar(cut(number, view.dtype())?, view.dtype()),
        None => converted(py, given(value)?, view.dtype())?,
    };
    let args = if picks.iter().all(Option::is_none) {
        return by_name(py, "copy_", &[Value::Tensor(view), Value::Tensor(value)], &[]).map(drop);
    } else {
        [Value::Tensor(view), Value::OptionalTensors(picks), Value::Tensor(value)]
    };
    by_name(py, "index_put_", &args, &[]).map(drop)
}

fn is_reversed(slice: &Bound<'_, PySlice>) -> bool {
    slice.getattr("step").and_then(|step| step.extract::<i64>()).is_ok_and(|step| step < 0)
}

fn given(value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    match value.cast::<PyList>() {
        Ok(list) => Ok(construct::tensor(list, None, None, false)?.0),
        Err(_) => argument::read_tensor(value),
    }
}

/// A number as an element; a complex one is none of real elements.
fn cut(number: Scalar, dtype: DType) -> PyResult<Scalar> {
    match number {
        Scalar::Complex(_) if !dtype.is_complex() => {
            Err(PyTypeError::new_err(format!("a complex number is no element of {dtype}")))
        }
        number => Ok(number),
    }
}
