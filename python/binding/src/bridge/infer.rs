//! Inference for other frameworks, whose sizes are objects with arithmetic.
//!
//! In: an operator, and the dtypes and sizes of its arguments. Out: dtypes and sizes of its results. A size that is no number of
//! Python becomes a symbol; results are computed from the given objects by Python's operators, and conditions are given to the
//! framework, which keeps them as its own.

use opsmith_graph::infer_composition;
use opsmith_runtime::error::Error;
use opsmith_runtime::infer::symbolic::{
    ArgumentMeta, Condition, Context, Derivation, Inference, Meta, Origin, OutputsMeta, Shape, Size,
    SymbolInfo, infer,
};
use opsmith_runtime::internals;
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_runtime::{Arg, Tensor, Value};
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyTuple};

use crate::argument;
use crate::errors::{OrRaise, forget, raise};
use crate::types::{PyDType, dtype_object, read_dtype};

/// The symbols of a call, with the objects that they stand for.
struct Sizes<'py> {
    hooks: Bound<'py, PyAny>,
    context: Context,
    /// By symbol: the object, and its text, which is equal for equal sizes.
    given: Vec<(Bound<'py, PyAny>, String)>,
}

/// An argument before it is bound: the value that stands for it, and its description if it has sizes.
pub enum Described {
    Plain,
    Int(Size),
    Ints(Vec<Size>),
    Tensor(Meta),
    Tensors(Vec<Meta>),
    OptionalTensors(Vec<Option<Meta>>),
}

impl Described {
    fn as_argument(&self) -> Option<ArgumentMeta<'_>> {
        match self {
            Described::Plain => None,
            Described::Int(size) => Some(ArgumentMeta::Int(size)),
            Described::Ints(sizes) => Some(ArgumentMeta::Ints(sizes)),
            Described::Tensor(meta) => Some(ArgumentMeta::Tensor(meta)),
            Described::Tensors(metas) => Some(ArgumentMeta::Tensors(metas)),
            Described::OptionalTensors(metas) => Some(ArgumentMeta::OptionalTensors(metas)),
        }
    }
}

/// The results of a call, a list: each is a dtype and a list of sizes, None if it is absent, or a list for a list of tensors.
///
/// A tensor argument is a pair of its dtype and its sizes. `hooks` has methods of the framework: `hint(size)`, an example of a
/// size or None; `fresh(low, high)`, a new size that is known after the run, its bounds None if unknown; `greater(a, b)` and
/// `smaller(a, b)`; `check(condition, text)`, which makes sure that a condition holds.
pub fn run<'py>(
    op: &'static OpDef,
    args: &Bound<'py, PyTuple>,
    named: &Bound<'py, PyDict>,
    hooks: &Bound<'py, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = args.py();
    let mut sizes = Sizes { hooks: hooks.clone(), context: Context::new(), given: Vec::new() };
    let mut described: Vec<Described> = op.schema.args.iter().map(|_| Described::Plain).collect();
    let mut values = Vec::new();
    for (place, arg) in args.iter().enumerate() {
        let kind = op.schema.args.get(place).map(|def| def.ty.kind);
        let (value, description) = sizes.describe(kind, &arg)?;
        values.push(value);
        if let Some(slot) = described.get_mut(place) {
            *slot = description;
        }
    }
    let mut keywords: Vec<(String, Value)> = Vec::new();
    for (key, arg) in named {
        let key: String = key.extract()?;
        let place = op.argument(&key);
        let (value, description) = sizes.describe(place.map(|place| op.schema.args[place].ty.kind), &arg)?;
        keywords.push((key, value));
        if let Some(place) = place {
            described[place] = description;
        }
    }
    let keywords: Vec<(&str, Value)> =
        keywords.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    forget();
    let outputs = outputs(op, &values, &keywords, &described, &mut sizes.context);
    let outputs = outputs.or_raise(py)?;
    sizes.assure(py, op)?;
    sizes.results(py, op, outputs)
}

/// Infers a call: `described` has an item for each argument of the signature, whose sizes stand for those of its value.
///
/// # Errors
/// If the arguments do not fit, and errors of inference.
pub fn outputs(
    op: &'static OpDef,
    values: &[Value],
    keywords: &[(&str, Value)],
    described: &[Described],
    context: &mut Context,
) -> opsmith_runtime::Result<OutputsMeta> {
    internals::with_bound(op, values, keywords, |bound: &[Arg<'_>]| {
        let args: Vec<ArgumentMeta<'_>> = bound
            .iter()
            .zip(described)
            .map(|(arg, described)| described.as_argument().unwrap_or(ArgumentMeta::Plain(*arg)))
            .collect();
        match infer(op, &args, context)? {
            Inference::Tensors(outputs) => Ok(outputs),
            Inference::Composition => infer_composition(op, &args, context),
            Inference::Values => {
                Err(Error::graph(format!("`{}` returns values, which exist in a run only", op.name))
                    .with_help("call it on tensors with elements"))
            }
        }
    })
}

