//! Operators as custom operators of ONNX Runtime: the library that it loads is this module's own file.
//!
//! In: definitions, which Python code chooses. Out: `RegisterCustomOps`, the function that ONNX Runtime looks for, which adds an operator
//! for each, in the domain of its library. ONNX Runtime calls them without the interpreter.

mod api;
mod infer;
mod kernel;
mod signature;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use opsmith_runtime::DType;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::op::OpDef;
use ort_sys::{
    ONNXTensorElementDataType as ElementType, OrtApi, OrtApiBase, OrtCustomOp, OrtCustomOpDomain,
    OrtCustomOpInputOutputCharacteristic as Characteristic, OrtKernelContext, OrtKernelInfo, OrtMemType,
    OrtSessionOptions, OrtShapeInferContext, OrtStatusPtr, OrtTensorTypeAndShapeInfo,
};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use self::api::{Api, Source, VERSION};
use self::kernel::Node;
use self::signature::{Input, attributes, gives_list, inputs, results};
use super::definition::PyDefinition;

/// A registered operator. The table is its first field, so that functions of the table find the rest.
#[repr(C)]
struct Operator {
    table: OrtCustomOp,
    op: &'static OpDef,
    name: CString,
    inputs: Vec<Input>,
    outputs: Vec<Option<DType>>,
}

// SAFETY: an operator is never written after it was made; its table has functions alone.
unsafe impl Sync for Operator {}
// SAFETY: as above.
unsafe impl Send for Operator {}

/// The domain of ONNX Runtime for a library's operators, with the number of operators that it has.
struct Domain(*mut OrtCustomOpDomain, usize);

// SAFETY: the handle is only passed on, under a lock.
unsafe impl Send for Domain {}

/// Operators and domains that were registered.
#[derive(Default)]
struct Registered {
    operators: BTreeMap<String, Vec<&'static Operator>>,
    /// By the address of the interface's table, and the domain's name.
    domains: BTreeMap<(usize, String), Domain>,
}

static REGISTERED: Mutex<Option<Registered>> = Mutex::new(None);

/// The operator of a table.
///
/// # Safety
/// The table is that of an [`Operator`].
unsafe fn operator<'a>(table: *const OrtCustomOp) -> &'a Operator {
    // SAFETY: the caller's table is the first field of an operator, which is never freed.
    unsafe { &*table.cast::<Operator>() }
}

fn characteristic(input: Option<&Input>) -> Characteristic {
    match input {
        Some(Input::Rest) => Characteristic::INPUT_OUTPUT_VARIADIC,
        Some(Input::Optional) => Characteristic::INPUT_OUTPUT_OPTIONAL,
        _ => Characteristic::INPUT_OUTPUT_REQUIRED,
    }
}

unsafe extern "system" fn name(table: *const OrtCustomOp) -> *const c_char {
    // SAFETY: ONNX Runtime passes the table that it got.
    unsafe { operator(table) }.name.as_ptr()
}

unsafe extern "system" fn provider(_: *const OrtCustomOp) -> *const c_char {
    std::ptr::null()
}

unsafe extern "system" fn input_count(table: *const OrtCustomOp) -> usize {
    // SAFETY: as of `name`.
    unsafe { operator(table) }.inputs.len()
}

unsafe extern "system" fn output_count(table: *const OrtCustomOp) -> usize {
    // SAFETY: as of `name`.
    unsafe { operator(table) }.outputs.len()
}

unsafe extern "system" fn input_type(_: *const OrtCustomOp, _: usize) -> ElementType {
    ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED
}

unsafe extern "system" fn output_type(table: *const OrtCustomOp, at: usize) -> ElementType {
    // SAFETY: as of `name`.
    let dtype = unsafe { operator(table) }.outputs.get(at).copied().flatten();
    let found = dtype.and_then(|dtype| api::element_type(dtype).ok());
    found.unwrap_or(ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)
}

