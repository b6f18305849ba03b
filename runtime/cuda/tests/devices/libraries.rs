//! The search for cuBLASLt, its versions, and the choice of libraries.

use std::fs;
use std::path::Path;

use opsmith_cuda::{LibraryState, libraries};
use opsmith_runtime::Result;

use crate::common::{Part, STAND_INS, empty, says, start};
use crate::product_cases::PLAIN;

/// The parts of this file.
pub const PARTS: &[Part] = &[
    ("library_found", library_found),
    ("library_missing", library_missing),
    ("library_refused", library_refused),
    ("library_off", library_off),
    ("library_demanded", library_demanded),
    ("library_named", library_named),
    ("library_unknown", library_unknown),
];

/// A variable that tells a part the text of a reason.
const REASON: &str = "CUDA_TEST_REASON";

#[test]
fn the_library_is_found_where_people_have_it() {
    let folder = without_library("no-cublaslt");
    let nowhere = ("PATH", "/nonexistent");
    finished("library_missing", &folder, &[nowhere]);
    finished("library_demanded", &folder, &[nowhere, ("OPSMITH_CUDA_LIBRARIES", "cublaslt")]);

    let environment = empty("cublaslt-environment");
    let root = environment.to_str().unwrap();
    for inside in ["lib/python3.99/site-packages/nvidia/cu13/lib", "lib64"] {
        fs::create_dir_all(environment.join(inside)).unwrap();
        fs::copy(STAND_INS.join("libcublasLt.so"), environment.join(inside).join("libcublasLt.so.13"))
            .unwrap();
    }
    for (variable, value) in [
        ("VIRTUAL_ENV", root.to_owned()),
        ("CUDA_HOME", root.to_owned()),
        ("OPSMITH_CUBLASLT", format!("{root}/lib64/libcublasLt.so.13")),
    ] {
        finished("library_found", &folder, &[nowhere, (variable, &value)]);
    }
    // The package of CUDA 12.
    let older = empty("cublaslt-older");
    let packages = older.join("lib/python3.99/site-packages/nvidia/cublas/lib");
    fs::create_dir_all(&packages).unwrap();
    fs::copy(STAND_INS.join("libcublasLt.so"), packages.join("libcublasLt.so.12")).unwrap();
    let variables = [
        nowhere,
        ("VIRTUAL_ENV", older.to_str().unwrap()),
        ("STANDIN_CUBLASLT_VERSION", "120805"),
        ("STANDIN_CUBLASLT_TOOLKIT", "12080"),
    ];
    finished("library_found", &folder, &variables);
    finished("library_named", &STAND_INS, &[("OPSMITH_CUBLASLT", "/nonexistent/libcublasLt.so.13")]);
}

#[test]
fn a_library_that_does_not_fit_is_not_used() {
    let old = ("STANDIN_CUBLASLT_VERSION", "11605");
    let newer = ("STANDIN_CUBLASLT_TOOLKIT", "14000");
    let nowhere = ("PATH", "/nonexistent");
    let reason = (REASON, "it is of CUDA 14.0, newer than the driver, which is of CUDA 13");
    finished("library_refused", &STAND_INS, &[newer, nowhere, reason]);
    // By the loader, a library that cannot be opened is as good as none; the error has the reason for one in a folder.
    let environment = empty("cublaslt-old");
    fs::create_dir_all(environment.join("lib64")).unwrap();
    fs::copy(STAND_INS.join("libcublasLt.so"), environment.join("lib64/libcublasLt.so.12")).unwrap();
    let folder = without_library("cublaslt-old-driver");
    let root = ("CUDA_HOME", environment.to_str().unwrap());
    let reason = (REASON, "libcublasLt.so.12: it is of version 11.6.5, and 12.0.0 is the oldest supported");
    finished("library_refused", &folder, &[old, root, nowhere, reason]);

    let incomplete = without_library("cublaslt-incomplete-driver");
    let environment = empty("cublaslt-incomplete");
    fs::create_dir_all(environment.join("lib64")).unwrap();
    let place = empty("cublaslt-incomplete-made");
    opsmith_stand_in::driver(&place);
    opsmith_stand_in::cublaslt_with(&place, &["-DcublasLtMatmulPreferenceDestroy=another"]);
    fs::copy(place.join("libcublasLt.so"), environment.join("lib64/libcublasLt.so.13")).unwrap();
    let root = ("CUDA_HOME", environment.to_str().unwrap());
    let reason = (REASON, "libcublasLt.so.13: it has no function `cublasLtMatmulPreferenceDestroy`");
    finished("library_refused", &incomplete, &[root, nowhere, reason]);
}

#[test]
fn the_environment_chooses() {
    finished("library_off", &STAND_INS, &[("OPSMITH_CUDA_LIBRARIES", "off")]);
    finished("library_found", &STAND_INS, &[("OPSMITH_CUDA_LIBRARIES", "cublaslt")]);
    finished("library_unknown", &STAND_INS, &[("OPSMITH_CUDA_LIBRARIES", "cublas")]);
}

/// A folder with a driver, and files of the library's names that cannot be loaded.
fn without_library(name: &str) -> std::path::PathBuf {
    let folder = empty(name);
    opsmith_stand_in::driver(&folder);
    for name in ["libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12"] {
        fs::write(folder.join(name), "no library").unwrap();
    }
    folder
}

/// Does a part with the libraries of a folder.
#[track_caller]
fn finished(part: &str, folder: &Path, variables: &[(&str, &str)]) {
    let output = start(part, folder, variables);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_done = output.status.success() && text.contains(&format!("DONE {part}"));
    assert!(is_done, "{variables:?}: {text}\n{errors}");
}

fn outcome() -> Result<bool> {
    Ok(PLAIN.run()?.is_some())
}

fn library_found() {
    PLAIN.check();
    let reports = libraries().unwrap();
    assert_eq!((reports[0].name, reports[0].computed), ("cublaslt", 1));
    let LibraryState::Found { path, version } = &reports[0].state else { panic!("{reports:?}") };
    assert!(path.is_file() && ["13.1.0", "12.8.5"].contains(&version.as_str()), "{reports:?}");
}

fn places() -> Vec<String> {
    let reports = libraries().unwrap();
    let LibraryState::Missing { places } = &reports[0].state else { panic!("{reports:?}") };
    assert_eq!((reports[0].computed, reports[0].left), (0, 0));
    places.clone()
}

fn library_missing() {
    assert!(!outcome().unwrap());
    assert!(places().iter().any(|place| place.contains("libcublasLt.so.13 by the loader")), "{:?}", places());
}

fn library_refused() {
    assert!(!outcome().unwrap());
    let reason = std::env::var(REASON).unwrap();
    assert!(places().iter().any(|place| place.contains(&reason)), "{reason}: {:?}", places());
}

fn library_off() {
    assert!(!outcome().unwrap());
    assert!(matches!(libraries().unwrap()[0].state, LibraryState::Off));
}

fn library_demanded() {
    let texts = [
        "demands cublaslt",
        "searched: libcublasLt.so.13 by the loader",
        "pip install nvidia-cublas",
        "OPSMITH_CUBLASLT",
    ];
    says(outcome(), &texts);
}

fn library_named() {
    says(outcome(), &["OPSMITH_CUBLASLT names /nonexistent/libcublasLt.so.13", "cannot be used"]);
    assert!(places()[0].contains("/nonexistent/libcublasLt.so.13"));
}

fn library_unknown() {
    says(outcome(), &["OPSMITH_CUDA_LIBRARIES is `cublas`", "no library `cublas`", "cublaslt"]);
    says(libraries(), &["no library `cublas`"]);
}
