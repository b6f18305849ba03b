//! A report that a person opens and looks at: one HTML file without references to others.

use std::fmt::Write as _;
use std::path::Path;

use opsmith_runtime::internals;

use super::flame::label;
use super::text::{colour, escaped};
use crate::averages::{AveragesRow, Group};
use crate::error::ProfileError;
use crate::model::{Event, Kind, Profile};
use crate::table::{bytes, percent, rate, time};
use crate::tree::Tree;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// The beginning of a picture, which scrolls in a window that is too narrow for its texts.
pub(super) const PICTURE: &str = "<div class=\"picture\" tabindex=\"0\">";
/// Width of charts in their own units.
const WIDTH: f64 = 1200.0;
/// Most rows of the table and boxes of the timeline, so that a browser stays quick.
const ROWS: usize = 1000;
const BOXES: usize = 4000;
/// Depth of the tree, and the share of time below which branches are left out.
const DEPTH: usize = 12;
const SHARE: f64 = 0.001;

impl Profile {
    /// Writes the report as a file, whole or not at all.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn save_report(&self, path: impl AsRef<Path>) -> Result<(), ProfileError> {
        let path = path.as_ref();
        internals::replace(path, |file| -> Result<(), ProfileError> {
            Ok(std::io::Write::write_all(file, self.report().as_bytes())?)
        })
        .map_err(|error| error.in_file(path))
    }

    /// The report: table, flame graph, timeline, memory, call tree.
    pub fn report(&self) -> String {
        let name = escaped(&self.name);
        let mut notes = String::new();
        self.notes.iter().for_each(|note| _ = write!(notes, "<p>{}</p>", escaped(note)));
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{name}</title>\n\
             <style>\n{STYLE}</style>\n<main>\n<h1>{name}</h1>\n\
             <p>{}, {} events on {} {}.</p>\n{notes}\
             <h2>Operators</h2>\n{}\
             {}\
             <h2>Flame graph</h2>\n<p>Width is time, the outermost calls are on top.</p>\n\
             {PICTURE}<div class=\"flame chart\">{}</div></div>\n\
             <h2>Timeline</h2>\n{}\
             <h2>Memory</h2>\n{}\
             <h2>Call tree</h2>\n{}</main>\n\
             <script>\n{SCRIPT}</script>\n</html>\n",
            time(self.duration_ns),
            self.events.len(),
            self.threads.len(),
            if self.threads.len() == 1 { "thread" } else { "threads" },
            self.operators_table(),
            self.roofline(),
            self.flame_graph(),
            self.timeline(),
            self.memory(),
            tree(&self.tree()),
        )
    }

    fn operators_table(&self) -> String {
        let group = if self.has_shapes { Group::Shapes } else { Group::Operator };
        let averages = self.key_averages(group);
        let total: u64 = averages.rows.iter().map(|row| row.self_ns).sum();
        let mut heads = vec!["Name", "Operands", "Self CPU", "CPU total", "CPU avg", "Calls", "Self memory"];
        if !self.devices.is_empty() {
            heads.extend(["Self device", "Device total", "Self device memory"]);
        }
        heads.extend(["GB/s", "GFLOP/s", "of limit"]);
        let mut text = String::from(
            "<input id=\"filter\" type=\"search\" placeholder=\"Filter\" aria-label=\"Filter operators\">\n\
             <div class=\"scroll\" tabindex=\"0\"><table id=\"operators\"><thead><tr>",
        );
        for (number, head) in heads.iter().enumerate() {
            let sorted = if number == 2 { " aria-sort=\"descending\"" } else { "" };
            let class = if number == 1 { " class=\"text\"" } else { "" };
            let _ = write!(text, "<th scope=\"col\"{sorted}{class}><button>{head}</button></th>");
        }
        text += "</tr></thead>\n<tbody>\n";
        averages.rows.iter().take(ROWS).for_each(|row| text += &self.operators_row(row, total));
        text += "</tbody></table></div>\n";
        if averages.rows.len() > ROWS {
            let _ = writeln!(
                text,
                "<p>{} more rows with less time are left out.</p>",
                averages.rows.len() - ROWS
            );
        }
        text
    }

    fn operators_row(&self, row: &AveragesRow, total: u64) -> String {
        let speed = |amount: u64| amount as f64 / row.working_ns().max(1) as f64;
        let share = 100.0 * row.self_ns as f64 / total.max(1) as f64;
        let number = |value: f64, text: String| format!("<td data-value=\"{value}\">{text}</td>");
        let bar = format!(
            "<span class=\"bar\" style=\"width:{:.2}em\"></span>{} <span class=\"soft\">{share:.1} %</span>",
            share / 20.0,
            time(row.self_ns)
        );
        let devices = match self.devices.is_empty() {
            true => String::new(),
            false => [
                number(row.device_self_ns as f64, time(row.device_self_ns)),
                number(row.device_total_ns as f64, time(row.device_total_ns)),
                number(row.device_self_memory as f64, bytes(row.device_self_memory)),
            ]
            .concat(),
        };
        format!(
            "<tr><td class=\"name\">{}</td><td class=\"text soft\">{}</td>{}{}{}{}{}{devices}{}{}{}</tr>\n",
            escaped(&row.name),
            escaped(&row.detail),
            number(row.self_ns as f64, bar),
            number(row.total_ns as f64, time(row.total_ns)),
            number((row.total_ns / row.calls.max(1)) as f64, time(row.total_ns / row.calls.max(1))),
            number(row.calls as f64, row.calls.to_string()),
            number(row.self_memory as f64, bytes(row.self_memory)),
            number(speed(row.moved), rate(row.moved, row.working_ns())),
            number(speed(row.flops), rate(row.flops, row.working_ns())),
            number(row.least_ns / row.working_ns().max(1) as f64, row.of_limit()),
        )
    }

    /// The longest events of each thread over time.
    fn timeline(&self) -> String {
        const ROW: f64 = 16.0;
        let depth = self.depths();
        let mut longest: Vec<usize> = (0..self.events.len()).collect();
        longest.sort_by_key(|&event| std::cmp::Reverse(self.events[event].duration_ns));
        longest.truncate(BOXES);
        let mut text = String::new();
        for (thread, info) in self.threads.iter().enumerate() {
            let of_thread = |event: &&usize| self.events[**event].thread as usize == thread;
            let rows = longest.iter().filter(of_thread).map(|&event| depth[event] + 1).max().unwrap_or(0);
            let height = f64::from(rows) * ROW + 4.0;
            let _ = write!(
                text,
                "<p>{}</p>\n{PICTURE}<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" role=\"img\" \
                 aria-label=\"Timeline of {}\" font-family=\"ui-monospace, monospace\" font-size=\"11\">\n",
                escaped(&info.name),
                escaped(&info.name)
            );
            for &event in longest.iter().filter(of_thread) {
                text += &self.timeline_box(&self.events[event], f64::from(depth[event]) * ROW + 2.0);
            }
            text += "</svg></div>\n";
        }
        text += &self.device_timeline();
        text
    }

    /// The longest kernels of each stream of each device over time.
    fn device_timeline(&self) -> String {
        let mut longest = self.device_spans.clone();
        longest.sort_by_key(|span| std::cmp::Reverse(span.duration_ns));
        longest.truncate(BOXES);
        longest.sort_by_key(|span| (span.device, span.stream));
        let mut text = String::new();
        for spans in longest.chunk_by(|a, b| (a.device, a.stream) == (b.device, b.stream)) {
            let name = format!("{}, stream {}", self.devices[spans[0].device as usize], spans[0].stream);
            let _ = write!(
                text,
                "<p>{name}</p>\n{PICTURE}<svg class=\"chart\" viewBox=\"0 0 {WIDTH} 20\" width=\"100%\" role=\"img\" \
                 aria-label=\"Timeline of {name}\" font-family=\"ui-monospace, monospace\" font-size=\"11\">\n"
            );
            for span in spans {
                let kernel = &self.events[span.event as usize];
                let (start_ns, duration_ns) = (span.start_ns, span.duration_ns);
                text += &self.timeline_box(&Event { start_ns, duration_ns, ..*kernel }, 2.0);
            }
            text += "</svg></div>\n";
        }
        text
    }

    fn timeline_box(&self, event: &Event, top: f64) -> String {
        let scale = WIDTH / self.duration_ns.max(1) as f64;
        let (left, width) = (event.start_ns as f64 * scale, (event.duration_ns as f64 * scale).max(0.3));
        let name = self.name_of(event);
        let source = self.source_of(event).map_or_else(String::new, |source| format!(", source {source}"));
        let site = self.site_of(event).map_or_else(String::new, |site| format!(", called at {site}"));
        let (duration, start) = (time(event.duration_ns), time(event.start_ns));
        let title = format!("{}: {duration}, at {start}{source}{site}", self.title_of(event));
        let (class, opacity) = match event.kind {
            Kind::Range => ("range", " fill-opacity=\"0.45\""),
            _ => ("label", ""),
        };
        let text = match label(name, width) {
            none if none.is_empty() => none,
            shown => format!(
                "<text class=\"{class}\" x=\"{:.2}\" y=\"{}\">{}</text>",
                left + 3.0,
                top + 11.0,
                escaped(&shown)
            ),
        };
        format!(
            "<g><title>{}</title><rect x=\"{left:.2}\" y=\"{top}\" width=\"{width:.2}\" height=\"14\" rx=\"1.5\" fill=\"{}\"{opacity}/>{text}</g>\n",
            escaped(&title),
            colour(name)
        )
    }

    /// The memory of the host, and of each device whose memory changed.
    fn memory(&self) -> String {
        if !self.has_memory {
            return "<p>Changes of memory were not recorded.</p>\n".to_owned();
        }
        self.memories().into_iter().map(|device| self.memory_of(device)).collect()
    }

    fn memory_of(&self, device: Option<u32>) -> String {
        let timeline = self.memory_timeline_of(device);
        let mut text = format!(
            "<p>Peak of {}: {} more than at the beginning, after {}.</p>\n{PICTURE}{}</div>\n",
            escaped(self.memory_name(device)),
            bytes(timeline.peak.1),
            time(timeline.peak.0),
            self.memory_chart(device, &timeline),
        );
        if !timeline.owners.is_empty() {
            text += "<p>Allocated in the profile and held at the peak:</p>\n<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>\
                     <th scope=\"col\">Operator</th><th scope=\"col\">Bytes</th><th scope=\"col\">Blocks</th></tr></thead><tbody>\n";
            for owner in timeline.owners.iter().take(20) {
                let _ = writeln!(
                    text,
                    "<tr><td class=\"name\">{}</td><td>{}</td><td>{}</td></tr>",
                    escaped(&owner.name),
                    bytes(owner.bytes),
                    owner.blocks
                );
            }
            text += "</tbody></table></div>\n";
        }
        text
    }
}

