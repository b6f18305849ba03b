//! Sizes of files that people write.

use super::{assert_none, rust_files};

/// The most lines of a file, and of the one in the middle.
const FILE: usize = 450;
const MEDIAN: usize = 170;

/// The files of people: neither recorded output of the generator nor programs that the profiler writes.
fn written() -> Vec<(String, String)> {
    let is_recorded = |name: &str| name.contains("/golden/") || name.contains("/bad/");
    let mut files = rust_files(".");
    files.retain(|(name, text)| !is_recorded(name) && !text.starts_with("// @generated from "));
    files
}

#[test]
fn files_are_short() {
    let mut sizes: Vec<(usize, String)> =
        written().into_iter().map(|(name, text)| (text.lines().count(), name)).collect();
    sizes.sort();
    let long = sizes.iter().filter(|(size, _)| *size > FILE);
    assert_none(
        long.map(|(size, name)| format!("{name}: {size} lines")).collect(),
        "a file has 450 lines at most",
    );
    let median = sizes[sizes.len() / 2].0;
    assert!(median <= MEDIAN, "half of the files have more than {median} lines");
}
