//! Odd names in every place where a spec has names: accepted specs compile.
//!
//! Entries are made from templates with holes for names, each checked separately; the accepted ones are generated
//! together and compiled as one crate, with warnings as errors, and so is the header of their C kernels.
//! `OPSMITH_NAMES=4000 cargo test -p opsmith-golden --test names -- --ignored` makes this number of entries with odd
//! names in all holes at once, from the seed `OPSMITH_NAMES_SEED`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use opsmith_codegen::diagnostics::render;
use opsmith_codegen::pipeline::{self, Checked};
use opsmith_codegen::{Config, RustPath, emit, output};

/// Keywords, names of Rust's prelude, names that generated code uses itself, and borderline identifiers.
const ODD: &str = "match where type fn self Self super crate gen yield try async await box dyn union auto default raw \
    safe macro_rules static const ref mut move impl loop in as use mod pub \
    Some None Ok Err Option Vec String Box Default From Into Clone Result Iterator Drop Send Fn ToOwned Sized \
    option vec string some none ok err result boxed drop clone into from iter map next len \
    rt kernels kernel call args compute device options present found cx grads grad grad0 result0 result1 tangents \
    tangent0 grad_input_mask context status constant0 constant1 lists value text tensor position out out0 out1 out_ \
    gradient0 T C R F T0 run of Any kernel_tables defs functions methods inference rules gradients library parents foreign \
    LIBRARY TensorOps UserExt user_ext tensor_ops as_tensor new self_ selfs i64 f32 bool str u8 usize main std core alloc main opsmith opsmith_runtime \
    _1 __ ___ _x x_ x__ _X X aB AB a_b ab A_b b2 b_2 Local_x Local local_x __dollar_T __dollar_ K ADD add add_ \
    ADD_TENSOR infer view composite host docs comment panic vec_ println include env concat OUT_DIR \
    int class template namespace int64_t NULL errno linux stdin EOF INT_MAX OpsmithTensor double bool_ \
    e inf nan pi int32 float32 True False Tensor Scalar DType View ViewMut Element Arg Error \
    odd_x odd_x_ odd odd_with odd_out odd_infer odd_kernel with out_with x_out";

