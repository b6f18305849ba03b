//! The roofline: the arithmetic of kernels over their operations a byte, under the limits of the machine or of a device.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::html::PICTURE;
use super::text::{colour, escaped};
use crate::averages::{AveragesRow, Group};
use crate::axis::{Axis, grid};
use crate::model::{Kind, Profile};
use crate::table::{percent, time};

/// Sizes of the picture, in its own units.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 40.0;
/// Most kernels, those with most time.
const KERNELS: usize = 200;

/// A kernel on the host or on one device.
struct Point {
    title: String,
    flops: u64,
    moved: u64,
    ns: u64,
}

impl Point {
    /// Operations a byte.
    fn intensity(&self) -> f64 {
        self.flops as f64 / self.moved as f64
    }

    /// 10⁹ operations a second.
    fn rate(&self) -> f64 {
        self.flops as f64 / self.ns as f64
    }
}

impl Profile {
    /// The pictures of the host and of each device as a section of the report, or a sentence where there is none.
    pub(super) fn roofline(&self) -> String {
        let mut text = String::from("<h2>Roofline</h2>\n");
        let host = self.host_points();
        let devices: Vec<(&String, Vec<Point>)> = self
            .devices
            .iter()
            .enumerate()
            .map(|(number, device)| (device, self.device_points(number as u32)))
            .filter(|(_, points)| !points.is_empty())
            .collect();
        if host.is_empty() && devices.is_empty() {
            text += "<p>No kernel with known operands and operations was recorded.</p>\n";
        }
        if !host.is_empty() {
            match self.limits.as_ref().filter(|limits| limits.gflop_s > 0.0) {
                Some(limits) => {
                    let threads = if limits.threads == 1 { "thread" } else { "threads" };
                    let measured = format!("measured with {} {threads}", limits.threads);
                    text += &section("Roofline", &measured, host, limits.copy_gb_s, limits.gflop_s);
                }
                None => {
                    text += "<p>The machine's limits were not measured: <code>--limits</code> of an optimised build draws them.</p>\n";
                }
            }
        }
        for (device, points) in devices {
            let limits = self.limits.as_ref().and_then(|limits| limits.of_device(device));
            let device = escaped(device);
            match limits.filter(|limits| limits.gflop_s > 0.0) {
                Some(limits) => {
                    let (label, measured) =
                        (format!("Roofline of {device}"), format!("measured on {device}"));
                    text += &section(&label, &measured, points, limits.copy_gb_s, limits.gflop_s);
                }
                None => {
                    let _ = writeln!(
                        text,
                        "<p>The limits of {device} were not measured: <code>ProfileOptions::limits(true)</code> does.</p>"
                    );
                }
            }
        }
        text
    }

    fn host_points(&self) -> Vec<Point> {
        let mut rows = self.key_averages(Group::Kernel).rows;
        rows.retain(|row| row.device_total_ns == 0 && row.flops > 0 && row.moved > 0 && row.total_ns > 0);
        let point = |row: &AveragesRow| Point {
            title: titled(&row.name, &row.detail, &row.source),
            flops: row.flops,
            moved: row.moved,
            ns: row.total_ns,
        };
        rows.iter().map(point).collect()
    }

    /// The kernels of a device, by the time of its clock.
    fn device_points(&self, device: u32) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        let mut numbers: HashMap<Option<u32>, usize> = HashMap::new();
        for span in self.device_spans.iter().filter(|span| span.device == device) {
            let event = &self.events[span.event as usize];
            let Some(operands) = self.operands_of(event).filter(|_| event.kind == Kind::Kernel) else {
                continue;
            };
            let number = *numbers.entry(event.kernel).or_insert_with(|| {
                let operator = self.operator_of(event).map_or("", |operator| &operator.name);
                let source = self.source_of(event).unwrap_or_default();
                let title = titled(self.name_of(event), operator, source);
                points.push(Point { title, flops: 0, moved: 0, ns: 0 });
                points.len() - 1
            });
            let point = &mut points[number];
            point.flops = point.flops.saturating_add(operands.flops.unwrap_or(0));
            point.moved = point.moved.saturating_add(operands.bytes());
            point.ns += span.duration_ns;
        }
        points.retain(|point| point.flops > 0 && point.moved > 0 && point.ns > 0);
        points.sort_by_key(|point| std::cmp::Reverse(point.ns));
        points
    }
}

/// A kernel with its operator, and its source if that is known.
fn titled(name: &str, operator: &str, source: &str) -> String {
    let separator = if source.is_empty() { "" } else { ", " };
    format!("{name} ({operator}{separator}{source})")
}

/// A picture under its sentence.
fn section(label: &str, measured: &str, mut points: Vec<Point>, copies: f64, peak: f64) -> String {
    points.truncate(KERNELS);
    format!(
        "<p>Each kernel by its operations a byte and its rate; a larger circle took more time. Lines: {copies:.1} GB/s of \
         copies and {peak:.0} GFLOP/s of <code>float32</code>, {measured}.</p>\n{}",
        picture(label, &points, copies, peak)
    )
}

fn picture(label: &str, points: &[Point], copies: f64, peak: f64) -> String {
    let ridge = peak / copies;
    let x = Axis::of(points.iter().map(Point::intensity).chain([ridge]), LEFT, WIDTH - RIGHT);
    let y = Axis::of(points.iter().map(Point::rate).chain([peak]), HEIGHT - BOTTOM, TOP);
    let mut text = format!(
        "{PICTURE}<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"100%\" role=\"img\" aria-label=\"{label}\" font-size=\"11\">\n"
    );
    text += &grid(&x, &y, "class=\"grid\"", |power| power.to_string(), |power| power.to_string());
    // Where memory bounds, the rate is the intensity times that of copies, down to the lower left corner.
    let from = x.least().max(y.least() / copies);
    let _ = writeln!(
        text,
        "<path class=\"curve\" d=\"M{:.1} {:.1}L{:.1} {:.1}H{:.1}\"/>",
        x.place(from),
        y.place(from * copies),
        x.place(ridge),
        y.place(peak),
        WIDTH - RIGHT
    );
    let longest = points.iter().map(|point| point.ns).max().unwrap_or(1) as f64;
    for point in points {
        let bound = peak.min(point.intensity() * copies);
        let title = format!(
            "{}: {:.2} operations a byte, {:.2} GFLOP/s, {}, {} of its limit",
            point.title,
            point.intensity(),
            point.rate(),
            time(point.ns),
            percent(point.rate(), bound)
        );
        let _ = writeln!(
            text,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{:.1}\" fill=\"{}\" fill-opacity=\"0.8\"><title>{}</title></circle>",
            x.place(point.intensity()),
            y.place(point.rate()),
            3.0 + 9.0 * (point.ns as f64 / longest).sqrt(),
            colour(&point.title),
            escaped(&title)
        );
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    let _ = writeln!(
        text,
        "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">operations a byte</text>\
         <text x=\"12\" y=\"{:.1}\" transform=\"rotate(-90 12 {:.1})\" text-anchor=\"middle\">GFLOP/s</text>\n</svg></div>",
        HEIGHT - 6.0,
        HEIGHT / 2.0,
        HEIGHT / 2.0
    );
    text
}
