//! Images become functions of a device.
//!
//! In: an image. Out: its kernel, loaded by the driver. Must not know the image's origin.

use std::sync::atomic::AtomicU32;

use opsmith_runtime::{Error, Result};

use super::{Function, KernelOrigin};
use crate::driver::api::Handle;
use crate::driver::{Context, codes};
use crate::status::Status;

/// Loads an image, which may be PTX, and finds its kernel.
///
/// # Errors
/// Errors of the driver, such as one for an image of another architecture.
pub fn load(
    context: &'static Context,
    status: &Status,
    image: &[u8],
    name: &str,
    origin: KernelOrigin,
) -> Result<Function> {
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
        origin,
        max_threads: attribute(codes::FUNCTION_MAX_THREADS_PER_BLOCK)?,
        shared_bytes: attribute(codes::FUNCTION_SHARED_BYTES)?,
        parameters: sizes_of_parameters(context, raw),
        dynamic_limit: AtomicU32::new(0),
    })
}

fn sizes_of_parameters(context: &Context, function: Handle) -> Option<Vec<usize>> {
    let information = context.api().cuFuncGetParamInfo?;
    let size = |index: usize| {
        let (mut offset, mut bytes) = (0, 0);
        // SAFETY: the function is loaded, and results are local variables.
        let code = unsafe { information(function, index, &mut offset, &mut bytes) };
        (code == codes::SUCCESS).then_some(bytes)
    };
    Some((0..).map_while(size).collect())
}
