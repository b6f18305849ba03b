//! The sizes of results in symbols, where the entry's rules are a name or a function: as inference found them at samples in a test run.
//!
//! In: an operator and results of a test run. Out: a formula for each sample, or the reason why there is none.

use opsmith_codegen::model::{Model, Op};
use serde::Serialize;

use super::fields::ResultRow;
use crate::results::{RecordedArgument, RecordedSizes, RecordedTensor, Results};
use crate::typeset::{self, SizesOfArgument};

/// The most samples of a page.
const MOST: usize = 3;

/// The sizes of results at samples.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SizesInSymbols {
    /// The samples.
    pub samples: Vec<SizesRow>,
    /// Whether a test run was recorded that has none of them, although the results have sizes that no rule gives.
    pub is_missing: bool,
}

/// The sizes at a sample.
#[derive(Clone, Debug, Serialize)]
pub struct SizesRow {
    /// The sizes of arguments and results, MathML.
    pub math: String,
    /// Remarks on sizes without formula, HTML.
    pub notes: Vec<String>,
}

/// The sizes of an operator's results, if its rules are not typeset, or name a rule in place of sizes; rules are those of the operator that
/// another name means.
pub fn in_symbols(
    op: &Op,
    meant: &Op,
    model: &Model,
    rows: &[ResultRow],
    results: Option<&Results>,
) -> SizesInSymbols {
    let has_sizes = meant.returns_tensors() && !meant.visible().is_empty();
    let is_typeset =
        rows.iter().all(|row| row.shape_math.is_some()) && !typeset::shapes_name_rules(model, meant);
    let Some(results) = results.filter(|_| has_sizes && !is_typeset) else {
        return SizesInSymbols::default();
    };
    let found = [meant, op].into_iter().filter_map(|op| results.operator(&op.name));
    let mut samples: Vec<SizesRow> = Vec::new();
    for row in found.flat_map(|results| &results.sizes).map(|sizes| row(model, meant, sizes)) {
        // Samples that differ in other ways than their sizes look alike.
        if samples.len() < MOST && samples.iter().all(|known| known.math != row.math) {
            samples.push(row);
        }
    }
    SizesInSymbols { is_missing: samples.is_empty(), samples }
}

fn row(model: &Model, op: &Op, sizes: &RecordedSizes) -> SizesRow {
    let arguments: Vec<_> =
        sizes.arguments.iter().map(|argument| (argument.name.as_str(), shown(argument))).collect();
    let mut notes = Vec::new();
    for run in &sizes.run {
        let most = run.most.as_ref().map(|most| format!(", at most {}", typeset::formula_of_size(most)));
        let size = typeset::formula_of_size(&run.size);
        notes.push(format!(
            "{size} depends on the elements, so that only a call gives it{}.",
            most.unwrap_or_default()
        ));
    }
    if sizes.results.iter().any(|sizes| sizes.as_ref().is_none_or(|sizes| sizes.contains(&None))) {
        notes.push("Inference has no formula for a size that is written as ?; a call gives it.".to_owned());
    }
    SizesRow {
        math: typeset::sizes_of_sample(model, op, &arguments, &sizes.results, &sizes.conditions),
        notes,
    }
}

fn shown(argument: &RecordedArgument) -> SizesOfArgument<'_> {
    match argument {
        RecordedArgument { sizes: Some(RecordedTensor::Sizes(sizes)), .. } => SizesOfArgument::Sizes(sizes),
        RecordedArgument { list: Some(list), .. } => {
            let each = |tensor: &Option<RecordedTensor>| match tensor {
                Some(RecordedTensor::Sizes(sizes)) => Some(sizes.clone()),
                _ => None,
            };
            SizesOfArgument::List(list.iter().map(each).collect())
        }
        RecordedArgument { value: Some(text), .. } => SizesOfArgument::Value(text),
        _ => SizesOfArgument::Value("known elements"),
    }
}
