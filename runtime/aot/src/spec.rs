//! Custom kernels of operators that a spec declares.
//!
//! In: calls of generated operators; the spec has said everything about their types, shapes, forms and
//! gradients. Out: outputs filled. The kernel is compiled and loaded at the first call.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use opsmith_core::Backend;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::op::{KernelCall, OpDef};

use super::device::Place;
use super::infer::{OutputDTypes, OutputShapes};
use super::kernel::{Kernel, Options, State};
use super::signature::Signature;

/// Runs a call of an operator of a spec with the kernel `$function` in a file, which generated code names.
#[doc(hidden)]
#[macro_export]
macro_rules! spec_kernel {
    ($call:expr, $path:expr, $file:expr, $function:expr, $target:expr) => {{
        static KERNEL: $crate::SpecKernel = $crate::SpecKernel::new($path, $file, $function, $target);
        KERNEL.run($call)
    }};
}

/// A kernel of generated code.
pub struct SpecKernel {
    path: &'static str,
    file: &'static str,
    function: &'static str,
    target: Backend,
    kernel: OnceLock<Kernel>,
}

impl SpecKernel {
    /// The kernel `function` in the file at `path`, which is `file` as seen from the crate's folder; it
    /// runs on devices of that backend.
    pub const fn new(
        path: &'static str,
        file: &'static str,
        function: &'static str,
        target: Backend,
    ) -> SpecKernel {
        SpecKernel { path, file, function, target, kernel: OnceLock::new() }
    }

    /// Runs a call.
    ///
    /// # Errors
    /// If the kernel cannot be built, loaded or run, or fails.
    #[inline]
    pub fn run(&self, call: &KernelCall<'_>) -> Result<()> {
        match self.kernel.get() {
            Some(kernel) => kernel.run(call),
            None => self.prepare(call.op())?.run(call),
        }
    }

    #[cold]
    fn prepare(&self, op: &OpDef) -> Result<&Kernel> {
        let source = self.find()?;
        let kernel = Kernel {
            signature: Signature::of_definition(op),
            place: Place::of(&source, &[self.target])?,
            source,
            function: self.function.to_owned(),
            options: Options::from_environment()?,
            // The spec says them; the dispatcher has inferred them before the kernel runs.
            shapes: OutputShapes::Constant(Vec::new()),
            dtypes: OutputDTypes::Constant(Vec::new()),
            state: Mutex::new(State::default()),
        };
        Ok(self.kernel.get_or_init(|| kernel))
    }

    /// Where the file is: where it was when the program was built, or in a folder of `OPSMITH_AOT_PATH`.
    fn find(&self) -> Result<PathBuf> {
        let built = Path::new(self.path);
        let folders = std::env::var_os("OPSMITH_AOT_PATH").unwrap_or_default();
        let elsewhere = std::env::split_paths(&folders).map(|folder| folder.join(self.file));
        let found = std::iter::once(built.to_owned()).chain(elsewhere).find(|path| path.is_file());
        found.ok_or_else(|| {
            Error::io(format!("there is no file {}", built.display())).with_help(format!(
                "it was there when the program was built; OPSMITH_AOT_PATH can name folders that have `{}`",
                self.file
            ))
        })
    }
}
