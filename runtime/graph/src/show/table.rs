//! A graph as a table.
//!
//! In: a graph, and values of its symbols. Out: text: symbols and guards, a line for each tensor, and the memory of the
//! plan.

use std::fmt::Write;
use std::ops::Range;

use opsmith_runtime::error::Result;

use super::memory::MemoryReport;
use super::model::ViewModel;
use crate::ir::Graph;

impl Graph {
    /// A table of every tensor: its maker, dtype, shape, layout, bytes, the range of nodes in which its memory is live,
    /// and the memory's location. Bytes and locations are those at the sizes of the trace.
    pub fn describe(&self) -> String {
        self.table(self.memory().ok().as_ref())
    }

    /// As [`Graph::describe`], at values of symbols, by name.
    ///
    /// # Errors
    /// If a name is not a symbol's, or the graph does not accept a size.
    pub fn describe_at(&self, symbols: &[(&str, i64)]) -> Result<String> {
        let (graph, symbols) = self.variant_at(symbols);
        Ok(graph.table(Some(&graph.memory_at(&symbols)?)))
    }

    fn table(&self, memory: Option<&MemoryReport>) -> String {
        let mut text = table(&ViewModel::of(self, memory));
        match memory {
            Some(memory) => write_totals(&mut text, memory),
            None => text.push_str("memory: some sizes are known only when the graph has run\n"),
        }
        text
    }
}

/// The table without the memory.
pub(crate) fn table(view: &ViewModel) -> String {
    let mut text = view.summary.join(", ");
    text.push('\n');
    view.notes.iter().for_each(|note| text.extend([note, "\n"]));
    text.push('\n');
    let head = ["tensor", "made by", "dtype", "shape", "layout", "bytes", "steps", "memory"];
    let mut lines: Vec<[String; 8]> = vec![head.map(str::to_owned)];
    for (number, row) in view.rows.iter().enumerate() {
        lines.push([
            format!("%{number}"),
            row.by.clone(),
            row.dtype.clone(),
            row.shape.clone(),
            row.layout.clone(),
            row.bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string()),
            row.lifetime.clone(),
            row.memory.clone(),
        ]);
    }
    write_aligned(&mut text, &lines);
    let outputs: Vec<String> = view.outputs.iter().map(|number| format!("%{number}")).collect();
    let _ = writeln!(text, "\noutputs: {}", outputs.join(", "));
    text
}

/// A count with its noun.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn write_aligned(text: &mut String, lines: &[[String; 8]]) {
    const BYTES: usize = 5;
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    for line in lines {
        let cells = line.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            BYTES => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        let cells: Vec<String> = cells.collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
}

fn write_totals(text: &mut String, memory: &MemoryReport) {
    let ratio = memory.planned as f64 / memory.lower_bound.max(1) as f64;
    let tile =
        if memory.tile > 0 { format!(", a tile {} for each thread", memory.tile) } else { String::new() };
    let _ = writeln!(
        text,
        "memory: arena {} bytes, {ratio:.3} of the least possible {}; inputs {}, constants {}, outputs {}{tile}",
        memory.planned, memory.lower_bound, memory.inputs, memory.constants, memory.results
    );
    for (title, groups) in [("tile by tile", &memory.fused), ("one kernel each", &memory.kernels)] {
        if !groups.is_empty() {
            let steps = |nodes: &Range<usize>| format!("{}–{}", nodes.start, nodes.end - 1);
            let groups: Vec<String> = groups.iter().map(steps).collect();
            let _ = writeln!(text, "{title}: steps {}", groups.join(", "));
        }
    }
}
