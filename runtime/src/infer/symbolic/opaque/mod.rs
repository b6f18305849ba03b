//! Symbolic inference through opaque functions: compiled code that runs on numbers only.
//!
//! In: an operator whose rules call such functions, and arguments with symbols. Out: formulas of its results, found by
//! running it at chosen points (`search`) and fitting polynomials (`fit`), then quotients and bounds (`piecewise`);
//! guards confirm them once sizes are known (`sample`). Nothing here knows a graph.

pub(super) mod fit;
mod piecewise;
mod sample;
mod search;

pub use sample::infer;
