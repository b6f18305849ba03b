//! The table of an operator's kernels.

use std::panic::Location;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opsmith_core::{Backend, DType, DTypeSet};

use super::{Kernel, KernelFn};

/// The initial kernels of one operator, by backend and dtype; [`Kernels`] can replace entries at run time.
pub struct KernelTable {
    entries: [[AtomicPtr<()>; DType::COUNT]; Backend::COUNT],
    /// The kernels' name in the spec for each backend, for messages.
    sources: [&'static str; Backend::COUNT],
    /// File and line of their functions, as far as the generator found them.
    places: [&'static str; Backend::COUNT],
}

impl KernelTable {
    /// A table without kernels.
    #[allow(clippy::new_without_default, reason = "tables are statics, which a default cannot make")]
    pub const fn new() -> KernelTable {
        let entries =
            [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; DType::COUNT] }; Backend::COUNT];
        KernelTable { entries, sources: [""; Backend::COUNT], places: [""; Backend::COUNT] }
    }

    /// A table with kernels of the host, as in [`KernelTable::with`].
    pub const fn cpu(source: &'static str, kernels: &[(DType, KernelFn)]) -> KernelTable {
        KernelTable::new().with(Backend::Cpu, source, kernels)
    }

    /// The table with kernels of a backend, by dtype; `source` is their name in the spec.
    #[must_use]
    pub const fn with(
        mut self,
        backend: Backend,
        source: &'static str,
        kernels: &[(DType, KernelFn)],
    ) -> KernelTable {
        let row = backend.index();
        self.sources[row] = source;
        let mut index = 0;
        while index < kernels.len() {
            let (dtype, kernel) = kernels[index];
            self.entries[row][dtype.index()] = AtomicPtr::new(kernel as *mut ());
            index += 1;
        }
        self
    }

    /// The table with the file and line of a backend's kernels, `kernels/src/cpu/linalg/product.rs:12`.
    #[must_use]
    pub const fn at(mut self, backend: Backend, place: &'static str) -> KernelTable {
        self.places[backend.index()] = place;
        self
    }
}

/// The name of the loops that the generator makes from an operator's expression.
const POINTWISE: &str = "pointwise";

/// Where a kernel comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelOrigin {
    /// The spec: its name there, and file and line as [`Kernels::place`] gives them. Empty texts are unknown.
    Spec {
        /// The name in the spec; `pointwise` for loops made from an expression.
        name: &'static str,
        /// File and line.
        place: &'static str,
    },
    /// The program, which installed it with [`Kernels::replace`] in this line.
    Program(&'static Location<'static>),
}

/// A kernel that a program installed.
struct Installed {
    table: *const KernelTable,
    backend: Backend,
    kernel: *const (),
    line: &'static Location<'static>,
}

// SAFETY: the pointers are addresses that are compared.
unsafe impl Send for Installed {}

impl Installed {
    fn is(&self, table: *const KernelTable, backend: Backend, kernel: *const ()) -> bool {
        std::ptr::eq(self.table, table) && self.backend == backend && self.kernel == kernel
    }
}

/// The kernels that programs installed, the last of equal ones.
fn installed() -> MutexGuard<'static, Vec<Installed>> {
    static INSTALLED: Mutex<Vec<Installed>> = Mutex::new(Vec::new());
    INSTALLED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One kernel for several dtypes, in the form of [`KernelTable::with`]: it reads the dtype from its tensors.
pub const fn same_kernel<const N: usize>(kernel: KernelFn, dtypes: [DType; N]) -> [(DType, KernelFn); N] {
    let mut kernels = [(DType::Bool, kernel); N];
    let mut index = 0;
    while index < N {
        kernels[index].0 = dtypes[index];
        index += 1;
    }
    kernels
}

