//! Expressions beyond those of other tests: Rust functions, lists of gradients, names that are keywords, kernels that
//! take some of the arguments.

use opsmith_codegen::analysis::reads::reads;
use opsmith_codegen::diagnostics::render;
use opsmith_codegen::model::expr::{Expr, ExprKind, Variable};
use opsmith_codegen::model::{KernelSource, Kind, Model, Op};
use opsmith_codegen::pipeline::check_text;

const PRELUDE: &str = r##"edition: 1
ops:
- {func: "permute(Tensor(a) self, int[] dims) -> Tensor(a)", view: true, dispatch: {View: views::permute}}
- {func: "view(Tensor(a) self, int[] size) -> Tensor(a)", view: true, dispatch: {View: views::view}}
- {func: "clone(Tensor self) -> Tensor", pointwise: self}
- {func: "mul.Scalar(Tensor self, Scalar other) -> Tensor", pointwise: self * other, operator: "*"}
- {func: "if.self(Tensor condition, Tensor self) -> Tensor", types: {condition: bool}, pointwise: "if condition { self } else { 0 }"}
"##;

fn model(entries: &str) -> Model {
    let checked = check_text("spec.yaml", &format!("{PRELUDE}{entries}\n"));
    let errors: Vec<String> =
        checked.diagnostics.errors().map(|error| render(&checked.sources, error, false)).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    checked.model
}

/// The last operator of a spec.
fn last(entries: &str) -> Op {
    model(entries).ops.pop().expect("an operator")
}

/// Every call of a Rust function in an expression: its path and its type there.
fn native(expr: &Expr) -> Vec<(String, Kind)> {
    let mut found = Vec::new();
    expr.walk(&mut |part| {
        if let ExprKind::Native(path, _) = &part.kind {
            found.push((path.clone(), part.ty.kind.clone()));
        }
    });
    found
}

#[test]
fn a_rust_function_gives_what_its_place_wants() {
    let op = last(
        r#"
- func: reshape(Tensor(a) self, int[] shape) -> Tensor(a)
  decompose: "if views::can_view(self, shape) { self.view(shape) } else { self.clone().view(sizes::of(shape)) }"
- func: scaled(Tensor self) -> Tensor
  decompose: (self * sizes::count(self.sizes())) * (2 * sizes::count(self.sizes()))"#,
    );
    let found = native(&op.body.composite.expect("a composition"));
    assert_eq!(found, [("sizes::count".to_owned(), Kind::Int), ("sizes::count".to_owned(), Kind::Int)]);
    let op = last(
        r#"
- func: reshape(Tensor(a) self, int[] shape) -> Tensor(a)
  decompose: "if views::can_view(self, shape) { self.view(shape) } else { self.clone().view(sizes::of(shape)) }""#,
    );
    let found = native(&op.body.composite.expect("a composition"));
    assert_eq!(
        found,
        [("views::can_view".to_owned(), Kind::Bool), ("sizes::of".to_owned(), Kind::Ints(None))]
    );
}

#[test]
fn a_formula_that_asks_for_sizes_saves_nothing() {
    let op = last(
        r#"
- func: moved(Tensor(a) self, int[] dims) -> Tensor(a)
  view: true
  dispatch: {View: views::moved}
  derivatives: {self: "grad.permute(views::inverse(self.sizes(), dims))"}"#,
    );
    let reads = reads(&op.derivatives[0].formula);
    assert_eq!(format!("{:?}", reads.values), "{Arg(1)}");
}

#[test]
fn gradients_of_a_list_are_a_list_with_gaps() {
    let op = last(
        r#"
- {func: "join(Tensor?[] parts, int dim) -> Tensor", shape: "infer::join(parts, dim)", dtype: float32, dispatch: {CPU: join::join}}
- func: split(Tensor(a -> *) self, int dim) -> Tensor(a)[]
  view: true
  dispatch: {View: views::split}
  derivatives: {self: "join(grads, dim)"}"#,
    );
    let ExprKind::Convert(formula) = &op.derivatives[0].formula.kind else { panic!("an optional gradient") };
    let ExprKind::Op(_, args) = &formula.kind else { panic!("a call") };
    assert!(matches!(args[0].kind, ExprKind::Variable(Variable::Grads)));
    assert_eq!(args[0].ty.kind, Kind::OptionalTensors);
    assert!(reads(&op.derivatives[0].formula).all_grads);
}

#[test]
fn an_operator_with_a_keyword_for_a_name_is_called_with_an_underscore() {
    let op = last(
        r#"- {func: "chosen(Tensor condition, Tensor self) -> Tensor", decompose: "if_(condition, self)"}"#,
    );
    assert!(matches!(op.body.composite.expect("a composition").kind, ExprKind::Op(..)));
}

#[test]
fn a_kernel_takes_the_arguments_it_names() {
    let op = last(
        r#"
- func: eye(int n, *, ScalarType? dtype=None, Device? device=None) -> Tensor
  shape: full([n, n])
  dtype: or_default(dtype)
  dispatch: {CPU: "fill::eye(dtype, n)"}"#,
    );
    let rust = KernelSource::Rust { path: "fill::eye".to_owned(), arguments: vec![1, 0] };
    assert_eq!(op.body.kernels[0].source, rust);
}

#[test]
fn an_expression_reads_only_the_tensors_it_names() {
    let op = last(
        r#"- {func: "filled(Tensor self, Tensor like, Scalar value) -> Tensor", dtype: follow(self), pointwise: self + value}"#,
    );
    assert_eq!(op.read_tensors(op.body.pointwise.as_ref().expect("an expression")), [0]);
}

/// Valid signatures that PyTorch's parser rejects, because it splits at commas and compares spaces.
#[test]
fn spaces_and_strings_in_signatures_are_free() {
    let text = r#"edition: 1
ops:
- func: "f(Tensor  self,Tensor other,  *,str s = 'a, b', str t=\"a=b\", int[2] n=[0, 0], int[] m=[ 1,2 ])->Tensor"
  doc: Spaces where they are not expected.
  ignored: [s, t, n, m]
  pointwise: self + other
"#;
    let checked = check_text("spec.yaml", text);
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics.sorted().collect::<Vec<_>>());
    assert_eq!(
        checked.model.ops[0].signature,
        "f(Tensor self, Tensor other, *, str s='a, b', str t=\"a=b\", int[2] n=[0, 0], int[] m=[ 1,2 ]) -> Tensor"
    );
}
