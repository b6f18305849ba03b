//! The table of an operator's kernels.

use std::sync::atomic::{AtomicPtr, Ordering};

use opsmith_core::{Backend, DType, DTypeSet};

use super::{Kernel, KernelFn};

/// The initial kernels of one operator, by backend and dtype; [`Kernels`] can replace entries while the program runs.
pub struct KernelTable {
    entries: [[AtomicPtr<()>; DType::COUNT]; Backend::COUNT],
    /// What each backend's kernels are called in the spec, for messages.
    sources: [&'static str; Backend::COUNT],
}

impl KernelTable {
    /// A table from kernels by backend and dtype.
    pub const fn new(
        kernels: [[Option<KernelFn>; DType::COUNT]; Backend::COUNT],
        sources: [&'static str; Backend::COUNT],
    ) -> KernelTable {
        let mut entries =
            [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; DType::COUNT] }; Backend::COUNT];
        let mut backend = 0;
        while backend < Backend::COUNT {
            let mut dtype = 0;
            while dtype < DType::COUNT {
                if let Some(kernel) = kernels[backend][dtype] {
                    entries[backend][dtype] = AtomicPtr::new(kernel as *mut ());
                }
                dtype += 1;
            }
            backend += 1;
        }
        KernelTable { entries, sources }
    }
}

/// The kernels of one definition. Those of another cannot be taken for it: a kernel relies on what the inference of its
/// own operator made sure of.
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
pub struct Kernels(Option<&'static KernelTable>);

impl Kernels {
    /// Those of an operator that is no kernel's.
    pub const NONE: Kernels = Kernels(None);

    /// Those of a table, which was made for the definition.
    pub const fn of(table: &'static KernelTable) -> Kernels {
        Kernels(Some(table))
    }

    /// The same, for a definition that computes the same.
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

    /// What the kernels of a backend are called in the spec; nothing if there are none.
    pub fn source(&self, backend: Backend) -> &'static str {
        self.0.map_or("", |table| table.sources[backend.index()])
    }

    /// The kernel for a backend and dtype.
    #[inline]
    pub fn get(&self, backend: Backend, dtype: DType) -> Option<Kernel> {
        let pointer = self.0?.entries[backend.index()][dtype.index()].load(Ordering::Acquire);
        // SAFETY: entries are null or come from a `KernelFn`, in `new`, `replace` and `restore`.
        (!pointer.is_null()).then(|| Kernel(unsafe { std::mem::transmute::<*mut (), KernelFn>(pointer) }))
    }

    /// Installs a kernel, or removes it with `None`; returns the one that was there. An operator without a table has no
    /// place for one.
    ///
    /// A kernel of an operator whose in-place form hands it the input's memory as the output's reads and writes
    /// with [`map1`](crate::pointwise::map1) and its like: for that memory there are no views.
    pub fn replace(&self, backend: Backend, dtype: DType, kernel: Option<KernelFn>) -> Option<Kernel> {
        let new = kernel.map_or(std::ptr::null_mut(), |kernel| kernel as *mut ());
        let old = self.0?.entries[backend.index()][dtype.index()].swap(new, Ordering::AcqRel);
        // SAFETY: as in `get`.
        (!old.is_null()).then(|| Kernel(unsafe { std::mem::transmute::<*mut (), KernelFn>(old) }))
    }

    /// Installs a kernel that was replaced.
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
