//! Packages: the output of `cargo package` for each crate is enough to build it, without the repository.
//!
//! A folder with the packages and their dependencies replaces the registry; a crate made by `opsmith init` builds from
//! that, and so does one that depends on the repository by git.

#[allow(dead_code, reason = "what a run printed is not compared as a whole here")]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::opsmith;

/// The crates that users depend on or install.
const PUBLISHED: [&str; 21] = [
    "opsmith-core",
    "opsmith-codegen",
    "opsmith-tools",
    "opsmith-runtime",
    "opsmith-graph",
    "opsmith-onnx",
    "opsmith-programs",
    "opsmith-abi",
    "opsmith-aot",
    "opsmith-cuda",
    "opsmith-profile",
    "opsmith-kernels",
    "opsmith-layer-tables",
    "opsmith-elementwise-tables",
    "opsmith-numeric-tables",
    "opsmith-tensor-tables",
    "opsmith",
    "opsmith-nn",
    "opsmith-testing",
    "opsmith-cli",
    "opsmith-run",
];

/// Profile of users' crates: without debug information, which takes disk.
const PROFILE: &str = "\n[profile.dev]\ndebug = false\nincremental = false\n";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed stays among the temporary files of tests.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a command that must succeed.
#[track_caller]
fn run(folder: &Path, program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).envs(variables.iter().copied());
    let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}\n{stdout}{stderr}");
    stdout
}

#[track_caller]
fn cargo(folder: &Path, arguments: &[&str], target: &str) -> String {
    run(folder, env!("CARGO"), arguments, &[("CARGO_TARGET_DIR", target)])
}

/// The manifests of the workspace that allow publication.
fn published() -> Vec<String> {
    let text = run(root(), env!("CARGO"), &["metadata", "--format-version=1", "--no-deps"], &[]);
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .filter(|package| package["publish"].is_null())
        .map(|package| package["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Every crate is either a package that is tested here, or declares that it is not published.
#[test]
fn every_crate_is_published_or_says_not() {
    let (mut found, mut expected) = (published(), PUBLISHED.map(str::to_owned));
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// A folder in place of the registry: all dependencies of the workspace, and the packages.
fn registry(scratch: &Scratch) -> PathBuf {
    let folder = scratch.0.join("registry");
    let vendor = ["vendor", "--quiet", "--locked", "--versioned-dirs", &scratch.path("registry")];
    cargo(root(), &vendor, &scratch.path("target"));
    let mut package = vec!["package", "--quiet", "--no-verify", "--allow-dirty"];
    PUBLISHED.iter().for_each(|name| package.extend(["-p", name]));
    cargo(root(), &package, &scratch.path("made"));
    let version = env!("CARGO_PKG_VERSION");
    for name in PUBLISHED {
        let file = scratch.path(&format!("made/package/{name}-{version}.crate"));
        run(&folder, "tar", &["xzf", &file], &[]);
        let sums = folder.join(format!("{name}-{version}/.cargo-checksum.json"));
        let sum = run(&folder, "sha256sum", &[&file], &[]);
        let sum = sum.split_whitespace().next().unwrap();
        std::fs::write(sums, format!(r#"{{"files":{{}},"package":"{sum}"}}"#)).unwrap();
    }
    folder
}

fn configuration(registry: &Path) -> String {
    format!(
        "[source.crates-io]\nreplace-with = \"packages\"\n[source.packages]\ndirectory = {:?}\n",
        registry.display().to_string()
    )
}

/// A new user's crate with the given dependencies.
fn user(scratch: &Scratch, name: &str, dependency: impl Fn(&str) -> String) {
    let folder = scratch.path(name);
    let made = opsmith(&["init", &folder]);
    made.assert_parts(&["made the crate", "next: cd "]);
    assert_eq!((made.status, &*made.stderr), (Some(0), ""));
    let manifest = std::fs::read_to_string(scratch.0.join(name).join("Cargo.toml")).unwrap();
    let lines = manifest.lines().map(|line| match line.split_once(" = ") {
        Some((key, _)) if key.starts_with("opsmith") => format!("{key} = {}", dependency(key)),
        _ => line.to_owned(),
    });
    let manifest = lines.collect::<Vec<_>>().join("\n");
    scratch.write(&format!("{name}/Cargo.toml"), &format!("{manifest}\n{PROFILE}"));
}

/// The files tracked by git, as a repository of one commit.
fn repository(scratch: &Scratch) -> String {
    let folder = scratch.path("repository");
    std::fs::create_dir_all(&folder).unwrap();
    let files = run(root(), "git", &["ls-files", "-z"], &[]);
    let list = scratch.0.join("files");
    std::fs::write(&list, files).unwrap();
    let archive = scratch.path("files.tar");
    run(root(), "tar", &["cf", &archive, "--null", "-T", &list.display().to_string()], &[]);
    let folder = Path::new(&folder);
    run(folder, "tar", &["xf", &archive], &[]);
    run(folder, "git", &["init", "--quiet"], &[]);
    run(folder, "git", &["add", "--all", "--force"], &[]);
    let author = ["-c", "user.name=tests", "-c", "user.email=tests@localhost"];
    run(folder, "git", &[&author[..], &["commit", "--quiet", "-m", "all"]].concat(), &[]);
    folder.display().to_string()
}

#[test]
#[ignore = "compiles the library from its packages, and again from a repository: minutes; `.ci/run` calls it"]
fn a_crate_builds_from_packages_alone() {
    let scratch = Scratch::new();
    let registry = registry(&scratch);
    scratch.write(".cargo/config.toml", &configuration(&registry));
    let target = scratch.path("target");

    user(&scratch, "of-packages", |_| format!("\"{}\"", env!("CARGO_PKG_VERSION")));
    let tests = cargo(&scratch.0.join("of-packages"), &["test", "--offline"], &target);
    assert!(tests.contains("test result: ok. 15 passed; 0 failed"), "{tests}");
    let tree = cargo(&scratch.0.join("of-packages"), &["tree", "--offline", "--prefix", "none"], &target);
    // Only the crate itself comes from a folder.
    assert!(tree.lines().skip(1).all(|line| !line.contains("(/")), "{tree}");

    // The command is a package, too.
    let command = registry.join(format!("opsmith-cli-{}", env!("CARGO_PKG_VERSION")));
    // It lies inside the folder of the workspace, of which it is no member.
    let manifest = command.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("{text}\n[workspace]\n")).unwrap();
    cargo(&command, &["check", "--offline"], &target);

    let repository = repository(&scratch);
    user(&scratch, "of-git", |_| format!("{{ git = \"file://{repository}\" }}"));
    cargo(&scratch.0.join("of-git"), &["check", "--tests"], &target);
}
