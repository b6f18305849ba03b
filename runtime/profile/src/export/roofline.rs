//! The roofline: the arithmetic of kernels over their operations a byte, under the limits of the machine.

use std::fmt::Write as _;

use super::text::{colour, escaped};
use crate::averages::{AveragesRow, Group};
use crate::axis::{Axis, grid};
use crate::limits::Limits;
use crate::model::Profile;
use crate::table::time;

/// Sizes of the picture, in its own units.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 40.0;
/// Most kernels, those with most time.
const KERNELS: usize = 200;

impl Profile {
    /// The picture as a section of the report, or a sentence where there is none.
    pub(super) fn roofline(&self) -> String {
        let head = "<h2>Roofline</h2>\n";
        let mut rows = self.key_averages(Group::Kernel).rows;
        rows.retain(|row| row.device_total_ns == 0 && row.flops > 0 && row.moved > 0 && row.total_ns > 0);
        if rows.is_empty() {
            return format!("{head}<p>No kernel with known operands and operations was recorded.</p>\n");
        }
        let Some(limits) = self.limits.as_ref().filter(|limits| limits.gflop_s > 0.0) else {
            return format!(
                "{head}<p>The machine's limits were not measured: <code>--limits</code> of an optimised build draws them.</p>\n"
            );
        };
        rows.truncate(KERNELS);
        format!(
            "{head}<p>Each kernel by its operations a byte and its rate; a larger circle took more time. Lines: {:.1} GB/s of \
             copies and {:.0} GFLOP/s of <code>float32</code>, measured with {} {}.</p>\n{}",
            limits.copy_gb_s,
            limits.gflop_s,
            limits.threads,
            if limits.threads == 1 { "thread" } else { "threads" },
            picture(&rows, limits)
        )
    }
}

/// Operations a byte.
fn intensity(row: &AveragesRow) -> f64 {
    row.flops as f64 / row.moved as f64
}

fn picture(rows: &[AveragesRow], limits: &Limits) -> String {
    let rate = |row: &AveragesRow| row.flops as f64 / row.total_ns as f64;
    let ridge = limits.gflop_s / limits.copy_gb_s;
    let x = Axis::of(rows.iter().map(intensity).chain([ridge]), LEFT, WIDTH - RIGHT);
    let y = Axis::of(rows.iter().map(rate).chain([limits.gflop_s]), HEIGHT - BOTTOM, TOP);
    let mut text = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"100%\" role=\"img\" aria-label=\"Roofline\" font-size=\"11\">\n"
    );
    text += &grid(&x, &y, "class=\"grid\"", |power| power.to_string(), |power| power.to_string());
    // Where memory bounds, the rate is the intensity times that of copies, down to the lower left corner.
    let from = x.least().max(y.least() / limits.copy_gb_s);
    let _ = writeln!(
        text,
        "<path class=\"curve\" d=\"M{:.1} {:.1}L{:.1} {:.1}H{:.1}\"/>",
        x.place(from),
        y.place(from * limits.copy_gb_s),
        x.place(ridge),
        y.place(limits.gflop_s),
        WIDTH - RIGHT
    );
    let longest = rows.iter().map(|row| row.total_ns).max().unwrap_or(1) as f64;
    for row in rows {
        let title = format!(
            "{} ({}): {:.2} operations a byte, {:.2} GFLOP/s, {}, {} of its limit",
            row.name,
            row.detail,
            intensity(row),
            rate(row),
            time(row.total_ns),
            row.of_limit()
        );
        let _ = writeln!(
            text,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{:.1}\" fill=\"{}\" fill-opacity=\"0.8\"><title>{}</title></circle>",
            x.place(intensity(row)),
            y.place(rate(row)),
            3.0 + 9.0 * (row.total_ns as f64 / longest).sqrt(),
            colour(&row.name),
            escaped(&title)
        );
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    let _ = writeln!(
        text,
        "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">operations a byte</text>\
         <text x=\"12\" y=\"{:.1}\" transform=\"rotate(-90 12 {:.1})\" text-anchor=\"middle\">GFLOP/s</text>\n</svg>",
        HEIGHT - 6.0,
        HEIGHT / 2.0,
        HEIGHT / 2.0
    );
    text
}
