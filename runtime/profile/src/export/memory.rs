//! Memory over time, its holders at the peak, and both as files.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::text::escaped;
use crate::error::ProfileError;
use crate::model::{Change, Profile};
use crate::table::bytes;

/// Width and height of a chart, in pixels.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 160.0;
/// Room above and below a curve, for the text.
const MARGIN: f64 = 14.0;
/// Most steps of a curve.
const STEPS: usize = 4000;

/// Bytes over time, relative to the beginning of a profile.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// When, in nanoseconds after the beginning, and how many bytes more than at the beginning.
    pub points: Vec<(u64, i64)>,
    /// The moment with most.
    pub peak: (u64, i64),
    /// Who held the memory that was allocated in the profile and not freed at the peak, most first.
    pub owners: Vec<Owner>,
}

/// Blocks that one operator allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The outermost call, node or step that they were allocated in, with its site if it has one.
    pub name: String,
    /// Their bytes.
    pub bytes: i64,
    /// Their number.
    pub blocks: u64,
}

impl Profile {
    /// The host, and the numbers of the devices whose memory changed.
    pub(super) fn memories(&self) -> Vec<Option<u32>> {
        let has_changes =
            |device: &u32| self.changes.iter().any(|change| change.device.as_ref() == Some(device));
        let devices = (0..self.devices.len() as u32).filter(has_changes);
        std::iter::once(None).chain(devices.map(Some)).collect()
    }

    pub(super) fn memory_name(&self, device: Option<u32>) -> &str {
        device.map_or("the host", |device| &self.devices[device as usize])
    }

    /// Writes memory over time as a file, whole or not at all: charts of the host and of each device if its name ends with `.svg`, else
    /// a line of CSV a change.
    ///
    /// # Errors
    /// If changes of memory were not recorded, and errors of the file system.
    pub fn save_memory(&self, path: impl AsRef<std::path::Path>) -> Result<(), ProfileError> {
        let path = path.as_ref();
        if !self.has_memory {
            return Err(ProfileError::new(
                format!("`{}` has no changes of memory", self.name),
                "record with `ProfileOptions::memory(true)`",
            ));
        }
        let is_picture = path.extension().is_some_and(|extension| extension == "svg");
        let text = if is_picture { self.memory_picture() } else { self.memory_csv() };
        opsmith_runtime::internals::replace(path, |file| -> Result<(), ProfileError> {
            Ok(std::io::Write::write_all(file, text.as_bytes())?)
        })
        .map_err(|error| error.in_file(path))
    }

