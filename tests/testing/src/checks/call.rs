//! One call of an operator as a function of its differentiable tensors.

use opsmith::autograd::{self, Options};
use opsmith::{DType, Result, Tensor, Value};
use opsmith_runtime::generated::call;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, Complex64, Scalar};

use crate::calls::mapped;
use crate::samples::repeatable;

/// A call with its arguments.
#[derive(Clone)]
pub struct Call {
    /// The operator, possibly a modified copy of the library's.
    pub op: &'static OpDef,
    /// Every argument in order.
    pub args: Vec<Value>,
}

impl Call {
    /// The tensors that can have gradients.
    pub fn inputs(&self) -> Vec<Tensor> {
        let mut found = Vec::new();
        for value in &self.args {
            value.as_arg().for_each_tensor(|tensor| {
                if tensor.dtype().is_differentiable() {
                    found.push(tensor.clone());
                }
            });
        }
        found
    }

    /// The call with other tensors substituted.
    pub fn with_inputs(&self, tensors: &[Tensor]) -> Call {
        let mut left = tensors.iter().cloned();
        self.mapped(&mut |tensor| match tensor.dtype().is_differentiable() {
            true => left.next().expect("as many as there are"),
            false => tensor.clone(),
        })
    }

    /// The call with each tensor mapped by a function.
    pub fn mapped(&self, map: &mut dyn FnMut(&Tensor) -> Tensor) -> Call {
        Call { op: self.op, args: self.args.iter().map(|value| mapped(value, map)).collect() }
    }

    /// The call with a dtype among its attributes replaced by another.
    pub fn with_dtype(&self, from: DType, to: DType) -> Call {
        let replace = |value: &Value| match value {
            Value::DType(dtype) if *dtype == from => Value::DType(to),
            other => other.clone(),
        };
        Call { op: self.op, args: self.args.iter().map(replace).collect() }
    }

    /// The call with each real scalar replaced by a complex number, all at once.
    pub fn with_complex_scalars(&self) -> Option<Call> {
        let mut changed = false;
        let mut replace = |value: &Value| match value {
            Value::Scalar(scalar @ (Scalar::Int(_) | Scalar::Float(_))) => {
                changed = true;
                Value::Scalar(Scalar::Complex(Complex64::new(scalar.to_f64(), 0.37 + 0.5 * scalar.to_f64())))
            }
            other => other.clone(),
        };
        let args = self.args.iter().map(&mut replace).collect();
        changed.then_some(Call { op: self.op, args })
    }

    /// The results that can have gradients.
    pub fn run(&self) -> Result<Vec<Tensor>> {
        let args: Vec<Arg<'_>> = self.args.iter().map(Value::as_arg).collect();
        let outs = repeatable(self.op, || call::invoke(self.op, &args))?;
        let declared = self.op.grad.map_or(u64::MAX, |grad| grad.differentiable_outputs);
        let last = self.op.schema.returns.len().saturating_sub(1);
        let outs = outs.into_iter().enumerate();
        let differentiable = |(index, out): (usize, Tensor)| {
            // One bit is for all tensors of a list.
            let bit = declared & (1 << index.min(last)) != 0;
            (bit && out.dtype().is_differentiable()).then_some(out)
        };
        Ok(outs.filter_map(differentiable).collect())
    }

    /// The results and the gradients of every input, from those of the results.
    pub fn gradients(&self, cotangents: &[Option<Tensor>], create_graph: bool) -> Result<Gradients> {
        let inputs = self.inputs();
        let leaves = inputs.iter().map(leaf).collect::<Result<Vec<_>>>()?;
        let outs = self.with_inputs(&leaves).run()?;
        let found = pull(&outs, &leaves, cotangents, create_graph)?;
        Ok(Gradients { inputs: leaves, outs, found })
    }
}

/// The result of backward.
pub struct Gradients {
    /// The inputs, as leaves.
    pub inputs: Vec<Tensor>,
    /// The results.
    pub outs: Vec<Tensor>,
    /// The gradient of each input.
    pub found: Vec<Option<Tensor>>,
}

impl Gradients {
    /// Whether a result is part of the graph.
    pub fn is_tracked(&self) -> bool {
        self.outs.iter().any(Tensor::requires_grad)
    }
}

/// Backward from some results to some tensors.
pub fn pull(
    outs: &[Tensor],
    inputs: &[Tensor],
    cotangents: &[Option<Tensor>],
    create_graph: bool,
) -> Result<Vec<Option<Tensor>>> {
    let roots: Vec<(&Tensor, &Tensor)> = outs
        .iter()
        .zip(cotangents)
        .filter_map(|(out, cotangent)| Some((out, cotangent.as_ref()?)))
        .filter(|(out, _)| out.requires_grad())
        .collect();
    if roots.is_empty() {
        return Ok(vec![None; inputs.len()]);
    }
    let outputs: Vec<&Tensor> = roots.iter().map(|(out, _)| *out).collect();
    let starts: Vec<Option<&Tensor>> = roots.iter().map(|(_, cotangent)| Some(*cotangent)).collect();
    let options = Options { create_graph, ..Options::default() };
    autograd::grad(&outputs, &inputs.iter().collect::<Vec<_>>(), &starts, options)
}

/// The same elements as a leaf that requires a gradient, strides included.
pub fn leaf(tensor: &Tensor) -> Result<Tensor> {
    tensor.detach().requires_grad_(true)
}

/// Fixed numbers between -1 and 1 that follow no simple pattern.
pub fn weights(shape: &[i64], seed: usize) -> Tensor {
    let count = shape.iter().product::<i64>() as usize;
    let number = |index: usize| ((index * 37 + seed * 101 + 11) % 97) as f64 / 49.1 - 0.98;
    let numbers: Vec<f64> = (0..count).map(number).collect();
    Tensor::from_slice(&numbers, shape).expect("a number an element")
}

/// Fixed numbers in the shape and dtype of a tensor.
pub fn numbers_like(tensor: &Tensor, seed: usize) -> Result<Tensor> {
    let real = weights(tensor.shape(), seed);
    if !tensor.dtype().is_complex() {
        return opsmith::to_dtype(&real, tensor.dtype());
    }
    let imaginary = weights(tensor.shape(), seed + 13);
    let (real, imaginary) = (real.to_vec::<f64>()?, imaginary.to_vec::<f64>()?);
    let values: Vec<Complex64> = real.iter().zip(imaginary).map(|(re, im)| Complex64::new(*re, im)).collect();
    opsmith::to_dtype(&Tensor::from_slice(&values, tensor.shape())?, tensor.dtype())
}

/// The elements as complex numbers.
pub fn elements(tensor: &Tensor) -> Vec<Complex64> {
    let wide = opsmith::to_dtype(&tensor.detach(), DType::C128).expect("a number is a complex number");
    wide.to_vec().expect("converted")
}

/// The real part of the inner product, which gradients are dual to.
pub fn inner(a: &Tensor, b: &Tensor) -> f64 {
    elements(a).iter().zip(elements(b)).map(|(a, b)| (a.conj() * b).re).sum()
}
