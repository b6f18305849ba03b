//! Two profiles side by side: two commits, two backends, eager and graph.

use std::collections::HashMap;

use opsmith_core::Backend;

use crate::averages::Group;
use crate::model::{Event, Kind, Profile};
use crate::table::{Table, time};

/// Two profiles side by side.
#[derive(Clone, Debug)]
pub struct Diff {
    /// Names of both.
    pub names: [String; 2],
    /// Whether operands tell rows apart.
    pub by_shapes: bool,
    /// A row for each name that one of both has, those with the largest change of time first.
    pub rows: Vec<DiffRow>,
    /// Reasons why times may mislead, a sentence each.
    pub notes: Vec<String>,
}

/// The events of one name in both profiles.
#[derive(Clone, Debug)]
pub struct DiffRow {
    /// Name of the operator's form, node, range or kernel.
    pub name: String,
    /// The operands, if they tell rows apart.
    pub detail: String,
    /// Number of events.
    pub calls: [u64; 2],
    /// Their time, in nanoseconds: of kernels and copies on devices if they ran some there, else of the host. Of events inside one
    /// of the same name, that of the outer one.
    pub total_ns: [u64; 2],
    /// Whether it is the time of devices.
    pub on_devices: [bool; 2],
    /// Time of the second for each nanosecond of the first, a call; none if one has no calls.
    pub ratio: Option<f64>,
    /// Standard errors by which the times of a call differ (Welch); none with fewer than 5 calls on a side.
    pub errors: Option<f64>,
}

/// Standard errors from which a difference counts as real.
const REAL: f64 = 3.0;
/// Calls of which a deviation is computed.
const FEWEST: usize = 5;

impl Diff {
    /// Compares two profiles by operator, or by operator and operands.
    pub fn of(first: &Profile, second: &Profile, by_shapes: bool) -> Diff {
        let group = if by_shapes { Group::Shapes } else { Group::Operator };
        let durations = [first, second].map(|profile| durations(profile, group));
        let mut keys: Vec<&(String, String)> = durations.iter().flat_map(|side| side.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let none = Vec::new();
        let row = |key: &(String, String)| {
            let found = durations.each_ref().map(|side| side.get(key));
            let sides = found.map(|times| times.map_or(&none, |times| &times.each_ns));
            let calls = sides.map(|side| side.len() as u64);
            let means = sides.map(|side| mean(side));
            let ratio = (calls[0] > 0 && calls[1] > 0 && means[0] > 0.0).then(|| means[1] / means[0]);
            let enough = sides.iter().all(|side| side.len() >= FEWEST);
            DiffRow {
                name: key.0.clone(),
                detail: key.1.clone(),
                calls,
                total_ns: sides.map(|side| side.iter().sum()),
                on_devices: found.map(|times| times.is_some_and(|times| times.on_devices)),
                ratio,
                errors: enough.then(|| standard_errors(sides)).flatten(),
            }
        };
        let mut rows: Vec<DiffRow> = keys.into_iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns[0].abs_diff(row.total_ns[1])));
        let notes = [first, second].into_iter().filter_map(untimed_devices).collect();
        Diff { names: [first.name.clone(), second.name.clone()], by_shapes, rows, notes }
    }

    /// The rows as text. `*` marks differences of more than 3 standard errors; without it, a ratio may be chance.
    pub fn table(&self) -> String {
        let mut head = vec!["Name"];
        head.extend(self.by_shapes.then_some("Operands"));
        head.extend(["Calls A", "Calls B", "Total A", "Total B", "B / A a call", ""]);
        let mut table = Table::new(head, 1 + usize::from(self.by_shapes));
        for row in &self.rows {
            let real = row.errors.is_some_and(|errors| errors.abs() > REAL);
            let mut cells = vec![row.name.clone()];
            cells.extend(self.by_shapes.then(|| row.detail.clone()));
            let total = |side: usize| match row.on_devices[side] {
                true => format!("{} (device)", time(row.total_ns[side])),
                false => time(row.total_ns[side]),
            };
            cells.extend([
                row.calls[0].to_string(),
                row.calls[1].to_string(),
                total(0),
                total(1),
                row.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
                if real { "*".to_owned() } else { String::new() },
            ]);
            table.row(cells);
        }
        let mut text = format!(
            "A: {}, B: {}\n{}* more than {REAL} standard errors apart, with {FEWEST} calls or more on both sides\n",
            self.names[0],
            self.names[1],
            table.text()
        );
        self.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
        text
    }
}

/// A note if kernels ran on devices whose times were not recorded.
fn untimed_devices(profile: &Profile) -> Option<String> {
    let host = Backend::Cpu.to_string();
    let elsewhere = profile.kernels.iter().find(|kernel| kernel.backend != host)?;
    profile.device_spans.is_empty().then(|| {
        format!(
            "times in `{}` are those of the host alone, which does not wait for {}: record with `ProfileOptions::devices(true)`",
            profile.name, elsewhere.backend
        )
    })
}

/// The outermost events of one name.
#[derive(Default)]
struct Times {
    each_ns: Vec<u64>,
    on_devices: bool,
}

/// Times of the outermost events of each name.
fn durations(profile: &Profile, group: Group) -> HashMap<(String, String), Times> {
    let mut durations: HashMap<(String, String), Times> = HashMap::new();
    let working = profile.working_times();
    let shown = |event: &Event| event.kind != Kind::Kernel;
    for (index, event) in profile.events.iter().enumerate().filter(|(_, event)| shown(event)) {
        let same = |outer: usize| {
            let outer = &profile.events[outer];
            outer.name == event.name && (group == Group::Operator || outer.operands == event.operands)
        };
        if profile.ancestors(event).any(same) {
            continue;
        }
        let operands = profile.operands_of(event).filter(|_| group == Group::Shapes);
        let detail = operands.map_or_else(String::new, |operands| operands.text());
        let times = durations.entry((profile.name_of(event).to_owned(), detail)).or_default();
        let (time, on_devices) = working[index];
        times.each_ns.push(time);
        times.on_devices |= on_devices;
    }
    durations
}

fn mean(values: &[u64]) -> f64 {
    values.iter().map(|&value| value as f64).sum::<f64>() / values.len().max(1) as f64
}

/// The difference of means in units of its standard error; none if nothing varies.
fn standard_errors(sides: [&Vec<u64>; 2]) -> Option<f64> {
    let [first, second] = sides.map(|side| {
        let middle = mean(side);
        let squares: f64 = side.iter().map(|&value| (value as f64 - middle).powi(2)).sum();
        (middle, squares / (side.len() - 1) as f64 / side.len() as f64)
    });
    let error = (first.1 + second.1).sqrt();
    (error > 0.0).then(|| (second.0 - first.0) / error)
}
