//! The table of functions and numbers against the library's headers, and the real library without a device, on request alone, as
//! those of cuBLASLt (`pip install nvidia-cufft`, `OPSMITH_CUFFT=…/nvidia/cu13/lib/libcufft.so.12`).

use super::api::{FORWARD, NUMBERS, SIGNATURES};
use super::{DESCRIBED, parts};
use crate::libraries::library::{dotted, open_real};
use crate::table::compare_with_header;

#[test]
#[ignore = "needs the headers of CUDA 12 or 13 in the folder OPSMITH_CUDA_HEADERS"]
fn the_table_agrees_with_the_header() {
    let forward = format!("static_assert(CUFFT_FORWARD == {FORWARD}, \"CUFFT_FORWARD\");\n");
    compare_with_header("cufftXt.h", NUMBERS, SIGNATURES, &forward);
}

#[test]
#[ignore = "needs a real cuFFT in the file OPSMITH_CUFFT; no device"]
fn the_real_library_has_every_function() {
    open_real(&DESCRIBED);
}

#[test]
fn versions_have_parts() {
    for (version, text) in [(11_000, "11.0.0"), (11_303, "11.3.3"), (12_500, "12.5.0")] {
        assert_eq!(dotted(parts(version)), text);
    }
}
