//! Specs of a user: operators that call each other and the stock library, overloads, several results, mistakes.

use opsmith_loader::{Failure, Source, load};
use opsmith_runtime::library::Library;
use opsmith_runtime::{DType, Tensor, Value, boxed};

fn loaded(text: &str) -> &'static Library {
    let spec = format!("edition: 1\nops:\n{text}");
    load(&opsmith::LIBRARY, &Source::text("ops.yaml", &spec)).unwrap_or_else(|failure| panic!("{failure}"))
}

fn mistakes(text: &str) -> String {
    match load(&opsmith::LIBRARY, &Source::text("ops.yaml", text)) {
        Ok(_) => panic!("it has mistakes"),
        Err(failure @ Failure::Mistakes(..)) => failure.to_string(),
        Err(Failure::Error(error)) => panic!("{error}"),
    }
}

fn one(library: &'static Library, name: &str, args: &[Value]) -> Tensor {
    let mut results = boxed::call(library, name, args, &[]).unwrap_or_else(|error| panic!("{error}"));
    results.swap_remove(0).into_tensor().expect("a tensor")
}

#[test]
fn operators_call_each_other() {
    let library = loaded(
        "- func: cubed(Tensor self) -> Tensor
  doc: The third power.
  pointwise: self * self * self
- func: summed_cubes(Tensor self) -> Tensor
  doc: The sum of third powers.
  decompose: sum(cubed(self))
- func: also_cubed(Tensor self) -> Tensor
  doc: Another name.
  alias_of: cubed
",
    );
    let x = Tensor::of(&[1.0f64, 2.0]).requires_grad_(true).unwrap();
    let total = one(library, "summed_cubes", &[Value::Tensor(x.clone())]);
    total.backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [3.0, 12.0]);
    let other = one(library, "also_cubed", &[Value::Tensor(x.detach())]);
    assert_eq!(other.to_vec::<f64>().unwrap(), [1.0, 8.0]);
}

#[test]
fn a_written_derivative_is_used() {
    let library = loaded(
        "- func: straight(Tensor self) -> Tensor
  doc: Rounds, and passes gradients on.
  dtypes: floating
  pointwise: round(self)
  derivatives: {self: grad}
",
    );
    let x = Tensor::of(&[1.4f32, 2.6]).requires_grad_(true).unwrap();
    let rounded = one(library, "straight", &[Value::Tensor(x.clone())]);
    assert_eq!(rounded.to_vec::<f32>().unwrap(), [1.0, 3.0]);
    opsmith::sum(&rounded).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [1.0, 1.0]);
}

#[test]
fn an_integer_is_divided_by_zero_only_where_the_expression_does_it() {
    let library = loaded(
        "- func: safe(Tensor self, Tensor other) -> Tensor
  doc: The quotient, or 0.
  dtypes: integer
  pointwise: if other == 0 { 0 } else { self / other }
- func: unsafe_quotient(Tensor self, Tensor other) -> Tensor
  doc: The quotient.
  dtypes: integer
  pointwise: self / other
",
    );
    let args = [Value::Tensor(Tensor::of(&[7i64, 7])), Value::Tensor(Tensor::of(&[2i64, 0]))];
    assert_eq!(one(library, "safe", &args).to_vec::<i64>().unwrap(), [3, 0]);
    let error = boxed::call(library, "unsafe_quotient", &args, &[]).unwrap_err().to_string();
    assert!(error.contains("integer division by zero"), "{error}");
}

#[test]
fn dtypes_follow_the_rules() {
    let library = loaded(
        "- func: bell(Tensor self) -> Tensor
  doc: The bell curve.
  dtype: promote_float(self)
  dtypes: real
  pointwise: exp(-(self * self))
",
    );
    let of = |tensor: Tensor| one(library, "bell", &[Value::Tensor(tensor)]).dtype();
    assert_eq!(of(Tensor::of(&[1i64])), DType::F32);
    assert_eq!(of(Tensor::of(&[1.0f64])), DType::F64);
}

#[test]
fn mistakes_are_those_of_the_checker() {
    let text =
        "edition: 1\nops:\n- func: twice(Tensor self) -> Tensor\n  doc: Twice.\n  pointwise: 2 * slef\n";
    let shown = mistakes(text);
    assert!(shown.contains("ops.yaml:5:18") && shown.contains("5 |   pointwise: 2 * slef"), "{shown}");
    assert!(shown.ends_with("\n\n1 error"), "{shown}");
}

#[test]
fn what_needs_a_compiler_for_rust_is_refused() {
    let text = "edition: 1\nops:\n- func: laplacian(Tensor self) -> Tensor\n  doc: The Laplacian.\n  shape: follow(self)\n  \
                dtype: follow(self)\n  dtypes: floating\n  dispatch: {CPU: grid::laplacian}\n";
    let shown = mistakes(text);
    assert!(shown.contains("error[L0001]: `laplacian` has a kernel in Rust"), "{shown}");
    assert!(shown.contains("ops.yaml:8:19") && shown.contains("decompose"), "{shown}");
}

#[test]
fn a_library_has_the_fingerprint_of_its_entries() {
    let entry =
        "- func: cubed(Tensor self) -> Tensor\n  doc: The third power.\n  pointwise: self * self * self\n";
    let other = entry.replace("self * self * self", "self * self");
    let fingerprint = |text: &str| loaded(text).fingerprint;
    assert_eq!(fingerprint(entry), fingerprint(entry));
    assert_ne!(fingerprint(entry), fingerprint(&other));
    assert_eq!(fingerprint(entry).len(), 16);
}
