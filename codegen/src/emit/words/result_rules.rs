//! The rules of results: shape and dtype of each, as the entry has them, or as those of the operators that a composition calls.
//!
//! In: an operator. Out: a sentence for each rule; Markdown.

use super::{code, rule};
use crate::analysis::composed::{Callers, Source, source};
use crate::model::{Model, Op};

/// The rule of a result, in words; Markdown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultWords {
    /// The rule of its shape.
    pub shape: String,
    /// The rule of its dtype.
    pub dtype: String,
}

/// The rules of the results that callers get; empty if the operator returns no tensors.
pub fn rules_of_results(op: &Op, model: &Model) -> Vec<ResultWords> {
    let words = |rules: ResultRules| ResultWords { shape: rules.shape.text(), dtype: rules.dtype.text() };
    rules_in(op, model, &Callers { op, outer: None }).into_iter().map(words).collect()
}

/// The rules of a result.
#[derive(Clone)]
struct ResultRules {
    shape: ResultRule,
    dtype: ResultRule,
}

/// The rule of a shape or dtype.
#[derive(Clone, PartialEq)]
enum ResultRule {
    /// A rule that names no other operator, in words.
    Own(String),
    /// That of an argument, by its name.
    OfArgument(String),
    /// That of an operator that the composition calls.
    Told { operator: String, rule: Box<ResultRule> },
    /// One of two; the condition is in words.
    Either { condition: String, rules: Box<[ResultRule; 2]> },
}

impl ResultRule {
    fn own(text: impl Into<String>) -> ResultRule {
        ResultRule::Own(text.into())
    }

    /// The rule of a result that an operator gives; a rule that names the operator that it comes from stays as it is.
    fn told_by(self, operator: &str) -> ResultRule {
        match self {
            ResultRule::Told { .. } => self,
            _ => ResultRule::Told { operator: operator.to_owned(), rule: Box::new(self) },
        }
    }

    /// One rule if a condition holds, another if not.
    fn either(condition: &str, yes: ResultRule, no: ResultRule) -> ResultRule {
        match yes == no {
            true => yes,
            false => ResultRule::Either { condition: condition.to_owned(), rules: Box::new([yes, no]) },
        }
    }

    fn text(&self) -> String {
        match self {
            ResultRule::Own(text) => text.clone(),
            ResultRule::OfArgument(name) => format!("that of `{name}`"),
            ResultRule::Told { operator, rule } => format!("that of `{operator}`: {}", rule.text()),
            ResultRule::Either { condition, rules } => {
                format!("{} if {condition}, else {}", rules[0].text(), rules[1].text())
            }
        }
    }
}

/// The rules of an operator's results, which a composition may call.
fn rules_in(op: &Op, model: &Model, callers: &Callers<'_>) -> Vec<ResultRules> {
    let visible = op.visible().len();
    let alike = |shape: &str, dtype: &str| {
        vec![ResultRules { shape: ResultRule::own(shape), dtype: ResultRule::own(dtype) }; visible]
    };
    let Some(infer) = &op.infer else {
        return match (&op.body.view, &op.body.composite) {
            (Some(path), _) => {
                alike(&format!("as the layout function `{path}` says"), "that of the tensor it is a view of")
            }
            (None, Some(_)) => {
                let unknown =
                    || alike("as the composition gives it", "as the composition gives it").remove(0);
                let row = |position| of_source(op, model, &source(model, op, position)?, callers);
                (0..visible).map(|position| row(position).unwrap_or_else(unknown)).collect()
            }
            (None, None) => Vec::new(),
        };
    };
    let written = |expr| ResultRule::Own(rule(expr, op, model));
    let dtypes = infer.dtypes.iter().take(visible).map(written);
    if let Some(path) = &infer.function {
        let shape = ResultRule::Own(format!("as the Rust function `{path}` says"));
        return dtypes.map(|dtype| ResultRules { shape: shape.clone(), dtype }).collect();
    }
    let shapes = if infer.run_shapes.is_empty() { &infer.shapes } else { &infer.run_shapes };
    shapes.iter().map(written).zip(dtypes).map(|(shape, dtype)| ResultRules { shape, dtype }).collect()
}

/// The rules of a result of a composition: those of its source; `None` if that has none.
fn of_source(op: &Op, model: &Model, source: &Source<'_>, callers: &Callers<'_>) -> Option<ResultRules> {
    match source {
        Source::Argument(index) => {
            let rule = ResultRule::OfArgument(op.args.get(*index)?.name.clone());
            Some(ResultRules { shape: rule.clone(), dtype: rule })
        }
        Source::Call { called, meant, position, .. } => {
            // A composition may call its own operator, with other arguments.
            if callers.have(meant) {
                return None;
            }
            let inside = Callers { op: meant, outer: Some(callers) };
            let rules = rules_in(meant, model, &inside).into_iter().nth(*position)?;
            let ResultRules { shape, dtype } = rules;
            Some(ResultRules { shape: shape.told_by(&called.name), dtype: dtype.told_by(&called.name) })
        }
        Source::Either { condition, sources, .. } => {
            let [yes, no] = &**sources;
            let (yes, no) = (of_source(op, model, yes, callers)?, of_source(op, model, no, callers)?);
            let condition = code(condition, op, model);
            Some(ResultRules {
                shape: ResultRule::either(&condition, yes.shape, no.shape),
                dtype: ResultRule::either(&condition, yes.dtype, no.dtype),
            })
        }
    }
}