    /// Each change of memory as CSV, with a head: nanoseconds after the beginning, the device, bytes of the change (negative if they were
    /// freed), bytes of the device after it beyond those at the beginning, and the outermost call that it happened in, with its site.
    pub fn memory_csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut totals = vec![0i64; 1 + self.devices.len()];
        let mut text = String::from("at_ns,device,change_bytes,total_bytes,owner\n");
        for change in &self.changes {
            let total = &mut totals[change.device.map_or(0, |device| device as usize + 1)];
            *total += change.bytes;
            let device = change.device.map_or("cpu", |device| &self.devices[device as usize]);
            let owner = quoted(&self.owner_of(change));
            let _ = writeln!(text, "{},{device},{},{total},{owner}", change.at_ns, change.bytes);
        }
        text
    }

    /// Charts of memory over time as one picture (SVG), of the host and of each device whose memory changed.
    pub fn memory_picture(&self) -> String {
        let memories = self.memories();
        let row = HEIGHT + 24.0;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" font-family=\"system-ui, sans-serif\">\n\
             <style>.curve {{ fill: none; stroke: #4c78d0; stroke-width: 1.5 }}</style>\n\
             <rect width=\"{WIDTH}\" height=\"{}\" fill=\"#fff\"/>\n",
            row * memories.len() as f64,
            row * memories.len() as f64,
        );
        for (number, device) in memories.into_iter().enumerate() {
            let timeline = self.memory_timeline_of(device);
            let _ = writeln!(
                text,
                "<text x=\"4\" y=\"{}\" font-size=\"13\">Memory of {}, peak {}</text>\n<svg y=\"{}\" width=\"{WIDTH}\" height=\"{HEIGHT}\">{}</svg>",
                row * number as f64 + 16.0,
                escaped(self.memory_name(device)),
                bytes(timeline.peak.1),
                row * number as f64 + 24.0,
                self.memory_chart(device, &timeline),
            );
        }
        text + "</svg>\n"
    }

    /// A chart: a step a change; of many, the highest of each group, so that peaks stay.
    pub(super) fn memory_chart(&self, device: Option<u32>, timeline: &Timeline) -> String {
        let (least, most) = timeline
            .points
            .iter()
            .fold((0, 0), |(least, most), (_, bytes)| (least.min(*bytes), most.max(*bytes)));
        let range = (most - least).max(1) as f64;
        let place = |(at, bytes): (u64, i64)| {
            let x = WIDTH * at as f64 / self.duration_ns.max(1) as f64;
            (x, HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * (bytes - least) as f64 / range)
        };
        let group = timeline.points.len().div_ceil(STEPS).max(1);
        let shown =
            timeline.points.chunks(group).filter_map(|points| points.iter().max_by_key(|(_, bytes)| *bytes));
        let mut path = format!("M0 {:.1}", place((0, 0)).1);
        for point in shown {
            let (x, y) = place(*point);
            let _ = write!(path, "H{x:.1}V{y:.1}");
        }
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"100%\" role=\"img\" aria-label=\"Memory of {} over time\" \
             font-size=\"11\"><path class=\"curve\" d=\"{path}H{WIDTH}\"/><text x=\"4\" y=\"12\">{}</text>\
             <text x=\"4\" y=\"{}\">{}</text></svg>",
            escaped(self.memory_name(device)),
            bytes(most),
            HEIGHT - 3.0,
            bytes(least),
        )
    }

    /// The host's memory over time. Empty unless changes of memory were recorded.
    pub fn memory_timeline(&self) -> Timeline {
        self.memory_timeline_of(None)
    }

    /// Memory of the host, or of a device by its number, over time.
    pub fn memory_timeline_of(&self, device: Option<u32>) -> Timeline {
        let mut total = 0;
        let changes: Vec<&Change> = self.changes.iter().filter(|change| change.device == device).collect();
        let points: Vec<(u64, i64)> = changes
            .iter()
            .map(|change| {
                total += change.bytes;
                (change.at_ns, total)
            })
            .collect();
        let peak =
            points.iter().enumerate().max_by_key(|(index, (_, bytes))| (*bytes, std::cmp::Reverse(*index)));
        let Some((last, &peak)) = peak else {
            return Timeline { points, peak: (0, 0), owners: Vec::new() };
        };
        let mut live: HashMap<u64, &Change> = HashMap::new();
        for change in &changes[..=last] {
            if change.bytes >= 0 {
                live.insert(change.address, change);
            } else {
                live.remove(&change.address);
            }
        }
        let mut owners: HashMap<String, Owner> = HashMap::new();
        for change in live.values() {
            let name = self.owner_of(change);
            let owner = owners.entry(name.clone()).or_insert(Owner { name, bytes: 0, blocks: 0 });
            owner.bytes += change.bytes;
            owner.blocks += 1;
        }
        let mut owners: Vec<Owner> = owners.into_values().collect();
        owners.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        Timeline { points, peak, owners }
    }

    /// The outermost event with an operator that a change happened in.
    fn owner_of(&self, change: &Change) -> String {
        let Some(event) = change.event else { return "outside of calls".to_owned() };
        let event = &self.events[event as usize];
        let own = event.operator.is_some().then_some(event);
        let outer =
            self.ancestors(event).map(|outer| &self.events[outer]).filter(|outer| outer.operator.is_some());
        let Some(owner) = outer.last().or(own) else { return self.name_of(event).to_owned() };
        match self.site_of(owner) {
            Some(site) => format!("{} at {site}", self.name_of(owner)),
            None => self.name_of(owner).to_owned(),
        }
    }
}
