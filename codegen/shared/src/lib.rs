//! The data that the generator and the runtime share, written once: element types, floats of 8 bits, type promotion, backends,
//! inference rules by name and as trees, constraints of attributes, and the search for definitions in C++.
//!
//! In: nothing. Out: plain enums and tables. This crate has no dependencies and knows neither YAML
//! nor tensors.

pub mod abi;
mod backend;
mod bounds;
mod checks;
pub mod constraint;
pub mod cpp;
mod dtype;
mod dtype_kinds;
mod element_type;
mod facts;
mod float8;
mod int4;
mod kinds;
mod memory_format;
mod promotion;
mod python;
mod query;
mod refusal;
pub mod rule_tree;
pub mod rules;
pub mod spelling;
mod words;

/// Most tensors that a pointwise expression reads: the runtime has a loop for each number up to it.
pub const MAX_POINTWISE_TENSORS: usize = 5;

/// Most arguments of an operator: sets of them are bits of a `u64`.
pub const MAX_ARGUMENTS: usize = u64::BITS as usize;

pub use backend::Backend;
pub use bounds::{ELEMENT_TRAITS, ElementTrait};
pub use checks::{Check, Tolerance, ToleranceOf};
pub use dtype::{DType, DTypeCategory, DTypeSet};
pub use element_type::ElementType;
pub use facts::{Combination, Lines, NumberUse, ValueUse};
pub use float8::{Float8E4M3, Float8E5M2};
pub use int4::{Int4, UInt4};
pub use kinds::{ArgKind, ArgType, ItemKind};
pub use memory_format::MemoryFormat;
pub use promotion::{can_cast, promote};
pub use python::python_name;
pub use query::{Operation, Query};
pub use refusal::BridgeFacts;
pub use words::{ExampleCall, ExampleTensor, Words};
