//! Locations of keys in a spec: file and line.

use opsmith_codegen::model::Op;
use opsmith_codegen::pipeline::Checked;

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
