//! The tables of functions and numbers against `cuda.h`, on request alone (`pip install nvidia-cuda-runtime nvidia-cuda-crt`):
//! `OPSMITH_CUDA_HEADERS=…/nvidia/cu13/include cargo test --workspace --lib -- --ignored driver`.

use super::{api, codes};
use crate::table::compare_with_header;

#[test]
#[ignore = "needs the headers of CUDA 12 or 13 in the folder OPSMITH_CUDA_HEADERS"]
fn the_tables_agree_with_the_header() {
    assert!(api::SIGNATURES.iter().any(|(name, _)| *name == "cuGraphLaunch"));
    compare_with_header("cuda.h", codes::NUMBERS, api::SIGNATURES, "");
}
