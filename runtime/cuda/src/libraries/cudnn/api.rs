//! The functions and numbers of cuDNN, as `cudnn.h` has them.
//!
//! In: an opened library. Out: a table of its functions, complete, or the name that is missing. Must not know convolutions.

use std::ffi::{CStr, c_char, c_int, c_void};

use libloading::os::unix::Library;

use crate::table::{functions, numbers};

/// A result; 0 is success.
pub type Status = c_int;
/// A handle of the library, or a description.
pub type Opaque = *mut c_void;

/// An algorithm that the library proposes, for any part of a convolution.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Proposal {
    /// The algorithm.
    pub algorithm: c_int,
    /// Whether it can be used.
    pub status: Status,
    time: f32,
    /// Bytes of working memory that it needs.
    pub memory: usize,
    /// Whether equal calls give equal bits.
    pub determinism: c_int,
    /// The arithmetic that it is meant for.
    pub math: c_int,
    reserved: [c_int; 3],
}

numbers! {
    /// Success.
    SUCCESS = CUDNN_STATUS_SUCCESS 0;
    /// The first status of the thousand for operands and operations without an algorithm.
    NOT_SUPPORTED = CUDNN_STATUS_NOT_SUPPORTED 3000;
    /// Types of elements.
    REAL_32 = CUDNN_DATA_FLOAT 0;
    REAL_64 = CUDNN_DATA_DOUBLE 1;
    REAL_16 = CUDNN_DATA_HALF 2;
    BRAIN_16 = CUDNN_DATA_BFLOAT16 9;
    /// Row-major weights.
    ROW_MAJOR = CUDNN_TENSOR_NCHW 0;
    /// Windows are not mirrored.
    CROSS_CORRELATION = CUDNN_CROSS_CORRELATION 1;
    /// Arithmetic: any, TF32 included for single precision; units for matrices of the elements' own type; neither.
    ANY_MATH = CUDNN_DEFAULT_MATH 0;
    MATRIX_MATH = CUDNN_TENSOR_OP_MATH 1;
    PLAIN_MATH = CUDNN_FMA_MATH 3;
    /// Equal calls give equal bits.
    DETERMINISTIC = CUDNN_DETERMINISTIC 1;
}

functions! {
    /// The library's functions that are used.
    pub struct Functions;
    cudnnGetVersion() -> usize;
    cudnnGetCudartVersion() -> usize;
    cudnnGetErrorString(status: Status) -> *const c_char;
    cudnnCreate(handle: *mut Opaque) -> Status;
    cudnnSetStream(handle: Opaque, stream: Opaque) -> Status;
    cudnnCreateTensorDescriptor(tensor: *mut Opaque) -> Status;
    cudnnSetTensorNdDescriptor(
        tensor: Opaque, element: c_int, dims: c_int, sizes: *const c_int, strides: *const c_int
    ) -> Status;
    cudnnDestroyTensorDescriptor(tensor: Opaque) -> Status;
    cudnnCreateFilterDescriptor(weight: *mut Opaque) -> Status;
    cudnnSetFilterNdDescriptor(weight: Opaque, element: c_int, order: c_int, dims: c_int, sizes: *const c_int) -> Status;
    cudnnDestroyFilterDescriptor(weight: Opaque) -> Status;
    cudnnCreateConvolutionDescriptor(convolution: *mut Opaque) -> Status;
    cudnnSetConvolutionNdDescriptor(
        convolution: Opaque, dims: c_int, padding: *const c_int, stride: *const c_int, dilation: *const c_int, mode: c_int,
        compute: c_int
    ) -> Status;
    cudnnSetConvolutionGroupCount(convolution: Opaque, groups: c_int) -> Status;
    cudnnSetConvolutionMathType(convolution: Opaque, math: c_int) -> Status;
    cudnnDestroyConvolutionDescriptor(convolution: Opaque) -> Status;
    cudnnGetConvolutionForwardAlgorithm_v7(
        handle: Opaque, image: Opaque, weight: Opaque, convolution: Opaque, output: Opaque, most: c_int, found: *mut c_int,
        proposals: *mut Proposal
    ) -> Status;
    cudnnGetConvolutionBackwardDataAlgorithm_v7(
        handle: Opaque, weight: Opaque, output: Opaque, convolution: Opaque, image: Opaque, most: c_int, found: *mut c_int,
        proposals: *mut Proposal
    ) -> Status;
    cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        handle: Opaque, image: Opaque, output: Opaque, convolution: Opaque, weight: Opaque, most: c_int, found: *mut c_int,
        proposals: *mut Proposal
    ) -> Status;
    cudnnConvolutionForward(
        handle: Opaque, alpha: *const c_void, image_layout: Opaque, image: *const c_void, weight_layout: Opaque,
        weight: *const c_void, convolution: Opaque, algorithm: c_int, workspace: *mut c_void, bytes: usize,
        beta: *const c_void, output_layout: Opaque, output: *mut c_void
    ) -> Status;
    cudnnConvolutionBackwardData(
        handle: Opaque, alpha: *const c_void, weight_layout: Opaque, weight: *const c_void, output_layout: Opaque,
        output: *const c_void, convolution: Opaque, algorithm: c_int, workspace: *mut c_void, bytes: usize,
        beta: *const c_void, image_layout: Opaque, image: *mut c_void
    ) -> Status;
    cudnnConvolutionBackwardFilter(
        handle: Opaque, alpha: *const c_void, image_layout: Opaque, image: *const c_void, output_layout: Opaque,
        output: *const c_void, convolution: Opaque, algorithm: c_int, workspace: *mut c_void, bytes: usize,
        beta: *const c_void, weight_layout: Opaque, weight: *mut c_void
    ) -> Status;
}

impl Functions {
    /// The library's text of a status.
    pub fn text(&self, status: Status) -> String {
        // SAFETY: the function takes any number.
        let text = unsafe { (self.cudnnGetErrorString)(status) };
        if text.is_null() {
            return format!("status {status} of the library");
        }
        // SAFETY: the library's texts are constants that end with a zero.
        format!("{} (status {status})", unsafe { CStr::from_ptr(text) }.to_string_lossy())
    }
}
