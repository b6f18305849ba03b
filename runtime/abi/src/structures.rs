//! The structures of the header, field by field.
//!
//! In: nothing. Out: plain data, whose meaning the header says.
#![allow(missing_docs, reason = "the header documents each field, and has the same names")]

use std::ffi::{c_char, c_int, c_void};

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    pub ndim: i32,
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
    pub shape: *const i64,
    pub strides: *const i64,
    pub byte_offset: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union Payload {
    pub integer: i64,
    pub real: f64,
    pub parts: [f64; 2],
    pub text: *const c_char,
    pub tensor: *const Tensor,
    pub tensors: *const *const Tensor,
    pub integers: *const i64,
    pub reals: *const f64,
    pub truths: *const u8,
    pub texts: *const *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    pub kind: i32,
    pub reserved: i32,
    pub count: i64,
    pub payload: Payload,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub device_type: i32,
    pub device_id: i32,
    pub handle: *mut c_void,
}

pub type Allocate = unsafe extern "C" fn(*mut c_void, i64, *mut Tensor) -> c_int;
pub type Release = unsafe extern "C" fn(*mut c_void);
pub type Adopt = unsafe extern "C" fn(*mut c_void, i64, *const Tensor, *mut c_void, Release) -> c_int;

#[repr(C)]
pub struct Outputs {
    pub size: usize,
    pub context: *mut c_void,
    pub allocate: Option<Allocate>,
    pub adopt: Option<Adopt>,
    pub stream: *const Stream,
}

#[repr(C)]
pub struct Argument {
    pub name: *const c_char,
    pub ty: *const c_char,
    pub optional: u8,
    pub has_default: u8,
    pub keyword_only: u8,
    pub reserved: [u8; 5],
}

#[repr(C)]
pub struct Operator {
    pub size: usize,
    pub name: *const c_char,
    pub signature: *const c_char,
    pub refusal: *const c_char,
    pub argument_count: i64,
    pub arguments: *const Argument,
    pub result_count: i64,
    pub gives_list: u8,
    pub is_differentiable: u8,
    pub takes_results: u8,
    pub is_pointwise: u8,
    pub reserved: [u8; 4],
    pub differentiable_results: u64,
    pub reads_arguments: u64,
    pub reads_results: u64,
    pub definition: *const c_void,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    pub kind: i32,
    pub reserved: i32,
    pub a: i64,
    pub b: i64,
}

#[repr(C)]
pub struct InferredResult {
    pub code: u8,
    pub bits: u8,
    pub reserved: [u8; 2],
    pub ndim: i32,
    pub sizes: *const i64,
}

#[repr(C)]
pub struct SizeGuard {
    pub node: i64,
    pub text: *const c_char,
}

#[repr(C)]
pub struct InferredCall {
    pub size: usize,
    pub node_count: i64,
    pub nodes: *const Node,
    pub result_count: i64,
    pub results: *const InferredResult,
    pub guard_count: i64,
    pub guards: *const SizeGuard,
}

pub type Tensors = *const *const Tensor;
pub type Run = unsafe extern "C" fn(*const Operator, *const Value, i64, *const Outputs) -> c_int;
pub type Gradient = unsafe extern "C" fn(
    *const Operator,
    *const Value,
    i64,
    Tensors,
    Tensors,
    i64,
    *const u8,
    i64,
    *const Outputs,
) -> c_int;
pub type Tangent = Gradient;
pub type SecondGradient = unsafe extern "C" fn(
    *const Operator,
    *const Value,
    i64,
    Tensors,
    Tensors,
    i64,
    *const u8,
    i64,
    Tensors,
    i64,
    *const u8,
    i64,
    *const Outputs,
) -> c_int;
pub type Convert = unsafe extern "C" fn(*const Tensor, *const Tensor, *const Stream) -> c_int;
pub type Infer = unsafe extern "C" fn(
    *const Operator,
    *const Value,
    i64,
    *const i64,
    i64,
    *mut *const InferredCall,
) -> c_int;

#[repr(C)]
pub struct Api {
    pub size: usize,
    pub version: u32,
    pub reserved: u32,
    pub library: *const c_char,
    pub fingerprint: *const c_char,
    pub operator_count: i64,
    pub operators: *const *const Operator,
    pub find: unsafe extern "C" fn(*const c_char) -> *const Operator,
    pub run: Run,
    pub gradient: Gradient,
    pub second_gradient: SecondGradient,
    pub infer: Infer,
    pub release_inference: unsafe extern "C" fn(*const InferredCall),
    pub error_text: extern "C" fn() -> *const c_char,
    pub tangent: Tangent,
    pub convert: Convert,
}

// SAFETY: all that the pointers of a table lead to is constant and lives as long as the process.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}
