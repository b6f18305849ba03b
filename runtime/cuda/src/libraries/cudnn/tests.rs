//! The table of functions and numbers against the library's header, and the real library without a device, on request alone, as
//! those of cuBLASLt (`pip install nvidia-cudnn-cu13`, `OPSMITH_CUDNN=…/nvidia/cudnn/lib/libcudnn.so.9`, and
//! `OPSMITH_CUDA_HEADERS=…/nvidia/cu13/include:…/nvidia/cudnn/include`).

use super::api::{NUMBERS, Proposal, SIGNATURES};
use super::{DESCRIBED, parts};
use crate::libraries::library::{dotted, open_real};
use crate::table::compare_with_header;

#[test]
#[ignore = "needs the headers of CUDA 12 or 13 in the folder OPSMITH_CUDA_HEADERS, with those of cuDNN 9"]
fn the_table_agrees_with_the_header() {
    let mut more = String::new();
    let parts = ["Fwd", "BwdData", "BwdFilter"];
    for part in parts {
        let name = format!("cudnnConvolution{part}AlgoPerf_t");
        more += &format!("static_assert(sizeof({name}) == {}, \"{name}\");\n", size_of::<Proposal>());
        for (field, offset) in [
            ("algo", std::mem::offset_of!(Proposal, algorithm)),
            ("status", std::mem::offset_of!(Proposal, status)),
            ("memory", std::mem::offset_of!(Proposal, memory)),
            ("determinism", std::mem::offset_of!(Proposal, determinism)),
            ("mathType", std::mem::offset_of!(Proposal, math)),
        ] {
            more +=
                &format!("static_assert(__builtin_offsetof({name}, {field}) == {offset}, \"{field}\");\n");
        }
    }
    compare_with_header("cudnn.h", NUMBERS, SIGNATURES, &more);
}

#[test]
#[ignore = "needs a real cuDNN in the file OPSMITH_CUDNN; no device"]
fn the_real_library_has_every_function() {
    let functions = open_real(&DESCRIBED).functions;
    assert!(functions.text(3000).contains("CUDNN_STATUS_NOT_SUPPORTED"), "{}", functions.text(3000));
}

#[test]
fn versions_have_parts() {
    for (version, text) in [(8_907, "8.9.7"), (90_000, "9.0.0"), (92_801, "9.28.1")] {
        assert_eq!(dotted(parts(version)), text);
    }
}
