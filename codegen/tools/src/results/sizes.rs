//! Sizes of results as formulas of the sizes of arguments, which a test run found by inference at samples.

use serde::Deserialize;

/// The most samples of an operator that are kept.
const MOST_SAMPLES: usize = 16;
/// The most parts of a list that are kept.
const MOST_PARTS: usize = 64;

/// The sizes of the results of a sample.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct RecordedSizes {
    /// The tensors, and the attributes that have not their defaults.
    pub arguments: Vec<RecordedArgument>,
    /// The sizes of each result; `None` for a size without formula, or for all if the number of dimensions is open.
    pub results: Vec<Option<Vec<Option<String>>>>,
    /// The conditions on sizes under which the formulas hold.
    pub conditions: Vec<String>,
    /// The sizes that elements decide, so that they are known after the call alone.
    pub run: Vec<SizeOfRun>,
}

/// An argument of a sample: one of its fields is given.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct RecordedArgument {
    /// Its name.
    pub name: String,
    /// Of a tensor.
    pub sizes: Option<RecordedTensor>,
    /// Of a list of tensors; `None` for an absent one.
    pub list: Option<Vec<Option<RecordedTensor>>>,
    /// Of an attribute, as text.
    pub value: Option<String>,
}

/// A tensor of a sample.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum RecordedTensor {
    /// Its sizes, as formulas.
    Sizes(Vec<String>),
    /// The sizes of a tensor whose elements are known.
    Constant {
        /// The sizes.
        constant: Vec<i64>,
    },
}

/// A size that elements decide.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct SizeOfRun {
    /// Its symbol.
    pub size: String,
    /// Its upper bound, a formula.
    pub most: Option<String>,
}

/// Adds a sample, unless there are many, it is there already, or a list in it is long.
pub(super) fn add(all: &mut Vec<RecordedSizes>, sizes: RecordedSizes) {
    let ranks = sizes.results.iter().flatten().map(Vec::len);
    let lists = sizes.arguments.iter().filter_map(|argument| argument.list.as_ref().map(Vec::len));
    let lengths = [sizes.arguments.len(), sizes.results.len(), sizes.conditions.len(), sizes.run.len()];
    let is_short = lengths.into_iter().chain(ranks).chain(lists).all(|length| length <= MOST_PARTS);
    if is_short && all.len() < MOST_SAMPLES && !all.contains(&sizes) {
        all.push(sizes);
    }
}
