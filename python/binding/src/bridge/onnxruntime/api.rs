//! The part of ONNX Runtime's C interface that operators use, as checked functions.
//!
//! In: the interface's table, and handles that ONNX Runtime passes to an operator. Out: sizes, dtypes, attributes, memory, and
//! statuses made of errors. The types are those of the crate `ort-sys`, which links nothing here.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use opsmith_runtime::DType;
use opsmith_runtime::error::{Error, Result};
use ort_sys::{
    ONNXTensorElementDataType as ElementType, OrtApi, OrtErrorCode, OrtKernelContext, OrtKernelInfo,
    OrtOpAttr, OrtOpAttrType, OrtShapeInferContext, OrtStatus, OrtStatusPtr, OrtTensorTypeAndShapeInfo,
    OrtTypeInfo, OrtValue,
};

/// The version of the interface, which is that of ONNX Runtime 1.17; later ones have it, too.
pub const VERSION: u32 = 17;

static CURRENT: AtomicPtr<OrtApi> = AtomicPtr::new(std::ptr::null_mut());

/// Element types that both have, with their numbers in ONNX.
const ELEMENT_TYPES: [(DType, ElementType); 13] = [
    (DType::F32, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT),
    (DType::U8, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8),
    (DType::I8, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8),
    (DType::U16, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16),
    (DType::I16, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16),
    (DType::I32, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32),
    (DType::I64, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64),
    (DType::Bool, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL),
    (DType::F16, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16),
    (DType::F64, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE),
    (DType::U32, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32),
    (DType::U64, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64),
    (DType::BF16, ElementType::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16),
];

/// The element type of a number of ONNX.
pub fn dtype_of(number: i32) -> Option<DType> {
    ELEMENT_TYPES.into_iter().find(|(_, known)| *known as i32 == number).map(|(dtype, _)| dtype)
}

/// The number of an element type in ONNX.
pub fn element_type(dtype: DType) -> Result<ElementType> {
    let found = ELEMENT_TYPES.into_iter().find(|(known, _)| *known == dtype).map(|(_, number)| number);
    found.ok_or_else(|| Error::dtype(format!("ONNX Runtime has no tensors of {dtype}")))
}

/// The dtype and the sizes of a tensor; a size is a number, the name of a symbol, or neither.
pub struct Described {
    pub dtype: DType,
    pub sizes: Vec<(Option<i64>, String)>,
}

/// A place from which attributes are read.
#[derive(Clone, Copy)]
pub enum Source {
    Kernel(*const OrtKernelInfo),
    Inference(*const OrtShapeInferContext),
}