unsafe extern "system" fn input_characteristic(table: *const OrtCustomOp, at: usize) -> Characteristic {
    // SAFETY: as of `name`.
    characteristic(unsafe { operator(table) }.inputs.get(at))
}

unsafe extern "system" fn output_characteristic(table: *const OrtCustomOp, _: usize) -> Characteristic {
    // SAFETY: as of `name`. An optional output may have any dtype.
    match gives_list(unsafe { operator(table) }.op) {
        true => Characteristic::INPUT_OUTPUT_VARIADIC,
        false => Characteristic::INPUT_OUTPUT_OPTIONAL,
    }
}

unsafe extern "system" fn memory(_: *const OrtCustomOp, _: usize) -> OrtMemType {
    OrtMemType::OrtMemTypeDefault
}

unsafe extern "system" fn fewest(_: *const OrtCustomOp) -> c_int {
    1
}

/// Lists have tensors of any dtypes, as have the inputs behind them.
unsafe extern "system" fn homogeneity(_: *const OrtCustomOp) -> c_int {
    0
}

unsafe extern "system" fn first_version(_: *const OrtCustomOp) -> c_int {
    1
}

unsafe extern "system" fn last_version(_: *const OrtCustomOp) -> c_int {
    c_int::MAX
}

/// The outcome of a function without its panics.
fn caught<T>(op: &'static OpDef, function: impl FnOnce() -> Result<T>) -> Result<T> {
    let found = catch_unwind(AssertUnwindSafe(function));
    found.unwrap_or_else(|_| Err(Error::argument("a mistake in opsmith itself, please report it"))).map_err(
        // An error of a call names its operator already.
        |error| if error.to_string().starts_with(op.name) { error } else { error.in_op(op.name, Vec::new()) },
    )
}

unsafe extern "system" fn create(
    table: *const OrtCustomOp,
    api: *const OrtApi,
    info: *const OrtKernelInfo,
    kernel: *mut *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: ONNX Runtime passes its own table, which is never freed, the operator's, and the node's handle.
    let (api, op) = unsafe { (Api(&*api), operator(table).op) };
    // SAFETY: as above.
    api.status(caught(op, || unsafe { Node::new(api, op, info) }).map(|node| {
        // SAFETY: the place for the kernel is valid.
        unsafe { *kernel = Box::into_raw(Box::new((api, op, node))).cast() };
    }))
}

