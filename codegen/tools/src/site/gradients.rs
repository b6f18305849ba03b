//! Gradients of an operator as a page shows them.
//!
//! In: an operator and its description. Out: sentences, and a row for each gradient formula.

use serde::Serialize;

use opsmith_codegen::emit;
use opsmith_codegen::model::{GradientSource, Model, Op};

use crate::describe::DescribedOperator;
use crate::typeset::{self, TypesetFormula};

/// A gradient formula.
#[derive(Clone, Debug, Serialize)]
pub struct DerivativeRow {
    /// The argument whose gradient it is.
    pub argument: String,
    /// The formula, MathML.
    pub math: Option<String>,
    /// The formula as text.
    pub source: String,
    /// The saved arguments and results, in words.
    pub saved: String,
    /// Whether it was derived from the expression of one element.
    pub derived: bool,
}

/// The gradient formulas.
pub fn rows(model: &Model, op: &Op) -> Vec<DerivativeRow> {
    let row = |formula: TypesetFormula| {
        let of = |name: &str| formula.argument.split([',', ' ']).any(|part| part == name);
        let derived = op.derivatives.iter().any(|derivative| {
            derivative.derived && derivative.arguments.iter().any(|index| of(&op.args[*index].name))
        });
        let saved = match formula.saved.as_slice() {
            [] => "nothing but sizes and dtypes".to_owned(),
            saved => saved.join(", "),
        };
        DerivativeRow {
            derived,
            saved,
            argument: formula.argument,
            math: formula.math,
            source: formula.source,
        }
    };
    typeset::derivatives(model, op).into_iter().map(row).collect()
}

/// The source of gradients.
pub fn sentence(meant: &Op) -> String {
    match meant.gradient_source() {
        GradientSource::Written if !meant.derivatives.is_empty() => {
            "By the formulas below, with grad the gradient of the result.".to_owned()
        }
        _ if !meant.derivatives.is_empty() => {
            "By the formulas below, derived from the expression of one element.".to_owned()
        }
        _ => format!("{}.", super::fields::capital(emit::source_of_gradients(meant))),
    }
}

/// Forward mode.
pub fn forward(described: &DescribedOperator) -> String {
    match described.forward_by {
        "" => "not supported".to_owned(),
        "written" => format!("by {}", described.tangents.join("; ")),
        by => format!("supported: {by}"),
    }
}

/// Gradients of gradients.
pub fn second_order(described: &DescribedOperator, meant: &Op) -> String {
    match &described.second_order_refused {
        Some(why) => format!("refused: {why}"),
        None if meant.gradient_source() == GradientSource::None => "no gradient".to_owned(),
        None => "supported".to_owned(),
    }
}
