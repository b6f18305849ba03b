//! Results of a test run as a page shows them: a table of checks by dtype, and times.
//!
//! In: the results of one operator. Out: rows of tables.

use serde::Serialize;

use crate::results::{Cell, Outcome, Timing};

/// Outcomes of checks by dtype.
#[derive(Clone, Debug, Serialize)]
pub struct TestTable {
    /// The dtypes, in the order of their first outcome.
    pub columns: Vec<String>,
    /// The checks of each backend.
    pub rows: Vec<TestRow>,
    /// Findings and reasons, each once, with the dtypes that have it.
    pub reasons: Vec<String>,
}

/// The outcomes of a check.
#[derive(Clone, Debug, Serialize)]
pub struct TestRow {
    /// The check, with its backend.
    pub title: String,
    /// An outcome for each dtype.
    pub cells: Vec<TestCell>,
}

/// An outcome.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TestCell {
    /// The class of the element.
    pub class: &'static str,
    /// The outcome as text.
    pub text: String,
    /// Its details.
    pub title: String,
}

/// A measured time.
#[derive(Clone, Debug, Serialize)]
pub struct TimingRow {
    /// The case.
    pub case: String,
    /// The time of a call.
    pub time: String,
    /// Bytes in a second.
    pub throughput: String,
}

/// The table of outcomes; `None` if there are none.
pub fn table(cells: &[Cell]) -> Option<TestTable> {
    let mut table = TestTable { columns: Vec::new(), rows: Vec::new(), reasons: Vec::new() };
    let mut reasons: Vec<Reason> = Vec::new();
    for cell in cells {
        if !table.columns.contains(&cell.dtype) {
            table.columns.push(cell.dtype.clone());
        }
    }
    for cell in cells {
        let title = format!("{} · {}", cell.check, cell.backend);
        let column = table.columns.iter().position(|dtype| *dtype == cell.dtype)?;
        let row = match table.rows.iter().position(|row| row.title == title) {
            Some(row) => row,
            None => {
                let empty = TestCell { class: "none", text: "·".to_owned(), title: "not tried".to_owned() };
                table.rows.push(TestRow { title: title.clone(), cells: vec![empty; table.columns.len()] });
                table.rows.len() - 1
            }
        };
        let (shown, found) = outcome(&cell.outcome);
        table.rows[row].cells[column] = shown;
        for text in found {
            let general = text.replace(&cell.dtype, "this dtype");
            match reasons.iter_mut().find(|known| known.title == title && known.general == general) {
                Some(known) => known.dtypes.push(&cell.dtype),
                None => {
                    reasons.push(Reason { title: title.clone(), text, general, dtypes: vec![&cell.dtype] });
                }
            }
        }
    }
    table.reasons = reasons.iter().map(Reason::in_words).collect();
    (!table.rows.is_empty()).then_some(table)
}

/// A finding or the reason of an outcome, which several dtypes may have.
struct Reason<'a> {
    /// The check, with its backend.
    title: String,
    text: String,
    /// The text without the name of the dtype.
    general: String,
    dtypes: Vec<&'a str>,
}

impl Reason<'_> {
    fn in_words(&self) -> String {
        match self.dtypes.as_slice() {
            [_] => format!("{}: {}", self.title, self.text),
            several => format!("{}, {}: {}", self.title, several.join(", "), self.general),
        }
    }
}

/// An outcome as a cell, with the findings or the reason.
fn outcome(outcome: &Outcome) -> (TestCell, Vec<String>) {
    let cell = |class, text: &str, title: String| TestCell { class, text: text.to_owned(), title };
    match outcome {
        Outcome::Passed(count) => (cell("pass", "✓", format!("passed {count} comparisons")), Vec::new()),
        Outcome::Failed(findings) => (cell("fail", "✗", "failed".to_owned()), findings.clone()),
        Outcome::Skipped(reason) => {
            (cell("skip", "–", format!("left out: {reason}")), vec![format!("left out: {reason}")])
        }
    }
}

/// Times with units.
pub fn timings(timings: &[Timing]) -> Vec<TimingRow> {
    let row = |timing: &Timing| TimingRow {
        case: timing.case.clone(),
        time: time(timing.nanoseconds),
        throughput: timing.bytes_per_second.map(throughput).unwrap_or_default(),
    };
    timings.iter().map(row).collect()
}

fn time(nanoseconds: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (0.0, "ns")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| nanoseconds >= *scale).unwrap_or((1.0, "ns"));
    format!("{} {unit}", three_digits(nanoseconds / f64::max(scale, 1.0)))
}

fn throughput(bytes_per_second: f64) -> String {
    format!("{} GB/s", three_digits(bytes_per_second / 1e9))
}

/// Three significant digits.
fn three_digits(number: f64) -> String {
    match number {
        number if number >= 100.0 => format!("{number:.0}"),
        number if number >= 10.0 => format!("{number:.1}"),
        number => format!("{number:.2}"),
    }
}
