//! A check that keeps parts of the last one has the same findings as a check from the start, after any edit.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use opsmith_codegen::Config;
use opsmith_codegen::diagnostics::render;
use opsmith_codegen::pipeline::{Checked, Kept, check_again};

/// The texts of an editor.
type Texts = HashMap<PathBuf, String>;

fn stock() -> (Config, Texts) {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is a folder of the workspace");
    let config = Config::stock(root.join("ops.yaml"));
    let open = |path: &Path| std::fs::read(path);
    let checked = check_again(&config, &open, &mut Kept::default()).expect("the stock spec is there");
    let read = |path: &PathBuf| (path.clone(), std::fs::read_to_string(path).expect("it was just read"));
    let texts = checked.files.iter().map(read).collect();
    (config, texts)
}

fn check(config: &Config, texts: &Texts, kept: &mut Kept) -> Checked {
    let open = |path: &Path| match texts.get(path) {
        Some(text) => Ok(text.clone().into_bytes()),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    check_again(config, &open, kept).expect("every file is there")
}

/// All that a check finds, as text: messages and, without errors, the model.
fn findings(checked: &Checked) -> String {
    let messages: Vec<String> =
        checked.diagnostics.sorted().map(|found| render(&checked.sources, found, false)).collect();
    let operators: Vec<String> = checked.model.ops.iter().map(|op| format!("{op:?}")).collect();
    format!("{}\n{}\n{:?}", messages.join("\n"), operators.join("\n"), checked.model.functions)
}

/// Edits a file and compares both checks.
#[track_caller]
fn assert_same_after(config: &Config, texts: &mut Texts, kept: &mut Kept, edit: (&str, &str, &str)) {
    let (file, old, new) = edit;
    let text = texts.iter_mut().find(|(path, _)| path.ends_with(file)).expect("the file is in the spec").1;
    assert!(text.contains(old), "{file} has no `{old}`");
    *text = text.replacen(old, new, 1);
    let (again, fresh) = (check(config, texts, kept), check(config, texts, &mut Kept::default()));
    let (again, fresh) = (findings(&again), findings(&fresh));
    let differs = again.lines().zip(fresh.lines()).find(|(again, fresh)| again != fresh);
    assert!(again == fresh, "after {edit:?}: {differs:?}");
}

#[test]
fn edits_one_after_another() {
    let (config, mut texts) = stock();
    let mut kept = Kept::default();
    check(&config, &texts, &mut kept);
    let edits = [
        // A formula with a mistake, another one beside it, and both mended in turn.
        ("ops/reductions.yaml", "self: grad.expand(self.sizes())", "self: grad.expand(self.size())"),
        ("ops/losses.yaml", "decompose:", "decompose: 1 +"),
        ("ops/reductions.yaml", "self: grad.expand(self.size())", "self: grad.expand(self.sizes())"),
        ("ops/losses.yaml", "decompose: 1 +", "decompose:"),
        // A signature that others call: every body depends on it.
        ("ops/reductions.yaml", "- func: sum(Tensor self,", "- func: summe(Tensor self,"),
        ("ops/reductions.yaml", "- func: summe(Tensor self,", "- func: sum(Tensor self,"),
        // An entry with a mistake in its head, so that it is missing.
        ("ops/reductions.yaml", "- func: amax(Tensor self,", "- func: amax(Tensr self,"),
        ("ops/reductions.yaml", "- func: amax(Tensr self,", "- func: amax(Tensor self,"),
        // Entries that come and go, so that others have other numbers; one has a Rust operator, one is another name.
        ("ops/reductions.yaml", "- func: mean(Tensor self,", "- func: mean(Tensor sel,"),
        ("ops/reductions.yaml", "- func: mean(Tensor sel,", "- func: mean(Tensor self,"),
        ("ops/comparison.yaml", "  operator: \"<\"", "  operator: \"<=\""),
        ("ops/comparison.yaml", "  operator: \"<=\"", "  operator: \"<\""),
        (
            "ops/elementary.yaml",
            "- func: ",
            "- func: first(Tensor self) -> Tensor\n  pointwise: self\n- func: ",
        ),
        ("ops/elementary.yaml", "- func: first(Tensor self) -> Tensor\n  pointwise: self\n", ""),
        ("ops/arrangement.yaml", "  alias_of: transpose.int\n", "  alias_of: transpose\n"),
        ("ops/arrangement.yaml", "  alias_of: transpose\n", "  alias_of: transpose.int\n"),
        // All places behind it move.
        ("ops/elementary.yaml", "\nops:\n", "\n# A comment.\nops:\n"),
        // A scalar function, and a key whose presence has an effect on forms.
        ("ops/functions.yaml", "{func: exp(x),", "{func: expo(x),"),
        ("ops/functions.yaml", "{func: expo(x),", "{func: exp(x),"),
        ("ops/elementary.yaml", "  pointwise:", "  decompose:"),
        ("ops/elementary.yaml", "  decompose:", "  pointwise:"),
        // No YAML at all, then a file that is not included any more.
        ("ops/views.yaml", "edition: 1", "edition: [1"),
        ("ops/views.yaml", "edition: [1", "edition: 1"),
        ("ops.yaml", "- ops/programs.yaml\n", ""),
    ];
    for edit in edits {
        assert_same_after(&config, &mut texts, &mut kept, edit);
    }
}

#[test]
fn while_a_file_is_no_yaml_only_that_is_said() {
    let (config, mut texts) = stock();
    let text = texts.iter_mut().find(|(path, _)| path.ends_with("ops/views.yaml")).expect("it is included").1;
    *text = text.replacen("edition: 1", "edition: [1", 1);
    let checked = check(&config, &texts, &mut Kept::default());
    assert_eq!((checked.unparsed.len(), checked.diagnostics.error_count()), (1, 1));
    assert!(checked.sources.file(checked.unparsed[0]).path().ends_with("ops/views.yaml"));
}
