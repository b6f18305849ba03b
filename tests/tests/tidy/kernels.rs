//! Rules for kernels: each has a caller, and reads its arguments.

use std::fs;

use super::{assert_none, root, rust_files, spec_files};

/// The words of the code of a file, without its tests.
fn words(text: &str) -> Vec<&str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect()
}

#[test]
fn every_kernel_is_called() {
    let spec: String =
        spec_files().iter().map(|file| fs::read_to_string(root().join(file)).unwrap()).collect();
    let files = rust_files("kernels/src/cpu");
    let files: Vec<_> = files.iter().filter(|(name, _)| !name.contains("test")).collect();
    let mut idle = Vec::new();
    for (name, text) in &files {
        for line in text.lines().filter_map(|line| line.strip_prefix("pub fn ")) {
            let kernel = line.split(['<', '(']).next().unwrap_or_default();
            let path = format!("::{kernel}");
            let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            let by_spec = spec.split(&path).skip(1).any(ends);
            let uses =
                |(_, text): &&&(String, String)| words(text).iter().filter(|word| **word == kernel).count();
            let used: usize =
                files.iter().filter(|(name, _)| !name.ends_with("mod.rs")).map(|file| uses(&file)).sum();
            if !by_spec && used < 2 {
                idle.push(format!("{name}: {kernel}"));
            }
        }
    }
    // The tests of operators read it.
    idle.retain(|kernel| kernel != "kernels/src/cpu/blocks.rs: sizes");
    assert_none(idle, "an entry of the spec or another kernel calls every kernel");
}

#[test]
fn no_kernel_takes_an_argument_that_it_ignores() {
    let mut ignored = Vec::new();
    for (name, text) in rust_files("kernels/src/cpu") {
        for function in text.split("\npub fn ").skip(1) {
            let signature = function.split(" {\n").next().unwrap_or_default();
            let kernel = signature.split(['<', '(']).next().unwrap_or_default();
            let parameters = signature.split([',', '(', '\n']).map(str::trim);
            let unread =
                parameters.filter(|parameter| parameter.starts_with('_') && parameter.contains(": "));
            ignored.extend(unread.map(|parameter| format!("{name}: {kernel}: {parameter}")));
        }
    }
    assert_none(
        ignored,
        "an entry names the arguments of its kernel: `dispatch: {CPU: \"path(argument, …)\"}`",
    );
}
