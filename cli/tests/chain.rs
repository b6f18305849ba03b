//! Chains of libraries: crates whose operators build on those of other users' crates.
//!
//! Four crates as made by `opsmith init`: `base`; `left` and `right`, both on `base`; `top`, on `left` and `right`
//! alone. So `top` has a grandparent on two paths, and reaches it only through its parents.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::opsmith;

const BASE: &str = "edition: 1

functions:
- func: twice(x)
  doc: Two times `x`.
  rust: neighbours::twice
  derivative: {x: 2}

ops:
- func: base_square(Tensor self) -> Tensor
  doc: The square of each element.
  variants: [functional, inplace, out]
  pointwise: self * self
";

const LEFT: &str = "edition: 1

ops:
- func: left_cube(Tensor self) -> Tensor
  doc: The third power of each element, by the square.
  decompose: base_square(self) * self
";

const RIGHT: &str = "edition: 1

ops:
- func: right_double(Tensor self) -> Tensor
  doc: Two times each element, by a function of another crate.
  pointwise: twice(self)

- func: square_again(Tensor self) -> Tensor
  doc: The square of each element, under another name.
  alias_of: base_square
";

const TOP: &str = "edition: 1

ops:
- func: top_all(Tensor self) -> Tensor
  doc: Operators of every crate below.
  decompose: left_cube(self) + right_double(base_square(self)) + twice_here(self)

- func: twice_here(Tensor self) -> Tensor
  doc: A function of the grandparent, with a derived gradient.
  pointwise: twice(self) + self

- func: own_kernel(Tensor self) -> Tensor
  doc: A kernel whose gradient calls an operator of the grandparent.
  shape: follow(self)
  dtype: follow(self)
  dtypes: floating
  dispatch: {CPU: neighbours::cube}
  derivatives:
    self: grad * base_square(self) * 3.0
";

const NEIGHBOURS: &str = "//! Kernels.

use opsmith::runtime::arith::Arithmetic;
use opsmith::{Element, Result, View, ViewMut};

/// Two times an element.
pub fn twice<C: Arithmetic>(x: C) -> C {
    x.add(x)
}

