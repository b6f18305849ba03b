//! `opsmith init --python`, run as a process: its files, and that the wheel made of them passes its own tests.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::opsmith;

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("opsmith-python-{name}-{}", std::process::id()));
        // An interrupted run may have left one.
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    fn path(&self, inside: &str) -> String {
        self.0.join(inside).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed stays among the temporary files.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn init(scratch: &Scratch) -> String {
    let folder = scratch.path("my-ops");
    let run = opsmith(&["init", "--python", &folder]);
    run.assert_parts(&[
        "made the package of Python `my-ops` in ",
        "  Cargo.toml\n",
        "  pyproject.toml\n",
        "  python/my_ops/__init__.py\n",
        "  tests/test_ops.py\n",
        "  python/my_ops/_operators.pyi\n",
        "next: cd ",
        "pip install '.[test]' && pytest\n",
    ]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    folder
}

#[test]
fn a_new_package_has_no_mistakes_and_its_form() {
    let scratch = Scratch::new("init");
    let folder = init(&scratch);
    let spec = format!("{folder}/ops.yaml");
    let checked = opsmith(&["check", "--builds-on", "ops.yaml", &spec]);
    checked.assert(0, &format!("{spec}: 3 operators, no mistakes\n"), "");
    opsmith(&["fmt", "--check", &spec]).assert(0, "", "");
    let read = |file: &str| std::fs::read_to_string(Path::new(&folder).join(file)).unwrap();
    let stub = read("python/my_ops/_operators.pyi");
    let place = |text: &str| stub.find(text).unwrap_or_else(|| panic!("{text} is not in the stub"));
    assert!(
        place("\n    def bell_curve(self, *, out: ") < place("\n    def bell_curve_(self) -> Tensor: ...")
    );
    assert!(place("\ndef baddbmm(") < place("\ndef mirror(input: TensorLike, *, out: "));
    assert!(!stub.contains("opsmith.stubs") && read("python/my_ops/_my_ops.pyi").contains("class Tensor("));
    // The package and its binding are one build, with one version of the interface to Python.
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(
        workspace.contains("pyo3 = { version = \"0.30\"") && read("Cargo.toml").contains("pyo3 = \"0.30\"")
    );
}

#[test]
fn names_that_no_package_can_have() {
    let scratch = Scratch::new("names");
    for name in ["1st", "_ops", "a b"] {
        let run = opsmith(&["init", "--python", &scratch.path("x"), "--name", name]);
        let expected = format!(
            "error: `{name}` cannot be the name of a package of Python; choose one with --name, such as my_ops\n"
        );
        run.assert(2, "", &expected);
    }
    assert!(!scratch.0.join("x").exists());
}

#[track_caller]
fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{text}{errors}");
    output
}

/// A package of `init --python` with an environment of Python for it.
struct Package {
    scratch: Scratch,
    folder: String,
    environment: String,
}

const PIP: [&str; 3] = ["install", "--quiet", "--disable-pip-version-check"];

impl Package {
    fn new() -> Package {
        let scratch = Scratch::new("build");
        let folder = init(&scratch);
        // The workspace's versions and profiles, so that its compiled crates are used again.
        std::fs::copy(root().join("Cargo.lock"), Path::new(&folder).join("Cargo.lock")).unwrap();
        let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let profiles = &workspace[workspace.find("[profile.dev]").unwrap()..];
        let environment = scratch.path("environment");
        let package = Package { scratch, folder, environment };
        package.edit("Cargo.toml", |text| format!("{text}\n{profiles}"));
        succeed(Command::new("python3").args(["-m", "venv", &package.environment]));
        let tools = ["maturin>=1.14,<2", "pytest>=8", "mypy>=1.10"];
        succeed(package.program("pip").args(PIP).args(tools));
        package
    }

    /// A program of the environment, started outside of the package.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(format!("{}/bin/{name}", self.environment));
        command.current_dir(&self.scratch.0);
        command
    }

    fn edit(&self, file: &str, change: impl Fn(&str) -> String) {
        let path = Path::new(&self.folder).join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let changed = change(&text);
        assert_ne!(changed, text, "{file}");
        std::fs::write(&path, changed).unwrap();
    }

    /// Builds the wheel and installs it.
    fn install(&self) {
        let wheels = self.scratch.path("wheels");
        // There is none before the first build.
        _ = std::fs::remove_dir_all(&wheels);
        let target = Path::new(env!("CARGO_BIN_EXE_opsmith")).ancestors().nth(2).unwrap();
        let mut build = self.program("maturin");
        // With the profile `test`, cargo would link a program of tests.
        build.args(["build", "--profile", "dev", "--compatibility", "linux", "--out", &wheels]);
        succeed(build.current_dir(&self.folder).env("CARGO_TARGET_DIR", target));
        let wheel = std::fs::read_dir(&wheels).unwrap().next().unwrap().unwrap().path();
        succeed(self.program("pip").args(PIP).args(["--force-reinstall", "--no-deps"]).arg(wheel));
    }

    /// The output of a program of Python, and its errors.
    fn python(&self, program: &str) -> (String, String) {
        let ran = self.program("python").args(["-c", program]).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&ran.stdout), text(&ran.stderr))
    }
}

/// Builds the wheel, installs it into a new environment, and runs the package's tests from there.
#[test]
#[ignore = "takes minutes, since it compiles a package; `.ci/run` calls it"]
fn a_new_package_builds_and_its_tests_pass() {
    let package = Package::new();
    package.install();
    let tests = format!("{}/tests", package.folder);
    let ran =
        succeed(package.program("python").args(["-m", "pytest", "-q", "-p", "no:cacheprovider", &tests]));
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(text.contains("7 passed"), "{text}");
    a_panic_of_a_kernel_is_an_exception(&package);
    a_name_that_the_package_has_is_refused(&package);
}

fn a_panic_of_a_kernel_is_an_exception(package: &Package) {
    package.edit("src/kernels/neighbours.rs", |text| {
        let check = "assert!(vector.numel() != 3, \"three elements\");";
        text.replace("let elements =", &format!("{check}\n    let elements ="))
    });
    package.install();
    let (text, errors) = package.python(
        "import my_ops\ntry: my_ops.neighbour_sum(my_ops.tensor([1.0, 2.0, 3.0]))\nexcept RuntimeError as error: print(error)\n\
         print(my_ops.neighbour_sum(my_ops.tensor([1.0, 2.0])).tolist())",
    );
    let expected = "a kernel or the library panicked: three elements\n  help: this is a mistake of theirs, please report it\n";
    assert_eq!(text, format!("{expected}[2.0, 1.0]\n"), "{errors}");
}

/// It is not left out silently.
fn a_name_that_the_package_has_is_refused(package: &Package) {
    package.edit("ops.yaml", |text| text.replace("func: bell_curve(", "func: jacobian("));
    package.install();
    let (_, errors) = package.python("import my_ops");
    let expected = "ImportError: the operator `jacobian` would be `my_ops.jacobian`, which is the package's own\n  help: give it \
                    another name in the spec";
    assert!(errors.contains(expected), "{errors}");
}
