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

/// Builds the wheel, installs it into a new environment, and runs the package's tests from there.
#[test]
#[ignore = "takes minutes, since it compiles a package; `.ci/run` calls it"]
fn a_new_package_builds_and_its_tests_pass() {
    let scratch = Scratch::new("build");
    let folder = init(&scratch);
    // The workspace's versions and profiles, so that its compiled crates are used again.
    std::fs::copy(root().join("Cargo.lock"), Path::new(&folder).join("Cargo.lock")).unwrap();
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let profiles = &workspace[workspace.find("[profile.dev]").unwrap()..];
    let manifest = Path::new(&folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("{text}\n{profiles}")).unwrap();

    let environment = scratch.path("environment");
    succeed(Command::new("python3").args(["-m", "venv", &environment]));
    let inside = |program: &str| Command::new(format!("{environment}/bin/{program}"));
    let pip = ["install", "--quiet", "--disable-pip-version-check"];
    succeed(inside("pip").args(pip).args(["maturin>=1.14,<2", "pytest>=8", "mypy>=1.10"]));
    let install = || {
        let wheels = scratch.path("wheels");
        _ = std::fs::remove_dir_all(&wheels);
        succeed(
            inside("maturin")
                // With `test`, cargo would link a program of tests.
                .args(["build", "--profile", "dev", "--compatibility", "linux", "--out", &wheels])
                .current_dir(&folder)
                .env(
                    "CARGO_TARGET_DIR",
                    Path::new(env!("CARGO_BIN_EXE_opsmith")).ancestors().nth(2).unwrap(),
                ),
        );
        let wheel = std::fs::read_dir(&wheels).unwrap().next().unwrap().unwrap().path();
        succeed(inside("pip").args(pip).args(["--force-reinstall", "--no-deps"]).arg(wheel));
    };
    install();
    let tests = format!("{folder}/tests");
    let ran = succeed(
        inside("python")
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", &tests])
            .current_dir(&scratch.0),
    );
    assert!(
        String::from_utf8_lossy(&ran.stdout).contains("7 passed"),
        "{}",
        String::from_utf8_lossy(&ran.stdout)
    );

    // A panic of a kernel is an exception of Python.
    let kernel = format!("{folder}/src/kernels/neighbours.rs");
    let text = std::fs::read_to_string(&kernel).unwrap();
    let text = text
        .replace("let elements =", "assert!(vector.numel() != 3, \"three elements\");\n    let elements =");
    std::fs::write(&kernel, text).unwrap();
    install();
    let mut python =
        |program: &str| inside("python").args(["-c", program]).current_dir(&scratch.0).output().unwrap();
    let ran = python(
        "import my_ops\ntry: my_ops.neighbour_sum([1.0, 2.0, 3.0])\nexcept RuntimeError as error: print(error)\n\
         print(my_ops.neighbour_sum([1.0, 2.0]).tolist())",
    );
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "a kernel or the library panicked: three elements\n  help: this is a mistake of theirs, please report it\n[2.0, 1.0]\n",
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );

    // A name that the package has already is refused, not left out.
    let spec = format!("{folder}/ops.yaml");
    let text = std::fs::read_to_string(&spec).unwrap();
    std::fs::write(&spec, text.replace("func: bell_curve(", "func: jacobian(")).unwrap();
    install();
    let ran = python("import my_ops");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(
        errors.contains(
            "ImportError: the operator `jacobian` would be `my_ops.jacobian`, which is the package's own\n  help: give it \
             another name in the spec"
        ),
        "{errors}"
    );
}
