//! Kernels whose type differs from their declaration: such a crate does not compile, and the message names the
//! generated declaration.
//!
//! Each test builds a copy of this crate with one mistake in it, as cargo would, but without cargo: the
//! build script (this program again, see `build_script`), then rustc against the libraries that this
//! program was itself linked with.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
const RUST_KERNEL: &str = "src/kernels/grid.rs";
const FOREIGN_KERNEL: &str = "kernels/transpose.cc";

/// The generated name of the kernel of `laplacian`, with the line of its entry.
static KERNEL_WITH_LINE: LazyLock<String> = LazyLock::new(|| {
    let spec = std::fs::read_to_string(Path::new(CRATE).join("ops.yaml")).unwrap();
    let line = spec.lines().position(|line| line.starts_with("- func: laplacian(")).expect("its entry");
    format!("laplacian_at_ops_yaml_{}", line + 1)
});

#[test]
fn a_rust_kernel_with_a_parameter_too_many() {
    let copy = Copy::new("parameter", RUST_KERNEL, "mut out: ViewMut", "_scale: f64, mut out: ViewMut");
    copy.assert_refused_once(&[
        &KERNEL_WITH_LINE,
        "error[E0308]: mismatched types",
        "incorrect number of function parameters",
        "kernel_tables.rs",
        "expected fn pointer `for<'a, 'b> fn(View<'a, _>, ViewMut<'b, _>) -> Result<_, _>`",
        "note: function defined here",
        "fn laplacian_kernel<T>(self_: View<'_, T>, out: ViewMut<'_, T>) -> Result<()> =",
    ]);
}

#[test]
fn a_rust_kernel_with_another_type() {
    let copy = Copy::new("type", RUST_KERNEL, "grid: View<'_, T>", "grid: &View<'_, T>");
    copy.assert_refused_once(&[
        &KERNEL_WITH_LINE,
        "error[E0308]: mismatched types",
        "expected fn pointer `for<'a, 'b> fn(View<'a, _>, ViewMut<'b, _>) -> Result<_, _>`",
        "found fn item `for<'a, 'b, 'c> fn(&'a View<'b, f32>, ViewMut<'c, f32>) -> Result<_, _>",
        "fn laplacian_kernel<T>(self_: View<'_, T>, out: ViewMut<'_, T>) -> Result<()> =",
    ]);
}

#[test]
fn a_rust_kernel_that_does_not_exist() {
    let copy = Copy::new("path", "ops.yaml", "grid::laplacian", "grid::laplacean");
    copy.assert_refused_once(&[
        "error[E0432]: unresolved import `crate::kernels::grid::laplacean`",
        &KERNEL_WITH_LINE,
        "no `laplacean` in `kernels::grid`",
        "help: a similar name exists in the module",
    ]);
}

#[test]
fn a_rust_kernel_in_a_module_that_does_not_exist() {
    let copy = Copy::new("module", "ops.yaml", "grid::laplacian", "grit::laplacian");
    copy.assert_refused_once(&["error[E0432]: unresolved import `crate::kernels::grit`", &KERNEL_WITH_LINE]);
}

#[test]
fn a_private_rust_kernel() {
    let copy = Copy::new("private", RUST_KERNEL, "pub fn laplacian", "fn laplacian");
    copy.assert_refused_once(&["error[E0603]: function `laplacian` is private", &KERNEL_WITH_LINE]);
}

/// A type that is right for `f32`, which is checked first, and wrong for `f16`: `cargo check` does not instantiate the
/// code that rejects it, so this test compiles.
#[test]
fn a_rust_kernel_whose_type_is_right_for_one_dtype_only() {
    let copy = Copy::new("one_dtype", "ops.yaml", "grid::laplacian", "grid::wide");
    let kernels = copy.folder.join(RUST_KERNEL);
    let wide = "\npub fn wide<T: Element>(_: View<'_, T::Compute>, _: ViewMut<'_, T>) -> Result<()> {\n    Ok(())\n}\n";
    std::fs::write(&kernels, std::fs::read_to_string(&kernels).unwrap() + wide).unwrap();
    let script = copy.run_build_script();
    assert!(script.status.success(), "{}", text(&script));
    let message = text(&copy.run_rustc_for(&LIBRARY, "link"));
    assert!(message.contains("has another type for some element types"), "{message}");
    assert!(message.contains("kernels::grid::wide::<"), "{message}");
}

#[test]
fn a_foreign_kernel_with_another_type() {
    let copy = Copy::new("foreign_type", FOREIGN_KERNEL, "OpsmithInts perm", "int64_t perm");
    copy.assert_refused(&[
        "int custom_transpose_copy(OpsmithContext*, const OpsmithTensor*, int64_t, OpsmithTensor*)",
        "opsmith_kernels.h",
        "a kernel in C++ does not compile; the generated header ",
        "  ops.yaml:8: int custom_transpose_copy(OpsmithContext* context, const OpsmithTensor* x, \
         OpsmithInts perm, OpsmithTensor* out)",
    ]);
}

#[test]
fn a_foreign_kernel_with_a_misspelt_name() {
    let copy = Copy::new("foreign_name", FOREIGN_KERNEL, "custom_transpose_copy", "custom_transpose_kopy");
    copy.assert_refused(&[
        "no previous declaration for",
        "custom_transpose_kopy",
        "[-Werror=missing-declarations]",
        "  ops.yaml:8: int custom_transpose_copy(OpsmithContext* context, const OpsmithTensor* x, \
         OpsmithInts perm, OpsmithTensor* out)",
    ]);
}

