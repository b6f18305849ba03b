//! Every folder of `bad/` holds a spec with mistakes and the full text a user sees for it; every folder of
//! `warned/` one that is accepted with warnings.
//!
//! `OPSMITH_BLESS=1 cargo test -p opsmith-codegen --test bad` rewrites the texts; read the
//! difference as a user would: what is wrong, where, and what to do?

use std::fs;
use std::path::{Path, PathBuf};

use opsmith_codegen::Config;
use opsmith_codegen::diagnostics::{render, summary};
use opsmith_codegen::pipeline::{self, Checked};

fn checked(folder: &Path) -> Checked {
    // The name is what a user sees; the files that a spec includes lie beside it.
    pipeline::check(&Config::new(folder.join("spec.yaml"))).expect("a bad spec is readable text")
}

/// What a user sees, and whether the spec was refused.
fn check(folder: &Path) -> (String, bool) {
    let Checked { sources, diagnostics, .. } = checked(folder);
    let mut shown = String::new();
    for diagnostic in diagnostics.sorted() {
        shown.push_str(&render(&sources, diagnostic, false));
        shown.push_str("\n\n");
    }
    shown.push_str(&summary(&diagnostics));
    shown.push('\n');
    (shown, diagnostics.has_errors())
}

fn folders(kind: &str) -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(kind);
    let entries = fs::read_dir(&all).expect("the folder is part of the crate");
    let mut folders: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Compares what each spec of a kind shows with what is recorded.
fn as_recorded(kind: &str, at_least: usize, is_refused: bool) {
    let bless = std::env::var_os("OPSMITH_BLESS").is_some();
    let mut failures = Vec::new();
    let folders = folders(kind);
    assert!(folders.len() >= at_least, "only {} specs were found", folders.len());
    for folder in &folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let (shown, refused) = check(folder);
        assert_eq!(refused, is_refused, "{name}: refused is on the left\n{shown}");
        let recorded = folder.join("spec.stderr");
        if bless {
            fs::write(&recorded, &shown).expect("the recorded text can be written");
        } else if fs::read_to_string(&recorded).unwrap_or_default() != shown {
            failures.push(format!("---- {name} ----\n{shown}"));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} texts differ from their spec.stderr; if the new text is right, run\n    \
         OPSMITH_BLESS=1 cargo test -p opsmith-codegen --test bad\n\n{}",
        failures.len(),
        folders.len(),
        failures.join("\n")
    );
}

#[test]
fn messages_are_as_recorded() {
    as_recorded("bad", 120, true);
}

#[test]
fn warnings_are_as_recorded() {
    as_recorded("warned", 4, false);
}

#[test]
fn every_message_has_a_place_and_advice() {
    for folder in folders("bad").into_iter().chain(folders("warned")) {
        let Checked { sources, diagnostics, .. } = checked(&folder);
        for diagnostic in diagnostics.sorted() {
            let shown = render(&sources, diagnostic, false);
            assert!(!diagnostic.primary.text.is_empty(), "no label: {shown}");
            assert!(diagnostic.help.is_some() || diagnostic.code == "E0030", "no help:\n{shown}");
        }
    }
}
