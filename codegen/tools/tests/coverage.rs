//! Coverage of compositions that call themselves.

use opsmith_codegen::pipeline;
use opsmith_tools::coverage::coverage;

const SPEC: &str = "edition: 1

functions:
- {func: \"exp(x)\", rust: math::exp, derivative: {x: result}}

ops:
- func: once(Tensor self) -> Tensor
  doc: A function with a gradient.
  dtypes: floating
  pointwise: exp(self)
  derivatives: {self: grad}
  samples: [{self: spread(2)}]

- func: often(Tensor self, int n) -> Tensor
  doc: As many exponentials, each of the other, as `n` says.
  decompose: if n > 1 { often(often(often(self, n / 3), n / 3), n / 3) } else { once(self) }
  samples: [{self: spread(2), n: 3}]

- func: never(Tensor self, int n) -> Tensor
  doc: Nothing that depends on an element.
  decompose: if n > 1 { never(never(zeros(self), n / 2), n / 2) } else { zeros(self) }
  samples: [{self: spread(2), n: 3}]

- func: zeros(Tensor self) -> Tensor
  doc: Zeros.
  shape: follow(self)
  dtype: follow(self)
  dispatch: {CPU: fill::zeros}
  derivatives: {self: non_differentiable}
  samples: [{self: spread(2)}]
";

#[test]
fn gradients_flow_through_compositions_that_call_themselves() {
    // Three calls in each other have more paths of 32 calls than a computer can follow.
    let checked = pipeline::check_text("spec.yaml", SPEC);
    let mistakes: Vec<_> = checked.diagnostics.sorted().collect();
    assert!(!checked.diagnostics.has_errors(), "{mistakes:?}");
    let table = coverage(&checked.model, &|_| true);
    let flows = |name: &str| {
        table.rows.iter().any(|row| row.op == name && row.backend == "CPU" && !row.backward.is_empty())
    };
    assert_eq!(["once", "often", "never", "zeros"].map(flows), [true, true, false, false]);
}
