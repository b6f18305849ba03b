//! Wrong expressions of every kind in every key, each with the first reported mistake.
//!
//! The full texts of messages are in `bad/`; this test checks that all are rejected. That accepted expressions compile
//! is tested by the crate `tests/fixture`.

use opsmith_codegen::pipeline::check_text;

const PRELUDE: &str = r##"edition: 1
functions:
- {func: e(x), rust: "m::e", dtypes: inexact, derivative: {x: result}}
ops:
- {func: "plus(Tensor self, Tensor other) -> Tensor", pointwise: self + other, operator: "+", derivatives: {self: grad, other: grad}}
- {func: "times(Tensor self, Tensor other) -> Tensor", pointwise: self * other, operator: "*", derivatives: {self: grad, other: grad}}
- {func: "two(Tensor self) -> (Tensor low, Tensor high)", decompose: "(self, self)"}
- {func: "item(Tensor self) -> Scalar", dispatch: {Host: "h::i"}}
- {func: "split(Tensor(a) self, int n) -> Tensor(a)[]", view: true, dispatch: {View: "v::s"}}
"##;

/// An argument of every kind.
const ANY: &str = "Tensor self, Tensor other, Tensor? bias, Tensor[] list, int n, int? m, float x, bool flag, str mode, int[] dims, ScalarType dtype, Scalar s";
/// The arguments that pointwise expressions accept.
const PLAIN: &str =
    "Tensor self, Tensor other, int n, float x, bool flag, str mode, int[] dims, Scalar s, int? m";

/// The context of an expression: the arguments, and the entry around it.
type Place = (&'static str, &'static str);

const SHAPE: Place = (ANY, "shape: @\n  dtype: follow(self)\n  dispatch: {CPU: k::k}");
const DTYPE: Place =
    (ANY, "shape: follow(self)\n  dtype: @\n  compute: follow(self)\n  dispatch: {CPU: k::k}");
const COMPUTE: Place = (ANY, "shape: follow(self)\n  dtype: float32\n  compute: @\n  dispatch: {CPU: k::k}");
const CHECK: Place = (ANY, "check: [@]\n  decompose: self");
const POINTWISE: Place = (
    PLAIN,
    "shape: broadcast(self, other)\n  dtype: promote(self, other)\n  pointwise: @\n  derivatives: {self: grad}",
);
const DERIVATIVE: Place =
    (ANY, "shape: follow(self)\n  dtype: follow(self)\n  dispatch: {CPU: k::k}\n  derivatives: {self: @}");
const PAIR: Place = (
    ANY,
    "shape: follow(self)\n  dtype: follow(self)\n  dispatch: {CPU: k::k}\n  derivatives:\n    self, other: @",
);
const DECOMPOSE: Place = (ANY, "decompose: @");

