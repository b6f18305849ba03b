//! Graph mode: a function as data, of which every shape and dtype is known before anything runs.
//!
//! In: a function over tensors ([`Graph::trace`]). Out: a [`Graph`], which can be checked, described, drawn,
//! optimised, saved, and run without allocating ([`Graph::run`]).

mod alike;
mod bind;
mod control;
mod ir;
mod memory;
mod merge;
mod plan;
mod probe;
pub(crate) mod recorder;
mod run;
mod stages;
mod trace;
pub(crate) mod unknown;

pub use control::{cond, scan, while_loop};
pub use ir::{
    Argument, Buffer, BufferId, BufferKind, Graph, Guard, Moving, Node, NodeKind, Region, Site, SymbolInfo,
    SymbolSource, SymbolicLayout, SymbolicScalar, TensorId, TensorInfo,
};
pub use trace::{Dim, InputSpec, IntoTensors};
