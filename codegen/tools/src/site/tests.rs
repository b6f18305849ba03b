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
    /// Findings and reasons, each once.
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
        let (shown, reasons) = outcome(&cell.outcome);
        table.rows[row].cells[column] = shown;
        for reason in reasons {
            let reason = format!("{title}: {reason}");
            if !table.reasons.contains(&reason) {
                table.reasons.push(reason);
            }
        }
    }
    (!table.rows.is_empty()).then_some(table)
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
