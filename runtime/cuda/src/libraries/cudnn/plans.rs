//! The library on one device: its handle, and plans for the problems so far.
//!
//! In: problems. Out: their plans, each the library's descriptions and an algorithm; work of a stream. Must not know operands'
//! strides.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr::{from_ref, null_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opsmith_runtime::backend::ConvolutionPart;
use opsmith_runtime::{Error, Result};

use super::Cudnn;
use super::api::{self, Functions, Opaque, Proposal, Status};
use super::problem::{Key, Layout};
use crate::driver::Context;
use crate::libraries::library::Description;

/// Working memory that an algorithm may ask for.
const MOST_WORKSPACE: usize = 256 << 20;
/// Plans that are kept; when there are more, all are made anew.
const MOST_PLANS: usize = 1024;
/// Algorithms that the library is asked for.
const PROPOSALS: usize = 8;

/// The descriptions of a problem, and an algorithm for it.
pub struct Plan {
    part: ConvolutionPart,
    image: Description,
    weight: Description,
    output: Description,
    convolution: Description,
    algorithm: c_int,
    is_double: bool,
    /// Bytes of working memory.
    pub workspace: usize,
}

// SAFETY: descriptions belong to no thread, and are only read after they are made.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

/// The addresses of a convolution's operands, of which one is written.
#[derive(Clone, Copy)]
pub struct Operands {
    pub image: *mut u8,
    pub weight: *mut u8,
    pub output: *mut u8,
}

/// The library's handle, which serves one thread at a time.
struct Handle(Opaque);

// SAFETY: the handle belongs to no thread.
unsafe impl Send for Handle {}

/// The library on a device, for the life of the process.
pub struct Convolutions {
    functions: &'static Functions,
    handle: Mutex<Handle>,
    /// The plan of each problem; none where the library has no algorithm.
    plans: Mutex<HashMap<Key, Option<Arc<Plan>>>>,
}

/// Whether a call of the library succeeded.
///
/// # Errors
/// If not, with the library's text of the status.
fn check(functions: &Functions, status: Status, action: fmt::Arguments<'_>) -> Result<()> {
    if status == api::SUCCESS { Ok(()) } else { Err(failed(functions, status, action)) }
}

#[cold]
fn failed(functions: &Functions, status: Status, action: fmt::Arguments<'_>) -> Error {
    Error::device(format!("cuDNN cannot {action}: {}", functions.text(status)))
        .with_help("OPSMITH_CUDA_LIBRARIES=off runs convolutions by kernels of opsmith")
}

/// Whether a status is one for operands and operations without an algorithm.
fn is_unsupported(status: Status) -> bool {
    status / 1000 == api::NOT_SUPPORTED / 1000
}

impl Convolutions {
    /// The library on the device of a context.
    ///
    /// # Errors
    /// If it does not start there, or the context is lost.
    pub fn new(library: &'static Cudnn, context: &Context) -> Result<Convolutions> {
        let _entered = context.enter()?;
        let functions = &library.functions;
        let mut handle = null_mut();
        // SAFETY: the context is entered, and the result is a local variable.
        let status = unsafe { (functions.cudnnCreate)(&mut handle) };
        check(functions, status, format_args!("start on device {}", context.index))?;
        Ok(Convolutions { functions, handle: Mutex::new(Handle(handle)), plans: Mutex::default() })
    }