/// A tensor in the place of one that is only described.
fn placeholder(py: Python<'_>) -> PyResult<Tensor> {
    Tensor::from_slice::<f32>(&[0.0], &[]).or_raise(py)
}

impl<'py> Sizes<'py> {
    /// An argument of a kind: its value, which has a placeholder for each tensor and size, and its description.
    fn describe(&mut self, kind: Option<ArgKind>, arg: &Bound<'py, PyAny>) -> PyResult<(Value, Described)> {
        let py = arg.py();
        let items = || arg.try_iter()?.collect::<PyResult<Vec<Bound<'py, PyAny>>>>();
        match kind {
            _ if arg.is_none() => {}
            Some(ArgKind::Tensor) => {
                return Ok((Value::Tensor(placeholder(py)?), Described::Tensor(self.meta(arg)?)));
            }
            Some(ArgKind::Tensors) => {
                let metas = items()?.iter().map(|item| self.meta(item)).collect::<PyResult<Vec<_>>>()?;
                let values = metas.iter().map(|_| placeholder(py)).collect::<PyResult<Vec<_>>>()?;
                return Ok((Value::Tensors(values), Described::Tensors(metas)));
            }
            Some(ArgKind::OptionalTensors) => {
                let mut meta =
                    |item: &Bound<'py, PyAny>| (!item.is_none()).then(|| self.meta(item)).transpose();
                let metas = items()?.iter().map(&mut meta).collect::<PyResult<Vec<_>>>()?;
                let value = |meta: &Option<Meta>| meta.as_ref().map(|_| placeholder(py)).transpose();
                let values = metas.iter().map(value).collect::<PyResult<Vec<_>>>()?;
                return Ok((Value::OptionalTensors(values), Described::OptionalTensors(metas)));
            }
            Some(ArgKind::Int)
                if arg.cast::<PyInt>().is_err() && arg.hasattr("__add__")? && !is_text(arg) =>
            {
                return Ok((Value::Int(1), Described::Int(self.size(arg)?)));
            }
            Some(ArgKind::Ints(_)) if is_list(arg) => {
                let sizes = items()?.iter().map(|item| self.size(item)).collect::<PyResult<Vec<_>>>()?;
                return Ok((Value::Ints(vec![1; sizes.len()]), Described::Ints(sizes)));
            }
            _ => {}
        }
        Ok((argument::read(arg)?, Described::Plain))
    }

    /// A tensor of a pair: its dtype and its sizes.
    fn meta(&mut self, pair: &Bound<'py, PyAny>) -> PyResult<Meta> {
        let (dtype, sizes): (Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>) = pair.extract()?;
        let sizes = sizes.iter().map(|size| self.size(size)).collect::<PyResult<Vec<_>>>()?;
        Ok(Meta::new(read_dtype(&dtype)?, Shape::Known(sizes.into_iter().collect())))
    }

    /// A size: a number, or the symbol of an object.
    fn size(&mut self, size: &Bound<'py, PyAny>) -> PyResult<Size> {
        if size.cast::<PyInt>().is_ok() {
            return Ok(Size::Const(size.extract()?));
        }
        let text = size.str()?.to_string();
        if let Some(place) = self.given.iter().position(|(_, known)| *known == text) {
            return Ok(Size::from(opsmith_runtime::infer::symbolic::Symbol(place as u32)));
        }
        let hint = self.hooks.call_method1("hint", (size,))?;
        let example = if hint.is_none() { None } else { Some(hint.extract::<i64>()?) };
        let info = SymbolInfo { example, ..SymbolInfo::new(text.clone(), Origin::Input) };
        // The symbols of a call are added before inference adds others, so that numbers and places are equal.
        let symbol = self.context.symbols.add(info);
        self.given.push((size.clone(), text));
        Ok(Size::from(symbol))
    }

    /// Gives each guard of inference to the framework.
    fn assure(&self, py: Python<'py>, op: &'static OpDef) -> PyResult<()> {
        let guards = self.context.guards().to_vec();
        let examples = self.context.symbols.values(|symbol| self.context.symbols.example(symbol));
        for guard in &guards {
            let text =
                || format!("{}, because {}", guard.condition.named(&self.context.symbols), guard.reason);
            let holds = match &guard.condition {
                Condition::Unknown => continue,
                // The framework checks sizes of results when it runs; this tests them for the examples.
                Condition::Confirmed(_) => guard.condition.holds(&examples) != Some(false),
                Condition::Equal(a, b) => {
                    let condition = self.object(a)?.rich_compare(self.object(b)?, CompareOp::Eq)?;
                    self.hooks.call_method1("check", (condition, text()))?;
                    true
                }
                Condition::Less(a, b) => {
                    let condition = self.object(a)?.rich_compare(self.object(b)?, CompareOp::Lt)?;
                    self.hooks.call_method1("check", (condition, text()))?;
                    true
                }
                condition => self.holds(condition)?,
            };
            if !holds {
                let error = Error::shape(format!("these sizes are not possible: needed is {}", text()));
                return Err(raise(py, error.in_op(op.name, Vec::new())));
            }
        }
        Ok(())
    }

