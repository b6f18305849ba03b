//! Clipping of gradients, in place.

use opsmith::autograd::no_grad;
use opsmith::{ClampOptions, Error, Result, Tensor, TensorOps, VectorNormOptions};

/// Scales the gradients of parameters so that their norm, of all together, is at most `largest`; returns the norm
/// before (Pascanu et al., *On the difficulty of training recurrent neural networks*, 2013).
///
/// ```
/// use opsmith::{Tensor, TensorOps};
/// use opsmith_nn::optim::clip_grad_norm;
///
/// # fn main() -> opsmith::Result<()> {
/// let x = Tensor::of(&[3.0f64, 4.0]).requires_grad_(true)?;
/// x.mul(&x)?.sum()?.div(2.0)?.backward()?;
/// assert_eq!(clip_grad_norm(&[x.clone()], 1.0, 2.0)?, 5.0);
/// assert!((x.grad().unwrap().to_vec::<f64>()?[0] - 0.6).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
///
/// The norm's order is `order`: 2 for the Euclidean norm, infinity for the largest magnitude. Parameters without
/// gradients do not count.
///
/// # Errors
/// If a bound is negative or NaN, or the norm is infinite or NaN, in which case no gradient has changed.
pub fn clip_grad_norm(parameters: &[Tensor], largest: f64, order: f64) -> Result<f64> {
    if largest.is_nan() || largest < 0.0 || order.is_nan() || order <= 0.0 {
        return Err(Error::value(format!(
            "gradients cannot be clipped to the norm {largest} of order {order}"
        ))
        .with_help("give a norm of 0 or more and a positive order"));
    }
    no_grad(|| {
        let gradients: Vec<Tensor> = parameters.iter().filter_map(Tensor::grad).collect();
        let mut norms = Vec::with_capacity(gradients.len());
        let norm_of = |tensor: &Tensor| tensor.vector_norm_with(VectorNormOptions::new().ord(order));
        for gradient in &gradients {
            norms.push(norm_of(gradient)?.item()?.to_f64());
        }
        let norm = norm_of(&Tensor::of(&norms))?.item()?.to_f64();
        if !norm.is_finite() {
            return Err(Error::value(format!("the norm of the gradients is {norm}")).with_help(
                "skip the step, or look for the operator with `opsmith::autograd::detect_anomaly`",
            ));
        }
        // A small number in the divisor, as PyTorch has it, and no branch: gradients within the bound keep their bits.
        let factor = (largest / (norm + 1e-6)).min(1.0);
        if factor < 1.0 {
            gradients.iter().try_for_each(|gradient| gradient.mul_(factor))?;
        }
        Ok(norm)
    })
}

/// Limits each element of the gradients of parameters to `-largest..=largest`.
///
/// ```
/// use opsmith::{Tensor, TensorOps};
/// use opsmith_nn::optim::clip_grad_value;
///
/// # fn main() -> opsmith::Result<()> {
/// let x = Tensor::of(&[3.0f64, 0.5]).requires_grad_(true)?;
/// x.mul(&x)?.sum()?.backward()?;
/// clip_grad_value(&[x.clone()], 2.0)?;
/// assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [2.0, 1.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the bound is negative or NaN.
pub fn clip_grad_value(parameters: &[Tensor], largest: f64) -> Result<()> {
    if largest.is_nan() || largest < 0.0 {
        return Err(Error::value(format!("gradients cannot be clipped to the magnitude {largest}"))
            .with_help("give a number of 0 or more"));
    }
    no_grad(|| {
        let options = ClampOptions::new().min(-largest).max(largest);
        let mut gradients = parameters.iter().filter_map(Tensor::grad);
        gradients.try_for_each(|gradient| gradient.clamp_with_(options.clone()))
    })
}
