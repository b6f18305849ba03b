//! The examples of the tutorials this project grew from: same inputs, same results.
//!
//! MindSpore's own `Transpose` operator with its gradient is an operator of a user's crate, so it is
//! tested in `examples/custom_op`.

use opsmith::{Result, Tensor, TensorOps, Value, call};

/// PyTorch's `abs` in its three forms, as one declaration generates them.
#[test]
fn abs_in_its_three_forms() -> Result<()> {
    let x = Tensor::of(&[-1.0f32, -2.0, -3.0]);
    assert_eq!(x.abs()?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    assert_eq!(opsmith::abs(&x)?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);

    // `result` has no elements at first, as in the tutorial's `at::empty({0})`.
    let mut result = Tensor::of::<f32>(&[]);
    x.abs_out(&mut result)?;
    assert_eq!(result.to_vec::<f32>()?, [1.0, 2.0, 3.0]);

    let before = x.data_ptr();
    x.abs_()?;
    assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    assert_eq!(x.data_ptr(), before);
    Ok(())
}

/// `self: grad * self.sign()`
#[test]
fn the_gradient_of_abs() -> Result<()> {
    let x = Tensor::of(&[-1.0f32, -2.0, 3.0, 0.0]).requires_grad_(true)?;
    let grad = Tensor::of(&[10.0f32, 20.0, 30.0, 40.0]);
    x.abs()?.backward_with(Some(&grad), opsmith::autograd::Options::default())?;
    let gradient = x.grad().unwrap();
    assert_eq!(gradient.to_vec::<f32>()?, [-10.0, -20.0, 30.0, 0.0]);
    assert_eq!(gradient.to_vec::<f32>()?, grad.mul(&x.detach().sign()?)?.to_vec::<f32>()?);
    Ok(())
}

/// The call from Python arrives by name.
#[test]
fn abs_by_name() -> Result<()> {
    let x = Value::Tensor(Tensor::of(&[-1.0f32, -2.0, -3.0]));
    let out = Value::Tensor(Tensor::of::<f32>(&[]));
    let args = std::slice::from_ref(&x);
    for results in
        [call("abs", args, &[])?, call("abs.out", args, &[("out", out)])?, call("abs_", args, &[])?]
    {
        assert_eq!(results[0].clone().into_tensor()?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    }
    Ok(())
}
