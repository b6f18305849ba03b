//! The results and errors of an operator in words, as pages have them.
//!
//! In: an operator. Out: sentences without marks of Markdown but those of code.

use opsmith_codegen::emit;
use opsmith_codegen::model::{Model, Op};
use serde::Serialize;

/// The sentences about an operator's results and errors.
#[derive(Serialize)]
pub struct InWords {
    /// The results that callers get, in order.
    pub results: Vec<ResultInWords>,
    /// The refused calls, the rest of a sentence each.
    pub errors: Vec<String>,
}

/// The rules of a result.
#[derive(Serialize)]
pub struct ResultInWords {
    /// The rule of its shape.
    pub shape: String,
    /// The rule of its dtype.
    pub dtype: String,
}

/// The sentences about an operator; about an alias those of the operator that it means.
pub fn in_words(op: &Op, model: &Model) -> InWords {
    let op = op.alias_of.and_then(|id| model.ops.get(id.0)).unwrap_or(op);
    let rules = emit::rules_of_results(op, model).into_iter();
    InWords {
        results: rules.map(|rule| ResultInWords { shape: rule.shape, dtype: rule.dtype }).collect(),
        errors: emit::errors_in_words(op, model),
    }
}
