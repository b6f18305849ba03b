//! `opsmith init` and `opsmith new`, run as processes: their files, and that these build.

#[path = "support/guide.rs"]
mod guide;
#[path = "support/new_crate.rs"]
mod new_crate;
mod support;

use std::path::Path;

use new_crate::{Scratch, cargo, compare, compared, init, init_with_versions, set_version};
use support::opsmith;

#[test]
fn a_new_crate_has_no_mistakes_and_its_form() {
    let scratch = Scratch::new("init");
    let folder = init(&scratch);
    let spec = format!("{folder}/ops.yaml");
    opsmith(&["check", "--builds-on", "ops.yaml", &spec]).assert(
        0,
        &format!("{spec}: 3 operators, no mistakes\n"),
        "",
    );
    opsmith(&["fmt", "--check", &spec]).assert(0, "", "");
    let again = opsmith(&["init", &folder]);
    assert_eq!(
        again.stderr,
        format!("error: {folder} is there already and not empty; nothing was written\n")
    );
    assert_eq!(again.status, Some(2));
}

#[test]
fn names_that_no_crate_can_have() {
    let scratch = Scratch::new("names");
    for name in ["1st", "fn", "a b", ""] {
        let run = opsmith(&["init", &scratch.path("x"), "--name", name]);
        let expected = format!(
            "error: `{name}` cannot be the name of a crate; choose one with --name, such as my_ops\n"
        );
        run.assert(2, "", &expected);
    }
    assert!(!scratch.0.join("x").exists());
}

#[test]
fn a_new_operator_leaves_the_rest_of_the_spec_alone() {
    let scratch = Scratch::new("new");
    let folder = init(&scratch);
    let spec = format!("{folder}/ops.yaml");
    let before = scratch.read("my-ops/ops.yaml");
    let new = |signature: &str, kernel: &str| {
        opsmith(&["new", signature, "--kernel", kernel, "--spec", &spec, "--builds-on", "ops.yaml"])
    };

    // Other kernels first, so that the module is inserted in order.
    let rust = new("cap(Tensor self, *, float limit=1.0) -> Tensor", "rust");
    rust.assert_parts(&[
        "added `cap`\n",
        "changed ",
        "ops.yaml\n",
        "new ",
        "src/kernels/cap.rs\n",
        "cargo test --test cap\n",
    ]);
    let entry = "\n- func: cap(Tensor self, *, float limit=1.0) -> Tensor\n  doc: Not described yet.\n  shape: follow(self)\n  dtype: follow(self)\n  dispatch: {CPU: cap::cap}\n  derivatives:\n    self: not_implemented(\"the gradient is not written yet\")\n  samples: [{self: \"spread(2, 3)\"}]\n";
    assert_eq!(scratch.read("my-ops/ops.yaml"), format!("{before}{entry}"));
    assert!(scratch.read("my-ops/src/kernels/mod.rs").ends_with("\npub mod cap;\npub mod neighbours;\n"));

    let cpp = new("order(Tensor self) -> (Tensor values, Tensor places)", "cpp");
    assert_eq!(cpp.status, Some(0), "{}", cpp.stderr);
    assert!(scratch.read("my-ops/kernels/order.cc").contains("my_ops_order(OpsmithContext* context,"));
    let cuda = new("blur.mask(Tensor? mask, Tensor[] list) -> Tensor", "cuda");
    assert_eq!(cuda.status, Some(0), "{}", cuda.stderr);
    assert!(
        scratch.read("my-ops/kernels/blur_mask.cu").contains("my_ops_blur_mask(OpsmithContext* context,")
    );
    opsmith(&["fmt", "--check", &spec]).assert(0, "", "");
    // CUDA files are not compiled yet, which the check reports.
    let checked = opsmith(&["check", "--builds-on", "ops.yaml", &spec]);
    checked.assert_parts(&[
        "warning[W0513]: `CUDA` is never chosen: no build compiles kernels/blur_mask.cu\n",
        ": 1 warning\n",
    ]);

    // A signature with a mistake, a name that is taken: no file is written.
    let text = scratch.read("my-ops/ops.yaml");
    let typo = new("bad(Tensr self) -> Tensor", "rust");
    typo.assert_parts(&["unknown type `Tensr`", "^^^^^ no such type", "nothing was written\n"]);
    let taken = new("cap(Tensor self) -> Tensor", "rust");
    taken.assert_parts(&["`cap` is declared twice", "nothing was written\n"]);
    assert_eq!((typo.status, taken.status), (Some(1), Some(1)));
    let no_tensor = new("count(Tensor self) -> int", "rust");
    assert!(no_tensor.stderr.contains("`new` writes operators that return tensors"), "{}", no_tensor.stderr);
    assert_eq!(scratch.read("my-ops/ops.yaml"), text);
}