/// The first error of each expression in its context, as `E0305: nothing is called `slef` here`.
#[track_caller]
fn refused((arguments, entry): Place, rows: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (expression, expected) in rows {
        let quoted = format!("'{}'", expression.replace('\'', "''"));
        let entry = entry.replace('@', &quoted);
        let text = format!("{PRELUDE}- func: op({arguments}) -> Tensor\n  {entry}\n");
        let checked = check_text("spec.yaml", &text);
        let first = checked.diagnostics.errors().next();
        let found = first.map_or("accepted".to_owned(), |error| format!("{}: {}", error.code, error.message));
        if found != *expected {
            wrong.push(format!("{expression}\n    expected {expected}\n    found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mistakes_in_shape() {
    refused(
        SHAPE,
        &[
            ("slef", "E0305: nothing is called `slef` here"),
            ("self", "E0310: an `int[]` is needed here"),
            ("follow(slef)", "E0527: there is nothing called `slef` to follow"),
            ("follow(self, other)", "E0325: `follow` takes 1 argument"),
            ("follow(n)", "E0310: a `Tensor` is needed here"),
            ("follow(bias)", "E0310: a `Tensor` is needed here"),
            ("broadcast()", "E0342: `broadcast` needs operands"),
            ("broadcast(self, n)", "E0317: `broadcast` looks at tensors"),
            ("brodcast(self, other)", "E0323: there is no rule `brodcast`"),
            ("reduce(self, dims)", "E0325: `reduce` takes 3 arguments"),
            ("[self.size(0), x]", "E0310: an `int` is needed here"),
            ("[self.size(x)]", "E0310: an `int` is needed here"),
            ("[self.sizes(0)]", "E0325: `sizes` takes no arguments"),
            ("[n, m]", "E0310: an `int` is needed here"),
            ("[n, mode]", "E0310: an `int` is needed here"),
            ("cat(self, 0)", "E0310: a `Tensor[]` is needed here"),
            ("matmul(self)", "E0325: `matmul` takes 2 arguments"),
            ("self.sizes() + other.sizes()", "E0313: `+` does not go between these"),
            ("plus(self, other)", "E0323: there is no rule `plus`"),
            ("promote(self, other)", "E0323: there is no rule `promote`"),
            ("if n { [n] } else { [0] }", "E0310: a `bool` is needed here"),
            ("if flag { [n] }", "E0306: `if` needs an `else` here"),
            ("[n / 0]", "E0333: an integer cannot be divided by zero"),
            ("grad", "E0305: nothing is called `grad` here"),
            ("list[0]", "E0310: an `int[]` is needed here"),
            ("full(self)", "E0310: an `int[]` is needed here"),
            ("[n % 0]", "E0333: an integer cannot be divided by zero"),
        ],
    );
}

#[test]
fn mistakes_in_dtype() {
    refused(
        DTYPE,
        &[
            ("self", "E0310: a `dtype` is needed here"),
            ("float33", "E0305: nothing is called `float33` here"),
            ("follow(self, other)", "E0325: `follow` takes 1 argument"),
            ("promote()", "E0342: `promote` needs operands"),
            ("promote(mode)", "E0317: `promote` looks at tensors and numbers"),
            ("broadcast(self, other)", "E0323: there is no rule `broadcast`"),
            ("if flag { float32 } else { n }", "E0310: a `dtype` is needed here"),
            ("or_default(self)", "E0310: a `dtype?` is needed here"),
            ("dtype.unwrap()", "E0320: there is no method `unwrap`"),
            ("accumulate(self)", "E0325: `accumulate` takes 2 arguments"),
            ("dtype + dtype", "E0313: `+` does not go between these"),
            ("real(x)", "E0310: a `Tensor` is needed here"),
        ],
    );
}

#[test]
fn mistakes_in_compute() {
    refused(
        COMPUTE,
        &[
            ("plus(self, other)", "E0323: there is no rule `plus`"),
            ("self.dtype", "E0302: this syntax has no meaning in a spec"),
        ],
    );
}

#[test]
fn mistakes_in_check() {
    refused(
        CHECK,
        &[
            ("n", "E0310: a `bool` is needed here"),
            ("n = 2", "E0302: this syntax has no meaning in a spec"),
            ("self == other", "E0314: inference cannot compute with tensors"),
            ("self.dim() = 2", "E0302: this syntax has no meaning in a spec"),
            (r#"self.dim() == "2""#, "E0313: `==` does not go between these"),
            ("mode == 2", "E0313: `==` does not go between these"),
            (r#"mode > "a""#, "E0313: `>` does not go between these"),
            ("plus(self, other)", "E0341: a condition cannot call `plus`"),
            ("self.sum() > 0", "E0320: there is no method `sum`"),
            ("n > 0 and flag", "E0301: this is not an expression"),
            ("m > 0", "E0313: `>` does not go between these"),
            ("flag == 1", "E0313: `==` does not go between these"),
            ("dims == 2", "E0313: `==` does not go between these"),
            ("self.size(0) == other.size", "E0302: this syntax has no meaning in a spec"),
            ("bias.dim() == 1", "E0320: there is no method `dim`"),
            ("list.dim() == 1", "E0320: there is no method `dim`"),
            ("self.dim() == 2 && n", "E0310: a `bool` is needed here"),
            ("!n", "E0313: `!` does not go before this"),
            ("-flag", "E0313: `-` does not go before this"),
            ("self.dims() == 1", "E0320: there is no method `dims`"),
            ("is_ok(n)", "E0341: a condition cannot call `is_ok`"),
            ("x.is_some()", "E0320: there is no method `is_some`"),
            (r#"dims.contains("a")"#, "E0310: an `int` is needed here"),
            ("dims.contains(0) == 1", "E0313: `==` does not go between these"),
            ("n in dims", "E0301: this is not an expression"),
            ("1 < n < 3", "E0301: this is not an expression"),
            ("n == 1 == flag", "E0301: this is not an expression"),
            ("self", "E0310: a `bool` is needed here"),
            (r#""yes""#, "E0310: a `bool` is needed here"),
            ("n % 2", "E0310: a `bool` is needed here"),
            ("n == true", "E0313: `==` does not go between these"),
        ],
    );
}

#[test]
fn mistakes_in_pointwise() {
    refused(
        POINTWISE,
        &[
            ("slef", "E0305: nothing is called `slef` here"),
            ("self + mode", "E0313: `+` does not go between these"),
            ("self + dims", "E0313: `+` does not go between these"),
            ("self + m", "E0313: `+` does not go between these"),
            ("e(self, other)", "E0325: `e` takes 1 argument"),
            ("exp(self)", "E0326: there is no scalar function `exp`"),
            ("self.size(0)", "E0320: there is no method `size`"),
            ("self > other", "E0310: an `element` is needed here"),
            ("if self { other } else { self }", "E0310: a `bool` is needed here"),
            ("if flag { self } else { mode }", "E0310: an `element` is needed here"),
            ("self ** 2", "E0319: this operator has no meaning in a spec"),
            ("self ^ other", "E0453: `^` is not defined for every dtype of `op`"),
            ("plus(self, other)", "E0326: there is no scalar function `plus`"),
            ("sum(self)", "E0326: there is no scalar function `sum`"),
            ("m::f(self)", "E0324: a Rust function cannot be called here"),
            ("{ let y = self; z }", "E0305: nothing is called `z` here"),
            ("self as f32", "E0302: this syntax has no meaning in a spec"),
            ("self[0]", "E0307: this cannot be indexed"),
            ("self == other", "E0310: an `element` is needed here"),
            ("!self", "E0453: `!` is not defined for every dtype of `op`"),
            ("self && other", "E0310: a `bool` is needed here"),
            ("let y = self", "E0302: this syntax has no meaning in a spec"),
            ("x == 1.0", "E0310: an `element` is needed here"),
            ("result", "E0305: nothing is called `result` here"),
        ],
    );
}

#[test]
fn mistakes_in_derivative() {
    refused(
        DERIVATIVE,
        &[
            ("self", "E0444: the formula never uses `grad`"),
            ("grad * slef", "E0305: nothing is called `slef` here"),
            ("grad + n", "E0315: no operator declares `+` for these operands"),
            ("grad.plus()", "E0343: the argument `other` is missing"),
            ("plus(grad)", "E0343: the argument `other` is missing"),
            ("plus(grad, other, self)", "E0325: `plus` takes 2 arguments"),
            ("pluss(grad, other)", "E0327: there is no operator `pluss`"),
            ("grad * mode", "E0315: no operator declares `*` for these operands"),
            ("grad_other", "E0305: nothing is called `grad_other` here"),
            ("grads", "E0310: a `Tensor?` is needed here"),
            ("grads[1]", "E0308: there is no such gradient"),
            ("result1", "E0305: nothing is called `result1` here"),
            ("result * self", "E0444: the formula never uses `grad`"),
            ("item(grad)", "E0310: a `Tensor?` is needed here"),
            ("two(grad)", "E0310: a `Tensor?` is needed here"),
            ("two(grad)[2]", "E0340: there is no such value"),
            ("split(grad, 2)", "E0310: a `Tensor?` is needed here"),
            ("not_implemented()", "E0322: `not_implemented` needs a reason"),
            ("not_implemented(mode)", "E0322: `not_implemented` needs a reason"),
            ("grad if flag else grad", "E0301: this is not an expression"),
            ("if flag { grad } else { 0 }", "E0310: a `Tensor?` is needed here"),
            ("(grad, grad)", "E0310: a `Tensor?` is needed here"),
            ("zero_like(grad)", "E0327: there is no operator `zero_like`"),
            ("grad.size(0)", "E0310: a `Tensor?` is needed here"),
            ("grad * bias", "E0315: no operator declares `*` for these operands"),
            ("grad * list", "E0315: no operator declares `*` for these operands"),
            ("grad_input_mask[0]", "E0310: a `Tensor?` is needed here"),
            ("if self.dim() == 2 { self } else { other }", "E0444: the formula never uses `grad`"),
            ("other * self.dim()", "E0315: no operator declares `*` for these operands"),
            ("grad[0]", "E0307: this cannot be indexed"),
        ],
    );
}

#[test]
fn mistakes_in_pair() {
    refused(
        PAIR,
        &[
            ("grad", "E0311: 2 values are needed here"),
            ("(grad, grad, grad)", "E0311: 2 values are needed here"),
            ("(grad, self)", "E0444: the formula never uses `grad`"),
            ("(self, other)", "E0444: the formula never uses `grad`"),
            ("(grad, n)", "E0310: a `Tensor?` is needed here"),
            ("if flag { (grad, self) } else { (grad, grad) }", "E0444: the formula never uses `grad`"),
        ],
    );
}

#[test]
fn mistakes_in_decompose() {
    refused(
        DECOMPOSE,
        &[
            ("slef", "E0305: nothing is called `slef` here"),
            ("(self, self)", "E0310: a `Tensor` is needed here"),
            ("n", "E0310: a `Tensor` is needed here"),
            ("item(self)", "E0310: a `Tensor` is needed here"),
            ("item(self) + n", "E0310: a `Tensor` is needed here"),
            ("two(self)", "E0310: a `Tensor` is needed here"),
            ("split(self, n)", "E0310: a `Tensor` is needed here"),
            ("self + mode", "E0315: no operator declares `+` for these operands"),
            ("self - other", "E0315: no operator declares `-` for these operands"),
            ("plus(self, other, alpha = 2)", "E0329: `plus` has no argument `alpha`"),
            ("plus(self, oter = self)", "E0343: the argument `other` is missing"),
            ("plus(other = self)", "E0343: the argument `self` is missing"),
            ("plus(self, self = self)", "E0343: the argument `other` is missing"),
            ("grad", "E0305: nothing is called `grad` here"),
            (
                "op(self)",
                "E0343: the arguments `other`, `bias`, `list`, `n`, `m`, `x`, `flag`, `mode`, `dims`, `dtype`, `s` are missing",
            ),
            ("self.plus", "E0302: this syntax has no meaning in a spec"),
            ("times(self, n)", "E0310: a `Tensor` is needed here"),
            ("plus(bias, self)", "E0310: a `Tensor` is needed here"),
            ("plus(bias.unwrap_or(n), self)", "E0310: a `Tensor` is needed here"),
            ("{ let a = self; let a = n; a }", "E0310: a `Tensor` is needed here"),
            ("{ self; other }", "E0335: this statement has no effect in a spec"),
            ("return self", "E0302: this syntax has no meaning in a spec"),
            ("for i in dims { self }", "E0302: this syntax has no meaning in a spec"),
            ("match n { _ => self }", "E0302: this syntax has no meaning in a spec"),
            ("|y| self", "E0302: this syntax has no meaning in a spec"),
            ("self?", "E0302: this syntax has no meaning in a spec"),
            ("vec![self]", "E0302: this syntax has no meaning in a spec"),
            ("Some(self)", "E0327: there is no operator `Some`"),
            ("self + (other", "E0318: this bracket is never closed"),
            ("self +", "E0301: this is not an expression"),
            ("9999999999999999999999", "E0303: the number does not fit 64 bits"),
        ],
    );
}

#[test]
fn mistakes_in_derivatives_of_scalar_functions() {
    let rows = [
        ("resul", "E0305: nothing is called `resul` here"),
        ("y * 2", "E0305: nothing is called `y` here"),
        ("g(x)", "E0326: there is no scalar function `g`"),
        ("e(x, x)", "E0325: `e` takes 1 argument"),
        ("x > 0", "E0310: an `element` is needed here"),
        ("x.size(0)", "E0320: there is no method `size`"),
        ("\"a\"", "E0310: an `element` is needed here"),
        ("if x { 1 } else { 2 }", "E0310: a `bool` is needed here"),
        ("m::f(x)", "E0324: a Rust function cannot be called here"),
        ("x +", "E0301: this is not an expression"),
    ];
    for (expression, expected) in rows {
        let text = format!(
            "edition: 1\nfunctions:\n- func: e(x)\n  rust: m::e\n  derivative: {{x: '{expression}'}}\nops:\n- func: f(Tensor self) -> Tensor\n  pointwise: self\n  derivatives: {{self: grad}}\n"
        );
        let checked = check_text("spec.yaml", &text);
        let first = checked.diagnostics.errors().next();
        let found = first.map_or("accepted".to_owned(), |error| format!("{}: {}", error.code, error.message));
        assert_eq!(found, expected, "{expression}");
    }
}
