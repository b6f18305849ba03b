//! Locations of keys in a spec, file and line, and the documentation of kernels.

use opsmith_codegen::code_places::CodePlaces;
use opsmith_codegen::model::{Kernel, KernelSource, Op};
use opsmith_codegen::pipeline::Checked;
use opsmith_core::Backend;

/// The line of a key of an operator's entry, as `file:line`.
pub fn of_key(checked: &Checked, op: &Op, key: &str) -> Option<String> {
    let file = checked.sources.file(op.entry.source);
    let entry = checked.sources.slice(op.entry);
    let place = entry.match_indices(key).map(|(place, _)| place).find(|&place| {
        let before = entry[..place].chars().next_back();
        entry[place + key.len()..].starts_with(':') && before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    })?;
    let (line, _) = file.line_column(op.entry.start as usize + place);
    Some(format!("{}:{line}", file.path()))
}

/// The documentation of a function for a device, up to its errors, in one line.
pub fn documentation(kernel: &Kernel, sources: &mut CodePlaces) -> Option<String> {
    let KernelSource::Rust { path, .. } = &kernel.source else { return None };
    if kernel.backend == Backend::Cpu {
        return None;
    }
    let whole = sources.kernel_documentation(path, kernel.backend)?;
    let text = whole.split("# Errors").next().unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}
