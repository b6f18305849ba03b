//! The table of functions and numbers against the library's header, and the real library without a device.
//!
//! Both need files that no test brings (`pip install nvidia-cublas nvidia-cuda-runtime nvidia-cuda-crt`), so they run on request alone:
//! `OPSMITH_CUDA_HEADERS=…/nvidia/cu13/include OPSMITH_CUBLASLT=…/nvidia/cu13/lib/libcublasLt.so.13 cargo test --workspace --lib --
//! --ignored cublaslt`.

use std::path::Path;
use std::process::Command;

use super::api::{Algorithm, NUMBERS, Proposal, SIGNATURES};
use super::{Versions, WANTED, dotted};
use crate::libraries::search::{self, Opens, Origin};

/// A text that compiles if the header agrees.
fn comparison() -> String {
    let mut text = String::from(
        "#include <cublasLt.h>\n\
         #include <initializer_list>\n\
         #include <type_traits>\n\
         template <class T> constexpr long bytes() {\n\
           return std::is_pointer<T>::value ? -static_cast<long>(sizeof(T)) : static_cast<long>(sizeof(T));\n\
         }\n\
         template <class R, class... A>\n\
         constexpr bool agrees(R (*)(A...), std::initializer_list<long> expected) {\n\
           const long found[] = {bytes<R>(), bytes<A>()...};\n\
           if (expected.size() != 1 + sizeof...(A)) return false;\n\
           for (unsigned i = 0; i < expected.size(); ++i) {\n\
             if (found[i] != expected.begin()[i]) return false;\n\
           }\n\
           return true;\n\
         }\n",
    );
    for (name, value) in NUMBERS {
        text += &format!("static_assert(static_cast<int>({name}) == {value}, \"{name}\");\n");
    }
    for (name, parameters) in SIGNATURES {
        let list: Vec<String> = parameters.iter().map(i64::to_string).collect();
        let list = list.join(", ");
        // The function without its address: an incomplete constant would need the library to link.
        text += &format!(
            "static_assert(agrees(static_cast<decltype(&{name})>(nullptr), {{{list}}}), \"{name}\");\n"
        );
    }
    let structures = [
        ("cublasLtMatmulAlgo_t", size_of::<Algorithm>(), align_of::<Algorithm>()),
        ("cublasLtMatmulHeuristicResult_t", size_of::<Proposal>(), align_of::<Proposal>()),
    ];
    for (name, bytes, alignment) in structures {
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
    let headers = std::env::var("OPSMITH_CUDA_HEADERS").expect("the folder with cublasLt.h");
    let file = std::env::temp_dir().join(format!("opsmith-cublaslt-{}.cc", std::process::id()));
    std::fs::write(&file, comparison()).unwrap();
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let output = Command::new(compiler)
        .args(["-std=c++17", "-fsyntax-only", "-I", &headers])
        .arg(&file)
        .output()
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs a real cuBLASLt in the file OPSMITH_CUBLASLT; no device"]
fn the_real_library_has_every_function() {
    let path = search::named(&WANTED).expect("the file of the library");
    let opened = Versions { driver_major: i32::MAX }.open(Path::new(&path), Origin::File);
    let found = opened.unwrap_or_else(|reason| panic!("{reason}"));
    assert!(found.path.is_file() && found.version >= 120_000 && found.toolkit >= 12_000, "{}", found.version);
    assert!(found.functions.text(15).contains("CUBLAS_STATUS_NOT_SUPPORTED"), "{}", found.functions.text(15));
    println!("cuBLASLt {} of CUDA {}: {}", dotted(found.version), found.toolkit, found.path.display());
}

#[test]
fn versions_have_parts() {
    for (version, text) in
        [(11_605, "11.6.5"), (120_000, "12.0.0"), (120_805, "12.8.5"), (131_000, "13.10.0")]
    {
        assert_eq!(dotted(version), text);
    }
}
