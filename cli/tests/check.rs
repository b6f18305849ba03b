//! `opsmith check`, run as a process: formats, exit status, and the operators that a formula may call.

mod support;

use std::path::{Path, PathBuf};

use support::opsmith;

const MISTAKES: &str = "cli/tests/data/mistakes.yaml";

#[test]
fn specs_without_mistakes() {
    let run = opsmith(&["check", "ops.yaml", "examples/custom_op/ops.yaml"]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    let lines: Vec<&str> = run.stdout.lines().collect();
    let [stock, custom] = lines[..] else { panic!("{}", run.stdout) };
    assert!(stock.starts_with("ops.yaml: ") && stock.ends_with(" operators, no mistakes"), "{stock}");
    assert_eq!(custom, "examples/custom_op/ops.yaml: 7 operators, no mistakes");
}

#[test]
fn every_mistake_with_its_source() {
    opsmith(&["check", MISTAKES]).assert(
        1,
        "\
error[E0305]: nothing is called `sefl` here
  --> cli/tests/data/mistakes.yaml:10:21
   |
10 |   pointwise: self + sefl
   |                     ^^^^ unknown name
   |
   = help: did you mean `self`?

error[E0110]: unknown type `Tensr`
  --> cli/tests/data/mistakes.yaml:12:30
   |
12 | - func: half(Tensor self) -> Tensr
   |                              ^^^^^ no such type
   |
   = help: did you mean `Tensor`?

cli/tests/data/mistakes.yaml: 2 errors
",
        "",
    );
}

#[test]
fn one_line_a_mistake() {
    opsmith(&["check", "--format", "short", MISTAKES]).assert(
        1,
        "\
cli/tests/data/mistakes.yaml:10:21: error[E0305]: nothing is called `sefl` here
cli/tests/data/mistakes.yaml:12:30: error[E0110]: unknown type `Tensr`
cli/tests/data/mistakes.yaml: 2 errors
",
        "",
    );
}

#[test]
fn one_object_a_mistake() {
    let run = opsmith(&["check", "--format", "json", MISTAKES]);
    let objects: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2);
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(MISTAKES)).unwrap();
    let byte = text.find("sefl").unwrap();
    assert_eq!(
        objects[0],
        serde_json::json!({
            "file": MISTAKES, "line": 10, "column": 21, "end_line": 10, "end_column": 25,
            "utf16_column": 21, "utf16_end_column": 25, "byte_start": byte, "byte_end": byte + 4,
            "severity": "error", "code": "E0305", "message": "nothing is called `sefl` here",
            "label": "unknown name", "help": "did you mean `self`?", "notes": [], "related": [],
        })
    );
    assert_eq!((run.status, &*run.stderr), (Some(1), ""));
}

#[test]
fn commands_for_github() {
    opsmith(&["check", "--format", "github", MISTAKES]).assert(
        1,
        "\
::error file=cli/tests/data/mistakes.yaml,line=10,col=21,endLine=10,endColumn=25,title=E0305::nothing is called `sefl` here%0Aunknown name%0Ahelp: did you mean `self`?
::error file=cli/tests/data/mistakes.yaml,line=12,col=30,endLine=12,endColumn=35,title=E0110::unknown type `Tensr`%0Ano such type%0Ahelp: did you mean `Tensor`?
",
        "",
    );
}

#[test]
fn colours_only_if_asked_for() {
    let plain = opsmith(&["check", MISTAKES]).stdout;
    let colored = opsmith(&["check", "--color", "always", MISTAKES]).stdout;
    assert!(!plain.contains('\u{1b}'));
    assert!(colored.contains("\u{1b}[1m\u{1b}[91merror[E0305]"), "{colored:?}");
}

#[test]
fn formulas_call_the_operators_of_libraries_the_crate_depends_on() {
    let custom = "examples/custom_op/ops.yaml";
    let alone = opsmith(&["check", "--format", "short", "--stand-alone", custom]);
    alone.assert_parts(&[": error[E", "there is no scalar function `exp`", "errors\n"]);
    assert_eq!(alone.status, Some(1));
    let explicit = opsmith(&["check", "--builds-on", "ops.yaml", custom]);
    explicit.assert(0, "examples/custom_op/ops.yaml: 7 operators, no mistakes\n", "");
}

/// A definition of another library takes no further names, so an alias should have its names.
#[test]
fn arguments_of_another_name_of_a_stock_operator() {
    let spec = "cli/tests/data/renamed.yaml";
    opsmith(&["check", "--builds-on", "ops.yaml", "--format", "short", spec]).assert(
        0,
        "cli/tests/data/renamed.yaml:3:35: warning[W0510]: calls by name know `added` as `other` only\n\
         cli/tests/data/renamed.yaml: 1 warning\n",
        "",
    );
}

