//! Uses: the callers of an operator.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use opsmith_codegen::model::Model;
use opsmith_codegen::model::expr::{Expr, ExprKind};

/// An operator that calls another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Use {
    /// The caller.
    pub op: String,
    /// The key `decompose`, or the gradient with its arguments.
    pub place: String,
}

/// The uses of every operator in other operators and in its own gradients, by its full name; in the spec's order.
pub fn all_uses(model: &Model) -> HashMap<&str, Vec<Use>> {
    let mut uses: HashMap<&str, Vec<Use>> = HashMap::new();
    let mut add = |expr: &Expr, caller: &str, place: &dyn Fn() -> String| {
        let mut called = BTreeSet::new();
        expr.walk(&mut |part| {
            if let ExprKind::Op(id, _) = part.kind {
                called.insert(id);
            }
        });
        for op in called.into_iter().filter_map(|id| model.ops.get(id.0)) {
            uses.entry(&op.name).or_default().push(Use { op: caller.to_owned(), place: place() });
        }
    };
    for caller in &model.ops {
        if let Some(composite) = &caller.body.composite {
            add(composite, &caller.name, &|| "decompose".to_owned());
        }
        for derivative in &caller.derivatives {
            let of = || {
                let names = derivative.arguments.iter().map(|index| caller.args[*index].name.as_str());
                format!("gradient of {}", names.collect::<Vec<_>>().join(", "))
            };
            add(&derivative.formula, &caller.name, &of);
        }
    }
    uses
}
