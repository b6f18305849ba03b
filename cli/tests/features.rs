//! Features of `opsmith`: the dependencies of each choice, and programs without any.
//!
//! In: the workspace. Out: dependency trees from `cargo tree`, and a crate with operators of its own that is built
//! without default features.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The crates that only features need, each with those features.
const OPTIONAL: [(&str, &[&str]); 12] = [
    ("opsmith-graph", &["graph"]),
    ("safetensors", &["graph"]),
    ("serde_json", &["graph", "aot", "cuda"]),
    ("sha2", &["graph", "aot", "cuda"]),
    ("opsmith-aot", &["aot"]),
    ("opsmith-cuda", &["cuda"]),
    ("ruzstd", &["cuda"]),
    ("cudarc", &["aot"]),
    ("libloading", &["aot", "cuda"]),
    ("object", &["aot"]),
    ("cc", &["aot"]),
    ("ndarray", &["ndarray"]),
];

const MANIFEST: &str = "[package]
name = \"without-features\"
version = \"0.1.0\"
edition = \"2024\"

[workspace]

[dependencies]
opsmith = { path = \"{root}/generated\", default-features = false }

[build-dependencies]
opsmith-codegen = { path = \"{root}/codegen\" }

";

const SPEC: &str = "edition: 1

ops:
- func: squared(Tensor self) -> Tensor
  doc: The square of each element.
  pointwise: self * self
";

const CUSTOM: &str = "
- func: loaded(Tensor self) -> Tensor
  doc: A copy, by a kernel that is compiled while the program runs.
  shape: follow(self)
  dtype: follow(self)
  dispatch: {CPU: \"aot:copy.cc:Copy\"}
  derivatives: {self: non_differentiable}
";

const OF_A_FAMILY: &str = "
- func: squared_part(Tensor self) -> Tensor
  doc: The square of the positive part.
  decompose: relu(self) * relu(self)
";

const KERNEL: &str = "#include \"custom_aot_extra.h\"
extern \"C\" int Copy(int, void **, int *, int64_t **, const char **, void *, void *) { return 1; }
";

const PROGRAM: &str = "//! Operators of its own, and those of the library.

pub mod kernels {}

opsmith::include_ops!();

fn main() -> opsmith::Result<()> {
    use opsmith::{Tensor, TensorOps};
    let x = Tensor::of(&[1.0f32, 2.0, 3.0]).requires_grad_(true)?;
    let y = x.squared()?.add(&x)?.sum()?;
    y.backward()?;
    println!(\"{y} {}\", x.grad().unwrap());
    Ok(())
}
";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn cargo(folder: &Path, arguments: &[&str]) -> Output {
    // Packages of features that nothing has built yet are downloaded.
    Command::new(env!("CARGO")).args(arguments).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The names of the packages that `opsmith` needs with these features, without its own build scripts.
fn dependencies(features: &str) -> Vec<String> {
    let edges = "normal,build,no-proc-macro";
    let arguments = ["tree", "-p", "opsmith", "--no-default-features", "--features", features, "-e", edges];
    let output =
        cargo(root(), &[&arguments[..], &["--prefix", "none", "--prune", "opsmith-codegen"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn a_build_without_features_has_few_dependencies() {
    for chosen in [&[][..], &["graph"], &["aot"], &["cuda"], &["graph", "aot"], &["ndarray"]] {
        let found = dependencies(&chosen.join(","));
        for (name, features) in OPTIONAL {
            let expected = features.iter().any(|feature| chosen.contains(feature));
            assert_eq!(
                found.iter().any(|found| found == name),
                expected,
                "{name} with the features {chosen:?}"
            );
        }
    }
}

/// A crate with operators of its own, removed at the end.
struct User(PathBuf);

impl User {
    fn new() -> User {
        let folder = std::env::temp_dir().join(format!("opsmith-features-{}", std::process::id()));
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("src")).unwrap();
        let user = User(folder);
        // The workspace's profiles and versions, so that its compiled crates are used again.
        let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let profiles = &workspace[workspace.find("[profile.dev]").unwrap()..];
        user.write("Cargo.toml", &(MANIFEST.replace("{root}", &root().display().to_string()) + profiles));
        std::fs::copy(root().join("Cargo.lock"), user.0.join("Cargo.lock")).unwrap();
        user.write("build.rs", "fn main() {\n    opsmith_codegen::build(\"ops.yaml\");\n}\n");
        user.write("copy.cc", KERNEL);
        user.write("src/main.rs", PROGRAM);
        user
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.join(file), text).unwrap();
    }

    /// Turns features of `opsmith` on.
    fn features(&self, features: &str) {
        let manifest = std::fs::read_to_string(self.0.join("Cargo.toml")).unwrap();
        let with = format!("default-features = false, features = [{features}]");
        self.write("Cargo.toml", &manifest.replacen("default-features = false", &with, 1));
    }

    fn run(&self) -> Output {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        cargo(
            &self.0,
            &["run", "--profile", "test", "--quiet", "--target-dir", &target.display().to_string()],
        )
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // A folder that cannot be removed stays among the temporary files.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
#[ignore = "compiles the library without its features: minutes; `.ci/run` calls it"]
fn a_program_without_features_runs() {
    let user = User::new();
    user.write("ops.yaml", SPEC);
    let run = user.run();
    assert_eq!(text(&run.stdout), "20. [3., 5., 7.]\n", "{}", text(&run.stderr));

    // A kernel without a loader in this build is rejected at build time, with advice.
    user.write("ops.yaml", &format!("{SPEC}{CUSTOM}"));
    let run = user.run();
    let errors = text(&run.stderr);
    assert!(!run.status.success(), "{errors}");
    assert!(
        errors.contains("the kernel `Copy` in copy.cc is compiled while the program runs")
            && errors.contains("add \"aot\" to its features in Cargo.toml"),
        "{errors}"
    );

    // An operator of a family whose feature is off is not there, and with the feature it is.
    user.write("ops.yaml", &format!("{SPEC}{OF_A_FAMILY}"));
    let errors = text(&user.run().stderr);
    assert!(
        errors.contains("there is no operator `relu`") && errors.contains("ops/activation.yaml (nn, random)"),
        "{errors}"
    );
    user.features("\"random\"");
    let run = user.run();
    assert_eq!(text(&run.stdout), "20. [3., 5., 7.]\n", "{}", text(&run.stderr));
}