/// The diagnostics of a build, with the span in the spec.
#[test]
fn files_of_kernels_that_are_not_there() {
    let spec = "codegen/tests/bad/kernel-file-missing/spec.yaml";
    let run = opsmith(&["check", "--format", "short", "--stand-alone", spec]);
    run.assert_parts(&[
        ":7:19: error[E0472]: there is no file `kernels/none.cc`\n",
        ":13:20: error[E0472]: there is no file `kernels/none.cu`\n",
    ]);
    assert_eq!(run.status, Some(1));
}

#[test]
fn a_file_that_is_not_there() {
    opsmith(&["check", "nowhere.yaml"]).assert(
        2,
        "",
        "error: nowhere.yaml: No such file or directory (os error 2)\n",
    );
}

/// A crate with a spec and kernels, in a temporary folder.
fn krate(name: &str, files: &[(&str, &[u8])]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("opsmith-check-{name}-{}", std::process::id()));
    _ = std::fs::remove_dir_all(&folder);
    let manifest = b"[package]\nname = \"mine\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    let root: (&str, &[u8]) = ("src/lib.rs", b"pub mod kernels;\n");
    for (file, text) in [("Cargo.toml", &manifest[..]), root].iter().chain(files) {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// One line per mistake, without the folder, and the verdict.
fn checked(folder: &Path) -> Vec<String> {
    let spec = folder.join("ops.yaml").display().to_string();
    let run = opsmith(&["check", "--format", "short", "--builds-on", "ops.yaml", &spec]);
    let lines = run.stdout.replace(&format!("{}/", folder.display()), "");
    lines.lines().map(str::to_owned).collect()
}

/// A mistake of each stage, each in a separate entry.
const OF_ALL_STAGES: &[u8] = b"edition: 1
colour: red
ops:
- func: one(Tensr self) -> Tensor
- func: two(Tensor self) -> Tensor
  doc: [a, list]
- func: three(Tensor self) -> Tensor
  doc: A backend that is none.
  dispatch: {GPU: k::three}
- func: four(Tensor self) -> Tensor
  doc: A name that is none.
  pointwise: self + sefl
- func: five(Tensor self) -> Tensor
  doc: A file that is not there.
  shape: follow(self)
  dtype: follow(self)
  dispatch: {CPU: kernels/five.cc:five}
  derivatives: {self: non_differentiable}
- func: six(Tensor self) -> Tensor
  doc: A function that is not there.
  shape: follow(self)
  dtype: follow(self)
  dispatch: {CPU: grid::sixx}
  derivatives: {self: non_differentiable}
- func: seven(Tensor self, int n) -> Tensor
  doc: An argument that nothing uses.
  pointwise: -self
- func: eight(Tensor self) -> Tensor
  doc: Of an operator that has mistakes, so nothing is said.
  decompose: one(self)
- func: six(Tensor self) -> Tensor
  doc: A second one.
  pointwise: -self
";

/// No mistake hides another.
#[test]
fn mistakes_of_all_stages_at_once() {
    let folder = krate(
        "stages",
        &[
            ("ops.yaml", OF_ALL_STAGES),
            ("src/kernels/mod.rs", b"pub mod grid;\n"),
            (
                "src/kernels/grid.rs",
                b"pub fn six<T>(_: View<'_, T>, _: ViewMut<'_, T>) -> Result<()> { todo!() }\n",
            ),
        ],
    );
    assert_eq!(
        checked(&folder),
        [
            "ops.yaml:2:1: error[E0206]: unknown key `colour`",
            "ops.yaml:4:13: error[E0110]: unknown type `Tensr`",
            "ops.yaml:6:8: error[E0208]: `doc` must be text, not a list",
            "ops.yaml:9:14: error[E0450]: there is no backend `GPU`",
            "ops.yaml:12:21: error[E0305]: nothing is called `sefl` here",
            "ops.yaml:17:19: error[E0472]: there is no file `kernels/five.cc`",
            "ops.yaml:23:19: error[E0540]: there is no Rust function `grid::sixx`",
            "ops.yaml:25:32: warning[W0501]: nothing uses the argument `n`",
            "ops.yaml:31:9: error[E0401]: `six` is declared twice",
            "ops.yaml: 8 errors, 1 warning",
        ]
    );
}

#[test]
fn files_that_are_not_utf8_have_a_line_and_their_other_mistakes() {
    let spec = b"edition: 1\nops:\n- func: f(Tensor self) -> Tensor\n  doc: caf\xe9 and na\xefve.\n  pointwise: slef\n";
    let folder = krate("latin", &[("ops.yaml", spec)]);
    assert_eq!(
        checked(&folder),
        [
            "ops.yaml:4:11: error[E0013]: the file is not text in UTF-8",
            "ops.yaml:5:14: error[E0305]: nothing is called `slef` here",
            "ops.yaml: 2 errors",
        ]
    );
    let path = folder.join("ops.yaml").display().to_string();
    let whole = opsmith(&["check", "--builds-on", "ops.yaml", &path]).stdout;
    assert!(
        whole.contains("the byte 0xe9 here is not UTF-8; one more place of the file is like it"),
        "{whole}"
    );
    assert!(whole.contains("`iconv -f latin1 -t utf-8`"), "{whole}");
    let formatted = opsmith(&["fmt", &path]);
    assert_eq!(formatted.status, Some(1), "{}", formatted.stderr);
    formatted.assert_parts(&["error[E0013]: the file is not text in UTF-8", "left alone"]);
    assert_eq!(std::fs::read(&path).unwrap(), spec);

    let utf16: Vec<u8> = "\u{feff}edition: 1\nops: []\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let folder = krate("utf16", &[("ops.yaml", &utf16)]);
    assert_eq!(checked(&folder)[0], "ops.yaml:1:1: error[E0015]: the file is not text in UTF-8");

    let include = b"edition: 1\ninclude: [more.yaml]\nops: []\n";
    let folder = krate("included", &[("ops.yaml", include), ("more.yaml", b"edition: 1\nops: [] # \xff\n")]);
    assert!(checked(&folder)[0].starts_with("more.yaml:2:11: error[E0013]"), "{:?}", checked(&folder));
}

/// A spec with one operator, of the kernel at a path.
fn dispatching_to(path: &str) -> String {
    format!(
        "edition: 1\nops:\n- func: f(Tensor self, int n) -> Tensor\n  doc: A kernel.\n  shape: follow(self)\n  \
         dtype: follow(self)\n  dispatch: {{CPU: '{path}'}}\n  derivatives: {{self: non_differentiable}}\n"
    )
}

/// A crate with functions in all places that paths lead to.
fn crate_of_functions() -> PathBuf {
    let kernel = "<T: Element>(_: View<'_, T>, _: i64, _: ViewMut<'_, T>) -> Result<()> { Ok(()) }\n";
    let module = format!(
        "mod inner; pub mod beside; #[path = \"odd/place.rs\"] pub mod elsewhere;\n\
         pub use inner::hidden; pub use inner::{{hidden as other}}; pub use self::globbed::*; mod globbed;\n\
         pub mod made {{ kernels! {{}} }}\npub mod inline {{ pub mod deep {{ pub fn here{kernel} }} }}\n\
         pub mod types {{ pub fn few<T: Element>(_: View<'_, T>, _: ViewMut<'_, T>) -> Result<()> {{ Ok(()) }}\n\
         pub fn kind<T: Element>(_: &View<'_, T>, _: i64, _: ViewMut<'_, T>) -> Result<()> {{ Ok(()) }}\n\
         pub fn plain(_: View<'_, f32>, _: i64, _: ViewMut<'_, f32>) -> Result<()> {{ Ok(()) }}\n\
         type Grid<'a, T> = View<'a, T>; pub fn alias<T: Element>(_: Grid<'_, T>, _: i64, _: ViewMut<'_, T>) -> Result<()> {{ Ok(()) }}\n\
         pub fn of_any<T: Element>(_: View<'_, T>, _: i64, _: ViewMut<'_, T>) -> Result<()> where T::Compute: Arithmetic {{ Ok(()) }}\n\
         pub fn of_reals<T: Element<Compute: Ordered>>(_: View<'_, T>, _: i64, _: ViewMut<'_, T>) -> Result<()> {{ Ok(()) }}\n\
         pub fn of_wide<T>(_: View<'_, T>, _: i64, _: ViewMut<'_, T>) -> Result<()> where T: arith::Arithmetic {{ Ok(()) }}\n\
         pub fn of_keys<T: Element + Eq>(_: View<'_, T>, _: i64, _: ViewMut<'_, T>) -> Result<()> {{ Ok(()) }}\n\
         pub fn of_more<T: mine::Ordered>(_: View<'_, T>, _: i64, _: ViewMut<'_, T>) -> Result<()> {{ Ok(()) }}\n\
         use opsmith::runtime::arith::{{self, Arithmetic, Ordered}};\n\
         fn private{kernel}\n#[cfg(unix)] pub fn conditional() {{}}\n#[changed] pub fn attributed() {{}} }}\n"
    );
    let function = |name: &str| format!("pub fn {name}{kernel}");
    let folder = krate("functions", &[("src/kernels/mod.rs", module.as_bytes())]);
    for (file, name) in
        [("inner", "hidden"), ("beside/mod", "there"), ("odd/place", "put"), ("globbed", "all")]
    {
        let path = folder.join(format!("src/kernels/{file}.rs"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, function(name)).unwrap();
    }
    folder
}

#[test]
fn rust_functions_are_looked_up_as_the_compiler_does() {
    let folder = crate_of_functions();
    let found = |path: &str| {
        std::fs::write(folder.join("ops.yaml"), dispatching_to(path)).unwrap();
        let spec = folder.join("ops.yaml").display().to_string();
        opsmith(&["check", "--builds-on", "ops.yaml", &spec]).stdout
    };
    let fine = [
        "hidden",
        "other",
        "all",
        "beside::there",
        "elsewhere::put",
        "inline::deep::here",
        "made::anything",
        "types::alias",
        "types::conditional",
        "types::attributed",
        "types::of_any",
        "types::of_more",
        "inner::hidden",
    ];
    for path in fine {
        let shown = found(path);
        assert!(shown.ends_with("ops.yaml: 1 operator, no mistakes\n"), "{path}: {shown}");
    }
    let wrong = [
        ("hiden", "nothing is called `hiden` in src/kernels/mod.rs"),
        ("inline::deep::her", "did you mean `here`?"),
        ("beside::gone", "nothing is called `gone` in src/kernels/beside/mod.rs"),
        ("inlin::deep::here", "did you mean `inline`?"),
        ("types::few", "it takes 2 parameters, and 3 values are given"),
        ("types::kind", "parameter 1 is `&View<'_, T>`, and `View` is given"),
        ("types::plain", "it has 0 type parameters, and 1 element type are given"),
        ("types::private", "it is private"),
        ("types::of_reals", "its bound `T::Compute: Ordered` leaves out `complex64`, `complex128`"),
        ("types::of_wide", "its bound `T: arith::Arithmetic` leaves out `float16`, `bfloat16`"),
        (
            "types::of_keys",
            "its bound `T: Eq` leaves out `float16`, `bfloat16`, `float32`, `float64`, `complex64`, `complex128`",
        ),
    ];
    for (path, message) in wrong {
        let shown = found(path);
        assert!(shown.contains(message), "{path}: {shown}");
        assert!(shown.contains("ops.yaml: 1 error\n"), "{path}: {shown}");
    }
}

#[test]
fn help_has_examples() {
    let run = opsmith(&["check", "--help"]);
    run.assert_parts(&[
        "Checks specs and shows every mistake\n",
        "Usage: opsmith check",
        "Examples:\n  opsmith check ops.yaml\n",
    ]);
    assert_eq!(run.status, Some(0));
}

#[test]
fn warnings_are_mistakes_if_asked_for() {
    let warned = "cli/tests/data/warned.yaml";
    let line = "cli/tests/data/warned.yaml:3:31: warning[W0501]: nothing uses the argument `n`\n\
                cli/tests/data/warned.yaml: 1 warning\n";
    opsmith(&["check", "--format", "short", "--stand-alone", warned]).assert(0, line, "");
    opsmith(&["check", "--deny-warnings", "--format", "short", "--stand-alone", warned]).assert(1, line, "");
}

/// Users copy from the stock spec and from the teaching ones.
#[test]
fn our_own_specs_have_no_warnings() {
    let own = ["ops.yaml", "examples/custom_op/ops.yaml", "examples/graph/ops.yaml"];
    let run = opsmith(&[&["check", "--deny-warnings"], &own[..]].concat());
    assert_eq!((run.status, &*run.stderr), (Some(0), ""), "{}", run.stdout);
    // The spec with every feature lacks gradients, which is a warning.
    let run = opsmith(&["check", "--format", "short", "tests/fixture/spec.yaml"]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""), "{}", run.stdout);
    let warnings: Vec<&str> = run.stdout.lines().filter(|line| line.contains("warning[")).collect();
    let known = warnings.iter().all(|line| line.contains("W0508") || line.contains("W0512"));
    assert!(warnings.len() == 2 && known, "{}", run.stdout);
}
