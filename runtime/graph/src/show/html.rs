//! A graph as one self-contained page.
//!
//! In: a graph. Out: HTML with the graph as data and a script (`page.html`) that lays it out, zooms, and draws
//! memory over time.

use serde_json::{Value, json};

use super::memory::{MemoryReport, Place};
use super::model::ViewModel;
use crate::ir::Graph;

const PAGE: &str = include_str!("page.html");

impl Graph {
    /// The graph as one page to open in a browser: nodes with their call sites, shapes on the edges, details of each
    /// tensor, and memory over time at the sizes of the trace.
    pub fn to_html(&self) -> String {
        let memory = self.memory().ok();
        let view = ViewModel::of(self, memory.as_ref());
        let picture = memory.as_ref().map(|memory| self.picture(memory, &view));
        page(&view, &facts(memory.as_ref()), picture)
    }

    /// The arena over time: a rectangle for each buffer, or for a chain of buffers that reuse memory.
    fn picture(&self, memory: &MemoryReport, view: &ViewModel) -> Value {
        let in_arena = memory.buffers.iter().filter_map(|report| match (report.place, report.span) {
            (Place::Arena { offset, .. }, Some((first, last))) if report.bytes > 0 => Some(json!({
                "buffer": report.buffer.0, "first": first, "last": last, "offset": offset,
                "bytes": report.bytes,
                "label": format!("%{} {}", report.tensor.0, view.rows[report.tensor.index()].by),
            })),
            _ => None,
        });
        json!({
            "planned": memory.planned, "lower_bound": memory.lower_bound, "levels": self.nodes.len(),
            "buffers": in_arena.collect::<Vec<Value>>(),
        })
    }
}

/// The page of a view model; without a picture of memory it states that sizes are unknown.
pub(crate) fn page(view: &ViewModel, facts: &[[String; 2]], picture: Option<Value>) -> String {
    let boxes = view.drawing.boxes.iter().map(|boxed| {
        json!({
            "kind": boxed.kind.name(), "name": boxed.name, "site": boxed.site, "step": boxed.step,
            "inside": boxed.inside, "tensors": boxed.outs,
        })
    });
    let lines = view.drawing.edges.iter().map(|line| {
        let label = &view.rows[line.tensor as usize].shape;
        json!({"source": line.from, "target": line.to, "tensor": line.tensor, "label": label})
    });
    let tensors = view.rows.iter().map(|row| {
        json!({
            "by": row.by, "dtype": row.dtype, "shape": row.shape, "layout": row.layout,
            "bytes": row.bytes, "lifetime": row.lifetime, "memory": row.memory, "buffer": row.buffer,
        })
    });
    let data = json!({
        "summary": view.summary.join(" · "), "boxes": boxes.collect::<Vec<Value>>(),
        "lines": lines.collect::<Vec<Value>>(), "tensors": tensors.collect::<Vec<Value>>(),
        "notes": view.notes, "facts": facts, "memory": picture,
    });
    // A text may contain `</script>`; in JSON every `<` can be written as an escape.
    PAGE.replacen("/*DATA*/null", &data.to_string().replace('<', "\\u003c"), 1)
}

fn facts(memory: Option<&MemoryReport>) -> Vec<[String; 2]> {
    let Some(memory) = memory else { return Vec::new() };
    let fact = |name: &str, bytes: usize| [name.to_owned(), format!("{bytes} bytes")];
    vec![
        fact("arena", memory.planned),
        fact("at least", memory.lower_bound),
        fact("one tile", memory.tile),
        fact("inputs", memory.inputs),
        fact("constants", memory.constants),
        fact("outputs", memory.results),
    ]
}
