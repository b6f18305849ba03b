//! Programs exported by `torch.export.save` (`.pt2`) and ONNX models, read, checked and run as graphs, without PyTorch.
//!
//! In: an archive of a graph in JSON and weights, or a model that `opsmith_onnx` reads. Out: a [`Program`], which reports all its mistakes before it runs
//! ([`Program::check`]), becomes a [`Graph`](opsmith_graph::Graph) and runs ([`Program::run`]). Operators are found by
//! name in any library of operators that is linked into the program; this crate links none.
//!
//! ```text
//! archive ─► schema ─► lower ─► model ─► replay ─► Graph
//! zip        JSON      names    typed    on meta tensors, by Graph::trace
//!    └─► weights ───────────────────────────┘ constants
//! ```
//!
//! ```no_run
//! use opsmith_programs::Program;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let program = Program::load("model.pt2")?;
//! println!("{}", program.check()?);
//! let x = opsmith_runtime::Tensor::from_slice(&[0.5f32; 128], &[2, 64])?;
//! let outputs = program.run(&[&x])?;
//! # Ok(())
//! # }
//! ```

mod archive;
mod checked;
mod checkpoint;
mod conditions;
mod dead;
mod errors;
mod expression;
mod form;
mod inputs;
mod lower;
mod model;
mod models;
mod numbers;
mod operators;
mod outputs;
mod pickle;
mod program;
mod ranges;
mod replay;
mod schema;
mod sizes;
mod source;
mod structural;
mod weights;

pub use checked::CheckedProgram;
pub use errors::ProgramErrors;
pub use inputs::ProgramInput;
pub use outputs::{OutputRole, ProgramOutput};
pub use program::Program;
pub use sizes::ProgramSize;
