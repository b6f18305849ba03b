//! One meaning for each public type name of the crates that users see as one: `opsmith`, with graph mode, custom kernels and layers.
//!
//! In: the sources of `opsmith-core`, the runtime, graph mode, custom kernels and layers. Out: names that two public types have.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            rust_files(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

#[test]
fn a_public_type_has_a_name_of_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for folder in [
        "codegen/shared/src",
        "runtime/src",
        "runtime/graph/src",
        "runtime/graph/onnx/src",
        "runtime/graph/programs/src",
        "runtime/profile/src",
        "runtime/aot/src",
        "generated/nn/src",
    ] {
        rust_files(&root.join(folder), &mut files);
    }
    assert!(files.len() > 150, "only {} files were found", files.len());
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let declared = ["struct ", "enum ", "trait ", "unsafe trait ", "type "];
            let Some(rest) = line.strip_prefix("pub ") else { continue };
            let Some(rest) = declared.iter().find_map(|word| rest.strip_prefix(word)) else { continue };
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let file = file.strip_prefix(root).unwrap().display().to_string();
            places.entry(name).or_default().push(file);
        }
    }
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "public types of one name; name one of them anew: {places:#?}");
}
