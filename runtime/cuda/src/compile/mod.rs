//! From source to functions of a device.
//!
//! In: sources and instance lines. Out: functions, compiled for the device's own architecture at the first request, kept
//! on disk and in the process. Must not know streams of work or grids.
//!
//! ```text
//! source + instance ─► functions of the device ─► disk: key = text, options, compiler's version ─► driver: module, function
//!                        kept: one at a time a key   └─ NVRTC, if the disk has none
//! ```

mod cache;
mod nvrtc;
mod search;

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

use opsmith_runtime::backend::DeviceSource;
use opsmith_runtime::{Error, Result};

use crate::driver::api::Handle;
use crate::driver::{Context, codes};
use crate::status::Status;
use cache::{Cache, Key};
use nvrtc::{Nvrtc, Target};
use search::nvrtc;

/// Options besides the architecture. Products and sums are rounded each, as on the host, unless a text says `fma`.
const OPTIONS: [&str; 2] = ["--std=c++17", "--fmad=false"];

/// A compiled kernel of a device, which exists for the life of the process.
pub struct Function {
    /// The driver's handle.
    pub raw: Handle,
    /// Index of the device.
    pub device: u16,
    /// The source and its instance, for messages.
    pub name: String,
    /// The maximal number of threads of a block.
    pub max_threads: u32,
    /// Bytes of static shared memory of a block.
    pub shared_bytes: u32,
    /// Number of parameters, if the driver can say it.
    pub parameters: Option<usize>,
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
    /// If no compiler is found, the source has a mistake, or errors of the device.
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
        let function: &'static Function = Box::leak(Box::new(build(context, status, source, instance)?));
        Ok(slot.function.get_or_init(|| function))
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

/// The image of an instance for an architecture, from the compiler.
///
/// # Errors
/// If no compiler is found, or the source has a mistake.
#[cfg(test)]
pub fn image_for(source: &DeviceSource, instance: &str, architecture: c_int) -> Result<Vec<u8>> {
    let compiler = nvrtc(c_int::MAX)?;
    let target = compiler.target(architecture)?;
    compiler.compile(source.name, &text_of(source, instance), target, &options_for(target))
}

fn options_for(target: Target) -> Vec<String> {
    [target.option()].into_iter().chain(OPTIONS.map(str::to_owned)).collect()
}

fn build(
    context: &'static Context,
    status: &Status,
    source: &DeviceSource,
    instance: &str,
) -> Result<Function> {
    let name = format!("{} ({})", source.name, instance.trim());
    let architecture = architecture(context)?;
    let compiler = nvrtc(context.driver.version / 1000)?;
    let target = compiler.target(architecture)?;
    let options = options_for(target);
    let text = text_of(source, instance);
    let key = key(compiler, source.name, &text, &options);
    keep_text(&key, &text);
    if let Some(image) = disk().and_then(|disk| disk.read(&key))
        && let Ok(function) = load(context, status, &image, &name)
    {
        return Ok(function);
    }
    let image = compiler.compile(source.name, &text, target, &options)?;
    let function = load(context, status, &image, &name)?;
    if let Some(disk) = disk() {
        disk.write(&key, &image);
    }
    Ok(function)
}

/// The whole text that the compiler gets.
fn text_of(source: &DeviceSource, instance: &str) -> String {
    let mut text = String::new();
    for part in source.headers.iter().copied().chain([source.text, instance]) {
        text.push_str(part);
        if !part.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

/// Writes the text to the folder that the environment names for it, for reading and for other compilers.
fn keep_text(key: &str, text: &str) {
    if let Some(folder) = std::env::var_os("OPSMITH_CUDA_KEEP_TEXT") {
        let path = std::path::Path::new(&folder).join(format!("{key}.cu"));
        // The call does not fail because of it.
        if let Err(error) = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, text)) {
            eprintln!("opsmith: OPSMITH_CUDA_KEEP_TEXT: cannot write {}: {error}", path.display());
        }
    }
}

fn key(compiler: &Nvrtc, name: &str, text: &str, options: &[String]) -> String {
    let mut key = Key::new();
    key.add(&format!("{}.{}", compiler.version.0, compiler.version.1));
    key.add(name);
    key.add(text);
    for option in options {
        key.add(option);
    }
    key.finish()
}

fn disk() -> Option<&'static Cache> {
    static DISK: OnceLock<Option<Cache>> = OnceLock::new();
    DISK.get_or_init(Cache::of_user).as_ref()
}

/// The architecture of a device, as 10 × major + minor.
fn architecture(context: &Context) -> Result<c_int> {
    let major = context.attribute(codes::COMPUTE_CAPABILITY_MAJOR)?;
    let minor = context.attribute(codes::COMPUTE_CAPABILITY_MINOR)?;
    c_int::try_from(10 * major + minor).map_err(|_| Error::device("the device has no architecture"))
}

fn load(context: &'static Context, status: &Status, image: &[u8], name: &str) -> Result<Function> {
    let _entered = context.enter()?;
    let api = context.api();
    // The driver reads text up to a zero byte.
    let mut ended = image.to_vec();
    ended.push(0);
    let mut module = std::ptr::null_mut();
    // SAFETY: the context is entered; the image is whole, and the driver copies it.
    let code = unsafe { (api.cuModuleLoadData)(&mut module, ended.as_ptr().cast()) };
    context.check(code, format_args!("load {name}"))?;
    let mut raw = std::ptr::null_mut();
    // SAFETY: the module is loaded, and the result is a local variable.
    let code = unsafe { (api.cuModuleGetFunction)(&mut raw, module, c"opsmith_kernel".as_ptr()) };
    if let Err(error) = context.check(code, format_args!("find `opsmith_kernel` in {name}")) {
        // SAFETY: the module has no user.
        _ = unsafe { (api.cuModuleUnload)(module) };
        return Err(error);
    }
    status.connect(context, module)?;
    let attribute = |attribute| {
        let mut value = 0;
        // SAFETY: the function is loaded, and the result is a local variable.
        let code = unsafe { (api.cuFuncGetAttribute)(&mut value, attribute, raw) };
        context.check(code, format_args!("read attribute {attribute} of {name}"))?;
        Ok::<u32, Error>(u32::try_from(value).unwrap_or(0))
    };
    Ok(Function {
        raw,
        device: context.index,
        name: name.to_owned(),
        max_threads: attribute(codes::FUNCTION_MAX_THREADS_PER_BLOCK)?,
        shared_bytes: attribute(codes::FUNCTION_SHARED_BYTES)?,
        parameters: number_of_parameters(context, raw),
        dynamic_limit: AtomicU32::new(0),
    })
}

fn number_of_parameters(context: &Context, function: Handle) -> Option<usize> {
    let information = context.api().cuFuncGetParamInfo?;
    let (mut offset, mut bytes) = (0, 0);
    let exists = |index: &usize| {
        // SAFETY: the function is loaded, and results are local variables.
        unsafe { information(function, *index, &mut offset, &mut bytes) == codes::SUCCESS }
    };
    Some((0..).take_while(exists).count())
}