    /// Whether a condition holds, as the framework decides.
    fn holds(&self, condition: &Condition) -> PyResult<bool> {
        let compare = |a: &Size, b: &Size, by| self.object(a)?.rich_compare(self.object(b)?, by)?.is_truthy();
        match condition {
            Condition::False => Ok(false),
            Condition::Equal(a, b) => compare(a, b, CompareOp::Eq),
            Condition::Less(a, b) => compare(a, b, CompareOp::Lt),
            Condition::Not(inner) => self.holds(inner).map(|holds| !holds),
            Condition::All(parts) => {
                for part in parts {
                    if !self.holds(part)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Any(parts) => {
                for part in parts {
                    if self.holds(part)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Condition::True | Condition::Confirmed(_) | Condition::Unknown => Ok(true),
        }
    }

    /// A size as an object.
    fn object(&self, size: &Size) -> PyResult<Bound<'py, PyAny>> {
        let py = self.hooks.py();
        match size {
            Size::Const(value) => value.into_bound_py_any(py),
            Size::Unknown => Err(PyTypeError::new_err(
                "a size of a result is not known before the run\n  help: give sizes as numbers",
            )),
            Size::Formula(formula) => {
                let mut sum: Option<Bound<'py, PyAny>> = None;
                for term in formula.terms() {
                    let mut product: Option<Bound<'py, PyAny>> = None;
                    for (symbol, power) in &term.powers {
                        let factor = self.symbol(*symbol)?;
                        for _ in 0..*power {
                            product = Some(match product {
                                Some(product) => product.mul(&factor)?,
                                None => factor.clone(),
                            });
                        }
                    }
                    let term = match product {
                        Some(product) if term.coefficient == 1 => product,
                        Some(product) => product.mul(term.coefficient)?,
                        None => term.coefficient.into_bound_py_any(py)?,
                    };
                    sum = Some(match sum {
                        Some(sum) => sum.add(term)?,
                        None => term,
                    });
                }
                sum.map_or_else(|| 0i64.into_bound_py_any(py), Ok)
            }
        }
    }

    /// The object of a symbol.
    fn symbol(&self, symbol: opsmith_runtime::infer::symbolic::Symbol) -> PyResult<Bound<'py, PyAny>> {
        if let Some((object, _)) = self.given.get(symbol.0 as usize) {
            return Ok(object.clone());
        }
        match self.context.symbols.origin(symbol) {
            Origin::Derived(derivation) => {
                let [a, b] = derivation.sizes();
                let (a, b) = (self.object(a)?, self.object(b)?);
                match derivation {
                    Derivation::Quotient(..) => a.floor_div(b),
                    Derivation::Remainder(..) => a.rem(b),
                    Derivation::Greater(..) => self.hooks.call_method1("greater", (a, b)),
                    Derivation::Smaller(..) => self.hooks.call_method1("smaller", (a, b)),
                }
            }
            _ => Err(PyTypeError::new_err("a size of a result is known after the run only")),
        }
    }

    /// The results as objects; each size that is known after the run becomes one new object.
    fn results(mut self, py: Python<'py>, op: &'static OpDef, outputs: OutputsMeta) -> PyResult<Py<PyAny>> {
        for symbol in self.context.symbols.all().skip(self.given.len()) {
            let Some(info) = self.context.symbols.info(symbol) else { continue };
            let object = match info.origin {
                Origin::Derived(_) => self.symbol(symbol)?,
                _ => {
                    let high = info.most.known();
                    self.hooks.call_method1("fresh", (info.least, high))?
                }
            };
            self.given.push((object, String::new()));
        }
        let is_list = matches!(op.schema.returns, [only] if only.ty.kind == ArgKind::Tensors);
        let visible = if is_list { outputs.outs.len() } else { op.schema.returns.len() - op.hidden };
        let mut all: Vec<Py<PyAny>> = Vec::new();
        for (place, out) in outputs.outs.iter().take(visible).enumerate() {
            if !is_list && outputs.present & 1 << place == 0 {
                all.push(py.None());
                continue;
            }
            let Some(sizes) = out.shape.sizes() else {
                return Err(PyTypeError::new_err(
                    "the number of dimensions of a result is not known before the run\n  help: give sizes as numbers",
                ));
            };
            let sizes = sizes.iter().map(|size| self.object(size)).collect::<PyResult<Vec<_>>>()?;
            let dtype: Py<PyDType> = dtype_object(py, out.dtype)?;
            all.push((dtype, PyList::new(py, sizes)?).into_py_any(py)?);
        }
        Ok(PyList::new(py, all)?.into_any().unbind())
    }
}

fn is_text(arg: &Bound<'_, PyAny>) -> bool {
    arg.is_instance_of::<pyo3::types::PyString>() || arg.is_instance_of::<PyBool>()
}

fn is_list(arg: &Bound<'_, PyAny>) -> bool {
    arg.is_instance_of::<PyList>() || arg.is_instance_of::<PyTuple>()
}