/// The third power of each element.
pub fn cube<T: Element<Compute: Arithmetic>>(x: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()> {
    let elements = x.to_contiguous();
    out.write(elements.iter().map(|element| {
        let element = element.to_compute();
        T::from_compute(element.mul(element).mul(element))
    }));
    Ok(())
}
";

const PROGRAM: &str = "//! What the crate's operators give.

use opsmith::graph::{Graph, InputSpec};
use opsmith::{DType, Result, Tensor};
use top::TopExt as _;

#[test]
fn numbers_gradients_names_and_graphs() -> Result<()> {
    let x = Tensor::of(&[2.0f32, 3.0]).requires_grad_(true)?;
    let y = x.top_all()?;
    // x³ + 2x² + 3x
    assert_eq!(y.to_vec::<f32>()?, [22.0, 54.0]);
    y.backward_with(Some(&Tensor::of(&[1.0f32, 1.0])), Default::default())?;
    // 3x² + 4x + 3
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [23.0, 42.0]);

    let x = Tensor::of(&[2.0f32]).requires_grad_(true)?;
    let y = x.own_kernel()?;
    y.backward_with(Some(&Tensor::of(&[1.0f32])), Default::default())?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [12.0]);

    for name in [\"add.Tensor\", \"base_square\", \"left_cube\", \"right_double\", \"square_again\", \"top_all\"] {
        assert!(top::LIBRARY.find(name).is_some(), \"{name}\");
    }
    let mut names: Vec<&str> = top::LIBRARY.all_ops().iter().map(|op| op.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, \"each operator once\");

    let input = InputSpec::new(DType::F32, [\"n\".into()]);
    let graph = Graph::trace(|x: &[Tensor]| x[0].top_all(), [input]).unwrap();
    let outputs = graph.run(&[Tensor::of(&[2.0f32, 3.0, 1.0])])?;
    assert_eq!(outputs[0].to_vec::<f32>()?, [22.0, 54.0, 6.0]);
    Ok(())
}
";

/// A folder with crates, removed at the end.
struct Crates(PathBuf);

impl Drop for Crates {
    fn drop(&mut self) {
        // A folder that cannot be removed stays among the temporary files.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Crates {
    fn new(name: &str) -> Crates {
        let folder = std::env::temp_dir().join(format!("opsmith-chain-{name}-{}", std::process::id()));
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Crates(folder)
    }

    /// A crate as made by `opsmith init`, with this spec, on these others.
    fn add(&self, name: &str, spec: &str, parents: &[&str]) {
        let run = opsmith(&["init", &self.path(name)]);
        assert_eq!(run.status, Some(0), "{}", run.stderr);
        std::fs::remove_dir_all(self.0.join(name).join("tests")).unwrap();
        self.write(&format!("{name}/ops.yaml"), spec);
        self.write(&format!("{name}/src/kernels/neighbours.rs"), NEIGHBOURS);
        let manifest = std::fs::read_to_string(self.path(&format!("{name}/Cargo.toml"))).unwrap();
        assert!(manifest.contains(&format!("links = \"{name}\"")), "{manifest}");
        let dependencies: String =
            parents.iter().map(|parent| format!("{parent} = {{ path = \"../{parent}\" }}\n")).collect();
        let manifest = manifest.replace("[dependencies]\n", &format!("[dependencies]\n{dependencies}"));
        self.write(&format!("{name}/Cargo.toml"), &manifest);
        std::fs::copy(root().join("Cargo.lock"), self.0.join(name).join("Cargo.lock")).unwrap();
    }

    fn path(&self, inside: &str) -> String {
        self.0.join(inside).display().to_string()
    }

    fn write(&self, inside: &str, text: &str) {
        let path = self.0.join(inside);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The workspace's profiles, so that its compiled crates are used again.
    fn with_profiles(&self, name: &str) {
        let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let profiles = &workspace[workspace.find("[profile.dev]").unwrap()..];
        let manifest = std::fs::read_to_string(self.path(&format!("{name}/Cargo.toml"))).unwrap();
        self.write(&format!("{name}/Cargo.toml"), &format!("{manifest}\n{profiles}"));
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn diamond(name: &str) -> Crates {
    let crates = Crates::new(name);
    crates.add("base", BASE, &[]);
    crates.add("left", LEFT, &["base"]);
    crates.add("right", RIGHT, &["base"]);
    crates.add("top", TOP, &["left", "right"]);
    crates
}

#[test]
fn commands_see_the_whole_chain() {
    let crates = diamond("commands");
    for (name, count) in
        [("base", "1 operator"), ("left", "1 operator"), ("right", "2 operators"), ("top", "3 operators")]
    {
        let spec = crates.path(&format!("{name}/ops.yaml"));
        let run = opsmith(&["check", "--deny-warnings", &spec]);
        assert_eq!(run.stdout, format!("{spec}: {count}, no mistakes\n"), "{}", run.stderr);
        opsmith(&["fmt", "--check", &spec]).assert(0, "", "");
    }
    let spec = crates.path("top/ops.yaml");
    // Each operator by the path of its crate; an indirect dependency is reached through a parent.
    opsmith(&["expand", "top_all", "--spec", &spec]).assert_parts(&[
        "::left::raw::left_cube(",
        "::left::parents::base::raw::base_square(",
        "&raw::twice_here(",
    ]);
    opsmith(&["expand", "twice_here", "--spec", &spec])
        .assert_parts(&["::left::parents::base::kernels::neighbours::twice("]);
    opsmith(&["expand", "own_kernel", "--spec", &spec])
        .assert_parts(&["::left::parents::base::raw::base_square("]);
    assert_eq!(opsmith(&["explain", "top_all", "--spec", &spec]).status, Some(0));
    let same = opsmith(&["diff", &spec, &spec]);
    assert_eq!(same.status, Some(0), "{}{}", same.stdout, same.stderr);
}

#[test]
fn one_name_in_two_parents_is_a_mistake_that_names_both() {
    let crates = diamond("clash");
    crates.write("right/ops.yaml", &format!("{RIGHT}{}", &LEFT[LEFT.find("- func").unwrap()..]));
    let run = opsmith(&["check", &crates.path("top/ops.yaml")]);
    run.assert_parts(&["error[E0467]: `left_cube` is declared by two libraries that this spec builds on\n"]);
    assert!(
        run.stdout.contains("/left/ops.yaml:") && run.stdout.contains("/right/ops.yaml:"),
        "{}",
        run.stdout
    );
    crates.write("right/ops.yaml", RIGHT);
    crates.write("top/ops.yaml", &TOP.replace("twice_here", "base_square"));
    opsmith(&["check", &crates.path("top/ops.yaml")]).assert_parts(&[
        "error[E0467]: `base_square` is declared here and by a library that this spec builds on\n",
    ]);
}

#[test]
fn a_parent_without_links_is_named() {
    let crates = diamond("links");
    let manifest = std::fs::read_to_string(crates.path("left/Cargo.toml")).unwrap();
    crates.write("left/Cargo.toml", &manifest.replace("links = \"left\"\n", ""));
    let run = opsmith(&["check", &crates.path("top/ops.yaml")]);
    assert!(run.stderr.contains("the package `left` has a spec and no `links`"), "{}", run.stderr);
    run.assert_parts(&["there is no operator `left_cube`"]);
}

/// Takes a minute, because it compiles; `.ci/run` calls it by name.
#[test]
#[ignore = "takes a minute, since it compiles four crates; `.ci/run` calls it"]
fn a_diamond_builds_and_computes() {
    let crates = diamond("build");
    crates.write("top/tests/chain.rs", PROGRAM);
    crates.with_profiles("top");
    let target = Path::new(env!("CARGO_BIN_EXE_opsmith")).ancestors().nth(2).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["test", "--test", "chain"])
        .current_dir(crates.0.join("top"))
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("1 passed"), "{}", text(&output.stdout));
}