    fn handle(&self) -> MutexGuard<'_, Handle> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan of a problem, made at the first request; `None` if the library has no algorithm for it. The context is entered.
    ///
    /// # Errors
    /// Errors of the library.
    pub fn plan(&self, key: &Key) -> Result<Option<Arc<Plan>>> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans.get(key) {
            return Ok(known.clone());
        }
        let plan = self.new_plan(key)?.map(Arc::new);
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(key.clone(), plan.clone());
        Ok(plan)
    }

    fn new_plan(&self, key: &Key) -> Result<Option<Plan>> {
        let f = self.functions;
        let (image, output) =
            (self.describe_tensor(key, &key.image)?, self.describe_tensor(key, &key.output)?);
        let (weight, convolution) = (self.describe_weight(key)?, self.describe_convolution(key)?);
        let (mut proposals, mut found) = ([Proposal::default(); PROPOSALS], 0);
        let (most, results) = (PROPOSALS as c_int, proposals.as_mut_ptr());
        let handle = self.handle();
        let (x, w, y, c) = (image.raw, weight.raw, output.raw, convolution.raw);
        // SAFETY: all descriptions are of this library, and there is room for that many proposals.
        let status = unsafe {
            match key.part {
                ConvolutionPart::Output => (f.cudnnGetConvolutionForwardAlgorithm_v7)(
                    handle.0, x, w, c, y, most, &mut found, results,
                ),
                ConvolutionPart::Image => (f.cudnnGetConvolutionBackwardDataAlgorithm_v7)(
                    handle.0, w, y, c, x, most, &mut found, results,
                ),
                ConvolutionPart::Weight => (f.cudnnGetConvolutionBackwardFilterAlgorithm_v7)(
                    handle.0, x, y, c, w, most, &mut found, results,
                ),
            }
        };
        drop(handle);
        if is_unsupported(status) {
            return Ok(None);
        }
        check(f, status, format_args!("choose an algorithm for a convolution"))?;
        let found = usize::try_from(found).unwrap_or(0).min(PROPOSALS);
        let fits = |proposal: &&Proposal| {
            proposal.status == api::SUCCESS
                && proposal.determinism == api::DETERMINISTIC
                && proposal.memory <= MOST_WORKSPACE
                && (key.math != api::PLAIN_MATH || proposal.math == api::PLAIN_MATH)
        };
        let Some(proposal) = proposals[..found].iter().find(fits) else { return Ok(None) };
        // SAFETY: the description was made above.
        let status = unsafe { (f.cudnnSetConvolutionMathType)(convolution.raw, proposal.math) };
        check(f, status, format_args!("choose the arithmetic of a convolution"))?;
        let (algorithm, workspace) = (proposal.algorithm, proposal.memory);
        let is_double = key.compute == api::REAL_64;
        let part = key.part;
        Ok(Some(Plan { part, image, weight, output, convolution, algorithm, is_double, workspace }))
    }

    fn describe_tensor(&self, key: &Key, layout: &Layout) -> Result<Description> {
        let f = self.functions;
        let mut raw = null_mut();
        // SAFETY: the result is a local variable.
        check(f, unsafe { (f.cudnnCreateTensorDescriptor)(&mut raw) }, format_args!("describe a tensor"))?;
        let tensor = Description { raw, destroy: f.cudnnDestroyTensorDescriptor };
        let (sizes, strides) = (layout.sizes.as_ptr(), layout.strides.as_ptr());
        // SAFETY: there are as many numbers as dimensions.
        let status =
            unsafe { (f.cudnnSetTensorNdDescriptor)(raw, key.element, key.dims as c_int, sizes, strides) };
        check(f, status, format_args!("describe a tensor of the sizes {:?}", &layout.sizes[..key.dims]))?;
        Ok(tensor)
    }

    fn describe_weight(&self, key: &Key) -> Result<Description> {
        let f = self.functions;
        let mut raw = null_mut();
        // SAFETY: the result is a local variable.
        check(f, unsafe { (f.cudnnCreateFilterDescriptor)(&mut raw) }, format_args!("describe a weight"))?;
        let weight = Description { raw, destroy: f.cudnnDestroyFilterDescriptor };
        let sizes = key.weight.sizes.as_ptr();
        // SAFETY: there are as many numbers as dimensions.
        let status = unsafe {
            (f.cudnnSetFilterNdDescriptor)(raw, key.element, api::ROW_MAJOR, key.dims as c_int, sizes)
        };
        check(f, status, format_args!("describe a weight of the sizes {:?}", &key.weight.sizes[..key.dims]))?;
        Ok(weight)
    }

    fn describe_convolution(&self, key: &Key) -> Result<Description> {
        let f = self.functions;
        let mut raw = null_mut();
        let action = format_args!("describe a convolution");
        // SAFETY: the result is a local variable.
        check(f, unsafe { (f.cudnnCreateConvolutionDescriptor)(&mut raw) }, action)?;
        let convolution = Description { raw, destroy: f.cudnnDestroyConvolutionDescriptor };
        let [padding, stride, dilation] =
            [&key.padding, &key.stride, &key.dilation].map(|list| list.as_ptr());
        let spatial = key.dims as c_int - 2;
        // SAFETY: there are as many numbers as dimensions that the window slides over.
        unsafe {
            let mode = api::CROSS_CORRELATION;
            let set = f.cudnnSetConvolutionNdDescriptor;
            check(f, set(raw, spatial, padding, stride, dilation, mode, key.compute), action)?;
            check(f, (f.cudnnSetConvolutionGroupCount)(raw, key.groups), action)?;
            check(f, (f.cudnnSetConvolutionMathType)(raw, key.math), action)?;
        }
        Ok(convolution)
    }

    /// Submits a convolution to a stream, added to the result's elements if `adds`. The context is entered.
    ///
    /// # Errors
    /// Errors of the library.
    ///
    /// # Safety
    /// The plan is of the operands' key; they are in memory of the device, which stays valid until the stream has passed this
    /// request, and there are as many bytes of working memory as the plan says.
    pub unsafe fn submit(
        &self,
        plan: &Plan,
        operands: Operands,
        adds: bool,
        workspace: *mut u8,
        stream: Opaque,
    ) -> Result<()> {
        let f = self.functions;
        let beta = f64::from(u8::from(adds));
        let doubles = [1.0, beta];
        let singles = [1.0f32, beta as f32];
        let factor = |number: usize| -> *const c_void {
            if plan.is_double { from_ref(&doubles[number]).cast() } else { from_ref(&singles[number]).cast() }
        };
        let (alpha, beta) = (factor(0), factor(1));
        let Operands { image, weight, output } = operands;
        let [x, w, y] = [image, weight, output].map(|address| address.cast::<c_void>());
        let (work, bytes, algorithm) = (workspace.cast::<c_void>(), plan.workspace, plan.algorithm);
        let (xd, wd, yd, c) = (plan.image.raw, plan.weight.raw, plan.output.raw, plan.convolution.raw);
        let handle = self.handle();
        let h = handle.0;
        // SAFETY: the caller's promise; factors are read before this returns.
        let status = unsafe {
            check(f, (f.cudnnSetStream)(h, stream), format_args!("use a stream"))?;
            match plan.part {
                ConvolutionPart::Output => (f.cudnnConvolutionForward)(
                    h, alpha, xd, x, wd, w, c, algorithm, work, bytes, beta, yd, y,
                ),
                ConvolutionPart::Image => (f.cudnnConvolutionBackwardData)(
                    h, alpha, wd, w, yd, y, c, algorithm, work, bytes, beta, xd, x,
                ),
                ConvolutionPart::Weight => (f.cudnnConvolutionBackwardFilter)(
                    h, alpha, xd, x, yd, y, c, algorithm, work, bytes, beta, wd, w,
                ),
            }
        };
        check(f, status, format_args!("compute a convolution"))
    }
}
