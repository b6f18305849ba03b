//! Arguments and results of an operator as a page shows them.
//!
//! In: an operator. Out: a row for each argument and each result that callers get.

use serde::Serialize;

use opsmith_codegen::emit::{self, ResultWords};
use opsmith_codegen::model::{Arg, Model, Op, Output};

use super::markdown::{self, Links};
use crate::typeset;

/// An argument.
#[derive(Clone, Debug, Serialize)]
pub struct ArgumentRow {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its default, HTML.
    pub default: Option<String>,
    /// Whether it stands after `*`.
    pub keyword: bool,
    /// Its meaning, HTML.
    pub doc: String,
    /// The values that it may have, in words.
    pub constraints: String,
    /// Remarks, HTML.
    pub notes: Vec<String>,
}

/// A result.
#[derive(Clone, Debug, Serialize)]
pub struct ResultRow {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its meaning, HTML.
    pub doc: String,
    /// The rule of its shape in words, HTML.
    pub shape: String,
    /// Its sizes, MathML.
    pub shape_math: Option<String>,
    /// The rule of its dtype in words, HTML.
    pub dtype: String,
}

/// The arguments in the order of the signature.
pub fn arguments(op: &Op, links: &dyn Links) -> Vec<ArgumentRow> {
    let row = |arg: &Arg| ArgumentRow {
        name: arg.name.clone(),
        ty: arg.ty.to_string(),
        default: arg
            .default
            .as_ref()
            .map(|default| markdown::inline(&emit::default_in_words(default), links)),
        keyword: arg.keyword_only,
        doc: sentence(&markdown::inline(&arg.doc, links)),
        constraints: capital(&emit::constraints_in_words(arg)),
        notes: emit::notes_of_argument(arg)
            .iter()
            .map(|note| markdown::inline(&capital(note), links))
            .collect(),
    };
    op.args.iter().map(row).collect()
}

/// The results that callers get; rules are those of the operator that an alias means.
pub fn results(op: &Op, meant: &Op, model: &Model, links: &dyn Links) -> Vec<ResultRow> {
    let (rules, mut shapes) = (emit::rules_of_results(meant, model), typeset::shapes(model, meant));
    let row = |(index, output): (usize, &Output)| {
        let words = |text: fn(&ResultWords) -> &str| {
            rules.get(index).map(|rules| markdown::inline(text(rules), links)).unwrap_or_default()
        };
        ResultRow {
            name: op.result_name(index),
            ty: output.ty.to_string(),
            doc: sentence(&markdown::inline(&output.doc, links)),
            shape: words(|rules| &rules.shape),
            shape_math: shapes.get_mut(index).and_then(Option::take),
            dtype: words(|rules| &rules.dtype),
        }
    };
    op.visible().iter().enumerate().map(row).collect()
}

/// A meaning as the start of a sentence, whose end the template writes.
fn sentence(html: &str) -> String {
    capital(html.trim_end_matches('.'))
}

/// A text whose first letter is large.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
