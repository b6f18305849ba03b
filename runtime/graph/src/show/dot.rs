//! A graph in the language of Graphviz.

use std::fmt::Write;

use super::model::{BoxKind, ViewModel};
use crate::ir::Graph;

impl Graph {
    /// The graph for Graphviz: `dot -Tsvg graph.dot > graph.svg`. Nodes are boxes, edges are labelled with shapes.
    pub fn to_dot(&self) -> String {
        text(&ViewModel::of(self, None))
    }
}

/// A view model in the language of Graphviz.
pub(crate) fn text(view: &ViewModel) -> String {
    let drawing = &view.drawing;
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
    for line in &drawing.edges {
        let row = &view.rows[line.tensor as usize];
        let label = format!("{} {}", row.dtype, row.shape);
        let _ = writeln!(text, "  n{} -> n{} [label={}];", line.from, line.to, quoted(&label));
    }
    text.push_str("}\n");
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
