//! Graph mode: a function as data, of which every shape and dtype is known before anything runs.
//!
//! In: a function over tensors ([`Graph::trace`]). Out: a [`Graph`], which can be checked, described, drawn,
//! optimised, saved, and run without allocating ([`Graph::run`]).

mod access;
mod alike;
mod arrange;
mod bind;
mod builder;
mod calls;
mod check;
mod compose;
mod control;
mod describe;
mod dot;
mod elements;
mod explain;
mod file;
mod formulas;
mod generators;
mod handles;
mod html;
mod ir;
mod levels;
mod memory;
mod merge;
mod observer;
mod open;
mod open_sheet;
mod passes;
mod plan;
mod pool;
mod probe;
mod recorder;
mod report;
mod run;
mod sheet;
mod stages;
mod survey;
mod surveyed;
mod ties;
mod trace;
mod unknown;
mod variants;

pub use builder::{BuilderArg, GraphBuilder, Handle};
pub use check::GraphErrors;
pub use compose::infer_composition;
pub use control::{cond, scan, while_loop};
pub use ir::{
    Argument, Buffer, BufferId, BufferKind, Graph, Guard, Moving, Node, NodeKind, Region, Site, SymbolInfo,
    SymbolSource, SymbolicLayout, SymbolicScalar, TensorId, TensorInfo,
};
pub use open::OpenGraph;
pub use passes::{Pass, Passes};
pub use report::{BufferReport, MemoryReport, Place};
pub use survey::{Checked, Requirement};
pub use trace::{Dim, InputSpec, IntoTensors};
