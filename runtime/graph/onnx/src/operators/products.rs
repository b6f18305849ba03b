//! Products of matrices.
//!
//! In: calls. Out: results.

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::pointwise::to;
use crate::call::Call;
use crate::libraries::run;

/// `alpha * A @ B + beta * C`.
pub(super) fn gemm(call: &Call<'_>) -> Result<Tensor> {
    let (a, b, c) = (call.tensor(0)?, call.tensor(1)?, call.maybe(2)?);
    let (alpha, beta) = (call.float("alpha", 1.0)?, call.float("beta", 1.0)?);
    if a.dim() != 2 || b.dim() != 2 {
        return Err(Error::shape("the operands must be matrices"));
    }
    let turned = |tensor: &Tensor, name: &str| match call.flag(name, false)? {
        true => run!("t", tensor),
        false => Ok(tensor.clone()),
    };
    let (left, right) = (turned(&a, "transA")?, turned(&b, "transB")?);
    if !a.dtype().is_float() {
        // Factors are floats, and integers stay integers.
        let scaled = |tensor: &Tensor, by: f64| to(&run!("mul.Scalar", tensor, by)?, a.dtype());
        let product = scaled(&run!("matmul", &left, &right)?, alpha)?;
        return match c {
            Some(c) => run!("add.Tensor", &product, scaled(&c, beta)?),
            None => Ok(product),
        };
    }
    let Some(c) = c else {
        let product = run!("mm", &left, &right)?;
        return if alpha == 1.0 { Ok(product) } else { run!("mul.Scalar", &product, alpha) };
    };
    if alpha == 1.0
        && beta == 1.0
        && c.dim() == 1
        && call.flag("transB", false)?
        && b.shape().first() == Some(&c.numel())
    {
        return run!("linear", &left, &b, &c);
    }
    run!("addmm", &c, &left, &right; "beta" => beta, "alpha" => alpha)
}

pub(super) fn einsum(call: &Call<'_>) -> Result<Tensor> {
    run!("einsum", call.text("equation", "")?, call.tensors(0)?)
}
