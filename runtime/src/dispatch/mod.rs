//! From a call to a kernel: inference, conversion of inputs, allocation or checking of outputs, choice of the kernel,
//! borrows.
//!
//! In: an operator definition and borrowed arguments. Out: tensors. Calls are not recorded here and errors do not name
//! the call: both belong to the entry points (`call`). Must not know automatic differentiation or tracers.

pub(crate) mod borrows;
mod convert;
mod functional;
mod host_fallback;
mod inplace;
mod numbers;
pub(crate) mod observer;
mod out;
mod run;
pub(crate) mod spans;
mod targets;
mod uniform;
pub(crate) mod written;

pub use host_fallback::{has_host_fallback, set_host_fallback};
pub use written::check_written;

pub(crate) use borrows::Borrows;
pub(crate) use convert::are_converted;
pub(crate) use functional::{functional, view};
pub(crate) use host_fallback::kernel;
pub(crate) use inplace::inplace;
pub(crate) use out::out;
pub(crate) use run::{is_checked_by_kernel, run_prepared};
pub(crate) use targets::{
    check_inplace, check_written as check_target, endless, refuse_overlap_with_inputs,
    refuse_overlapping_target,
};
pub(crate) use uniform::{OperandRoom, Uniform};