/// Wrong entries, each with a different mistake.
const FAULTY: &str = r#"
- func: half_a_gradient(Tensor self) -> Tensor
  doc: The square, with half of its gradient.
  pointwise: self * self
  derivatives:
    self: grad * self

- func: unseen_gradient(Tensor self, Tensor? shift=None) -> Tensor
  doc: A sum whose sample shows nothing of one of its gradients.
  decompose: if shift.is_none() { self.clone() } else { self + shift.unwrap() }
  derivatives:
    self: grad
    shift: grad
  samples: [{self: "spread(3)"}]

- func: half_written(Tensor self) -> Tensor
  doc: A copy of the first half.
  shape: follow(self)
  dtype: follow(self)
  dispatch: {CPU: faulty::half_written}
  samples: [{self: "spread(3)"}]

- func: without_gaps(Tensor self) -> Tensor
  doc: A copy of what lies where a vector begins.
  check: [self.dim() == 1]
  shape: follow(self)
  dtype: follow(self)
  dispatch: {CPU: kernels/faulty.cc:my_ops_without_gaps}

- func: deadly(Tensor self, int count) -> Tensor
  doc: A copy, unless the number is large.
  shape: follow(self)
  dtype: follow(self)
  dispatch: {CPU: faulty::deadly}
"#;

const FAULTY_RUST: &str = r#"//! Kernels that are wrong.

use opsmith::{Element, Result, View, ViewMut};

pub fn half_written<T: Element>(from: View<'_, T>, mut to: ViewMut<'_, T>) -> Result<()> {
    let elements = from.to_contiguous();
    let count = elements.len() / 2;
    to.write(elements.iter().copied().take(count))
}

pub fn deadly<T: Element>(from: View<'_, T>, count: i64, mut to: ViewMut<'_, T>) -> Result<()> {
    if count > 1_000_000 {
        std::process::abort();
    }
    to.write(from.to_contiguous().iter().copied())
}
"#;

const FAULTY_CPP: &str = r#"#include <opsmith/kernel.hpp>

extern "C" int my_ops_without_gaps(OpsmithContext* context, const OpsmithTensor* self, OpsmithTensor* out) {
  return opsmith::run(context, [&] {
    opsmith::dispatch(out->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::int64_t index = 0; index < self->sizes[0]; ++index) {
        static_cast<T*>(out->data)[index] = static_cast<const T*>(self->data)[index];
      }
    });
  });
}
"#;

/// Adds wrong operators; the generated checks name each of them; then removes them.
fn the_checks_find_what_is_wrong(scratch: &Scratch, folder: &str) {
    let write = |file: &str, text: &str| std::fs::write(Path::new(folder).join(file), text).unwrap();
    let (spec, modules) = (scratch.read("my-ops/ops.yaml"), scratch.read("my-ops/src/kernels/mod.rs"));
    write("ops.yaml", &format!("{spec}{FAULTY}"));
    write("src/kernels/mod.rs", &format!("{modules}\npub mod faulty;\n"));
    write("src/kernels/faulty.rs", FAULTY_RUST);
    write("kernels/faulty.cc", FAULTY_CPP);
    let tests = cargo(folder, &["test", "--test", "checks"]);
    let found = |test: &str, parts: &[&str]| {
        let section = format!("---- {test} stdout ----");
        let text = tests
            .stdout
            .split(&section)
            .nth(1)
            .unwrap_or_else(|| panic!("{test} found nothing:\n{}{}", tests.stdout, tests.stderr));
        let text = text.split("\n---- ").next().unwrap_or_default();
        parts.iter().for_each(|part| assert!(text.contains(part), "{test}: {part:?} is not in\n{text}"));
    };
    found("gradients_are_slopes", &["half_a_gradient (ops.yaml:", "gradient at sample 0"]);
    found("wrong_gradients_would_be_noticed", &["unseen_gradient (ops.yaml:", "no sample gives `shift`"]);
    found("every_element_is_written", &["half_written (ops.yaml:"]);
    found("layouts_do_not_matter", &["without_gaps"]);
    found("odd_arguments_are_results_or_errors", &["deadly: signal: 6", "OPSMITH_ODD_CALL="]);
    assert!(tests.stdout.contains("test attributes_are_bounded ... ok"), "{}", tests.stdout);
    write("ops.yaml", &spec);
    write("src/kernels/mod.rs", &modules);
    std::fs::remove_file(Path::new(folder).join("src/kernels/faulty.rs")).unwrap();
    std::fs::remove_file(Path::new(folder).join("kernels/faulty.cc")).unwrap();
}