/// The tree as nested elements that open and close.
fn tree(root: &Tree) -> String {
    fn line(tree: &Tree, whole: u64) -> String {
        let soft = |text: String| format!(" <span class=\"soft\">{}</span>", escaped(&text));
        let kernel = tree.kernel_text().map_or_else(String::new, soft);
        let calls = tree.calls_text().map_or_else(String::new, |text| format!(", {text}"));
        format!(
            "{}{kernel} <span class=\"soft\">{}, {}{calls}</span>",
            escaped(&tree.name),
            percent(tree.total_ns as f64, whole as f64),
            time(tree.total_ns)
        )
    }
    fn write(text: &mut String, tree: &Tree, whole: u64, level: usize) {
        let large = |inside: &&Tree| inside.total_ns as f64 >= SHARE * whole as f64;
        if level >= DEPTH || !tree.inside.iter().any(|inside| large(&inside)) {
            let _ = writeln!(text, "<div class=\"leaf\">{}</div>", line(tree, whole));
            return;
        }
        let open = if level < 2 { " open" } else { "" };
        let _ = writeln!(text, "<details{open}><summary>{}</summary>", line(tree, whole));
        tree.inside.iter().filter(large).for_each(|inside| write(text, inside, whole, level + 1));
        *text += "</details>\n";
    }
    let mut text = String::new();
    write(&mut text, root, root.total_ns, 0);
    text
}
