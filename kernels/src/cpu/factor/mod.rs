//! Factors of dense matrices, and solutions of linear systems by them.
//!
//! In: stacks of matrices, the dimensions before the last two one by one, with any strides. Out: the same. Each matrix is
//! copied into row-major working memory, factored there, and written; matrices of a stack are shared among threads, one matrix
//! is not, so results are the same bits with any number of threads. Large parts of the work are products of
//! [`Multiply`](super::linalg).

pub(super) mod cholesky;
mod determinant;
pub(super) mod divided;
pub(super) mod hermitian;
pub(super) mod lu;
pub(super) mod matrix;
mod number;
mod orthogonal;
pub(super) mod reflectors;
mod secular;
pub(super) mod singular;
mod stack;
mod triangular;

pub use cholesky::cholesky_ex;
pub(crate) use cholesky::not_positive;
pub use determinant::{cofactors, det, slogdet};
pub use hermitian::eigh;
pub(crate) use hermitian::{is_upper, not_converged};
pub(crate) use lu::not_regular;
pub use lu::{inv_ex, lu_factor_ex, lu_solve};
pub use number::{Field, Real};
pub(crate) use orthogonal::has_columns;
pub use orthogonal::qr;
pub(crate) use singular::not_finite;
pub use singular::svd;
pub use triangular::solve_triangular;

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{Error, Result};

/// Rows or columns that are factored before the rest of a matrix takes part in one product.
pub(super) const BLOCK: usize = 48;

/// # Errors
/// If the last two sizes differ.
pub(crate) fn expect_square(sizes: &[i64]) -> Result<()> {
    match sizes {
        [.., rows, columns] if rows == columns => Ok(()),
        _ => Err(Error::shape(format!("expected square matrices, got the shape {}", ShapeText(sizes)))),
    }
}

#[cfg(test)]
mod tests;
