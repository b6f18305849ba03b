//! The table of functions and numbers against the library's header, and the real library without a device.
//!
//! Both need files that no test brings (`pip install nvidia-cublas nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl`), so they run on
//! request alone:
//! `OPSMITH_CUDA_HEADERS=…/nvidia/cu13/include OPSMITH_CUBLASLT=…/nvidia/cu13/lib/libcublasLt.so.13 cargo test --workspace --lib --
//! --ignored libraries`.

use super::api::{Algorithm, NUMBERS, Proposal, SIGNATURES};
use super::{DESCRIBED, parts};
use crate::libraries::library::{dotted, open_real};
use crate::table::compare_with_header;

/// Assertions about structures.
fn structures() -> String {
    let mut text = String::new();
    let all = [
        ("cublasLtMatmulAlgo_t", size_of::<Algorithm>(), align_of::<Algorithm>()),
        ("cublasLtMatmulHeuristicResult_t", size_of::<Proposal>(), align_of::<Proposal>()),
    ];
    for (name, bytes, alignment) in all {
        text += &format!(
            "static_assert(sizeof({name}) == {bytes} && alignof({name}) == {alignment}, \"{name}\");\n"
        );
    }
    for (field, offset) in [
        ("algo", std::mem::offset_of!(Proposal, algorithm)),
        ("workspaceSize", std::mem::offset_of!(Proposal, workspace)),
        ("state", std::mem::offset_of!(Proposal, state)),
    ] {
        text += &format!(
            "static_assert(__builtin_offsetof(cublasLtMatmulHeuristicResult_t, {field}) == {offset}, \"{field}\");\n"
        );
    }
    text
}

#[test]
#[ignore = "needs the headers of CUDA 12 or 13 in the folder OPSMITH_CUDA_HEADERS"]
fn the_table_agrees_with_the_header() {
    compare_with_header("cublasLt.h", NUMBERS, SIGNATURES, &structures());
}

#[test]
#[ignore = "needs a real cuBLASLt in the file OPSMITH_CUBLASLT; no device"]
fn the_real_library_has_every_function() {
    let functions = open_real(&DESCRIBED).functions;
    assert!(functions.text(15).contains("CUBLAS_STATUS_NOT_SUPPORTED"), "{}", functions.text(15));
}

#[test]
fn versions_have_parts() {
    for (version, text) in
        [(11_605, "11.6.5"), (120_000, "12.0.0"), (120_805, "12.8.5"), (131_000, "13.10.0")]
    {
        assert_eq!(dotted(parts(version)), text);
    }
}