/// A kernel for each template that has one.
const KERNELS: &str = "
    //! The functions that the entries name.
    /// Tensors.
    pub mod odd {
        use ::opsmith_runtime::infer::InferContext;
        use ::opsmith_runtime::{Element, Layout, Result, View, ViewMut};
        /// One tensor.
        pub fn one<T: Element>(_: View<'_, T>, _: ViewMut<'_, T>) -> Result<()> { Ok(()) }
        /// A tensor and a number.
        pub fn number<T: Element>(_: View<'_, T>, _: i64, _: ViewMut<'_, T>) -> Result<()> { Ok(()) }
        /// Two tensors, two results.
        pub fn two<T: Element>(_: View<'_, T>, _: View<'_, T>, _: ViewMut<'_, T>, _: ViewMut<'_, T>) -> Result<()> { Ok(()) }
        /// A list.
        pub fn list<T: Element>(_: &[View<'_, T>], _: Option<View<'_, T>>, _: ViewMut<'_, T>) -> Result<()> { Ok(()) }
        /// Mixed dtypes.
        pub fn mixed<A: Element, B: Element>(_: View<'_, A>, _: ViewMut<'_, B>) -> Result<()> { Ok(()) }
        /// A number.
        pub fn host(_: i64, _: &str) -> Result<i64> { Ok(0) }
        /// A layout.
        pub fn layout(layout: &Layout, _: i64) -> Result<Layout> { Ok(layout.clone()) }
        /// Sizes.
        pub fn sizes(sizes: &[i64], _: i64) -> Result<::opsmith_runtime::Dims> { Ok(::opsmith_runtime::Dims::from_slice(sizes)) }
        /// A shape.
        pub fn infer(_: &mut InferContext<'_>) -> Result<()> { Ok(()) }
        /// An element.
        pub fn scalar<C>(a: C, _: C) -> C { a }
    }
";

/// Entries with `{N}` for a name and `{I}` for a number that is unique to the entry.
const TEMPLATES: &[&str] = &[
    "func: {N}(Tensor self) -> Tensor\n  variants: [functional, inplace, out]\n  pointwise: -self",
    "func: {N}.o{I}(Tensor self, *, int n=1) -> Tensor\n  variants: [functional, inplace, out]\n  pointwise: self * n",
    "func: o{I}(Tensor self, int {N}) -> Tensor\n  pointwise: self * {N}",
    "func: o{I}.{N}(Tensor self, int n=1) -> Tensor\n  variants: [functional, inplace, out]\n  shape: follow(self)\n  dtype: follow(self)\n  dtypes: floating\n  dispatch: {CPU: 'odd::number'}\n  derivatives: {self: grad * n}",
    "func: {N}::o{I}(Tensor self) -> Tensor\n  variants: [functional, out]\n  decompose: self * 2",
    "func: o{I}(Tensor {N}, Tensor other) -> Tensor\n  variants: [functional, inplace, out]\n  pointwise: \"{N} * other + {N}\"",
    "func: o{I}(Tensor {N}, Tensor {M}, Scalar {K}=1) -> Tensor\n  variants: [functional, inplace, out]\n  pointwise: \"{N} + {M} * {K}\"",
    "func: o{I}(Tensor self, int {N}, int? {M}=None, str mode=\"a\") -> Tensor\n  variants: [functional, out]\n  check: [\"{N} > 0\"]\n  shape: follow(self)\n  dtype: follow(self)\n  pointwise: \"if mode == \\\"a\\\" { self } else { self * {N} }\"",
    "func: o{I}(Tensor self, *, int {N}=2) -> Tensor\n  variants: [functional, inplace, out]\n  pointwise: \"self * {N}\"",
    "func: o{I}(Tensor self, int {N}, int? at=None, int[] sizes=[1], str? word=None) -> Tensor\n  attributes: {'{N}': {enum: {none: 0, mean: 1}}}\n  variants: [functional, out]\n  pointwise: \"self * {N}\"",
    "func: o{I}(Tensor self, *, int {N}=0, int[] more=[], str name=\"x\") -> Tensor\n  attributes: {'{N}': {enum: {a: 0, b: 1}}}\n  pointwise: \"self * {N}\"",
    "func: o{I}(Tensor self, int e{I}) -> Tensor\n  attributes: {e{I}: {enum: {'{N}': 0, '{M}': 1}}}\n  pointwise: \"self * e{I}\"",
    "func: o{I}(Tensor self, Tensor other) -> (Tensor {N}, Tensor {M})\n  variants: [functional, out]\n  shape: [follow(self), follow(other)]\n  dtype: [follow(self), follow(self)]\n  dtypes: floating\n  dispatch: {CPU: 'odd::two'}\n  derivatives:\n    self: \"grad_{N} * 2\"\n    other: non_differentiable",
    "func: o{I}(Tensor {N}, Tensor {M}) -> (Tensor {K}, Tensor x_out)\n  variants: [functional, out]\n  shape: [\"follow({N})\", \"follow({M})\"]\n  dtype: [\"follow({N})\", \"follow({N})\"]\n  dtypes: [float32, float64]\n  dispatch: {CPU: 'odd::two'}",
    "func: o{I}(Tensor self) -> Tensor\n  variants: [functional, inplace, out]\n  pointwise: \"{ let {N} = self * 2; let {M} = {N} * {N}; {M} - {N} }\"",
    "func: o{I}(Tensor self, Tensor {N}) -> Tensor\n  pointwise: \"{ let {M} = self * {N}; let {K} = {M} + 1; {K} * {M} - {N} }\"",
    "func: o{I}(Tensor self, int {N}) -> Tensor\n  pointwise: \"{ let {M} = {N} * 2; if {M} > 3 { self } else { self * {M} } }\"",
    "func: o{I}(Tensor self, Scalar {K}) -> Tensor\n  shape: follow(self)\n  dtype: follow(self)\n  dtypes: floating\n  dispatch: {CPU: 'odd::one(self)'}\n  ignored: ['{K}']\n  derivatives:\n    self: \"{ let {N} = grad * 2; let {M} = {N} * {K}; {M} + {N} * result }\"",
    "func: o{I}(Tensor self, Tensor {K}) -> Tensor\n  decompose: \"{ let {N} = self * 2; let {M} = {N} + {K}; {M} * {N} }\"",
    "func: o{I}(Tensor self, int {K}) -> Tensor\n  shape: \"{ let {N} = self.size(0) * {K}; [{N}, {N} + {K}] }\"\n  dtype: follow(self)\n  dtypes: floating\n  dispatch: {CPU: 'odd::number'}",
    "func: o{I}(Tensor self, int {K}) -> Tensor\n  check: [\"{ let {N} = {K} + 1; {N} > {K} }\"]\n  shape: \"odd::sizes(self.sizes(), {K})\"\n  dtype: follow(self)\n  dtypes: floating\n  dispatch: {CPU: 'odd::number'}",
    "func: o{I}(Tensor self, int {K}) -> Tensor\n  run_sizes: {'{N}': self.numel()}\n  run_shape: \"[{N}]\"\n  shape: \"[self.numel()]\"\n  dtype: follow(self)\n  dtypes: floating\n  dispatch: {CPU: 'odd::number'}",
    "func: o{I}(int {N}, str {M}) -> int\n  dispatch: {Host: 'odd::host'}",
    "func: o{I}(Tensor {N}, int {M}) -> Tensor\n  view: true\n  dispatch: {View: 'odd::layout'}\n  derivatives: {'{N}': grad}",
    "func: o{I}(Tensor {N}) -> Tensor\n  infer: odd::infer\n  dtypes: floating\n  dispatch: {CPU: 'odd::one'}",
    "func: o{I}(Tensor[] {N}, Tensor? {M}=None) -> Tensor\n  variants: [functional, out]\n  shape: \"[1]\"\n  dtype: \"promote({N})\"\n  dtypes: floating\n  dispatch: {CPU: 'odd::list'}",
    "func: o{I}(Tensor {N}) -> Tensor {M}\n  variants: [functional, out]\n  shape: \"follow({N})\"\n  combinations:\n  - {'{N}': float32, '{M}': int32}\n  - {'{N}': float64, '{M}': int64}\n  dispatch: {CPU: 'odd::mixed'}",
    "func: o{I}(Tensor {N}, int[] {M}, str {K}=\"a\", bool? flag=None) -> Tensor {L}\n  variants: [functional, out]\n  shape: \"follow({N})\"\n  dtype: \"follow({N})\"\n  dispatch: {CPU: 'k.cc:odd_c_{I}'}",
    "func: o{I}(Tensor {N}, Tensor {M}) -> (Tensor, Tensor)\n  shape: [\"follow({N})\", \"follow({N})\"]\n  dtype: [\"follow({N})\", \"follow({N})\"]\n  dispatch: {CPU: 'k.cc:odd_c_{I}'}",
    "func: o{I}(Tensor self, *, int n=1) -> Tensor\n  rust_name: '{N}'\n  variants: [functional, inplace, out]\n  pointwise: self * n",
    "func: o{I}(Tensor self) -> Tensor\n  doc: \"{N}\\r \\u202e \\0 `{M}` */ /* #[x] \\\"{K}\\\"\"\n  tags: ['{N}']\n  pointwise: -self",
    "func: o{I}(Tensor self) -> Tensor\n  doc: |\n    {N} {{M}} $K\n\n    [`{N}`] [`{M}`]: <{K}>\n  pointwise: self * odd_function(self, self)",
    "func: o{I}(Tensor self, str {N}=\"{M}\\\\\") -> Tensor\n  attributes: {'{N}': {one_of: ['{M}', \"{M}\\\\\", \"a\\u202eb\"]}}\n  pointwise: \"if {N} == \\\"{M}\\\" { self } else { -self }\"",
];

/// The rest of the spec.
const HEAD: &str = "edition: 1\nfunctions:\n- func: odd_function(x, y)\n  rust: odd::scalar\n  derivative: {x: 1, y: 0}\nops:\n\
    - func: plus(Tensor self, Tensor other) -> Tensor\n  operator: '+'\n  pointwise: self + other\n\
    - func: minus(Tensor self, Tensor other) -> Tensor\n  operator: '-'\n  pointwise: self - other\n\
    - func: times(Tensor self, Tensor other) -> Tensor\n  operator: '*'\n  pointwise: self * other\n\
    - func: times.Scalar(Tensor self, Scalar other) -> Tensor\n  operator: ['*', reversed *]\n  pointwise: self * other\n\
    - func: plus.Scalar(Tensor self, Scalar other) -> Tensor\n  operator: ['+']\n  pointwise: self + other\n\
    - func: neg(Tensor self) -> Tensor\n  operator: neg\n  pointwise: -self\n";

fn odd() -> Vec<&'static str> {
    ODD.split_whitespace().collect()
}

fn filled(template: &str, number: usize, names: [&str; 4]) -> String {
    let mut text = template.replace("{I}", &number.to_string());
    for (hole, name) in ["{N}", "{M}", "{K}", "{L}"].iter().zip(names) {
        text = text.replace(hole, name);
    }
    format!("- {text}\n")
}

fn config(folder: &Path) -> Config {
    let path = |text: &str| RustPath::parse(text).unwrap();
    Config {
        library: "odd".to_owned(),
        runtime: path("::opsmith_runtime"),
        custom_kernels: path("::opsmith_aot"),
        ..Config::new(folder.join("spec.yaml"))
    }
}

fn check(entries: &[String]) -> Checked {
    pipeline::check_text("spec.yaml", &format!("{HEAD}{}", entries.concat()))
}

/// The accepted entries, each alone and all together.
fn accepted(candidates: Vec<String>) -> Vec<String> {
    let fine = |entry: &String| !check(std::slice::from_ref(entry)).diagnostics.has_errors();
    let mut entries: Vec<String> = candidates.into_iter().filter(fine).collect();
    loop {
        let checked = check(&entries);
        let mut start = HEAD.len();
        let places: Vec<std::ops::Range<usize>> = entries
            .iter()
            .map(|entry| {
                start += entry.len();
                start - entry.len()..start
            })
            .collect();
        let wrong: BTreeSet<usize> = checked
            .diagnostics
            .errors()
            .filter_map(|error| {
                places.iter().position(|range| range.contains(&error.primary.span.range().start))
            })
            .collect();
        if wrong.is_empty() {
            let said: Vec<String> =
                checked.diagnostics.errors().map(|error| render(&checked.sources, error, false)).collect();
            assert!(said.is_empty(), "{}", said.join("\n"));
            return entries;
        }
        let keep = |(index, _): &(usize, String)| !wrong.contains(index);
        entries = entries.into_iter().enumerate().filter(keep).map(|(_, entry)| entry).collect();
    }
}

/// Generates a crate from entries and compiles it.
fn compile(name: &str, entries: &[String]) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let text = format!("{HEAD}{}", entries.concat());
    std::fs::write(folder.join("spec.yaml"), &text).unwrap();
    let lib =
        "//! Odd names.\npub mod kernels;\ninclude!(concat!(env!(\"OUT_DIR\"), \"/opsmith/lib.rs\"));\n";
    std::fs::write(folder.join("src/lib.rs"), lib).unwrap();
    std::fs::write(folder.join("src/kernels.rs"), KERNELS).unwrap();
    let config = config(&folder);
    let checked = pipeline::check(&config).unwrap();
    let files = pipeline::generate(&checked, &config).unwrap_or_else(|defect| panic!("{defect}"));
    output::write(&folder.join("opsmith"), &files).unwrap();
    let rust = rustc(&folder, &runtime());
    assert!(rust.status.success(), "{}\n{} entries do not compile", shown(&rust), entries.len());
    let header = Command::new("c++")
        .args([
            "-std=c++17",
            "-fsyntax-only",
            "-Wall",
            "-Werror",
            "-x",
            "c++",
            "-include",
            "opsmith/kernel.hpp",
            "-I",
        ])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/include"))
        .arg(folder.join("opsmith").join(emit::HEADER))
        .output()
        .unwrap();
    assert!(header.status.success(), "{}", shown(&header));
}

fn rustc(folder: &Path, runtime: &Path) -> Output {
    Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--crate-name=odd", "-Dwarnings"])
        .arg(format!("-Ldependency={}", runtime.parent().unwrap().display()))
        .arg(format!("--extern=opsmith_runtime={}", runtime.display()))
        .args(["--out-dir", ".", "src/lib.rs"])
        .current_dir(folder)
        .env("OUT_DIR", folder)
        .output()
        .unwrap()
}

/// The start of a compiler's output, which can be long.
fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).lines().take(120).collect::<Vec<_>>().join("\n")
}

