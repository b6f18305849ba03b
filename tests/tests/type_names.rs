//! One meaning for each public type name of crates that are read together: those that users see as `opsmith`, with graph mode,
//! custom kernels, devices and layers; and those of the generator with the commands.
//!
//! In: the sources of these crates. Out: names that two public types of a group have.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates that users see as one.
const LIBRARY: [&str; 8] = [
    "codegen/shared/src",
    "runtime/src",
    "runtime/graph/src",
    "runtime/graph/onnx/src",
    "runtime/graph/programs/src",
    "runtime/profile/src",
    "runtime/aot/src",
    "generated/nn/src",
];

/// The generator and the libraries behind its commands.
const GENERATOR: [&str; 3] = ["codegen/shared/src", "codegen/src", "codegen/tools/src"];

/// Names that two types of the generator have: a table for both sides, and its form with the spans of a spec or with what only a
/// checked spec knows.
const TWO_FORMS: [&str; 2] = [
    // A rule's tree that generated code holds, and an expression of a spec.
    "Expr",
    // Borrowed by both sides, and owned by the model.
    "ForeignNames",
];

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

#[track_caller]
fn check(folders: &[&str], allowed: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for folder in folders {
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
    places.retain(|name, places| places.len() > 1 && !allowed.contains(&name.as_str()));
    assert!(places.is_empty(), "public types of one name; name one of them anew: {places:#?}");
}

#[test]
fn a_public_type_of_the_library_has_a_name_of_its_own() {
    check(&LIBRARY, &[]);
}

#[test]
fn a_public_type_of_the_generator_has_a_name_of_its_own() {
    check(&GENERATOR, &TWO_FORMS);
}
