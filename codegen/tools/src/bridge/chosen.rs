//! The operators of a folder.
//!
//! In: a model, and names that a user gives. Out: the operators, those that were left out, and why.

use opsmith_codegen::model::Model;

use super::{Framework, refusal_of};

/// An operator that no framework can have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Its full name.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// The operators of a folder.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chosen {
    /// Their places in the model, in its order.
    pub operators: Vec<usize>,
    /// The others among those that were asked for.
    pub left_out: Vec<LeftOut>,
}

impl Chosen {
    /// The operators of some names, with or without overload; without names, the spec's own.
    ///
    /// # Errors
    /// If no operator has a name, or none of that name can be one of a framework: the reason, as users read it.
    pub fn of(model: &Model, names: &[String], framework: Framework) -> Result<Chosen, String> {
        let mut chosen = Chosen::default();
        let is_named = |op: &opsmith_codegen::model::Op, name: &String| *name == op.name || *name == op.base;
        for (place, op) in model.ops.iter().enumerate() {
            let is_chosen = match names {
                [] => !op.is_external(),
                names => names.iter().any(|name| is_named(op, name)),
            };
            if !is_chosen {
                continue;
            }
            match refusal_of(framework, model, op) {
                None => chosen.operators.push(place),
                Some(reason) => chosen.left_out.push(LeftOut { name: op.name.clone(), reason }),
            }
        }
        for name in names {
            let known: Vec<_> = model.ops.iter().filter(|op| is_named(op, name)).collect();
            if known.is_empty() {
                return Err(format!(
                    "there is no operator `{name}`; names are those of entries, such as `add.Tensor` or `add`"
                ));
            }
            if let Some(reason) = known
                .iter()
                .map(|op| refusal_of(framework, model, op))
                .collect::<Option<Vec<_>>>()
                .and_then(|all| all.into_iter().next())
            {
                return Err(format!("`{name}` cannot be an operator of another framework: {reason}"));
            }
        }
        Ok(chosen)
    }
}
