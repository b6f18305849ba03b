//! Shapes and dtypes of results before any size is known.
//!
//! In: an operator's definition, and arguments whose sizes are numbers, formulas over symbols, or unknown
//! ([`infer()`]). Out: sizes of the results in the same form, and guards ([`Context`]): conditions to be checked when
//! the sizes are known. Must not know operators by name or graphs.

pub(crate) mod call;
mod condition;
mod custom;
mod evaluate;
mod extent;
pub(crate) mod formula;
pub(crate) mod infer;
pub(crate) mod opaque;
mod query;
mod range;
mod rules;
pub mod shape;
pub mod size;
pub mod symbols;
mod tensor_meta;
mod uncompiled;

pub use call::Call;
pub use condition::{Condition, Context, Guard};
pub use infer::{Inference, OutputsMeta, infer};
pub(crate) use rules::broadcast_shapes;
pub use shape::Shape;
pub use size::Size;
pub use symbols::{Bindings, Derivation, Origin, Symbol, SymbolInfo, Symbols};
pub use tensor_meta::{ArgumentMeta, Meta, Strides};
pub use uncompiled::{Uncompiled, infer_uncompiled};