#[test]
fn a_foreign_kernel_in_a_file_that_does_not_exist() {
    let copy = Copy::new("foreign_file", "ops.yaml", "kernels/transpose.cc", "kernels/transposed.cc");
    copy.assert_refused(&[
        "error[E0472]: there is no file `kernels/transposed.cc`",
        "ops.yaml:17:19",
        "paths are relative to the folder of the spec",
    ]);
}

#[test]
#[ignore = "the build script of the copies, run by the other tests"]
fn build_script() {
    opsmith_codegen::build("ops.yaml");
}

/// A copy of the crate.
struct Copy {
    folder: PathBuf,
}

impl Copy {
    /// A copy in which a text of one file is replaced.
    fn new(name: &str, file: &str, from: &str, to: &str) -> Copy {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("signatures").join(name);
        let _ = std::fs::remove_dir_all(&folder);
        for name in ["src", "kernels", "ops.yaml"] {
            copy(&Path::new(CRATE).join(name), &folder.join(name));
        }
        // A kernel shared with another example is copied too.
        let spec = folder.join("ops.yaml");
        let text = std::fs::read_to_string(&spec).unwrap();
        std::fs::write(&spec, text.replace("aot:../aot/", "aot:")).unwrap();
        copy(&Path::new(CRATE).join("../aot/kernels/add_reduce.cc"), &folder.join("kernels/add_reduce.cc"));
        if file != FOREIGN_KERNEL {
            // Compiling it takes seconds, and these tests do not link.
            let stub = "extern \"C\" int custom_transpose_copy(OpsmithContext*, const OpsmithTensor*, OpsmithInts, \
                        OpsmithTensor*) { return 0; }\n";
            std::fs::write(folder.join(FOREIGN_KERNEL), stub).unwrap();
        }
        let path = folder.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "`{from}` is not in {file}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        Copy { folder }
    }

    /// Asserts that the copy does not compile, and that the message contains each of the texts.
    #[track_caller]
    fn assert_refused(&self, texts: &[&str]) {
        let script = self.run_build_script();
        let output = if script.status.success() { self.run_rustc(&LIBRARY) } else { script };
        let message = text(&output);
        assert!(!output.status.success(), "the copy in {} compiles:\n{message}", self.folder.display());
        // GCC quotes with ', Clang and GCC in a UTF-8 locale with other marks; whether rustc prints the crate of a type
        // depends on equal names in other libraries.
        let plain =
            message.replace(['‘', '’'], "'").replace("opsmith::View", "View").replace("std::result::", "");
        for text in texts {
            assert!(plain.contains(text), "the message does not say\n{text}\nIt is:\n{message}");
        }
    }

    /// Asserts that the copy does not compile, for a single reason, with this message.
    #[track_caller]
    fn assert_refused_once(&self, texts: &[&str]) {
        self.assert_refused(texts);
        let message = text(&self.run_rustc(&LIBRARY));
        let errors = message.lines().filter(|line| line.starts_with("error[")).count();
        assert_eq!(errors, 1, "{message}");
    }

    /// Runs `opsmith_codegen::build` in a separate process, with the variables that cargo sets.
    fn run_build_script(&self) -> Output {
        let workspace = Path::new(CRATE).join("../..");
        std::fs::create_dir_all(self.folder.join("out")).unwrap();
        Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "build_script", "--nocapture"])
            .current_dir(&self.folder)
            .env("OUT_DIR", self.folder.join("out"))
            .env("DEP_OPSMITH_SPEC", workspace.join("ops.yaml"))
            .env("DEP_OPSMITH_INCLUDE", workspace.join("kernels/include"))
            .envs([("CARGO_PKG_NAME", "broken"), ("OPT_LEVEL", "0"), ("CXXFLAGS", "-O0")])
            .envs([("HOST", &**HOST), ("TARGET", &**HOST)])
            .output()
            .unwrap()
    }

    /// Checks the crate against a stock library.
    fn run_rustc(&self, library: &Path) -> Output {
        self.run_rustc_for(library, "metadata")
    }

    /// Compiles the crate with the given kind of output.
    fn run_rustc_for(&self, library: &Path, emit: &str) -> Output {
        Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
            .args(["--edition=2024", "--crate-type=lib", "--crate-name=broken"])
            .arg(format!("--emit={emit}"))
            .arg("-Ldependency=.".replace('.', library.parent().unwrap().to_str().unwrap()))
            .arg(format!("--extern=opsmith={}", library.display()))
            .args(["--out-dir", "out", "src/lib.rs"])
            .current_dir(&self.folder)
            .env("OUT_DIR", self.folder.join("out"))
            .output()
            .unwrap()
    }
}

/// The stock library that this program was built with: the newest with which the correct crate compiles. A target
/// folder may contain several, with other feature sets or toolchains.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = std::env::current_exe().unwrap();
    let is_stock_library = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libopsmith-") && name.ends_with(".rlib")
    };
    let files = std::fs::read_dir(program.parent().unwrap()).unwrap();
    let mut found: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).filter(is_stock_library).collect();
    found.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().modified().unwrap()));

    let sound = Copy::new("sound", "ops.yaml", "edition: 1", "edition: 1");
    let script = sound.run_build_script();
    assert!(script.status.success(), "{}", text(&script));
    let compiles = found.iter().find(|library| sound.run_rustc(library).status.success());
    compiles.unwrap_or_else(|| panic!("the crate compiles with none of {found:?}")).clone()
});

/// The machine's name for the C++ compiler.
static HOST: LazyLock<String> = LazyLock::new(|| {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(output.stdout).unwrap();
    version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
});

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        std::fs::copy(from, to).unwrap();
        return;
    }
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}
