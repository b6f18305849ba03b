//! Every folder of `bad/` holds a spec with mistakes and the full text a user sees for it.
//!
//! `OPSMITH_BLESS=1 cargo test -p opsmith-codegen --test bad` rewrites the texts; read the
//! difference as a user would: what is wrong, where, and what to do?

use std::fs;
use std::path::{Path, PathBuf};

use opsmith_codegen::check_text;
use opsmith_codegen::diagnostics::{render, summary};

/// What a user sees, and whether the spec was refused.
fn check(text: &str) -> (String, bool) {
    let (sources, diagnostics) = check_text("spec.yaml", text);
    let mut shown = String::new();
    for diagnostic in diagnostics.sorted() {
        shown.push_str(&render(&sources, diagnostic, false));
        shown.push_str("\n\n");
    }
    shown.push_str(&summary(&diagnostics));
    shown.push('\n');
    (shown, diagnostics.has_errors())
}

fn folders() -> Vec<PathBuf> {
    let bad = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let entries = fs::read_dir(&bad).expect("the folder tests/bad is part of the crate");
    let mut folders: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[test]
fn messages_are_as_recorded() {
    let bless = std::env::var_os("OPSMITH_BLESS").is_some();
    let mut failures = Vec::new();
    let folders = folders();
    assert!(folders.len() >= 40, "only {} bad specs were found", folders.len());
    for folder in &folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(folder.join("spec.yaml")).expect("a bad spec is readable text");
        let (shown, refused) = check(&text);
        assert!(refused, "{name}: the spec was accepted\n{shown}");
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
fn every_message_has_a_place_and_advice() {
    for folder in folders() {
        let text = fs::read_to_string(folder.join("spec.yaml")).expect("a bad spec is readable text");
        let (sources, diagnostics) = check_text("spec.yaml", &text);
        for diagnostic in diagnostics.sorted() {
            let shown = render(&sources, diagnostic, false);
            assert!(!diagnostic.primary.text.is_empty(), "no label: {shown}");
            assert!(diagnostic.help.is_some() || diagnostic.code == "E0030", "no help:\n{shown}");
        }
    }
}
