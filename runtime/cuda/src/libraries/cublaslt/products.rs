//! The library on one device: its handle, and plans for the problems so far.
//!
//! In: problems. Out: their plans, each the library's descriptions and an algorithm; work of a stream. Must not know operands'
//! strides.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr::{from_ref, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

use opsmith_runtime::{Error, Result};

use super::CublasLt;
use super::api::{self, Algorithm, Functions, Opaque, Proposal, Status};
use super::problem::{Factor, Key, Layout, Problem};
use crate::driver::Context;
use crate::libraries::library::Description;

/// Working memory that an algorithm may ask for.
const MOST_WORKSPACE: usize = 32 << 20;
/// Plans that are kept; when there are more, all are made anew.
const MOST_PLANS: usize = 1024;

/// The descriptions of a problem, and an algorithm for it.
pub struct Plan {
    product: Description,
    a: Description,
    b: Description,
    c: Description,
    d: Description,
    algorithm: Algorithm,
    /// Bytes of working memory.
    pub workspace: usize,
    /// Held while the address of a bias is in the description.
    submitting: Mutex<()>,
}

// SAFETY: descriptions belong to no thread; the library only reads them, except for the address of the bias, which is set under
// a lock.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

/// The library on a device, for the life of the process.
pub struct Products {
    functions: &'static Functions,
    handle: Opaque,
    /// The plan of each problem; none where the library has no algorithm.
    plans: Mutex<HashMap<Key, Option<Arc<Plan>>>>,
}

// SAFETY: the library's handle may be used by several threads at once.
unsafe impl Send for Products {}
// SAFETY: as above.
unsafe impl Sync for Products {}

/// Whether a call of the library succeeded.
///
/// # Errors
/// If not, with the library's name and text of the status.
fn check(functions: &Functions, status: Status, action: fmt::Arguments<'_>) -> Result<()> {
    if status == api::SUCCESS { Ok(()) } else { Err(failed(functions, status, action)) }
}

#[cold]
fn failed(functions: &Functions, status: Status, action: fmt::Arguments<'_>) -> Error {
    Error::device(format!("cuBLASLt cannot {action}: {}", functions.text(status)))
        .with_help("OPSMITH_CUDA_LIBRARIES=off runs products by kernels of opsmith")
}

/// Sets an attribute of a description.
///
/// # Errors
/// Errors of the library.
///
/// # Safety
/// `target` is of the kind that `set` takes, and the attribute has the type of the value.
unsafe fn set<T>(
    functions: &Functions,
    set: unsafe extern "C" fn(Opaque, c_int, *const c_void, usize) -> Status,
    target: &Description,
    attribute: c_int,
    value: T,
) -> Result<()> {
    // SAFETY: the caller's promise; the value is read before this returns.
    let status = unsafe { set(target.raw, attribute, from_ref(&value).cast(), size_of::<T>()) };
    check(functions, status, format_args!("set attribute {attribute}"))
}

impl Products {
    /// The library on the device of a context.
    ///
    /// # Errors
    /// If it does not start there, or the context is lost.
    pub fn new(library: &'static CublasLt, context: &Context) -> Result<Products> {
        let _entered = context.enter()?;
        let functions = &library.functions;
        let mut handle = null_mut();
        // SAFETY: the context is entered, and the result is a local variable.
        let status = unsafe { (functions.cublasLtCreate)(&mut handle) };
        check(functions, status, format_args!("start on device {}", context.index))?;
        Ok(Products { functions, handle, plans: Mutex::default() })
    }

