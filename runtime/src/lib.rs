//! The runtime of opsmith: tensors, inference rules, dispatch, automatic differentiation.
//!
//! In: operator definitions ([`op::OpDef`]), static data written by the generator. Out: calls, gradients and errors.
//! This crate knows no operator by name; special treatment is a field of an operator's definition.
//!
//! Items used only by generated code are in the hidden module [`generated`]: they change with the generator.

pub mod allocator;
pub mod arg;
pub mod arith;
pub mod autograd;
pub mod axes;
pub mod backend;
mod batches;
pub mod boxed;
mod call;
pub mod checked;
pub mod constraint;
mod conversion;
pub mod copy;
mod declared;
pub mod device;
mod device_loop;
mod device_view;
mod dispatch;
pub mod element;
pub mod embedder;
pub mod error;
pub mod facts;
mod foreign;
pub mod fork;
#[doc(hidden)]
pub mod generated;
mod grad;
pub mod halves;
pub mod infer;
#[doc(hidden)]
pub mod internals;
pub mod layout;
pub mod library;
pub mod lists;
mod moves;
pub mod npy;
pub mod op;
mod operators;
pub mod parallel;
mod pointwise;
pub mod print;
pub mod random;
mod replace;
pub mod sample;
pub mod scalar;
pub mod scratch;
mod shared;
pub mod simd;
pub mod storage;
mod sync;
pub mod tensor;
#[cfg(all(loom, test))]
mod tests;
mod trace_hook;
mod untyped;
pub mod view;

pub use arg::{Arg, MemoryFormat, MemoryLayout, TensorOrScalar, Value};
pub use batches::in_batches;
pub use device::Device;
pub use device_loop::DeviceProgram;
pub use device_view::{DeviceView, DeviceViewMut};
pub use dispatch::{has_host_fallback, set_host_fallback};
pub use element::Element;
pub use error::{Error, ErrorKind, Result};
pub use half::{bf16, f16};
#[doc(hidden)]
pub use inventory;
pub use layout::{Dims, Layout};
pub use lists::{Lists, Text};
pub use num_complex::{Complex, Complex32, Complex64};
#[doc(hidden)]
pub use opsmith_core::for_each_dtype;
pub use opsmith_core::{Backend, DType, DTypeCategory, DTypeSet, Float8E4M3, Float8E5M2, Int4, UInt4};
pub use random::Generator;
pub use scalar::Scalar;
pub use scratch::Scratch;
pub use smallvec;
pub use tensor::{Tensor, WeakTensor};
pub use untyped::Untyped;
pub use view::{View, ViewMut};
