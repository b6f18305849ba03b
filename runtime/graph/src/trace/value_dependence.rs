//! Constants whose elements determine shapes, and constants that a function writes.
//!
//! In: the reads and writes of tensors with elements while a function is traced. Out: errors for functions whose
//! shapes depend on values they later overwrite; and the constants baked into shapes, whose versions each run
//! checks.

use opsmith_runtime::arg::Arg;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::facts::ValueUse;
use opsmith_runtime::internals::StorageInternals as _;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::storage::Storage;

use crate::ir::{ShapeConstant, Site};

/// The constants that a function reads and writes while it is traced.
#[derive(Default)]
pub(crate) struct ValueDependence {
    shape_constants: Vec<ShapeConstant>,
    /// Constants that the function writes. They are borrowed for writing until it ends, since their contents are
    /// stale while tracing.
    written: Vec<Storage>,
}

impl ValueDependence {
    /// Records the arguments whose elements determine the shapes of a call's results.
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
                self.shape_constants.push(ShapeConstant {
                    storage,
                    version,
                    op,
                    argument,
                    site: site.clone(),
                });
            }
        }
        Ok(())
    }

    /// Records a write.
    ///
    /// # Errors
    /// If its elements determined a shape before.
    pub fn write(&mut self, storage: &Storage) -> Result<()> {
        if storage.is_meta() || self.is_written(storage) {
            return Ok(());
        }
        if let Some(constant) = self.shape_constants.iter().find(|constant| constant.storage.same(storage)) {
            return Err(Error::graph(format!(
                "the traced function changes a tensor whose elements decided a shape: that of `{}`, as its `{}`, \
                 called at {}; the graph would have that shape in every run",
                constant.op, constant.argument, constant.site
            ))
            .with_help(HELP));
        }
        storage.lock();
        self.written.push(storage.clone());
        Ok(())
    }

    /// Whether the function writes a storage.
    pub fn is_written(&self, storage: &Storage) -> bool {
        self.written.iter().any(|known| known.same(storage))
    }

    /// The constants whose elements determined shapes.
    pub fn take_shape_constants(&mut self) -> Vec<ShapeConstant> {
        std::mem::take(&mut self.shape_constants)
    }
}

const HELP: &str =
    "decide shapes by a tensor that nothing changes, e.g. a copy that is made outside the function";

impl Drop for ValueDependence {
    fn drop(&mut self) {
        // SAFETY: `write` locked each of them.
        self.written.iter().for_each(|storage| unsafe { storage.unlock() });
    }
}