    /// The plan of a problem, made at the first request; `None` if the library has no algorithm for it. The context is entered.
    ///
    /// # Errors
    /// Errors of the library.
    pub fn plan(&self, problem: &Problem) -> Result<Option<Arc<Plan>>> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans.get(&problem.key) {
            return Ok(known.clone());
        }
        let plan = self.new_plan(problem)?.map(Arc::new);
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        plans.insert(problem.key.clone(), plan.clone());
        Ok(plan)
    }

    fn new_plan(&self, problem: &Problem) -> Result<Option<Plan>> {
        let (key, f) = (&problem.key, self.functions);
        let product = self.describe_product(problem)?;
        let [a, b] = [&key.a.layout, &key.b.layout].map(|layout| self.describe_layout(key, layout));
        let [c, d] = [&key.c, &key.d].map(|layout| self.describe_layout(key, layout));
        let (a, b, c, d) = (a?, b?, c?, d?);
        let preference = self.describe_preference(key)?;
        let (mut proposal, mut found) = (Proposal::default(), 0);
        // SAFETY: all descriptions are of this library, and there is room for one proposal.
        let status = unsafe {
            (f.cublasLtMatmulAlgoGetHeuristic)(
                self.handle,
                product.raw,
                a.raw,
                b.raw,
                c.raw,
                d.raw,
                preference.raw,
                1,
                &mut proposal,
                &mut found,
            )
        };
        if status == api::NOT_SUPPORTED {
            return Ok(None);
        }
        check(f, status, format_args!("choose an algorithm for a product"))?;
        if found < 1 || proposal.state != api::SUCCESS {
            return Ok(None);
        }
        let (algorithm, workspace) = (proposal.algorithm, proposal.workspace);
        Ok(Some(Plan { product, a, b, c, d, algorithm, workspace, submitting: Mutex::new(()) }))
    }

    fn describe_product(&self, problem: &Problem) -> Result<Description> {
        let (key, f) = (&problem.key, self.functions);
        let mut raw = null_mut();
        // SAFETY: the result is a local variable.
        let status = unsafe { (f.cublasLtMatmulDescCreate)(&mut raw, key.compute, key.scale) };
        check(f, status, format_args!("describe a product"))?;
        let product = Description { raw, destroy: f.cublasLtMatmulDescDestroy };
        let turn = |factor: &Factor| if factor.is_transposed { api::TRANSPOSED } else { api::PLAIN };
        let attributes = [
            (api::PRODUCT_TRANSPOSE_A, turn(&key.a)),
            (api::PRODUCT_TRANSPOSE_B, turn(&key.b)),
            (api::PRODUCT_EPILOGUE, key.epilogue),
        ];
        for (attribute, value) in attributes {
            // SAFETY: these attributes of a product are numbers of 32 bits.
            unsafe { set(f, f.cublasLtMatmulDescSetAttribute, &product, attribute, value)? };
        }
        if problem.bias.is_some() {
            self.set_bias(&product, problem)?;
        }
        Ok(product)
    }

    fn set_bias(&self, product: &Description, problem: &Problem) -> Result<()> {
        let bias: *const c_void = problem.bias.map_or(std::ptr::null(), |bias| bias.cast_const().cast());
        let f = self.functions;
        // SAFETY: this attribute of a product is an address.
        unsafe { set(f, f.cublasLtMatmulDescSetAttribute, product, api::PRODUCT_BIAS, bias) }
    }

    fn describe_layout(&self, key: &Key, layout: &Layout) -> Result<Description> {
        let f = self.functions;
        let mut raw = null_mut();
        // SAFETY: the result is a local variable.
        let status = unsafe {
            let create = f.cublasLtMatrixLayoutCreate;
            create(&mut raw, key.element, layout.rows as u64, layout.columns as u64, layout.leading)
        };
        check(f, status, format_args!("describe a matrix"))?;
        let described = Description { raw, destroy: f.cublasLtMatrixLayoutDestroy };
        if key.stacks > 1 {
            let set_layout = f.cublasLtMatrixLayoutSetAttribute;
            // SAFETY: the number of matrices has 32 bits, their stride 64.
            unsafe {
                set(f, set_layout, &described, api::LAYOUT_STACKS, key.stacks)?;
                set(f, set_layout, &described, api::LAYOUT_STACK_STRIDE, layout.stack_stride)?;
            }
        }
        Ok(described)
    }

    fn describe_preference(&self, key: &Key) -> Result<Description> {
        let f = self.functions;
        let mut raw = null_mut();
        // SAFETY: the result is a local variable.
        let status = unsafe { (f.cublasLtMatmulPreferenceCreate)(&mut raw) };
        check(f, status, format_args!("describe the choice of an algorithm"))?;
        let preference = Description { raw, destroy: f.cublasLtMatmulPreferenceDestroy };
        let set_preference = f.cublasLtMatmulPreferenceSetAttribute;
        let numbers = [
            (api::PREFER_REDUCTIONS, api::REDUCTION_IN_COMPUTE_TYPE as u32),
            (api::PREFER_ALIGNMENT_A, key.a.layout.alignment),
            (api::PREFER_ALIGNMENT_B, key.b.layout.alignment),
            (api::PREFER_ALIGNMENT_C, key.c.alignment),
            (api::PREFER_ALIGNMENT_D, key.d.alignment),
        ];
        // SAFETY: the working memory is a number of 64 bits, the others have 32.
        unsafe {
            set(f, set_preference, &preference, api::PREFER_WORKSPACE, MOST_WORKSPACE)?;
            for (attribute, value) in numbers {
                set(f, set_preference, &preference, attribute, value)?;
            }
        }
        Ok(preference)
    }

    /// Submits a problem to a stream. The context is entered.
    ///
    /// # Errors
    /// Errors of the library.
    ///
    /// # Safety
    /// The plan is of the problem's key; operands are in memory of the device, which stays valid until the stream has passed
    /// this request, and there are as many bytes of working memory as the plan says.
    pub unsafe fn submit(
        &self,
        plan: &Plan,
        problem: &Problem,
        workspace: *mut u8,
        stream: Opaque,
    ) -> Result<()> {
        let _bias = match problem.bias {
            Some(_) => {
                let submitting = plan.submitting.lock().unwrap_or_else(PoisonError::into_inner);
                self.set_bias(&plan.product, problem)?;
                Some(submitting)
            }
            None => None,
        };
        // SAFETY: the caller's promise.
        let status = unsafe {
            (self.functions.cublasLtMatmul)(
                self.handle,
                plan.product.raw,
                from_ref(&problem.alpha).cast(),
                problem.a.cast(),
                plan.a.raw,
                problem.b.cast(),
                plan.b.raw,
                from_ref(&problem.beta).cast(),
                problem.c.cast(),
                plan.c.raw,
                problem.d.cast(),
                plan.d.raw,
                &plan.algorithm,
                workspace.cast(),
                plan.workspace,
                stream,
            )
        };
        check(self.functions, status, format_args!("multiply matrices"))
    }
}
