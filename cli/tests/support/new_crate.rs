//! A crate that `opsmith init` made, in a folder that is removed at the end, and cargo in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::support::{Run, opsmith};

/// A folder that is removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("opsmith-{name}-{}", std::process::id()));
        // An interrupted run may have left one.
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    pub fn path(&self, inside: &str) -> String {
        self.0.join(inside).display().to_string()
    }

    pub fn read(&self, inside: &str) -> String {
        std::fs::read_to_string(self.0.join(inside)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed stays among the temporary files.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn init(scratch: &Scratch) -> String {
    let folder = scratch.path("my-ops");
    let run = opsmith(&["init", &folder]);
    run.assert_parts(&[
        "made the crate `my-ops` in ",
        "  Cargo.toml\n",
        "  tests/ops.rs\n",
        "  tests/checks.rs\n",
        "  tests/allocations.rs\n",
        "next: cd ",
    ]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    folder
}

/// Runs cargo in the new crate, with the workspace's compiled dependencies.
pub fn cargo(folder: &str, arguments: &[&str]) -> Run {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_TERM_COLOR", "never")
        .env("CARGO_TARGET_DIR", target())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Run { stdout: text(output.stdout), stderr: text(output.stderr), status: output.status.code() }
}

/// The folder that the command under test was built in.
pub fn target() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_opsmith")).ancestors().nth(2).unwrap().to_owned()
}

/// A new crate with the workspace's versions and profiles, so that its compiled crates are used again.
pub fn init_with_versions(scratch: &Scratch) -> String {
    let folder = init(scratch);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::copy(root.join("Cargo.lock"), Path::new(&folder).join("Cargo.lock")).unwrap();
    let workspace = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let profiles = &workspace[workspace.find("[profile.dev]").unwrap()..];
    let manifest = scratch.read("my-ops/Cargo.toml");
    std::fs::write(Path::new(&folder).join("Cargo.toml"), format!("{manifest}\n{profiles}")).unwrap();
    folder
}

/// `opsmith profile compare` with these arguments, in the profile that tests have compiled.
pub fn compare(arguments: &[&str], folders: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opsmith"));
    command.args(["profile", "compare"]).args(arguments);
    for folder in folders {
        command.args(["--in", folder]);
    }
    command.args(["--cargo-profile", "dev"]).env("CARGO_TARGET_DIR", target());
    command.output().unwrap()
}

/// The words of each line that it prints, and the picture that it draws.
pub fn compared(scratch: &Scratch, arguments: &[&str], folders: &[&str]) -> (Vec<Vec<String>>, String) {
    let picture = scratch.path("curves.svg");
    let output = compare(&[arguments, &["-o", &picture]].concat(), folders);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    println!("{text}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    (text.lines().map(words).collect(), scratch.read("curves.svg"))
}

/// Gives a new crate another version. Cargo takes crates of one name and version for one, if both are compiled in one folder, and links
/// the library of either with the tests of the other. Before its first build a crate is not in its own lock file.
pub fn set_version(folder: &str, version: &str) {
    let replace = |file: &str, old: &str, new: &str| {
        let path = Path::new(folder).join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text.replacen(old, new, 1)).unwrap();
    };
    replace("Cargo.toml", "version = \"0.1.0\"", &format!("version = \"{version}\""));
    let own = "name = \"my-ops\"\nversion = ";
    replace("Cargo.lock", &format!("{own}\"0.1.0\""), &format!("{own}\"{version}\""));
}
