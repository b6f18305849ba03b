//! Gradients against differences of the function itself.
//!
//! In: a call by name with `float64` tensors. Out: the first gradient that differs from the slope. The outputs are
//! weighted with fixed numbers and added up, so that one number depends on all inputs; each element of each input is
//! then moved in both directions.

use opsmith::autograd::{self, Options};
use opsmith::{DType, Result, Tensor, Value};
use opsmith_testing::calls::mapped;
pub use opsmith_testing::checks::weights;

/// The step for each element.
const STEP: f64 = 1e-5;

/// One call whose gradients are to be checked.
#[derive(Clone)]
pub struct Call<'a> {
    /// The operator's full name.
    pub name: &'a str,
    /// Positional arguments; the gradients of its `float64` tensors are checked.
    pub args: Vec<Value>,
    /// Arguments by name.
    pub kwargs: Vec<(&'a str, Value)>,
}

impl<'a> Call<'a> {
    /// A call without arguments by name.
    pub fn new(name: &'a str, args: Vec<Value>) -> Call<'a> {
        Call { name, args, kwargs: Vec::new() }
    }

    /// The same call with an argument by name.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: impl Into<Value>) -> Call<'a> {
        self.kwargs.push((name, value.into()));
        self
    }

    /// Every differentiable tensor among the arguments.
    fn inputs(&self) -> Vec<Tensor> {
        let mut found = Vec::new();
        for value in self.args.iter().chain(self.kwargs.iter().map(|(_, value)| value)) {
            value.as_arg().for_each_tensor(|tensor| {
                if tensor.dtype() == DType::F64 {
                    found.push(tensor.clone());
                }
            });
        }
        found
    }

    /// The call with its differentiable tensors replaced, in order.
    fn replaced(&self, tensors: &[Tensor]) -> Call<'a> {
        let mut left = tensors.iter().cloned();
        let mut next = |tensor: &Tensor| match tensor.dtype() {
            DType::F64 => left.next().expect("as many as there are"),
            _ => tensor.clone(),
        };
        let args = self.args.iter().map(|value| mapped(value, &mut next)).collect();
        let kwargs = self.kwargs.iter().map(|(name, value)| (*name, mapped(value, &mut next))).collect();
        Call { name: self.name, args, kwargs }
    }

    /// The weighted sum of all outputs that can have gradients.
    fn total(&self) -> Result<Tensor> {
        let mut total: Option<Tensor> = None;
        let results = opsmith::call(self.name, &self.args, &self.kwargs)?;
        for (number, result) in results.iter().enumerate() {
            let mut terms = Vec::new();
            result.as_arg().for_each_tensor(|tensor| terms.push(tensor.clone()));
            for tensor in terms.into_iter().filter(|tensor| tensor.dtype() == DType::F64) {
                let term = opsmith::sum(&opsmith::mul(&tensor, &weights(tensor.shape(), number))?)?;
                total = Some(match total {
                    Some(total) => opsmith::add(&total, &term)?,
                    None => term,
                });
            }
        }
        Ok(total.unwrap_or_else(|| Tensor::scalar(0.0, DType::F64)))
    }

    /// The gradients with respect to every input; zeros for `None`.
    fn gradients(&self, create_graph: bool) -> Result<Vec<Tensor>> {
        let inputs = self.inputs();
        for input in &inputs {
            input.set_requires_grad(true)?;
        }
        let total = self.total()?;
        if !total.requires_grad() {
            return inputs.iter().map(opsmith::zeros_like).collect();
        }
        let list: Vec<&Tensor> = inputs.iter().collect();
        let options = Options { create_graph, ..Options::default() };
        let found = autograd::grad(&[&total], &list, &[None], options)?;
        found
            .into_iter()
            .zip(&inputs)
            .map(|(gradient, input)| gradient.map_or_else(|| opsmith::zeros_like(input), Ok))
            .collect()
    }
}

fn fresh(tensor: &Tensor) -> Tensor {
    Tensor::from_slice(&tensor.to_vec::<f64>().expect("float64"), tensor.shape()).expect("its own shape")
}

