//! `opsmith fmt`, run as a process: files, exit status, and untouched files.

mod support;

use std::path::PathBuf;

use support::opsmith;

/// A file in a separate folder, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("opsmith-cli-fmt-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("spec.yaml");
        std::fs::write(&file, text).unwrap();
        Scratch(file)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed stays among the temporary files.
        _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

const UNTIDY: &str =
    "edition: 1\nops:\n- doc: Twice.   # a comment\n  func: 'twice(Tensor self) -> Tensor'\n";
const TIDY: &str = "edition: 1\n\nops:\n- func: twice(Tensor self) -> Tensor\n  doc: Twice.  # a comment\n";

#[test]
fn the_specs_of_the_repository_have_their_form() {
    let specs = ["ops.yaml", "examples/custom_op/ops.yaml", "tests/fixture/spec.yaml"];
    opsmith(&[&["fmt", "--check"], &specs[..]].concat()).assert(0, "", "");
}

#[test]
fn a_file_is_rewritten_and_nothing_else_is_left_behind() {
    let file = Scratch::new("rewrite", UNTIDY);
    opsmith(&["fmt", file.path()]).assert(0, "", "");
    assert_eq!(file.text(), TIDY);
    assert_eq!(std::fs::read_dir(file.0.parent().unwrap()).unwrap().count(), 1);
    opsmith(&["fmt", "--check", file.path()]).assert(0, "", "");
}

#[test]
fn included_files_are_rewritten_too() {
    let file = Scratch::new("includes", "edition: 1\ninclude: more.yaml\n");
    let more = file.0.parent().unwrap().join("more.yaml");
    std::fs::write(&more, UNTIDY).unwrap();
    let checked = opsmith(&["fmt", "--check", file.path()]);
    assert!(
        checked.status == Some(1) && checked.stdout.contains("more.yaml:2: not in"),
        "{}",
        checked.stdout
    );
    opsmith(&["fmt", file.path()]).assert(0, "", "");
    assert_eq!(std::fs::read_to_string(&more).unwrap(), TIDY);
}

#[test]
fn check_changes_nothing_and_names_the_cure() {
    let file = Scratch::new("check", UNTIDY);
    let path = file.path();
    let message = format!("{path}:2: not in the canonical form; `opsmith fmt {path}` rewrites it\n");
    opsmith(&["fmt", "--check", path]).assert(1, &message, "");
    assert_eq!(file.text(), UNTIDY);
}

#[test]
fn a_file_with_mistakes_is_left_alone() {
    let text = "edition: 1\nops:\n- func: f(Tensor a) -> Tensor\n  derivitives: {a: grad}\n";
    let file = Scratch::new("mistakes", text);
    let run = opsmith(&["fmt", file.path()]);
    run.assert_parts(&[
        "error[E02",
        "`derivitives`",
        "did you mean `derivatives`?",
        "left alone, because it has mistakes\n",
    ]);
    assert_eq!(run.status, Some(1));
    assert_eq!(file.text(), text);
}

#[test]
fn a_file_that_is_not_there() {
    let run = opsmith(&["fmt", "nowhere.yaml"]);
    assert_eq!(
        (run.status, run.stderr.as_str()),
        (Some(2), "error: cannot read nowhere.yaml: No such file or directory (os error 2)\n")
    );
}
