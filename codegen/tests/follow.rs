//! Results that follow other results: shapes and dtypes are separate keys, and each chain is resolved separately, in
//! the order written.

use opsmith_codegen::model::expr::{Expr, ExprKind, Variable};
use opsmith_codegen::pipeline::check_text;

/// The rules of the only operator of a spec, each with its source result or argument: `shapes, dtypes, compute`.
#[track_caller]
fn resolved(shape: &str, dtype: &str) -> (Vec<String>, Vec<String>, String) {
    let text = format!(
        "edition: 1\nops:\n- func: f(Tensor x, Tensor y) -> (Tensor a, Tensor b, Tensor c)\n  shape: {shape}\n  dtype: {dtype}\n  dispatch: {{CPU: k::f}}\n"
    );
    let checked = check_text("spec.yaml", &text);
    // Whether a kernel can write the dtype is checked later.
    let others =
        checked.diagnostics.errors().filter(|error| !error.message.starts_with("the element type of output"));
    let errors: Vec<String> = others.map(|error| error.message.clone()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let infer = checked.model.ops[0].infer.as_ref().expect("it has rules");
    let all = |exprs: &[Expr]| exprs.iter().map(said).collect();
    (all(&infer.shapes), all(&infer.dtypes), said(&infer.compute))
}

fn said(expr: &Expr) -> String {
    let name = |index: usize| ["x", "y"][index].to_owned();
    match &expr.kind {
        ExprKind::Variable(Variable::Arg(index)) => name(*index),
        ExprKind::Rule(rule, args) => {
            format!("{}({})", rule.name(), args.iter().map(said).collect::<Vec<_>>().join(", "))
        }
        ExprKind::DType(dtype) => dtype.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn each_key_has_chains_of_its_own() {
    let (shapes, dtypes, _) =
        resolved("[follow(x), follow(a), follow(b)]", "[follow(y), \"promote(x, y)\", follow(a)]");
    assert_eq!(shapes, ["follow(x)", "follow(x)", "follow(x)"]);
    assert_eq!(dtypes, ["follow(y)", "promote(x, y)", "follow(y)"]);
    // The chains may run in opposite directions.
    let (shapes, dtypes, _) =
        resolved("[\"broadcast(x, y)\", follow(a), follow(b)]", "[follow(b), follow(c), float64]");
    assert_eq!(shapes, ["broadcast(x, y)"; 3]);
    assert_eq!(dtypes, ["float64"; 3]);
}

#[test]
fn results_that_follow_different_inputs_get_their_own() {
    let (shapes, dtypes, _) =
        resolved("[follow(x), follow(y), follow(b)]", "[follow(y), follow(x), follow(a)]");
    assert_eq!(shapes, ["follow(x)", "follow(y)", "follow(y)"]);
    assert_eq!(dtypes, ["follow(y)", "follow(x)", "follow(y)"]);
}

#[test]
fn the_kernel_is_chosen_by_the_end_of_the_chain() {
    // A fixed dtype selects no kernel, directly or at the end of a chain.
    for dtype in ["[int64, follow(y), follow(y)]", "[follow(c), follow(b), int64]"] {
        let dtype = dtype.replace("follow(b)", "follow(x)");
        let (_, dtypes, compute) = resolved("[follow(x), follow(x), follow(x)]", &dtype);
        assert_eq!((dtypes[0].as_str(), compute.as_str()), ("int64", "follow(x)"));
    }
    let (_, _, compute) = resolved("[follow(x), follow(x), follow(x)]", "[follow(b), follow(y), int64]");
    assert_eq!(compute, "follow(y)");
}
