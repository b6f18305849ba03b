//! Tensor operators, generated from `ops.yaml`.
//!
//! Every operator is a function, a method of [`Tensor`] (through [`TensorOps`]) and a name for
//! [`call`]; where the spec says so also an in-place form (`add_`) and one that writes into a given
//! tensor (`add_out`).
//!
//! ```
//! use opsmith::{Tensor, TensorOps};
//!
//! # fn main() -> opsmith::Result<()> {
//! let a = Tensor::of(&[1.0f32, 2.0, 3.0]);
//! let b = a.mul(&a)?;
//! assert_eq!(b.to_vec::<f32>()?, [1.0, 4.0, 9.0]);
//! # Ok(())
//! # }
//! ```

pub use opsmith_kernels as kernels;
pub use opsmith_runtime as runtime;
pub use opsmith_runtime::{
    Arg, Backend, DType, Device, Element, Error, ErrorKind, Generator, Lists, MemoryFormat, Result, Scalar,
    Tensor, Text, Value, View, ViewMut, autograd,
};

/// Includes the operators that a crate's build script generated with `opsmith_codegen::build`.
///
/// In the root of the crate, next to a module `kernels`:
///
/// ```ignore
/// pub mod kernels;
///
/// opsmith::include_ops!();
/// ```
#[macro_export]
macro_rules! include_ops {
    () => {
        include!(concat!(env!("OUT_DIR"), "/opsmith/lib.rs"));
    };
}

include_ops!();
