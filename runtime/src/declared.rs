//! Kernels in Rust whose type is not the declared one.
//!
//! Generated tables of kernels take a kernel at its exact type once. For all other element types they wrap it
//! in a struct that has a method `run_declared` if the kernel's type is right; where it is not, the method of this
//! trait is found instead.

use crate::error::Result;
use crate::op::KernelCall;

/// Stands in for a kernel of another type than its declaration says.
pub trait Misfit: Sized {
    /// Refuses to be compiled into a program.
    ///
    /// # Errors
    /// Never; a program with this method does not build.
    fn run_declared(self, _call: &KernelCall<'_>) -> Result<()> {
        // Depends on the type, so that it is evaluated where a program has the method, and not with this crate.
        const {
            assert!(
                size_of::<Self>() == usize::MAX,
                "the kernel named below has another type for some element types than its declaration; the \
                 generated function `..._kernel` in kernel_tables.rs says which"
            );
        }
        Ok(())
    }
}

impl<K> Misfit for K {}
