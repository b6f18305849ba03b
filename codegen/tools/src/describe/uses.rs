//! Uses: the callers of an operator.

use serde::Serialize;

use opsmith_codegen::model::expr::{Expr, ExprKind};
use opsmith_codegen::model::{Model, Op};

/// An operator that calls another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Use {
    /// The caller.
    pub op: String,
    /// The key `decompose`, or the gradient with its arguments.
    pub place: String,
}

/// The uses of an operator in other operators and in its own gradients; in the spec's order.
pub fn uses(model: &Model, op: &Op) -> Vec<Use> {
    let calls = |expr: &Expr| {
        let mut found = false;
        expr.walk(&mut |part| {
            found |= matches!(part.kind, ExprKind::Op(id, _) if model.ops.get(id.0).is_some_and(|called| called.name == op.name));
        });
        found
    };
    let mut uses = Vec::new();
    for caller in &model.ops {
        if caller.body.composite.as_ref().is_some_and(calls) {
            uses.push(Use { op: caller.name.clone(), place: "decompose".to_owned() });
        }
        for derivative in caller.derivatives.iter().filter(|derivative| calls(&derivative.formula)) {
            let of: Vec<&str> =
                derivative.arguments.iter().map(|index| caller.args[*index].name.as_str()).collect();
            uses.push(Use { op: caller.name.clone(), place: format!("gradient of {}", of.join(", ")) });
        }
    }
    uses
}
