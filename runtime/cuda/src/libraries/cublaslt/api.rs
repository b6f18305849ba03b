//! The functions and numbers of cuBLASLt, as `cublasLt.h` has them.
//!
//! In: an opened library. Out: a table of its functions, complete, or the name that is missing. Must not know products.

use std::ffi::{CStr, c_char, c_int, c_void};

use libloading::os::unix::Library;

use crate::table::{functions, numbers};

/// A result; 0 is success.
pub type Status = c_int;
/// A handle of the library, a description of an operation, a matrix or a preference, or a stream.
pub type Opaque = *mut c_void;

/// An algorithm, as the library encodes it.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Algorithm {
    data: [u64; 8],
}

/// An algorithm that the library proposes.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Proposal {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Bytes of working memory that it needs.
    pub workspace: usize,
    /// Whether it can be used.
    pub state: Status,
    waves: f32,
    reserved: [c_int; 4],
}

numbers! {
    /// Success.
    SUCCESS = CUBLAS_STATUS_SUCCESS 0;
    /// The library has no algorithm for the operation.
    NOT_SUPPORTED = CUBLAS_STATUS_NOT_SUPPORTED 15;
    /// Operands as they are, and transposed.
    PLAIN = CUBLAS_OP_N 0;
    TRANSPOSED = CUBLAS_OP_T 1;
    /// Types of elements and factors.
    REAL_32 = CUDA_R_32F 0;
    REAL_64 = CUDA_R_64F 1;
    REAL_16 = CUDA_R_16F 2;
    BRAIN_16 = CUDA_R_16BF 14;
    COMPLEX_32 = CUDA_C_32F 4;
    COMPLEX_64 = CUDA_C_64F 5;
    /// Types of sums: single precision, its factors rounded to ten bits (TF32), double precision.
    COMPUTE_32 = CUBLAS_COMPUTE_32F 68;
    COMPUTE_TF32 = CUBLAS_COMPUTE_32F_FAST_TF32 77;
    COMPUTE_64 = CUBLAS_COMPUTE_64F 70;
    /// Attributes of a matrix.
    LAYOUT_STACKS = CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT 5;
    LAYOUT_STACK_STRIDE = CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET 6;
    /// Attributes of a product.
    PRODUCT_TRANSPOSE_A = CUBLASLT_MATMUL_DESC_TRANSA 3;
    PRODUCT_TRANSPOSE_B = CUBLASLT_MATMUL_DESC_TRANSB 4;
    PRODUCT_EPILOGUE = CUBLASLT_MATMUL_DESC_EPILOGUE 7;
    PRODUCT_BIAS = CUBLASLT_MATMUL_DESC_BIAS_POINTER 8;
    /// Steps after a product, which are joined bit by bit, except the first.
    EPILOGUE_NONE = CUBLASLT_EPILOGUE_DEFAULT 1;
    EPILOGUE_RELU = CUBLASLT_EPILOGUE_RELU 2;
    EPILOGUE_BIAS = CUBLASLT_EPILOGUE_BIAS 4;
    EPILOGUE_GELU = CUBLASLT_EPILOGUE_GELU 32;
    /// Preferences in the choice of an algorithm.
    PREFER_WORKSPACE = CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES 1;
    PREFER_REDUCTIONS = CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK 3;
    PREFER_ALIGNMENT_A = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES 5;
    PREFER_ALIGNMENT_B = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES 6;
    PREFER_ALIGNMENT_C = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES 7;
    PREFER_ALIGNMENT_D = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES 8;
    /// Parts of sums, where an algorithm has several, are kept in the type of sums and added in a step of their own.
    REDUCTION_IN_COMPUTE_TYPE = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE 2;
}

functions! {
    /// The library's functions that are used.
    pub struct Functions;
    cublasLtGetVersion() -> usize;
    cublasLtGetCudartVersion() -> usize;
    cublasLtGetStatusName(status: Status) -> *const c_char;
    cublasLtGetStatusString(status: Status) -> *const c_char;
    cublasLtCreate(handle: *mut Opaque) -> Status;
    cublasLtMatrixLayoutCreate(layout: *mut Opaque, element: c_int, rows: u64, columns: u64, leading: i64) -> Status;
    cublasLtMatrixLayoutSetAttribute(layout: Opaque, attribute: c_int, value: *const c_void, bytes: usize) -> Status;
    cublasLtMatrixLayoutDestroy(layout: Opaque) -> Status;
    cublasLtMatmulDescCreate(product: *mut Opaque, compute: c_int, scale: c_int) -> Status;
    cublasLtMatmulDescSetAttribute(product: Opaque, attribute: c_int, value: *const c_void, bytes: usize) -> Status;
    cublasLtMatmulDescDestroy(product: Opaque) -> Status;
    cublasLtMatmulPreferenceCreate(preference: *mut Opaque) -> Status;
    cublasLtMatmulPreferenceSetAttribute(
        preference: Opaque, attribute: c_int, value: *const c_void, bytes: usize
    ) -> Status;
    cublasLtMatmulPreferenceDestroy(preference: Opaque) -> Status;
    cublasLtMatmulAlgoGetHeuristic(
        handle: Opaque, product: Opaque, a: Opaque, b: Opaque, c: Opaque, d: Opaque, preference: Opaque, most: c_int,
        proposals: *mut Proposal, found: *mut c_int
    ) -> Status;
    cublasLtMatmul(
        handle: Opaque, product: Opaque, alpha: *const c_void, a: *const c_void, a_layout: Opaque, b: *const c_void,
        b_layout: Opaque, beta: *const c_void, c: *const c_void, c_layout: Opaque, d: *mut c_void, d_layout: Opaque,
        algorithm: *const Algorithm, workspace: *mut c_void, workspace_bytes: usize, stream: Opaque
    ) -> Status;
}

impl Functions {
    /// The library's name and text of a status.
    pub fn text(&self, status: Status) -> String {
        let read = |function: unsafe extern "C" fn(Status) -> *const c_char| {
            // SAFETY: the functions take any number.
            let text = unsafe { function(status) };
            // SAFETY: the library's texts are constants that end with a zero.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        match (read(self.cublasLtGetStatusName), read(self.cublasLtGetStatusString)) {
            (Some(name), Some(text)) => format!("{name} ({text})"),
            _ => format!("status {status} of the library"),
        }
    }
}
