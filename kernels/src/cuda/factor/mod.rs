//! Factors of dense matrices, and solutions of linear systems by them: the twin of [`cpu::factor`](crate::cpu::factor).
//!
//! In: stacks of matrices with any strides. Out: work in the stream of the calling thread. A block has a matrix; the
//! algorithms are the host's, so signs and orders are too. Where the host refuses matrices by their elements, the call waits.

mod elimination;
mod reflections;
mod stack;

pub use elimination::{
    cholesky_ex, cofactors, det, inv_ex, lu_factor_ex, lu_solve, slogdet, solve_triangular,
};
pub use reflections::{eigh, qr, svd};