fn moved(tensor: &Tensor, element: usize, by: f64) -> Tensor {
    let mut elements = tensor.to_vec::<f64>().expect("float64");
    elements[element] += by;
    Tensor::from_slice(&elements, tensor.shape()).expect("its own shape")
}

/// The slope of a number along every element of every input.
fn slopes(inputs: &[Tensor], mut number: impl FnMut(&[Tensor]) -> Result<f64>) -> Result<Vec<Vec<f64>>> {
    let mut all = Vec::new();
    for (position, input) in inputs.iter().enumerate() {
        let mut slopes = Vec::new();
        for element in 0..input.numel() as usize {
            let mut at = |by: f64| {
                let mut changed: Vec<Tensor> = inputs.iter().map(fresh).collect();
                changed[position] = moved(input, element, by);
                number(&changed)
            };
            slopes.push((at(STEP)? - at(-STEP)?) / (2.0 * STEP));
        }
        all.push(slopes);
    }
    Ok(all)
}

fn compare(what: &str, name: &str, found: &[Tensor], slopes: &[Vec<f64>]) -> std::result::Result<(), String> {
    for (position, (found, slopes)) in found.iter().zip(slopes).enumerate() {
        let found = found.to_vec::<f64>().map_err(|error| error.to_string())?;
        for (element, (found, slope)) in found.iter().zip(slopes).enumerate() {
            if (found - slope).abs() > 1e-5 + 1e-4 * slope.abs() || found.is_nan() {
                return Err(format!(
                    "{what} of `{name}` by input {position} at element {element} is {found}, the slope {slope}"
                ));
            }
        }
    }
    Ok(())
}

/// Checks the gradients of a call.
///
/// # Errors
/// If the call fails, or for the first gradient that differs from the slope.
pub fn first_order(call: &Call<'_>) -> std::result::Result<(), String> {
    let text = |error: opsmith::Error| error.to_string();
    let inputs: Vec<Tensor> = call.inputs().iter().map(fresh).collect();
    let found = call.replaced(&inputs).gradients(false).map_err(text)?;
    let number = |tensors: &[Tensor]| Ok(call.replaced(tensors).total()?.item()?.to_f64());
    compare("the gradient", call.name, &found, &slopes(&inputs, number).map_err(text)?)
}

/// Checks the gradients of the gradients of a call.
///
/// # Errors
/// As [`first_order`].
pub fn second_order(call: &Call<'_>) -> std::result::Result<(), String> {
    let text = |error: opsmith::Error| error.to_string();
    // The weighted sum of the gradients, again one number.
    let combined = |tensors: &[Tensor]| -> Result<Tensor> {
        let mut total = Tensor::scalar(0.0, DType::F64);
        for (number, gradient) in call.replaced(tensors).gradients(true)?.iter().enumerate() {
            let weighted = opsmith::mul(gradient, &weights(gradient.shape(), number + 7))?;
            total = opsmith::add(&total, &opsmith::sum(&weighted)?)?;
        }
        Ok(total)
    };
    let inputs: Vec<Tensor> = call.inputs().iter().map(fresh).collect();
    for input in &inputs {
        input.set_requires_grad(true).map_err(text)?;
    }
    let total = combined(&inputs).map_err(text)?;
    let list: Vec<&Tensor> = inputs.iter().collect();
    let found = if total.requires_grad() {
        autograd::grad(&[&total], &list, &[None], Options::default()).map_err(text)?
    } else {
        vec![None; list.len()]
    };
    let found: Vec<Tensor> = found
        .into_iter()
        .zip(&inputs)
        .map(|(gradient, input)| gradient.map_or_else(|| opsmith::zeros_like(input), Ok))
        .collect::<Result<_>>()
        .map_err(text)?;
    let number = |tensors: &[Tensor]| Ok(combined(tensors)?.item()?.to_f64());
    compare("the second gradient", call.name, &found, &slopes(&inputs, number).map_err(text)?)
}
