//! From source to functions of a device.
//!
//! In: sources and instance lines. Out: functions, loaded at the first request and kept in the process. Must not know streams
//! of work or grids.
//!
//! ```text
//! source + instance ─► functions of the device ─► ways: 1. machine code of an archive of images      ─► load: driver's
//!                        kept: one at a time a key      2. disk (text, options, compiler), or NVRTC      module, function
//!                                                       3. PTX of an archive, by the driver's compiler
//! ```

mod cache;
mod load;
mod nvrtc;
mod search;
mod ways;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

use opsmith_runtime::Result;
use opsmith_runtime::backend::DeviceSource;

use crate::driver::Context;
use crate::driver::api::Handle;
use crate::images::ImageTarget;
use crate::status::Status;
pub use nvrtc::{Compiled, Nvrtc};
#[cfg(test)]
pub use ways::image_for;

/// The way by which a kernel came to a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KernelOrigin {
    /// An image of an archive, compiled ahead of time.
    Archive {
        /// The file, or the name under which the archive is part of the program.
        place: String,
        /// The architecture of the image: machine code, or PTX that the driver has compiled.
        target: ImageTarget,
    },
    /// An image of an earlier compilation, from the user's cache.
    Cache,
    /// The compiler, NVRTC.
    Compiler,
}

impl fmt::Display for KernelOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelOrigin::Archive { place, target } => write!(formatter, "{target} of {place}"),
            KernelOrigin::Cache => formatter.write_str("the cache"),
            KernelOrigin::Compiler => formatter.write_str("NVRTC"),
        }
    }
}

/// A compiled kernel of a device, which exists for the life of the process.
pub struct Function {
    /// The driver's handle.
    pub raw: Handle,
    /// Index of the device.
    pub device: u16,
    /// The source and its instance, for messages.
    pub name: String,
    /// The way by which it came here.
    pub origin: KernelOrigin,
    /// The maximal number of threads of a block.
    pub max_threads: u32,
    /// Bytes of static shared memory of a block.
    pub shared_bytes: u32,
    /// Sizes of the parameters in bytes, if the driver can say them.
    pub parameters: Option<Vec<usize>>,
    /// Bytes of dynamic shared memory that were requested of the driver.
    pub dynamic_limit: AtomicU32,
}

// SAFETY: functions may be launched from any thread; the other fields are plain data or atomic.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// The place of a function, which exists for the life of the process.
#[derive(Default)]
struct Slot {
    function: OnceLock<&'static Function>,
    /// Held while a thread compiles the function.
    building: Mutex<()>,
}

/// The functions of one device.
#[derive(Default)]
pub struct Functions {
    /// By the address of the source and the instance.
    slots: RwLock<HashMap<usize, HashMap<String, &'static Slot>>>,
}

impl Functions {
    /// The function of an instance of a source.
    ///
    /// # Errors
    /// If no archive has it and no compiler is found, the source has a mistake, or errors of the device.
    pub fn get(
        &self,
        context: &'static Context,
        status: &Status,
        source: &'static DeviceSource,
        instance: &str,
    ) -> Result<&'static Function> {
        let slot = self.slot(source, instance);
        if let Some(function) = slot.function.get() {
            return Ok(function);
        }
        let _one_at_a_time = slot.building.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = slot.function.get() {
            return Ok(function);
        }
        let function: &'static Function =
            Box::leak(Box::new(ways::build(context, status, source, instance)?));
        Ok(slot.function.get_or_init(|| function))
    }

    /// All functions that were loaded.
    pub fn loaded(&self) -> Vec<&'static Function> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.values().flat_map(HashMap::values).filter_map(|slot| slot.function.get().copied()).collect()
    }

    fn slot(&self, source: &'static DeviceSource, instance: &str) -> &'static Slot {
        let source = std::ptr::from_ref(source).addr();
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(&source).and_then(|slots| slots.get(instance)) {
            return slot;
        }
        drop(slots);
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slots = slots.entry(source).or_default();
        slots.entry(instance.to_owned()).or_insert_with(|| Box::leak(Box::default()))
    }
}