/// The kernels of one definition. Another definition cannot use them: a kernel relies on the guarantees of its own
/// operator's inference.
///
/// ```compile_fail,E0507
/// # use opsmith_runtime::op::OpDef;
/// fn borrowed(a: &'static OpDef, b: OpDef) -> OpDef {
///     OpDef { kernels: a.kernels, ..b }
/// }
/// ```
///
/// ```compile_fail,E0507
/// # use opsmith_runtime::op::OpDef;
/// fn inferred_otherwise(a: &'static OpDef, b: &OpDef) -> OpDef {
///     OpDef { infer: b.infer, ..*a }
/// }
/// ```
///
/// A table belongs to the definition that it was made for, which is a promise of the definition's author:
///
/// ```compile_fail,E0133
/// # use opsmith_runtime::op::{KernelTable, Kernels};
/// static TABLE: KernelTable = KernelTable::new();
/// const KERNELS: Kernels = Kernels::of(&TABLE);
/// ```
pub struct Kernels(Option<&'static KernelTable>);

impl Kernels {
    /// No kernels.
    pub const NONE: Kernels = Kernels(None);

    /// The kernels of a table.
    ///
    /// # Safety
    /// The table was made for the definition that gets it: each kernel finds the arguments and outputs that it takes
    /// when they match the definition's signature and inference.
    pub const unsafe fn of(table: &'static KernelTable) -> Kernels {
        Kernels(Some(table))
    }

    /// The same kernels, for a second definition that computes the same.
    pub(super) const fn again(&self) -> Kernels {
        Kernels(self.0)
    }

    /// Whether there is no table.
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Whether there is a table.
    pub const fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// The name of a backend's kernels in the spec; empty if there are none.
    pub fn source(&self, backend: Backend) -> &'static str {
        self.0.map_or("", |table| table.sources[backend.index()])
    }

    /// File and line of a backend's kernels: from the folder of the spec, or for the crate of another package from that which
    /// contains it; of loops made from an expression, those of the entry. Empty if they are unknown.
    pub fn place(&self, backend: Backend) -> &'static str {
        self.0.map_or("", |table| table.places[backend.index()])
    }

    /// Where a kernel of this table comes from, by its [address](Kernel::address).
    pub fn origin(&self, backend: Backend, address: *const ()) -> KernelOrigin {
        let table = self.0.map_or(std::ptr::null(), std::ptr::from_ref);
        let same = |known: &&Installed| known.is(table, backend, address);
        match installed().iter().find(same) {
            Some(known) => KernelOrigin::Program(known.line),
            None => KernelOrigin::Spec { name: self.source(backend), place: self.place(backend) },
        }
    }

    /// Whether a kernel of this table is a loop that the generator made from the operator's expression.
    pub fn is_expression(&self, backend: Backend, kernel: Kernel) -> bool {
        let from_spec = KernelOrigin::Spec { name: POINTWISE, place: self.place(backend) };
        self.origin(backend, kernel.address()) == from_spec
    }

    /// The kernel for a backend and dtype.
    #[inline]
    pub fn get(&self, backend: Backend, dtype: DType) -> Option<Kernel> {
        let pointer = self.0?.entries[backend.index()][dtype.index()].load(Ordering::Acquire);
        // SAFETY: entries are null or come from a `KernelFn`, in `new`, `replace` and `restore`.
        (!pointer.is_null()).then(|| Kernel(unsafe { std::mem::transmute::<*mut (), KernelFn>(pointer) }))
    }

    /// Installs a kernel, or removes it with `None`; returns the former one. An operator without a table ignores it.
    ///
    /// Profiles name the line of this call as the kernel's source.
    ///
    /// If the operator's in-place form passes the input's memory as the output's, the kernel must read and write with
    /// `map1` and similar functions: such memory has no views.
    #[track_caller]
    pub fn replace(&self, backend: Backend, dtype: DType, kernel: Option<KernelFn>) -> Option<Kernel> {
        let new = kernel.map_or(std::ptr::null_mut(), |kernel| kernel as *mut ());
        let table = self.0?;
        if kernel.is_some() {
            let line = Location::caller();
            let mut installed = installed();
            installed.retain(|known| !known.is(table, backend, new));
            installed.push(Installed { table, backend, kernel: new, line });
        }
        let old = table.entries[backend.index()][dtype.index()].swap(new, Ordering::AcqRel);
        // SAFETY: as in `get`.
        (!old.is_null()).then(|| Kernel(unsafe { std::mem::transmute::<*mut (), KernelFn>(old) }))
    }

    /// Reinstalls a kernel that was replaced.
    ///
    /// # Safety
    /// It was replaced in this table, for this backend and dtype.
    pub unsafe fn restore(&self, backend: Backend, dtype: DType, kernel: Kernel) {
        if let Some(table) = self.0 {
            table.entries[backend.index()][dtype.index()].store(kernel.0 as *mut (), Ordering::Release);
        }
    }

    /// The dtypes a backend has kernels for.
    pub fn dtypes(&self, backend: Backend) -> DTypeSet {
        DType::ALL
            .into_iter()
            .filter(|dtype| self.get(backend, *dtype).is_some())
            .fold(DTypeSet::EMPTY, |set, dtype| set.union(DTypeSet::of(dtype)))
    }
}
