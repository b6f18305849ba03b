//! Shapes and dtypes of results before any size is known.
//!
//! In: an operator's definition, and arguments whose sizes are numbers, formulas over symbols, or unknown
//! ([`infer()`]). Out: the same of results. Nothing here knows an operator by name or a graph; what must hold
//! when the sizes are known is handed out as guards ([`Context`]).

mod call;
mod condition;
mod custom;
mod evaluate;
mod fit;
mod formula;
mod infer;
mod meta;
mod query;
mod range;
mod rules;
mod sample;
mod search;
pub mod shape;
pub mod size;
mod stairs;
pub mod symbols;

pub use call::Call;
pub(crate) use call::{Outcome, Owned, with_numbers};
pub use condition::{Condition, Context, Guard};
pub(crate) use formula::Term;
pub use infer::{Inference, Outputs, infer};
pub(crate) use infer::{concrete, operands};
pub use meta::{Argument, Meta, Strides};
pub(crate) use rules::broadcast_shapes;
pub(crate) use sample::infer as infer_at_samples;
pub use shape::Shape;
pub use size::Size;
pub use symbols::{Bindings, Derivation, Origin, Symbol, Symbols};
