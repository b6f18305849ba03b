//! The implementation of an operator: an expression, hand-written kernels, a view, or other operators.

use std::path::PathBuf;

use opsmith_core::{Backend, DTypeSet};

use super::expr::Expr;
use crate::diagnostics::Span;

/// The implementation of an operator.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// One element as an expression.
    pub pointwise: Option<Expr>,
    /// Whether devices can compute that expression.
    pub device_loops: bool,
    /// Hand-written kernels.
    pub kernels: Vec<Kernel>,
    /// The layout function of a view.
    pub view: Option<String>,
    /// The operator in terms of others.
    pub composite: Option<Expr>,
    /// Whether the composition may call itself, directly or through others: it counts its levels.
    pub recursive: bool,
    /// The function of an operator that returns no tensors.
    pub host: Option<String>,
    /// The dtypes each backend has kernels for.
    pub dtypes: [DTypeSet; Backend::COUNT],
}

/// The backend whose language loops of expressions on devices are written in.
pub const DEVICE_LOOPS: Backend = Backend::Cuda;

/// A hand-written kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its backend.
    pub backend: Backend,
    /// Where it is.
    pub source: KernelSource,
    /// As written in the spec.
    pub text: String,
    /// The span of that text.
    pub span: Span,
    /// Whether the build compiles it, or the program while it runs.
    pub is_built: bool,
    /// File and line of its function, if they were looked for and found.
    pub place: Option<String>,
}

/// Where a hand-written kernel is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KernelSource {
    /// A Rust function, generic over the element type: `linalg::mm`, or `fill::full(size, value)` if it
    /// takes some of the arguments only.
    Rust {
        /// The function.
        path: String,
        /// The arguments it takes, in order.
        arguments: Vec<usize>,
    },
    /// A function in a C or C++ file: `kernels/cpu/flip.cc:flip`.
    Foreign {
        /// The file, relative to the spec.
        file: PathBuf,
        /// The function.
        symbol: String,
    },
    /// A function of the interface of custom kernels, which is compiled and loaded when it is first
    /// called: `aot:kernels/add_reduce.cc:CustomKernel`.
    Aot {
        /// The source, or a library; relative to the spec.
        file: PathBuf,
        /// The function.
        symbol: String,
    },
}

impl Body {
    /// The hand-written kernel behind the row of a backend in the table of kernels: that of its key, or the one that
    /// serves the host's tensors by copies.
    pub fn kernel_of_row(&self, backend: Backend) -> Option<&Kernel> {
        let own = self.kernels.iter().find(|kernel| kernel.is_built && kernel.backend == backend);
        own.or_else(|| self.kernel_by_copies().filter(|_| backend == Backend::Cpu))
    }

    /// The custom kernel for a device that also serves tensors of the host, which it copies there and back: one of an
    /// operator that nothing else computes on the host.
    fn kernel_by_copies(&self) -> Option<&Kernel> {
        let copies = |kernel: &&Kernel| {
            matches!(kernel.source, KernelSource::Aot { .. }) && kernel.backend != Backend::Cpu
        };
        let on_host = self.kernels.iter().any(|kernel| kernel.is_built && kernel.backend == Backend::Cpu);
        let nothing_else = !on_host && self.pointwise.is_none() && self.composite.is_none();
        self.kernels.iter().find(copies).filter(|_| nothing_else)
    }

    /// Whether a backend computes the expression, if there is one.
    pub fn has_loop(&self, backend: Backend) -> bool {
        if backend == Backend::Cpu {
            return self.pointwise.is_some();
        }
        backend == DEVICE_LOOPS && self.device_loops
    }

    /// The dtypes for which the row of a backend has kernels.
    pub fn dtypes_of_row(&self, backend: Backend) -> DTypeSet {
        match self.kernel_of_row(backend) {
            Some(kernel) => self.dtypes[kernel.backend.index()],
            None if self.has_loop(backend) => self.dtypes[backend.index()],
            None => DTypeSet::EMPTY,
        }
    }

    /// Whether a row of the table refers to a kernel, so that its file is needed.
    pub fn refers_to(&self, kernel: &Kernel) -> bool {
        let rows = Backend::ALL.into_iter().filter_map(|backend| self.kernel_of_row(backend));
        rows.into_iter().any(|used| std::ptr::eq(used, kernel))
    }

    /// Whether a kernel is compiled and loaded while the program runs.
    pub fn is_aot(&self) -> bool {
        self.kernels.iter().any(|kernel| matches!(kernel.source, KernelSource::Aot { .. }))
    }
}
