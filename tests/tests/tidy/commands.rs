//! Commands of scripts and tests: one choice of packages, so that no command repeats another one's builds, and
//! downloads where something is missing.

use std::fs;

/// Builds that share nothing with the others by intent: other flags, another target folder, fewer features. The library of
/// the Python package has no name among targets; `.ci/run` refuses a build of it that compiles others again.
const OWN_BUILD: [&str; 5] =
    ["--target-dir", "--no-default-features", "RUSTFLAGS", "--features", "--release -p opsmith-python"];

/// The lines of a script, with those that a backslash continues joined.
fn commands(text: &str) -> Vec<String> {
    text.replace("\\\n", " ").lines().map(str::to_owned).collect()
}

/// Cargo unifies the features of the packages that a command names: with `-p` they are others than without,
/// and everything that has them is compiled once more.
fn chooses_packages(command: &str) -> bool {
    let mut words = command.split_whitespace().skip_while(|word| !word.ends_with("cargo")).skip(1);
    let builds = words.next().is_some_and(|word| ["build", "run", "test"].contains(&word));
    let own = OWN_BUILD.iter().any(|part| command.contains(part));
    builds && !own && words.take_while(|word| *word != "--").any(|word| word == "-p" || word == "--package")
}

/// Commands of scripts and of `.ci/run` with a defect, each with its file.
fn commands_that(have_defect: impl Fn(&str) -> bool) -> Vec<String> {
    let root = super::root();
    let scripts = fs::read_dir(root.join("scripts")).unwrap().map(|entry| entry.unwrap().path());
    let mut found = Vec::new();
    for path in scripts.filter(|path| path.is_file()).chain([root.join(".ci/run")]) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let name = path.strip_prefix(&root).unwrap().display();
        let defective = commands(&text).into_iter().filter(|command| have_defect(command));
        found.extend(defective.map(|command| format!("{name}: {}", command.trim())));
    }
    found
}

#[test]
fn commands_share_one_build() {
    super::assert_none(
        commands_that(chooses_packages),
        "a command names the target (`--test`, `--bin`, `--example`) and no package",
    );
}

/// Tests and development have profiles of their own: without a choice, a command that compiles has the other profile than the
/// tests, and everything is compiled once more. `rebuild.sh` measures development's.
fn has_another_profile(command: &str) -> bool {
    let mut words = command.split_whitespace().skip_while(|word| !word.ends_with("cargo")).skip(1);
    let compiles =
        words.next().is_some_and(|word| ["build", "run", "clippy", "doc", "check"].contains(&word));
    let own = OWN_BUILD.iter().any(|part| command.contains(part));
    let chosen = |word: &str| word == "--release" || word.starts_with("--profile");
    compiles && !own && !words.take_while(|word| *word != "--").any(chosen)
}

#[test]
fn commands_of_tests_have_their_profile() {
    let mut offenders = commands_that(has_another_profile);
    offenders.retain(|command| !command.starts_with("scripts/rebuild.sh"));
    super::assert_none(
        offenders,
        "a command that compiles beside tests has `--profile test`, or `--release`",
    );
    assert!(has_another_profile("X=1 cargo run --quiet --bin opsmith -- --release"));
    assert!(!has_another_profile("cargo run --profile test --bin opsmith"));
}

#[test]
fn a_command_that_chooses_packages_is_found() {
    assert!(chooses_packages("X=1 cargo test --quiet -p opsmith-tests --test cuda"));
    assert!(!chooses_packages("cargo test --workspace --test cuda -- -p x"));
    assert!(!chooses_packages("cargo test -p opsmith-runtime --lib --target-dir target/loom"));
    assert!(!chooses_packages("python -m mypy -p opsmith"));
}

/// The downloads of earlier builds differ by machine and by their features: without a network, a test fails where no other
/// build had the same packages. The registry of the test of packages is a folder.
#[test]
fn no_test_forbids_downloads() {
    let words = ["--off".to_owned() + "line", "CARGO_NET_OFF".to_owned() + "LINE"];
    let files = super::rust_files(".").into_iter().filter(|(name, _)| name != "cli/tests/packages.rs");
    let offenders = files.filter(|(_, text)| words.iter().any(|word| text.contains(word.as_str())));
    let names = offenders.map(|(name, _)| name).collect();
    super::assert_none(names, "cargo downloads what the crate of a test needs");
}
