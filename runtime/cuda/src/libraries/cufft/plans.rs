//! The library on one device: plans for the transforms so far.
//!
//! In: kinds, sizes and counts of transforms. Out: plans; work of a stream. Must not know operands' strides.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use opsmith_runtime::{Error, Result};

use super::Cufft;
use super::api::{self, Functions, PlanHandle, Status};

/// Plans that are kept; when there are more, all are made anew. A plan has tables in memory of the device.
const MOST_PLANS: usize = 256;

/// The facts of a transform that its plan depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// Real or complex numbers, in single or double precision.
    pub kind: c_int,
    /// Number of dimensions.
    pub rank: usize,
    /// Their sizes, those beyond the rank 0.
    pub sizes: [i64; 3],
    /// Transforms, one after the other in memory.
    pub count: i64,
}

/// A plan of the library.
pub struct Plan {
    functions: &'static Functions,
    handle: PlanHandle,
    /// Bytes of working memory.
    pub workspace: usize,
    /// Held while stream and working memory are those of a request.
    submitting: Mutex<()>,
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: the plan is not used again; the library waits for its work.
        _ = unsafe { (self.functions.cufftDestroy)(self.handle) };
    }
}

/// Whether a call of the library succeeded.
///
/// # Errors
/// If not, with the library's name of the status.
fn check(status: Status, action: fmt::Arguments<'_>) -> Result<()> {
    if status == api::SUCCESS { Ok(()) } else { Err(failed(status, action)) }
}

#[cold]
fn failed(status: Status, action: fmt::Arguments<'_>) -> Error {
    Error::device(format!("cuFFT cannot {action}: {} (status {status})", api::name(status)))
        .with_help("OPSMITH_CUDA_LIBRARIES=off runs transforms by kernels of opsmith")
}

/// The library on a device, for the life of the process.
#[derive(Default)]
pub struct Transforms {
    plans: Mutex<HashMap<Key, Arc<Plan>>>,
}

impl Transforms {
    /// The plan of a transform, made at the first request. The context is entered as long as the plan is held.
    ///
    /// # Errors
    /// Errors of the library.
    pub fn plan(&self, library: &'static Cufft, key: &Key) -> Result<Arc<Plan>> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans.get(key) {
            return Ok(known.clone());
        }
        let plan = Arc::new(new_plan(&library.functions, key)?);
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(*key, plan.clone());
        Ok(plan)
    }
}

fn new_plan(functions: &'static Functions, key: &Key) -> Result<Plan> {
    let mut handle = 0;
    // SAFETY: the result is a local variable.
    check(unsafe { (functions.cufftCreate)(&mut handle) }, format_args!("make a plan"))?;
    let mut plan = Plan { functions, handle, workspace: 0, submitting: Mutex::new(()) };
    // SAFETY: the plan was made above.
    let status = unsafe { (functions.cufftSetAutoAllocation)(handle, 0) };
    check(status, format_args!("leave working memory to its caller"))?;
    let mut sizes = key.sizes;
    // SAFETY: there are as many sizes as the rank says; without sizes of memory, numbers are one after the other.
    let status = unsafe {
        (functions.cufftMakePlanMany64)(
            handle,
            key.rank as c_int,
            sizes.as_mut_ptr(),
            null_mut(),
            1,
            0,
            null_mut(),
            1,
            0,
            key.kind,
            key.count,
            &mut plan.workspace,
        )
    };
    check(status, format_args!("plan {} transforms of the sizes {:?}", key.count, &key.sizes[..key.rank]))?;
    Ok(plan)
}

impl Plan {
    /// Submits the transforms to a stream. The context is entered.
    ///
    /// # Errors
    /// Errors of the library.
    ///
    /// # Safety
    /// Both sides have the numbers of the plan's key, in memory of the device, which stays valid until the stream has passed
    /// this request; there are as many bytes of working memory as the plan says. The source of real numbers is overwritten.
    pub unsafe fn submit(
        &self,
        from: *mut u8,
        to: *mut u8,
        direction: c_int,
        workspace: *mut u8,
        stream: *mut c_void,
    ) -> Result<()> {
        let _one_at_a_time = self.submitting.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the caller's promise.
        unsafe {
            if self.workspace > 0 {
                let status = (self.functions.cufftSetWorkArea)(self.handle, workspace.cast());
                check(status, format_args!("use working memory"))?;
            }
            check((self.functions.cufftSetStream)(self.handle, stream), format_args!("use a stream"))?;
            let status = (self.functions.cufftXtExec)(self.handle, from.cast(), to.cast(), direction);
            check(status, format_args!("transform numbers"))
        }
    }
}
