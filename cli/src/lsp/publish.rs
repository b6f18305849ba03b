//! The diagnostics of a spec, file by file.
//!
//! In: a check. Out: a list for each file that has mistakes, had some, or is open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gen_lsp_types::{Diagnostic, PublishDiagnosticsParams};
use opsmith_codegen::diagnostics::SourceId;
use opsmith_codegen::pipeline::Checked;

use super::convert::Convert;
use super::paths::identity;
use super::position::Lines;
use super::specs::{Spec, Specs};

/// The lists of a spec. Those of files of another open spec are left to that.
pub fn lists(specs: &mut Specs, root: &Path, convert: Convert<'_>) -> Vec<PublishDiagnosticsParams> {
    let Some(checked) = specs.get_mut(root).and_then(|spec| spec.checked()) else { return Vec::new() };
    let mut by_file: BTreeMap<PathBuf, Vec<Diagnostic>> = of_files(checked, convert);
    by_file.retain(|file, _| !specs.is_of_another(root, file));
    let Some(spec) = specs.get_mut(root) else { return Vec::new() };
    for file in std::mem::take(&mut spec.published) {
        by_file.entry(file).or_default();
    }
    let wrong = by_file.iter().filter(|(_, list)| !list.is_empty());
    spec.published = wrong.map(|(file, _)| file.clone()).collect();
    by_file.into_iter().map(|(file, list)| of_file(&file, list, convert)).collect()
}

/// Empty lists for the files of a spec that is closed.
pub fn cleared(spec: &Spec, convert: Convert<'_>) -> Vec<PublishDiagnosticsParams> {
    spec.published.iter().map(|file| of_file(file, Vec::new(), convert)).collect()
}

fn of_file(file: &Path, diagnostics: Vec<Diagnostic>, convert: Convert<'_>) -> PublishDiagnosticsParams {
    let version = convert.documents.get(file).map(|open| open.version);
    PublishDiagnosticsParams { uri: convert.uri(file), version, diagnostics }
}

/// The diagnostics of each file that has some or is open.
fn of_files(checked: &Checked, convert: Convert<'_>) -> BTreeMap<PathBuf, Vec<Diagnostic>> {
    let mut by_file: BTreeMap<PathBuf, Vec<Diagnostic>> = BTreeMap::new();
    let mut last: Option<(SourceId, PathBuf, Lines<'_>)> = None;
    for found in checked.diagnostics.sorted() {
        let source = found.primary.span.source;
        // They are sorted by file, so the lines of each are found once.
        if last.as_ref().is_none_or(|(known, ..)| *known != source) {
            let Some(file) = opsmith_tools::editor::path_of(checked, source) else { continue };
            let lines = Lines::new(checked.sources.text(source), convert.encoding);
            last = Some((source, identity(file), lines));
        }
        if let Some((_, file, lines)) = &last {
            by_file.entry(file.clone()).or_default().push(convert.diagnostic(checked, found, lines));
        }
    }
    for file in &checked.files {
        if convert.documents.get(file).is_some() {
            by_file.entry(identity(file)).or_default();
        }
    }
    by_file
}
