//! Constants whose elements decide shapes, and constants that a function changes.
//!
//! In: the reads and writes of tensors that have elements, as a function is traced. Out: an error for a function whose
//! shapes depend on values that it later overwrites; and the constants baked into shapes, whose versions each run
//! checks.

use super::ir::Site;
use crate::arg::Arg;
use crate::error::{Error, Result};
use crate::facts::ValueUse;
use crate::op::OpDef;
use crate::storage::Storage;

/// What a function that is being traced does with constants.
#[derive(Default)]
pub(super) struct Elements {
    relied: Vec<Relied>,
    /// Constants that the function changes. They are borrowed for writing until it ends, since what they hold is
    /// what they held before.
    written: Vec<Storage>,
}

/// A constant whose elements decided a shape when a function was traced.
#[derive(Clone)]
pub(crate) struct Relied {
    storage: Storage,
    version: u64,
    op: &'static str,
    argument: &'static str,
    site: Site,
}

impl Elements {
    /// Notes the arguments whose elements decide about the results of a call.
    ///
    /// # Errors
    /// If the function changes one of them.
    pub fn decide(&mut self, op: &'static OpDef, args: &[Arg<'_>], site: &Site) -> Result<()> {
        for (def, arg) in op.schema.args.iter().zip(args).filter(|(def, _)| def.value != ValueUse::None) {
            let mut storages: Vec<Storage> = Vec::new();
            arg.for_each_tensor(|tensor| {
                storages.extend(def.value.counts(tensor.dtype()).then(|| tensor.storage().clone()));
            });
            for storage in storages.into_iter().filter(|storage| !storage.is_meta()) {
                if self.is_written(&storage) {
                    return Err(Error::graph(format!(
                        "the elements of `{}` decide the shape of the result, and the traced function changes them \
                         before",
                        def.name
                    ))
                    .with_help(HELP)
                    .in_op(op.name, Vec::new()));
                }
                let version = storage.version();
                let (op, argument) = (op.name, def.name);
                self.relied.push(Relied { storage, version, op, argument, site: site.clone() });
            }
        }
        Ok(())
    }

    /// Notes that the function changes memory.
    ///
    /// # Errors
    /// If its elements decided a shape before.
    pub fn write(&mut self, storage: &Storage) -> Result<()> {
        if storage.is_meta() || self.is_written(storage) {
            return Ok(());
        }
        if let Some(relied) = self.relied.iter().find(|relied| relied.storage.same(storage)) {
            return Err(Error::graph(format!(
                "the traced function changes a tensor whose elements decided a shape: that of `{}`, as its `{}`, \
                 called at {}; the graph would have that shape in every run",
                relied.op, relied.argument, relied.site
            ))
            .with_help(HELP));
        }
        storage.lock();
        self.written.push(storage.clone());
        Ok(())
    }

    /// Whether the function changes memory.
    pub fn is_written(&self, storage: &Storage) -> bool {
        self.written.iter().any(|known| known.same(storage))
    }

    /// The constants that a graph relies on.
    pub fn take_relied(&mut self) -> Vec<Relied> {
        std::mem::take(&mut self.relied)
    }
}

const HELP: &str =
    "decide shapes by a tensor that nothing changes, e.g. a copy that is made outside the function";

impl Drop for Elements {
    fn drop(&mut self) {
        self.written.iter().for_each(Storage::unlock);
    }
}

impl std::fmt::Debug for Relied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` of `{}` at {}", self.argument, self.op, self.site)
    }
}

impl Relied {
    /// Refuses to go on if the constant has changed since.
    ///
    /// # Errors
    /// If it has.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.storage.version() == self.version { Ok(()) } else { Err(self.changed()) }
    }

    #[cold]
    fn changed(&self) -> Error {
        Error::graph(format!(
            "the elements of `{}` decided the shape of the result when the function was traced, and have changed since",
            self.argument
        ))
        .with_help("trace the function again")
        .with_note(format!("called at {}", self.site))
        .in_op(self.op, Vec::new())
    }
}