/// `opsmith profile compare` builds a program in the crate, runs it and leaves nothing there.
fn an_operator_is_compared_over_sizes(scratch: &Scratch, folder: &str) {
    let sizes = ["mul.Scalar", "--shapes", "10", "--shapes", "4x50", "--attr", "other=2.5"];
    let (rows, picture) = compared(scratch, &sizes, &[folder]);
    assert_eq!(rows[0], ["Shapes", "cpu"]);
    assert_eq!((&*rows[2][0], &*rows[3][0]), ("10", "4x50"));
    assert_eq!(picture.matches("<circle").count(), 2);
    assert!(!Path::new(folder).join("examples").exists());
    // A mistake in the call is the program's error, and the file is gone as well.
    let refused = compare(&["mul.Scalr", "--shapes", "10"], &[folder]);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && errors.contains("mul.Scalr"), "{errors}");
    assert!(!Path::new(folder).join("examples").exists());
}

/// Writes the files of a page into a crate: entries and tables of the manifest behind those that are there, modules with a line in the
/// file that has them.
fn add_files(folder: &str, files: Vec<(String, String)>) {
    for (file, text) in files {
        let path = Path::new(folder).join(&file);
        let is_added = ["ops.yaml", "Cargo.toml"].contains(&&*file);
        let before = if is_added { std::fs::read_to_string(&path).unwrap() + "\n" } else { String::new() };
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, before + &text).unwrap();
        let module = file.strip_prefix("src/").and_then(|file| file.strip_suffix(".rs"));
        let Some(module) = module else { continue };
        let (modules, module) = match module.strip_prefix("kernels/") {
            Some(module) => ("src/kernels/mod.rs", module),
            None => ("src/lib.rs", module),
        };
        let modules = Path::new(folder).join(modules);
        let text = std::fs::read_to_string(&modules).unwrap();
        std::fs::write(modules, format!("{text}\npub mod {module};\n")).unwrap();
    }
}

/// Every file of the guides on kernels and on backends, in a crate of its own.
#[test]
#[ignore = "takes minutes, since it compiles a crate; `.ci/run` calls it"]
fn the_programs_of_the_guides_pass_every_check() {
    let scratch = Scratch::new("guide");
    let folder = init_with_versions(&scratch);
    // Another test builds a new crate at the same time.
    set_version(&folder, "0.0.2");
    let kernels = guide::files_of_page("docs/kernels.md");
    let entries = kernels.iter().filter(|(file, _)| file == "ops.yaml").count();
    assert_eq!((entries, kernels.len() - entries), (6, 8), "{kernels:?}");
    let backend = guide::files_of_page("docs/guide/backend.md");
    assert_eq!(backend.len(), 6, "{backend:?}");
    add_files(&folder, kernels);
    add_files(&folder, backend);
    let spec = format!("{folder}/ops.yaml");
    opsmith(&["check", "--deny-warnings", &spec]).assert(
        0,
        &format!("{spec}: 11 operators, no mistakes\n"),
        "",
    );
    opsmith(&["fmt", "--check", &spec]).assert(0, "", "");
    let tests = cargo(&folder, &["test"]);
    assert_eq!(tests.status, Some(0), "{}{}", tests.stdout, tests.stderr);
    // The workspace's profiles name packages that a user's crate has not.
    let warnings = tests.stderr.lines().filter(|line| line.contains("warning"));
    let warnings: Vec<&str> = warnings.filter(|line| !line.contains("profile package spec")).collect();
    assert!(warnings.is_empty(), "{}", tests.stderr);
    assert!(tests.stdout.contains("test result: ok. 15 passed; 0 failed"), "{}", tests.stdout);
    let ran = |test: &str| tests.stdout.contains(&format!("test {test} ... ok"));
    assert!(ran("operators_run_on_the_device") && ran("mistakes_are_errors"), "{}", tests.stdout);
}

