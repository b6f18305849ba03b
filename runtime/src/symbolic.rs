//! Shapes and dtypes of results before any size is known.
//!
//! In: sizes that are numbers, formulas over symbols, or unknown. Out: the same of results. Nothing here
//! knows an operator or a graph; what must hold when the sizes are known is handed out as guards.

mod fit;
mod formula;
mod range;
pub mod shape;
pub mod size;
pub mod symbols;

pub use shape::Shape;
pub use size::Size;
pub use symbols::{Bindings, Derivation, Origin, Symbol, Symbols};
