//! A graph as one page that needs nothing else: no network, no other file.
//!
//! In: a graph. Out: HTML with the graph as data and a script (`page.html`) that lays it out, zooms, and draws
//! memory over time.

use serde_json::{Value, json};

use super::describe::counted;
use super::ir::{Graph, SymbolSource};
use super::report::{MemoryReport, Place};
use super::sheet;

const PAGE: &str = include_str!("page.html");

impl Graph {
    /// The graph as one page to open in a browser: steps with the places of their calls, shapes on the lines
    /// between them, what each tensor is, and memory over time at the sizes that the graph was traced with.
    pub fn to_html(&self) -> String {
        // A text may contain `</script>`; in JSON every `<` can be written as an escape.
        let data = self.page().to_string().replace('<', "\\u003c");
        PAGE.replacen("/*DATA*/null", &data, 1)
    }

    fn page(&self) -> Value {
        let memory = self.memory().ok();
        let drawing = sheet::drawing(self);
        let rows = sheet::rows(self, memory.as_ref());
        let boxes: Vec<Value> = drawing
            .boxes
            .iter()
            .map(|boxed| {
                let tensors: Vec<u32> = boxed.outs.iter().map(|id| id.0).collect();
                json!({
                    "kind": boxed.kind.name(), "name": boxed.name, "site": boxed.site, "step": boxed.step,
                    "inside": boxed.inside, "tensors": tensors,
                })
            })
            .collect();
        let lines: Vec<Value> = drawing
            .lines
            .iter()
            .map(|line| {
                let label = sheet::shape(self, self.tensor(line.tensor));
                json!({"source": line.from, "target": line.to, "tensor": line.tensor.0, "label": label})
            })
            .collect();
        let tensors: Vec<Value> = rows
            .iter()
            .zip(&self.tensors)
            .map(|(row, info)| {
                json!({
                    "by": row.by, "dtype": row.dtype, "shape": row.shape, "layout": row.layout,
                    "bytes": row.bytes, "lifetime": row.lifetime, "memory": row.memory, "buffer": info.buffer.0,
                })
            })
            .collect();
        let summary = [
            counted(self.inputs.len(), "input"),
            counted(self.nodes.len(), "step"),
            counted(self.tensors.len(), "tensor"),
            counted(self.outputs.len(), "output"),
        ];
        json!({
            "summary": summary.join(" · "), "boxes": boxes, "lines": lines, "tensors": tensors,
            "notes": self.notes(), "facts": facts(memory.as_ref()),
            "memory": memory.as_ref().map(|memory| self.picture(memory)),
        })
    }

    /// The arena over time: a rectangle for each buffer, or for those that take over one another's memory.
    fn picture(&self, memory: &MemoryReport) -> Value {
        let rows = sheet::rows(self, None);
        let in_arena = memory.buffers.iter().filter_map(|report| match (report.place, report.span) {
            (Place::Arena { offset, .. }, Some((first, last))) if report.bytes > 0 => Some(json!({
                "buffer": report.buffer.0, "first": first, "last": last, "offset": offset,
                "bytes": report.bytes,
                "label": format!("%{} {}", report.tensor.0, rows[report.tensor.index()].by),
            })),
            _ => None,
        });
        json!({
            "planned": memory.planned, "lower_bound": memory.lower_bound, "moments": self.nodes.len(),
            "buffers": in_arena.collect::<Vec<Value>>(),
        })
    }

    fn notes(&self) -> Vec<String> {
        let symbol = |symbol: &super::ir::SymbolInfo| {
            let from = match symbol.source {
                SymbolSource::Input { input, dim } => {
                    format!("dimension {dim} of {}", self.input_names.get(input).map_or("", String::as_str))
                }
                SymbolSource::Node { tensor, dim } => format!("dimension {dim} of %{}", tensor.0),
            };
            format!("{}: {from}, at least {}, drawn with {}", symbol.name, symbol.least, symbol.example)
        };
        let guard = |guard: &super::ir::Guard| {
            format!("{} = {}: {}", self.text(&guard.size), guard.equals, guard.reason)
        };
        let variant = |(symbol, value, graph): (&str, i64, &Graph)| {
            format!("{symbol} = {value}: a graph of its own with {}", counted(graph.nodes.len(), "step"))
        };
        let guards = self.guards.iter().map(guard);
        self.symbols.iter().map(symbol).chain(self.variants().map(variant)).chain(guards).collect()
    }
}

fn facts(memory: Option<&MemoryReport>) -> Vec<[String; 2]> {
    let Some(memory) = memory else { return Vec::new() };
    let fact = |name: &str, bytes: usize| [name.to_owned(), format!("{bytes} bytes")];
    vec![
        fact("arena", memory.planned),
        fact("at least", memory.lower_bound),
        fact("inputs", memory.inputs),
        fact("constants", memory.constants),
        fact("outputs", memory.results),
    ]
}