unsafe extern "system" fn compute(kernel: *mut c_void, context: *mut OrtKernelContext) -> OrtStatusPtr {
    // SAFETY: the kernel is one that `create` made, and the context that of a call.
    let (api, op, node) = unsafe { &*kernel.cast::<(Api, &'static OpDef, Node)>() };
    // SAFETY: as above.
    api.status(caught(op, || unsafe { node.run(context) }))
}

unsafe extern "system" fn destroy(kernel: *mut c_void) {
    if !kernel.is_null() {
        // SAFETY: `create` made it, and it is destroyed once.
        unsafe { drop(Box::from_raw(kernel.cast::<(Api, &'static OpDef, Node)>())) };
    }
}

unsafe extern "system" fn infer_shapes(
    table: *const OrtCustomOp,
    context: *mut OrtShapeInferContext,
) -> OrtStatusPtr {
    let Some(api) = Api::current() else { return OrtStatusPtr::default() };
    // SAFETY: as of `name`.
    let op = unsafe { operator(table) }.op;
    // SAFETY: the context is valid during the call.
    api.status(caught(op, || unsafe { inferred(api, op, context) }))
}

/// Gives the shapes of results to the model. Unknown ones stay so.
///
/// # Safety
/// `context` is valid.
unsafe fn inferred(api: Api, op: &'static OpDef, context: *mut OrtShapeInferContext) -> Result<()> {
    let mut count = 0usize;
    // SAFETY: the caller's context is valid, and keeps the descriptions of inputs.
    let known = unsafe {
        api.check((api.0.ShapeInferContext_GetInputCount)(context, &raw mut count))?;
        let one = |at| {
            let mut info: *mut OrtTensorTypeAndShapeInfo = std::ptr::null_mut();
            match api.check((api.0.ShapeInferContext_GetInputTypeShape)(context, at, &raw mut info)) {
                Ok(()) if !info.is_null() => api.described(info).map(Some),
                _ => Ok(None),
            }
        };
        (0..count).map(one).collect::<Result<Vec<_>>>()?
    };
    // A tensor without declared sizes looks like one without dimensions. So a shape is only given then if the dtype, which comes with
    // it, is needed: without it, ONNX Runtime takes that of the last input.
    let is_open = known.iter().flatten().any(|known| known.sizes.is_empty());
    let assumed = known.iter().flatten().last().map(|known| known.dtype);
    let attributes = attributes(api, Source::Inference(context), op)?;
    let results = match infer::infer(op, &attributes, known) {
        Err(_) if is_open => return Ok(()),
        found => found?,
    };
    for (at, found) in results.into_iter().enumerate() {
        let Some(sizes) = found.sizes else { continue };
        if is_open && assumed == Some(found.dtype) {
            continue;
        }
        let numbers: Vec<i64> = sizes.iter().map(|(number, _)| *number).collect();
        let names: Vec<CString> =
            sizes.into_iter().map(|(_, name)| CString::new(name).unwrap_or_default()).collect();
        let mut texts: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let mut info: *mut OrtTensorTypeAndShapeInfo = std::ptr::null_mut();
        // SAFETY: lists have as many items as is said, and are copied; the description is released once. An output that the
        // node leaves out is an error, which changes nothing.
        unsafe {
            api.check((api.0.CreateTensorTypeAndShapeInfo)(&raw mut info))?;
            let outcome = api
                .check((api.0.SetTensorElementType)(info, api::element_type(found.dtype)?))
                .and_then(|()| api.check((api.0.SetDimensions)(info, numbers.as_ptr(), numbers.len())))
                .and_then(|()| {
                    api.check((api.0.SetSymbolicDimensions)(info, texts.as_mut_ptr(), texts.len()))
                })
                .and_then(|()| api.check((api.0.ShapeInferContext_SetOutputTypeShape)(context, at, info)));
            (api.0.ReleaseTensorTypeAndShapeInfo)(info);
            _ = outcome;
        }
    }
    Ok(())
}

fn made(op: &'static OpDef, outputs: Vec<Option<DType>>) -> &'static Operator {
    let table = OrtCustomOp {
        version: VERSION,
        CreateKernel: None,
        GetName: Some(name),
        GetExecutionProviderType: Some(provider),
        GetInputType: Some(input_type),
        GetInputTypeCount: Some(input_count),
        GetOutputType: Some(output_type),
        GetOutputTypeCount: Some(output_count),
        KernelCompute: None,
        KernelDestroy: Some(destroy),
        GetInputCharacteristic: Some(input_characteristic),
        GetOutputCharacteristic: Some(output_characteristic),
        GetInputMemoryType: Some(memory),
        GetVariadicInputMinArity: Some(fewest),
        GetVariadicInputHomogeneity: Some(homogeneity),
        GetVariadicOutputMinArity: Some(fewest),
        GetVariadicOutputHomogeneity: Some(homogeneity),
        CreateKernelV2: Some(create),
        KernelComputeV2: Some(compute),
        InferOutputShapeFn: Some(infer_shapes),
        GetStartVersion: Some(first_version),
        GetEndVersion: Some(last_version),
    };
    let name = CString::new(op.name).unwrap_or_default();
    let outputs = if gives_list(op) { vec![None] } else { outputs };
    Box::leak(Box::new(Operator { table, op, name, inputs: inputs(op), outputs }))
}

/// Adds the registered operators to a session's options.
fn register(api: Api, options: *mut OrtSessionOptions) -> Result<()> {
    let mut all = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let Registered { operators, domains } = all.get_or_insert_with(Registered::default);
    for (library, operators) in operators {
        let key = (std::ptr::from_ref(api.0).addr(), library.clone());
        let known = domains.get(&key).filter(|domain| domain.1 == operators.len()).map(|domain| domain.0);
        let domain = match known {
            Some(domain) => domain,
            None => {
                let text = CString::new(library.as_str()).unwrap_or_default();
                let mut domain = std::ptr::null_mut();
                // SAFETY: the text ends with a zero; operators live as long as the process, and so does the domain.
                unsafe {
                    api.check((api.0.CreateCustomOpDomain)(text.as_ptr(), &raw mut domain))?;
                    for operator in operators.iter() {
                        api.check((api.0.CustomOpDomain_Add)(domain, &raw const operator.table))?;
                    }
                }
                domains.insert(key, Domain(domain, operators.len()));
                domain
            }
        };
        // SAFETY: the options are those of the caller.
        api.check(unsafe { (api.0.AddCustomOpDomain)(options, domain) })?;
    }
    Ok(())
}

/// The function that ONNX Runtime calls when the library is registered in a session's options.
///
/// # Safety
/// ONNX Runtime passes its own options and interface.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn RegisterCustomOps(
    options: *mut OrtSessionOptions,
    base: *const OrtApiBase,
) -> OrtStatusPtr {
    // SAFETY: the interface is valid; a version that ONNX Runtime has not is null.
    let api = unsafe { ((*base).GetApi)(VERSION).as_ref() };
    let Some(api) = api.map(Api) else {
        // SAFETY: every ONNX Runtime has the first version, whose functions for statuses are those of all.
        let first = unsafe { ((*base).GetApi)(1).as_ref() }.map(Api);
        let error = || Error::argument("opsmith needs ONNX Runtime 1.17 or newer");
        return first.map_or_else(OrtStatusPtr::default, |first| first.status(Err(error())));
    };
    api.keep();
    let outcome = catch_unwind(AssertUnwindSafe(|| register(api, options)));
    api.status(
        outcome.unwrap_or_else(|_| Err(Error::argument("a mistake in opsmith itself, please report it"))),
    )
}

/// Makes operators known to `RegisterCustomOps`; sessions that exist keep theirs. Each comes with the dtype of each result if it
/// depends on nothing. Returns the domain of each.
#[pyfunction]
fn _onnxruntime_register(definitions: Vec<(Bound<'_, PyDefinition>, Vec<Option<String>>)>) -> Vec<String> {
    let mut all = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let Registered { operators, .. } = all.get_or_insert_with(Registered::default);
    let mut domains = Vec::new();
    for (definition, dtypes) in definitions {
        let op = definition.get().0;
        let domain = op.library.name.replace('-', "_");
        let known = operators.entry(domain.clone()).or_default();
        if !known.iter().any(|known| std::ptr::eq(known.op, op)) {
            let mut dtypes = dtypes.iter().map(|name| DType::from_name(name.as_deref()?));
            let outputs = (0..results(op)).map(|_| dtypes.next().flatten()).collect();
            // A later declaration of a name takes the place of an earlier one.
            known.retain(|known| known.op.name != op.name);
            known.push(made(op, outputs));
        }
        domains.push(domain);
    }
    domains
}

/// The file of this module.
#[pyfunction]
fn _onnxruntime_library() -> PyResult<String> {
    // SAFETY: an address of this module is given, and a place for the answer; the name is copied.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let address: *const c_void = (RegisterCustomOps as *const ()).cast();
        if libc::dladdr(address, &raw mut info) == 0 || info.dli_fname.is_null() {
            return Err(PyOSError::new_err("the file of the module is not known"));
        }
        Ok(CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned())
    }
}

/// Adds the functions.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_onnxruntime_register, module)?)?;
    module.add_function(wrap_pyfunction!(_onnxruntime_library, module)?)
}
