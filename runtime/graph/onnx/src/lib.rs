//! ONNX models, read as functions over tensors, and graphs written as ONNX models.
//!
//! In: a file in ONNX's format, with files of weights beside it. Out: an [`OnnxModel`], which is replayed by
//! `Graph::trace` as any function is; `opsmith_programs::Program` loads, checks and runs it. Operators are found by name in
//! any library of operators that is linked into the program; this crate links none.
//!
//! ```text
//! file ─► proto ─► lower ─► model ─► replay ─► Graph
//!         messages names    typed    on meta tensors, by Graph::trace
//!    └─► tensors ─────────────┘      operators: the table of ONNX's operators
//! ```

mod attributes;
mod call;
mod custom;
mod errors;
mod libraries;
mod lower;
mod mapped;
mod messages;
mod model;
mod onnx_model;
mod operators;
mod proto;
mod replay;
mod save;
mod tensors;
mod values;

pub use mapped::MappedFile;
pub use onnx_model::OnnxModel;
pub use save::{onnx_bytes, save_onnx};
