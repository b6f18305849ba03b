//! `opsmith explain`, run as a process, on the stock spec and on a user's.

mod support;

use serde_json::{Value, json};
use support::opsmith;

#[test]
fn which_code_runs_in_one_step() {
    let run = opsmith(&["explain", "mm", "--shapes", "2x3,3x4", "--dtype", "bfloat16"]);
    run.assert_parts(&[
        "mm(Tensor self, Tensor mat2) -> Tensor\n  declared at ops/products.yaml:",
        "which code runs\n  Rust function `linalg::mm`\n  at kernels/src/cpu/linalg/mod.rs:",
        "because the table has a row for CPU and bfloat16\n",
        "  declared as pub fn mm<T: Element>(self_: View<'_, T>, mat2: View<'_, T>, out: ViewMut<'_, T>) -> Result<()>\n",
        "pub fn mm(self_: &Tensor, mat2: &Tensor) -> Result<Tensor>\n",
        "as a method: self_.mm(mat2)",
        "by name: call(\"mm\" or \"mm.out\", …)\n",
        "requires self.dim() == 2\n",
        "dtype same(self, mat2): the dtype all operands share",
        "=> shape (2, 4), dtype bfloat16\n",
        "gradients\n  self: mm(grad, mat2.t().conj())\n    saves mat2\n",
        "used by\n",
        "mm (gradient of self)\n",
        "(decompose)\n",
    ]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    assert!(line_at(&run.stdout, "kernels/src/cpu/linalg/mod.rs").starts_with("pub fn mm<"));
}

/// The line of a file that an explanation names.
fn line_at(explanation: &str, file: &str) -> String {
    let place = |line: &str| line.trim().strip_prefix(&format!("at {file}:"))?.parse::<usize>().ok();
    let place = explanation.lines().find_map(place).unwrap_or_else(|| panic!("{explanation}"));
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::read_to_string(root.join(file)).unwrap().lines().nth(place - 1).unwrap().to_owned()
}

/// The kernel of a device has its own place; that of an expression is made of the entry.
#[test]
fn which_code_runs_on_a_device() {
    let run = opsmith(&["explain", "mm", "--device", "cuda"]);
    run.assert_parts(&[
        "which code runs\n  Rust function `linalg::mm`\n  at kernels/src/cuda/linalg.rs:",
        "because the table has a row for CUDA",
        "By the vendor's library (cuBLASLt) where it is found and takes dtype and layout, else by `product.cuh`.",
    ]);
    assert!(line_at(&run.stdout, "kernels/src/cuda/linalg.rs").starts_with("pub fn mm("));
    let run = opsmith(&["explain", "sigmoid", "--device", "cuda"]);
    assert!(line_at(&run.stdout, "ops/elementary.yaml").contains("sigmoid(self)"), "{}", run.stdout);
}

#[test]
fn expressions_compositions_and_functions_in_cpp_have_places() {
    opsmith(&["explain", "gelu", "--dtype", "int32"])
        .assert_parts(&["which code runs\n  none: no kernel for CPU and "]);
    opsmith(&["explain", "exp"])
        .assert_parts(&["which code runs\n  expression `exp(self)`\n  at ops/elementary.yaml:"]);
    opsmith(&["explain", "zeros_like"]).assert_parts(&[
        "inference\n  requires !pin_memory.unwrap_or(false)\n  shape that of `self`\n  dtype `dtype` if it is given, else that of `self`\n",
    ]);
    opsmith(&["explain", "cosine_similarity"]).assert_parts(&[
        "which code runs\n  composition `",
        "at ops/losses.yaml:",
        "decomposes to\n",
    ]);
    // A formula that the entry writes.
    opsmith(&["explain", "softmax.int"])
        .assert_parts(&["formula\n  y_{…, i, …} = exp(self_{…, i, …}) / Σ_j exp(", "which code runs\n"]);
    // Dtypes in rows: a type for each tensor.
    opsmith(&["explain", "mixed", "--spec", "tests/fixture/spec.yaml"]).assert_parts(&[
        "  declared as pub fn mixed<T0: Element, T1: Element, T2: Element, T3: Element>(self_: View<'_, T0>, \
         weight: View<'_, T1>, x: f64, out_out: ViewMut<'_, T2>, total_out: ViewMut<'_, T3>) -> Result<()>\n",
    ]);
    opsmith(&["explain", "transpose_copy", "--spec", "examples/custom_op/ops.yaml"]).assert_parts(&[
        "which code runs\n  C or C++ function `kernels/transpose.cc:custom_transpose_copy`\n",
        "at examples/custom_op/kernels/transpose.cc:",
        "  declared as int custom_transpose_copy(OpsmithContext* context, const OpsmithTensor* x, OpsmithInts perm, OpsmithTensor* out)\n",
        "shapes::permuted at examples/custom_op/src/kernels/shapes.rs:",
    ]);
}

/// The results of an operator's rules for arguments.
fn evaluated(arguments: &[&str]) -> Value {
    let run = opsmith(&[&["explain", "--json"], arguments].concat());
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    serde_json::from_str::<Value>(&run.stdout).unwrap()[0]["evaluated"].clone()
}

/// Such results, of one output and without conditions.
fn answer(shape: Value, dtype: &str) -> Value {
    json!({"failed_checks": [], "shapes": [shape], "dtypes": [dtype], "only_where": [], "at_most": {}})
}

#[test]
fn rules_are_evaluated_as_a_call_would() {
    assert_eq!(
        evaluated(&[
            "sum.dim_IntList",
            "--shapes",
            "2x3x4",
            "--set",
            "dim=0,2",
            "--set",
            "keepdim=true",
            "--dtype",
            "int32"
        ]),
        answer(json!([1, 3, 1]), "int64")
    );
    assert_eq!(
        evaluated(&["add.Tensor", "--shapes", "2x1,3", "--set", "alpha=2"]),
        answer(json!([2, 3]), "float32")
    );
    assert_eq!(
        evaluated(&["add.Tensor", "--shapes", "scalar,3", "--dtype", "int8"]),
        answer(json!([3]), "int8")
    );
    assert_eq!(
        evaluated(&["add.Scalar", "--shapes", "3", "--dtype", "int8", "--set", "other=1.5"]),
        answer(json!([3]), "float32")
    );
    assert_eq!(
        evaluated(&["cat", "--shapes", "2x3,2x4", "--set", "dim=1"]),
        answer(json!([2, 7]), "float32")
    );
    let failed = evaluated(&["mm", "--shapes", "2x3,4x4"]);
    assert!(
        failed["failed_checks"][0]["why"].as_str().unwrap().contains("the left side is 3, the right side 4"),
        "{failed}"
    );
    let compiled = evaluated(&["flip", "--shapes", "2x3", "--set", "dims=0"]);
    assert!(compiled["shapes"][0]["unknown"].as_str().unwrap().contains("infer::flip"), "{compiled}");
}

/// Sizes may be names, or unknown, and so may the rank.
#[test]
fn rules_are_evaluated_for_sizes_that_are_open() {
    assert_eq!(
        evaluated(&["cat", "--shapes", "nx3,mx3", "--set", "dim=0"]),
        answer(json!(["n+m", 3]), "float32")
    );
    assert_eq!(evaluated(&["mm", "--shapes", "-1x3,3xn"]), answer(json!([-1, "n"]), "float32"));
    assert_eq!(evaluated(&["relu", "--shapes", "-2"]), answer(json!([-2]), "float32"));
    let guarded = evaluated(&["mm", "--shapes", "nxk,jx4"]);
    assert_eq!((&guarded["shapes"][0], &guarded["only_where"]), (&json!(["n", 4]), &json!(["k == j"])));
    let open = evaluated(&["maximum", "--shapes", "-2,nx4"]);
    assert_eq!(
        open["only_where"],
        json!(["what is not known fits: sizes broadcast only if they are equal or 1"])
    );
    // A data-dependent size has the name and the bound from the spec, and is one size in all results.
    let found = evaluated(&["nonzero", "--shapes", "nx4"]);
    assert_eq!((&found["shapes"][0], &found["at_most"]), (&json!(["found", 2]), &json!({"found": "4*n"})));
    assert_eq!(evaluated(&["masked_select", "--shapes", "2x3,2x3"])["at_most"], json!({"found": "6"}));
    let several = evaluated(&["_unique2", "--shapes", "2x3", "--set", "return_counts=true"]);
    assert_eq!(several["shapes"], json!([["found"], [0], ["found"]]));
    assert_eq!(several["at_most"], json!({"found": "6"}));
    opsmith(&["explain", "nonzero", "--shapes", "2x3"]).assert_parts(&[
        "shape infer::nonzero(self)",
        "shape before a run [found, self.dim()]",
        "found is known after a run: at most self.numel()",
        "=> shape (found, 2), dtype int64",
        "=> found is at most 6",
    ]);
}

#[test]
fn a_name_with_overloads_explains_all() {
    let run = opsmith(&["explain", "add"]);
    run.assert_parts(&[
        "add.Tensor(",
        "add.Scalar(",
        "2 operators are called `add`; name one in full to see it alone\n",
    ]);
    let json = opsmith(&["explain", "add", "--json"]).stdout;
    let all: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(all[0]["name"], "add.Tensor");
    assert_eq!(all[0]["derivatives"][0]["saves"], json!([]));
}

#[test]
fn what_is_wrong_with_a_question() {
    opsmith(&["explain", "mmm"]).assert(2, "", "error: there is no operator `mmm`; did you mean `mm`?\n");
    opsmith(&["explain", "np.pwer"]).assert(
        2,
        "",
        "error: there is no operator `np.pwer`; did you mean `power`?\n",
    );
    let unlike = opsmith(&["explain", "np.var"]);
    assert!(
        unlike.stderr.contains("`numpy.var` means something else here: `var.correction` divides by n - 1")
    );
    let error = |arguments: &[&str]| {
        let run = opsmith(&[&["explain"], arguments].concat());
        assert_eq!((run.status, &*run.stdout), (Some(2), ""));
        run.stderr
    };
    assert!(
        error(&["mm", "--dtype", "f32x"]).starts_with("error: no dtype is called `f32x`; there are bool, ")
    );
    assert_eq!(
        error(&["mm", "--shapes", "2x3"]),
        "error: the shape of `mat2` is missing; give one for each tensor: --shapes 2x3,3x4\n"
    );
    assert_eq!(
        error(&["mm", "--shapes", "2y3"]),
        "error: `2y3` is no shape; write sizes joined by `x`, such as 2x3, nx3 for a size with a name, -1x3 for an unknown one, and -2 for any number of dimensions\n"
    );
    assert_eq!(
        error(&["mm", "--shapes", "2x3,3x4,1"]),
        "error: --shapes gives 3 shapes, and `mm` has 2 tensor arguments\n"
    );
    assert!(error(&["add.Tensor", "--shapes", "2,2", "--set", "alpa=2"]).contains("did you mean `alpha`?"));
    assert!(error(&["flip", "--shapes", "2"]).contains("`dims` has no default; give it with --set dims=…"));
}

/// Every operator can be explained, whatever keys its entry has.
#[test]
fn stock_operators_of_every_kind() {
    let config =
        opsmith_codegen::Config::stock(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops.yaml"));
    let checked = opsmith_codegen::pipeline::check(&config).unwrap();
    for op in checked.model.ops.iter().step_by(30) {
        let run = opsmith(&["explain", &op.name, "--dtype", "float64"]);
        assert_eq!(run.status, Some(0), "{}: {}", op.name, run.stderr);
        run.assert_parts(&[&op.signature, "which code runs\n  ", "Rust\n  pub fn "]);
        assert!(!run.stdout.contains("not found"), "{}", run.stdout);
    }
}

#[test]
fn operators_are_found_by_names_of_other_libraries() {
    for (name, found) in [
        ("torch.abs", "abs(Tensor self) -> Tensor"),
        ("aten::abs", "abs(Tensor self) -> Tensor"),
        ("abs_out", "abs(Tensor self) -> Tensor"),
        ("np.power", "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor"),
        ("F.conv2d", "conv2d(Tensor input, Tensor weight"),
        ("torch.special.expit", "sigmoid(Tensor self) -> Tensor"),
    ] {
        opsmith(&["explain", name]).assert_parts(&[found]);
    }
}
