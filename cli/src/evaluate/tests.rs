//! Every named rule has an answer here.

use opsmith_codegen::expr::{Expr, ExprKind, Variable};
use opsmith_codegen::model::{Kind, Ty};
use opsmith_core::rules::{DTYPE_RULES, RuleParam, SHAPE_RULES};
use opsmith_runtime::{Tensor, Value};

use super::{Evaluation, Unknown};

#[test]
fn no_rule_is_unknown() {
    let tensor = || Tensor::of(&[1.0f32, 2.0]);
    let value = |param: &RuleParam| match param {
        RuleParam::Operands | RuleParam::Tensor => Value::Tensor(tensor()),
        RuleParam::Tensors => Value::Tensors(vec![tensor()]),
        RuleParam::Int => Value::Int(0),
        RuleParam::Ints | RuleParam::OptionalInts => Value::Ints(vec![0]),
        RuleParam::Bool => Value::Bool(true),
        RuleParam::OptionalDType => Value::None,
    };
    for (rules, kind) in [(SHAPE_RULES, Kind::Ints(None)), (DTYPE_RULES, Kind::DType)] {
        for rule in rules {
            let args: Vec<Value> = rule.params.iter().map(value).collect();
            let operand = |index| {
                let kind = ExprKind::Variable(Variable::Arg(index));
                Expr { kind, ty: Ty::new(Kind::Unit), range: 0..0 }
            };
            let operands = (0..args.len()).map(operand).collect();
            let call =
                Expr { kind: ExprKind::Rule(rule.name, operands), ty: Ty::new(kind.clone()), range: 0..0 };
            let answer = Evaluation { args: &args, locals: Vec::new() }.value(&call);
            assert!(!matches!(answer, Err(Unknown::Compiled(_))), "`{}` is not evaluated", rule.name);
        }
    }
}
