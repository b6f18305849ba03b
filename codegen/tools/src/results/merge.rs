//! Several runs as one: the last run decides about a check, and in it the worst outcome.

use std::collections::BTreeMap;

use super::{Cell, OperatorResults, Outcome};

/// One run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Part {
    /// The library.
    pub library: String,
    /// The fingerprint of its spec; `None` for times of calls.
    pub fingerprint: Option<String>,
    /// The time of its start in seconds.
    pub time: f64,
    /// The results as they were recorded.
    pub operators: BTreeMap<String, OperatorResults>,
}

/// The results of all runs.
pub(super) fn merged(parts: &[Part]) -> BTreeMap<String, OperatorResults> {
    let mut order: Vec<&Part> = parts.iter().collect();
    order.sort_by(|a, b| a.time.total_cmp(&b.time));
    let mut all: BTreeMap<String, OperatorResults> = BTreeMap::new();
    for part in order {
        for (name, results) in &part.operators {
            let known = all.entry(name.clone()).or_default();
            for cell in in_one(&results.cells) {
                let same = |other: &Cell| {
                    (&other.backend, &other.dtype, &other.check) == (&cell.backend, &cell.dtype, &cell.check)
                };
                known.cells.retain(|other| !same(other));
                known.cells.push(cell);
            }
            if !results.examples.is_empty() {
                known.examples.clone_from(&results.examples);
            }
            if !results.sizes.is_empty() {
                known.sizes.clone_from(&results.sizes);
            }
            for timing in &results.timings {
                known.timings.retain(|other| other.case != timing.case);
                known.timings.push(timing.clone());
            }
        }
    }
    for results in all.values_mut() {
        let place = |cell: &Cell| (cell.backend.clone(), cell.dtype.clone(), cell.check.clone());
        results.cells.sort_by_key(place);
        results.timings.sort_by(|a, b| a.case.cmp(&b.case));
    }
    all
}

/// The cells of one run, each place once: a failure outweighs a pass, and a pass a skip.
fn in_one(cells: &[Cell]) -> Vec<Cell> {
    let mut places: BTreeMap<(&str, &str, &str), Outcome> = BTreeMap::new();
    for cell in cells {
        let place = (cell.backend.as_str(), cell.dtype.as_str(), cell.check.as_str());
        let outcome = match (places.remove(&place), &cell.outcome) {
            (None, outcome) => outcome.clone(),
            (Some(Outcome::Failed(mut findings)), outcome) => {
                if let Outcome::Failed(more) = outcome {
                    findings.extend(more.iter().cloned());
                }
                Outcome::Failed(findings)
            }
            (Some(_), Outcome::Failed(findings)) => Outcome::Failed(findings.clone()),
            (Some(Outcome::Passed(count)), Outcome::Passed(more)) => {
                Outcome::Passed(count.saturating_add(*more))
            }
            (Some(Outcome::Passed(count)), Outcome::Skipped(_)) => Outcome::Passed(count),
            (Some(Outcome::Skipped(_)), outcome) => outcome.clone(),
        };
        places.insert(place, outcome);
    }
    let cell = |((backend, dtype, check), outcome): ((&str, &str, &str), Outcome)| Cell {
        backend: backend.to_owned(),
        dtype: dtype.to_owned(),
        check: check.to_owned(),
        outcome,
    };
    places.into_iter().map(cell).collect()
}