/// The table of the interface.
#[derive(Clone, Copy)]
pub struct Api(pub &'static OrtApi);

impl Api {
    /// The table that the library was registered with.
    pub fn current() -> Option<Api> {
        // SAFETY: the table of ONNX Runtime lives as long as the process.
        unsafe { CURRENT.load(Ordering::Acquire).as_ref() }.map(Api)
    }

    /// Keeps the table for functions that do not get it.
    pub fn keep(self) {
        CURRENT.store(std::ptr::from_ref(self.0).cast_mut(), Ordering::Release);
    }

    /// The outcome of a function.
    pub fn check(self, status: OrtStatusPtr) -> Result<()> {
        if status.0.is_null() {
            return Ok(());
        }
        // SAFETY: a status that is not null has a message, and is released once.
        let message = unsafe {
            let text = CStr::from_ptr((self.0.GetErrorMessage)(status.0)).to_string_lossy().into_owned();
            (self.0.ReleaseStatus)(status.0);
            text
        };
        Err(Error::argument(message))
    }

    /// The status of an outcome.
    pub fn status(self, outcome: Result<()>) -> OrtStatusPtr {
        let Err(error) = outcome else { return OrtStatusPtr(std::ptr::null_mut::<OrtStatus>()) };
        let text = CString::new(error.to_string().replace('\0', " ")).unwrap_or_default();
        // SAFETY: the text ends with a zero, and is copied.
        unsafe { (self.0.CreateStatus)(OrtErrorCode::ORT_INVALID_ARGUMENT, text.as_ptr()) }
    }

    /// Reads a description.
    ///
    /// # Safety
    /// `info` is valid.
    pub unsafe fn described(self, info: *const OrtTensorTypeAndShapeInfo) -> Result<Described> {
        let api = self.0;
        let (mut number, mut rank) = (0i32, 0usize);
        // SAFETY: the caller's handle is valid; lists have as many items as dimensions, names live while the handle does, and a
        // number is read as one, since later versions of ONNX may have more element types.
        let sizes = unsafe {
            self.check((api.GetTensorElementType)(info, (&raw mut number).cast()))?;
            self.check((api.GetDimensionsCount)(info, &raw mut rank))?;
            let (mut sizes, mut names) = (vec![0i64; rank], vec![std::ptr::null::<c_char>(); rank]);
            self.check((api.GetDimensions)(info, sizes.as_mut_ptr(), rank))?;
            self.check((api.GetSymbolicDimensions)(info, names.as_mut_ptr(), rank))?;
            let name = |name: *const c_char| match name.is_null() {
                true => String::new(),
                false => CStr::from_ptr(name).to_string_lossy().into_owned(),
            };
            let size = |(size, text): (i64, *const c_char)| ((size >= 0).then_some(size), name(text));
            sizes.into_iter().zip(names).map(size).collect()
        };
        let dtype = dtype_of(number).ok_or_else(|| {
            Error::dtype(format!("tensors of the element type {number} of ONNX are not known here"))
        })?;
        Ok(Described { dtype, sizes })
    }

    /// The description of an input or an output of a node; `None` if it is absent.
    ///
    /// # Safety
    /// `info` is valid.
    pub unsafe fn of_node(
        self,
        info: *const OrtKernelInfo,
        at: usize,
        output: bool,
    ) -> Result<Option<Described>> {
        let mut found: *mut OrtTypeInfo = std::ptr::null_mut();
        let read =
            if output { self.0.KernelInfo_GetOutputTypeInfo } else { self.0.KernelInfo_GetInputTypeInfo };
        // SAFETY: the caller's handle is valid; the type is released once, after its sizes and its dtype were copied.
        unsafe {
            if self.check(read(info, at, &raw mut found)).is_err() || found.is_null() {
                return Ok(None);
            }
            let mut tensor: *const OrtTensorTypeAndShapeInfo = std::ptr::null();
            let described = match self.check((self.0.CastTypeInfoToTensorInfo)(found, &raw mut tensor)) {
                Ok(()) if !tensor.is_null() => self.described(tensor).map(Some),
                Ok(()) => Err(Error::argument("an operator of opsmith takes tensors alone")),
                Err(error) => Err(error),
            };
            (self.0.ReleaseTypeInfo)(found);
            described
        }
    }

    /// Sizes, dtype and memory of a value.
    ///
    /// # Safety
    /// `value` is a tensor.
    pub unsafe fn memory(self, value: *const OrtValue) -> Result<(DType, Vec<i64>, *mut u8)> {
        let mut info: *mut OrtTensorTypeAndShapeInfo = std::ptr::null_mut();
        let mut address: *mut c_void = std::ptr::null_mut();
        // SAFETY: the caller's value is valid; the description is released once.
        let described = unsafe {
            self.check((self.0.GetTensorTypeAndShape)(value, &raw mut info))?;
            let described = self.described(info);
            (self.0.ReleaseTensorTypeAndShapeInfo)(info);
            self.check((self.0.GetTensorMutableData)(value.cast_mut(), &raw mut address))?;
            described?
        };
        let sizes = described.sizes.iter().map(|(size, _)| size.unwrap_or(0)).collect();
        Ok((described.dtype, sizes, address.cast()))
    }

    /// An input of a call; null if it is absent.
    ///
    /// # Safety
    /// `context` is that of a running call.
    pub unsafe fn input(self, context: *mut OrtKernelContext, at: usize) -> Result<*const OrtValue> {
        let mut value: *const OrtValue = std::ptr::null();
        // SAFETY: the caller's context is valid.
        self.check(unsafe { (self.0.KernelContext_GetInput)(context, at, &raw mut value) })?;
        Ok(value)
    }

    /// The memory for an output of these sizes; null if nothing reads it.
    ///
    /// # Safety
    /// `context` is that of a running call.
    pub unsafe fn output(
        self,
        context: *mut OrtKernelContext,
        at: usize,
        sizes: &[i64],
    ) -> Result<*mut OrtValue> {
        let mut value: *mut OrtValue = std::ptr::null_mut();
        // SAFETY: the caller's context is valid, and the list has as many sizes as it says.
        let status = unsafe {
            (self.0.KernelContext_GetOutput)(context, at, sizes.as_ptr(), sizes.len(), &raw mut value)
        };
        self.check(status)?;
        Ok(value)
    }

    fn attribute(self, context: *const OrtShapeInferContext, name: &CStr) -> Option<*const OrtOpAttr> {
        let mut found: *const OrtOpAttr = std::ptr::null();
        // SAFETY: a source has a valid handle during the call that it is made for.
        let status =
            unsafe { (self.0.ShapeInferContext_GetAttribute)(context, name.as_ptr(), &raw mut found) };
        self.check(status).ok().filter(|()| !found.is_null()).map(|()| found)
    }

    /// An attribute with one number, an `i64` or an `f32`, by the reader of kernels and the kind for inference.
    fn number<T: Copy + Default>(
        self,
        source: Source,
        name: &CStr,
        read: unsafe extern "system" fn(*const OrtKernelInfo, *const c_char, *mut T) -> OrtStatusPtr,
        kind: OrtOpAttrType,
    ) -> Option<T> {
        let (mut value, mut size) = (T::default(), 0usize);
        // SAFETY: a source has a valid handle during the call that it is made for; `value` has the size that is given.
        let status = unsafe {
            match source {
                Source::Kernel(info) => read(info, name.as_ptr(), &raw mut value),
                Source::Inference(context) => {
                    let attribute = self.attribute(context, name)?;
                    let out = (&raw mut value).cast();
                    (self.0.ReadOpAttr)(attribute, kind, out, size_of::<T>(), &raw mut size)
                }
            }
        };
        self.check(status).ok().map(|()| value)
    }

    /// An attribute with a list of numbers or bytes.
    fn list<T: Copy + Default>(
        self,
        source: Source,
        name: &CStr,
        read: unsafe extern "system" fn(
            *const OrtKernelInfo,
            *const c_char,
            *mut T,
            *mut usize,
        ) -> OrtStatusPtr,
        kind: OrtOpAttrType,
    ) -> Option<Vec<T>> {
        let mut size = 0usize;
        // SAFETY: as of `number`; a first call tells the length, the second one fills a list of it.
        unsafe {
            match source {
                Source::Kernel(info) => {
                    self.check(read(info, name.as_ptr(), std::ptr::null_mut(), &raw mut size)).ok()?;
                    let mut values = vec![T::default(); size.max(1)];
                    self.check(read(info, name.as_ptr(), values.as_mut_ptr(), &raw mut size)).ok()?;
                    values.truncate(size);
                    Some(values)
                }
                Source::Inference(context) => {
                    let attribute = self.attribute(context, name)?;
                    // Too little room is an error, which comes with the size.
                    let first = (self.0.ReadOpAttr)(attribute, kind, std::ptr::null_mut(), 0, &raw mut size);
                    if self.check(first).is_err() && size == 0 {
                        return None;
                    }
                    let mut values = vec![T::default(); size / size_of::<T>()];
                    let out = values.as_mut_ptr().cast();
                    self.check((self.0.ReadOpAttr)(attribute, kind, out, size, &raw mut size)).ok()?;
                    Some(values)
                }
            }
        }
    }

    pub fn int(self, source: Source, name: &CStr) -> Option<i64> {
        self.number(source, name, self.0.KernelInfoGetAttribute_int64, OrtOpAttrType::ORT_OP_ATTR_INT)
    }

    pub fn float(self, source: Source, name: &CStr) -> Option<f32> {
        self.number(source, name, self.0.KernelInfoGetAttribute_float, OrtOpAttrType::ORT_OP_ATTR_FLOAT)
    }

    pub fn ints(self, source: Source, name: &CStr) -> Option<Vec<i64>> {
        self.list(source, name, self.0.KernelInfoGetAttributeArray_int64, OrtOpAttrType::ORT_OP_ATTR_INTS)
    }

    pub fn floats(self, source: Source, name: &CStr) -> Option<Vec<f32>> {
        self.list(source, name, self.0.KernelInfoGetAttributeArray_float, OrtOpAttrType::ORT_OP_ATTR_FLOATS)
    }

    pub fn text(self, source: Source, name: &CStr) -> Option<String> {
        let read = self.0.KernelInfoGetAttribute_string;
        let bytes = self.list(source, name, read, OrtOpAttrType::ORT_OP_ATTR_STRING)?;
        let bytes: Vec<u8> = bytes.into_iter().map(|byte| byte as u8).take_while(|byte| *byte != 0).collect();
        String::from_utf8(bytes).ok()
    }
}