/// The runtime that this program was built with. A target folder may contain several, with other feature sets.
fn runtime() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let mut found: Vec<PathBuf> = std::fs::read_dir(program.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("libopsmith_runtime-") && name.ends_with(".rlib")
        })
        .collect();
    found.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().modified().unwrap()));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("names-runtime");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("src/lib.rs"), "//! Nothing.\npub use opsmith_runtime::*;\n").unwrap();
    let works = found.iter().find(|library| rustc(&folder, library).status.success());
    works.unwrap_or_else(|| panic!("nothing compiles with any of {found:?}")).clone()
}

#[test]
fn every_odd_name_in_every_place() {
    let names = odd();
    let mut entries = Vec::new();
    for (row, template) in TEMPLATES.iter().enumerate() {
        for (index, name) in names.iter().enumerate() {
            // A rotating part of the names; all of them for the operator's own name and for an attribute.
            if row > 4 && (index + row) % 4 != 0 {
                continue;
            }
            let other = |step: usize| names[(index * 7 + step * 31 + row) % names.len()];
            entries.push(filled(template, entries.len(), [name, other(1), other(2), other(3)]));
        }
    }
    let entries = accepted(entries);
    assert!(entries.len() >= 1_000, "only {} entries are accepted", entries.len());
    compile("names", &entries);
}

#[test]
#[ignore = "takes a minute; `.ci/run` calls it"]
fn thousands_of_entries_with_odd_names() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = number("OPSMITH_NAMES_SEED", now.as_secs());
    println!("OPSMITH_NAMES_SEED={seed}");
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let names = odd();
    let parts = ["_", "__", "x", "A", "1", "self", "out", "in", "ok"];
    let mut any = || match random(3) {
        0 => format!("{}{}", names[random(names.len())], parts[random(parts.len())]),
        1 => format!(
            "{}{}{}",
            parts[random(parts.len())],
            parts[random(parts.len())],
            parts[random(parts.len())]
        ),
        _ => names[random(names.len())].to_owned(),
    };
    let mut entries = Vec::new();
    for index in 0..number("OPSMITH_NAMES", 4_000) as usize {
        let names: Vec<String> = (0..4).map(|_| any()).collect();
        let template = TEMPLATES[index % TEMPLATES.len()];
        entries.push(filled(template, index, [&names[0], &names[1], &names[2], &names[3]]));
    }
    let entries = accepted(entries);
    println!("{} entries are accepted", entries.len());
    compile("names-random", &entries);
}
