//! A graph in the language of Graphviz.

use std::fmt::Write;

use super::ir::Graph;
use super::sheet::{BoxKind, Sheet};

impl Graph {
    /// The graph for Graphviz: `dot -Tsvg graph.dot > graph.svg`. Steps are boxes, lines carry shapes.
    pub fn to_dot(&self) -> String {
        text(&Sheet::of(self, None))
    }
}

/// A sheet for Graphviz.
pub(super) fn text(sheet: &Sheet) -> String {
    let drawing = &sheet.drawing;
    let mut text = String::from(
        "digraph graph_ {\n  rankdir=TB;\n  node [fontname=\"Helvetica\", fontsize=11, style=\"filled,rounded\", \
             shape=box, color=\"#00000033\"];\n  edge [fontname=\"Helvetica\", fontsize=9, color=\"#64748b\"];\n",
    );
    for (number, boxed) in drawing.boxes.iter().enumerate() {
        let colour = match boxed.kind {
            BoxKind::Input | BoxKind::Output => "#bfdbfe",
            BoxKind::Constant => "#e2e8f0",
            BoxKind::Call => "#fde68a",
            BoxKind::View => "#ffffff",
            BoxKind::Copy => "#fecaca",
            BoxKind::Control => "#ddd6fe",
        };
        let _ = writeln!(
            text,
            "  n{number} [label={}, tooltip={}, fillcolor=\"{colour}\"];",
            quoted(&boxed.name),
            quoted(&boxed.site)
        );
    }
    for line in &drawing.lines {
        let row = &sheet.rows[line.tensor as usize];
        let label = format!("{} {}", row.dtype, row.shape);
        let _ = writeln!(text, "  n{} -> n{} [label={}];", line.from, line.to, quoted(&label));
    }
    text.push_str("}\n");
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
