//! Custom operators that are compiled ahead of time and loaded while the program runs.
//!
//! In: a source in C++ or CUDA, or a shared object, with a function of the interface
//! `kernels/include/custom_aot_extra.h`, and a declaration of its signature. Out: operators like
//! all others. A declaration is made with [`Declaration`], from a registration record, or in a spec.
//!
//! ```text
//! file ─► build (compiler, cache) ─► library (dlopen, functions) ─► kernel ─► instance (FInit, F)
//!                                                                     ▲
//! declaration, record, spec ─► signature ─► registry (definition) ─► dispatch: infer, run, gradient
//!                           └► place (device): host memory, or copies on a device
//! ```
//!
//! The interface is that of another framework; libraries built for it run here unchanged. Kernels are
//! trusted as much as any library that a program links; [`Declaration::check`] and [`Declaration::sandbox`]
//! are for those that are not yet.

mod attributes;
mod build;
mod cache;
mod check;
mod child;
mod compiler;
mod declare;
mod device;
mod dtypes;
mod elf;
mod extra;
mod file;
mod gradient;
mod infer;
mod inspect;
mod instance;
mod kernel;
mod library;
mod lookup;
mod manifest;
mod object;
mod open;
mod operator;
mod record;
mod registry;
mod sandbox;
mod signature;
mod spec;

pub use attributes::{AttrType, AttrValue};
pub use compiler::{Language, nvcc};
pub use declare::Declaration;
pub use device::release_device_memory;
pub use elf::{Interface, StringAbi};
pub use gradient::{BpropContext, BpropFn};
pub use infer::{InferCall, UNKNOWN_DIM, UNKNOWN_RANK};
pub use inspect::{Inspection, KernelFacts, inspect};
pub use operator::Operator;
pub use signature::InputKind;
pub use spec::SpecKernel;
