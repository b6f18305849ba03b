//! Compile errors for Rust kernels whose type is not the declared one.
//!
//! In: a kernel in a generated table. Out: a build failure if its type is wrong. Tables check a kernel's exact type
//! once. For all other element types they wrap it in a struct that has a method `run_declared` if the type is right;
//! otherwise method lookup finds this trait's.

use crate::error::Result;
use crate::op::KernelCall;

/// Fallback for a kernel whose type differs from its declaration.
pub trait Misfit: Sized {
    /// Fails at compile time.
    ///
    /// # Errors
    /// Never; a program with this method does not build.
    fn run_declared(self, _call: &KernelCall<'_>) -> Result<()> {
        // Depends on the type, so that it is evaluated only in a program that uses the method, not in this crate.
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
