//! Every named rule has an answer here.

use opsmith_codegen::pipeline::check_text;
use opsmith_core::rules::{DTYPE_RULES, RuleParam, SHAPE_RULES};
use opsmith_runtime::DType;

use super::{Given, GivenSize, Unknown, answer};

#[test]
fn no_rule_is_unknown() {
    let param = |param: &RuleParam| match param {
        RuleParam::Operands | RuleParam::Tensor => "x",
        RuleParam::Tensors => "xs",
        RuleParam::Int => "0",
        RuleParam::Ints | RuleParam::OptionalInts => "[0]",
        RuleParam::Bool => "true",
        RuleParam::OptionalDType => "dtype",
    };
    let shape = |name: &str| Some(Some(vec![GivenSize::Name(name.to_owned()), GivenSize::Number(3)]));
    for (rules, is_dtype) in [(SHAPE_RULES, false), (DTYPE_RULES, true)] {
        for rule in rules {
            let params: Vec<&str> = rule.params().iter().map(param).collect();
            let call = format!("\"{}({})\"", rule.name(), params.join(", "));
            let (shape_rule, dtype_rule) = match is_dtype {
                true => ("follow(x)", call.as_str()),
                false => (call.as_str(), "float32"),
            };
            let text = format!(
                "edition: 1\nops:\n- func: f(Tensor x, Tensor[] xs, *, ScalarType? dtype=None) -> Tensor\n  shape: {shape_rule}\n  dtype: {dtype_rule}\n  compute: follow(x)\n  decompose: x\n"
            );
            let checked = check_text("spec.yaml", &text);
            let op = &checked.model.ops[0];
            let given = Given { shapes: vec![shape("n"), shape("n")], dtype: DType::F32, set: Vec::new() };
            let answer = answer(op, op.infer.as_ref().expect(&text), &given).unwrap();
            assert!(
                !matches!(answer.shapes[0], Err(Unknown::Compiled(_))),
                "`{}` is not evaluated",
                rule.name()
            );
            assert!(
                !matches!(answer.dtypes[0], Err(Unknown::Compiled(_))),
                "`{}` is not evaluated",
                rule.name()
            );
            assert!(
                answer.shapes[0].as_ref().is_ok_and(Option::is_some) || rule.name() == "matmul",
                "{}",
                rule.name()
            );
        }
    }
}
