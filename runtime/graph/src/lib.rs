//! Graph mode: a function as data, whose shapes and dtypes are all inferred before it runs.
//!
//! In: a function over tensors ([`Graph::trace`]) or calls by name ([`GraphBuilder`]). Out: a [`Graph`], which can be
//! checked, described, drawn, optimised, saved, and run without allocating ([`Graph::run`]).
//!
//! ```text
//! trace ─┐                        ┌─► check    errors and conditions of sizes
//!        ├─► ir (Graph) ─► passes ┼─► plan ─► exec   layouts, liveness, offsets, schedule; runs
//! build ─┘                        └─► show, file     tables, drawings; folders
//! ```

mod build;
mod check;
mod exec;
mod file;
mod ir;
mod passes;
mod plan;
mod show;
mod trace;

pub use build::builder::{BuilderArg, GraphBuilder, Handle};
pub use build::unranked::OpenGraph;
pub use check::GraphErrors;
pub use check::infer::{Checked, Requirement};
pub use exec::records::Replays;
pub use ir::{
    Argument, Buffer, BufferId, BufferKind, Graph, Moving, Node, NodeKind, Region, Site, SymbolSource,
    SymbolicLayout, SymbolicScalar, TensorId, TensorInfo,
};
pub use opsmith_runtime::infer::symbolic::{Guard, SymbolInfo};
pub use passes::{Pass, Passes};
pub use show::memory::{BufferReport, MemoryReport, Place};
pub use trace::composition::infer_composition;
pub use trace::control::{cond, scan, while_loop};
pub use trace::dynamic_sizes::{Placeholder, data_dependent_sizes};
pub use trace::observer::untraced;
pub use trace::source::at_source;
pub use trace::{Dim, InputSpec, IntoTensors};