/// Takes minutes, because it compiles; `.ci/run` calls it by name.
#[test]
#[ignore = "takes minutes, since it compiles a crate; `.ci/run` calls it"]
fn a_new_crate_builds_and_tests_and_new_operators_fail_in_one_place() {
    let scratch = Scratch::new("build");
    let folder = init_with_versions(&scratch);
    let tests = cargo(&folder, &["test"]);
    assert_eq!(tests.status, Some(0), "{}{}", tests.stdout, tests.stderr);
    assert!(tests.stdout.contains("test result: ok. 4 passed; 0 failed"), "{}", tests.stdout);
    assert!(tests.stdout.contains("test result: ok. 15 passed; 0 failed"), "{}", tests.stdout);
    the_checks_find_what_is_wrong(&scratch, &folder);
    an_operator_is_compared_over_sizes(&scratch, &folder);

    let spec = format!("{folder}/ops.yaml");
    for (signature, kernel) in [
        ("cap(Tensor self, Scalar low, *, float high=1.0) -> Tensor", "rust"),
        ("order(Tensor self, int dim) -> (Tensor values, Tensor places)", "cpp"),
        ("blur.mask(Tensor? mask, Tensor[] list, int[2] size, ScalarType dtype) -> Tensor", "cuda"),
    ] {
        let run = opsmith(&["new", signature, "--kernel", kernel, "--spec", &spec]);
        assert_eq!(run.status, Some(0), "{}{}", run.stdout, run.stderr);
    }
    let tests = cargo(&folder, &["test", "--no-fail-fast"]);
    assert!(!tests.stderr.contains("could not compile"), "{}", tests.stderr);
    assert!(!tests.stderr.contains("warning: unused"), "{}", tests.stderr);
    for name in ["cap", "order", "blur.mask"] {
        assert!(tests.stdout.contains(&format!("`{name}` is not implemented yet")), "{}", tests.stdout);
    }
    assert_eq!(
        tests.stdout.matches("test result: FAILED. 0 passed; 1 failed").count(),
        3,
        "{}",
        tests.stdout
    );
    assert!(tests.stdout.contains("test result: ok. 4 passed; 0 failed"), "{}", tests.stdout);
}

/// A new operator of the stock library, in a copy of the folders it touches.
#[test]
fn a_new_operator_of_the_stock_library() {
    let scratch = Scratch::new("stock");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("ops.yaml")).unwrap();
    let included = opsmith_tools::fmt::includes(&text);
    for file in included.iter().map(String::as_str).chain(["ops.yaml", "kernels/src/cpu/mod.rs"]) {
        let copy = scratch.0.join(file);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(root.join(file), copy).unwrap();
    }
    let run = opsmith(&[
        "new",
        "brand_new(Tensor self, *, int count=1) -> Tensor",
        "--spec",
        &scratch.path("ops.yaml"),
    ]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert!(scratch.read("kernels/src/cpu/mod.rs").contains("\npub mod brand_new;\n"));
    assert!(
        scratch
            .read("kernels/src/cpu/brand_new.rs")
            .contains("use opsmith_runtime::{Element, Error, Result, View, ViewMut};")
    );
    assert!(scratch.read("tests/tests/brand_new.rs").contains("opsmith::brand_new(&self_)?"));
    opsmith(&["check", &scratch.path("ops.yaml")]).assert_parts(&[" operators, no mistakes\n"]);
    opsmith(&["fmt", "--check", &scratch.path("ops.yaml")]).assert(0, "", "");
}
