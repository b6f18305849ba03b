//! `opsmith diff`, run as a process: formats, exit status, revisions.

mod support;

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use support::opsmith;

/// Files in a separate folder, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("opsmith-cli-diff-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
        let output =
            Command::new("git").current_dir(&self.0).args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed stays among the temporary files.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

const OLD: &str = "\
edition: 1
ops:
- func: scale(Tensor self, *, float by=2.0) -> Tensor
  doc: Multiplied.
  dtype: promote_float(self)
  pointwise: self * by
  derivatives: {self: 'scale(grad, by = by)'}
";

fn new() -> String {
    let changed = OLD.replace("by=2.0", "by=3.0").replace("Multiplied.", "Multiplied by a number.");
    changed
        + "- func: other(Tensor self) -> Tensor\n  dtype: promote_float(self)\n  pointwise: self + 1\n  derivatives: {self: grad}\n"
}

#[test]
fn classes_migration_and_verdict() {
    let scratch = Scratch::new("text");
    let (old, new) = (scratch.write("old.yaml", OLD), scratch.write("new.yaml", &new()));
    opsmith(&["diff", &old, &new, "--version", "0.3.1"]).assert(
        1,
        "\
breaking
  scale: `by` was 2.0 by default and is 3.0 now [default-changed]
    instead: write `by=2.0` where it was left out

additive
  other: `other(Tensor self) -> Tensor` is new [operator-added]

internal
  scale: its documentation is different [documentation]

1 breaking, 1 additive, 1 internal; after 0.3.1 comes 0.4.0
",
        "",
    );
    let allowed = |level: &str| opsmith(&["diff", &old, &new, "--allow", level]).status;
    assert_eq!(
        [allowed("breaking"), allowed("additive"), allowed("internal"), allowed("nothing")],
        [Some(0), Some(1), Some(1), Some(1)]
    );
    opsmith(&["diff", &old, &old, "--allow", "nothing"]).assert(0, "nothing changed\n", "");
}

#[test]
fn markdown_and_json() {
    let scratch = Scratch::new("formats");
    let (old, new) = (scratch.write("old.yaml", OLD), scratch.write("new.yaml", &new()));
    opsmith(&["diff", &old, &new, "--format", "markdown", "--version", "1.3.1"]).assert_parts(&[
        "## Breaking\n\n- `scale`: `by` was 2.0",
        "  - Instead: write `by=2.0` where it was left out.\n",
        "## Additive\n",
        "after 1.3.1 comes 2.0.0\n",
    ]);
    let run = opsmith(&["diff", &old, &new, "--format", "json", "--version", "1.3.1"]);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&value["worst"], &value["next_version"]), (&json!("breaking"), &json!("2.0.0")));
    assert_eq!(
        value["changes"][0],
        json!({
            "class": "breaking", "rule": "default-changed", "name": "scale",
            "what": "`by` was 2.0 by default and is 3.0 now", "migration": "write `by=2.0` where it was left out",
        })
    );
    assert_eq!(run.status, Some(1));
}

#[test]
fn revisions() {
    let scratch = Scratch::new("git");
    let file = scratch.write("ops.yaml", OLD);
    scratch.git(&["init", "--quiet"]);
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "-m", "old"]);
    scratch.write("ops.yaml", &new());
    let run = opsmith(&["diff", "--git", "HEAD", &file]);
    run.assert_parts(&["default-changed", "operator-added"]);
    assert_eq!(run.status, Some(1));
    scratch.git(&["commit", "--quiet", "-am", "new"]);
    let both = opsmith(&["diff", &format!("HEAD~1:{file}"), &format!("HEAD:{file}")]);
    assert_eq!(both.stdout, run.stdout);
    opsmith(&["diff", "--git", "HEAD", &file]).assert(0, "nothing changed\n", "");
    let missing = opsmith(&["diff", "--git", "nowhere", &file]);
    assert_eq!(missing.status, Some(2));
    assert!(missing.stderr.starts_with("error: git has no nowhere:"), "{}", missing.stderr);
}

#[test]
fn the_stock_spec_and_wrong_usage() {
    opsmith(&["diff", "ops.yaml", "ops.yaml"]).assert(0, "nothing changed\n", "");
    let run = opsmith(&["diff", "ops.yaml"]);
    assert_eq!(run.status, Some(2));
    assert!(run.stderr.starts_with("error: name two specs"), "{}", run.stderr);
    let mistakes = opsmith(&["diff", "ops.yaml", "cli/tests/data/mistakes.yaml"]);
    assert_eq!(mistakes.status, Some(2));
    assert!(mistakes.stderr.contains("only specs without mistakes can be compared"), "{}", mistakes.stderr);
    opsmith(&["diff", "--rules"]).assert_parts(&[
        "breaking  operator-removed",
        "additive  operator-added",
        "internal  documentation",
    ]);
}

/// Each rule in the section of the changelog about the stock spec, with the names after it.
fn listed_changes(changelog: &str) -> Vec<(&str, Vec<&str>)> {
    let (_, rest) = changelog.split_once("that `opsmith diff` calls breaking\n").expect("the section");
    let section = rest.split("\n### ").next().unwrap();
    let quoted = |item| str::split(item, '`').skip(1).step_by(2).collect::<Vec<_>>();
    section.split("\n- ").skip(1).map(quoted).map(|words| (words[0], words[1..].to_vec())).collect()
}

#[test]
fn breaking_changes_of_the_stock_spec_are_in_the_changelog() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let scratch = Scratch::new("changelog");
    let packed = root.join("cli/tests/data/ops-of-2026-11-21.yaml.zst");
    let old = zstd::decode_all(std::fs::File::open(packed).unwrap()).unwrap();
    let old = scratch.write("ops.yaml", std::str::from_utf8(&old).unwrap());
    let now = root.join("ops.yaml");
    let diff: Value =
        serde_json::from_str(&opsmith(&["diff", "--format", "json", &old, now.to_str().unwrap()]).stdout)
            .unwrap();
    let changelog = std::fs::read_to_string(root.join("CHANGELOG.md")).unwrap();
    let listed = listed_changes(&changelog);
    let mut missing = Vec::new();
    let mut breaking = 0;
    for change in diff["changes"].as_array().unwrap().iter().filter(|change| change["class"] == "breaking") {
        breaking += 1;
        let (rule, name) = (change["rule"].as_str().unwrap(), change["name"].as_str().unwrap());
        if !listed.iter().any(|(of, names)| *of == rule && names.contains(&name)) {
            missing.push(format!("{rule}, {name}: {}", change["what"]));
        }
    }
    assert!(breaking > 100, "{breaking} changes");
    assert!(missing.is_empty(), "not in CHANGELOG.md:\n{}", missing.join("\n"));
}
