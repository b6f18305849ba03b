//! The view model of a graph of unknown rank.
//!
//! In: an open graph. Out: a row for each tensor, and a box for each input, constant, call and output, as for any
//! graph.

use std::collections::HashMap;

use opsmith_runtime::arg::Value;
use opsmith_runtime::infer::symbolic::{Meta, Size, Strides, Symbols};
use opsmith_runtime::tensor::Tensor;

use super::builder::{BuilderArg, Handle};
use super::calls::{Call, handles};
use super::unranked::OpenGraph;
use crate::ir::Site;
use crate::show::model::{BoxKind, Drawing, Edge, TensorRow, ViewModel};
use crate::show::table::counted;
use crate::trace::{Dim, input_name};

pub(crate) fn view_model(graph: &OpenGraph) -> ViewModel {
    let drawer = Drawer {
        graph,
        symbols: &graph.inferred.inference.context.symbols,
        rows: Vec::new(),
        drawing: Drawing::default(),
        numbers: HashMap::new(),
    };
    drawer.draw()
}

struct Drawer<'a> {
    graph: &'a OpenGraph,
    symbols: &'a Symbols,
    rows: Vec<TensorRow>,
    drawing: Drawing,
    /// The row and the box of each tensor.
    numbers: HashMap<Handle, (u32, usize)>,
}

impl Drawer<'_> {
    fn draw(mut self) -> ViewModel {
        let (graph, calls) = (self.graph, &self.graph.builder.calls);
        let last_use = last_uses(graph);
        for (position, meta) in graph.inferred.inputs.iter().enumerate() {
            let name = input_name(&graph.builder.inputs, position);
            let handle = Handle { call: None, position };
            let number = self.row(meta, format!("input {name}"), lifetime(0, last_use.get(&handle)));
            let at = self.drawing.add(BoxKind::Input, name, "input".to_owned(), vec![number]);
            self.numbers.insert(handle, (number, at));
        }
        for (step, call) in calls.iter().enumerate() {
            let site = Site::Here(call.site).to_string();
            let constants: Vec<(u32, usize)> =
                constants(call).iter().map(|tensor| self.constant(tensor)).collect();
            let sources = handles(call).into_iter().filter_map(|handle| self.numbers.get(&handle).copied());
            let mut sources: Vec<(u32, usize)> = sources.chain(constants).collect();
            sources.sort_unstable();
            sources.dedup();
            let at = self.drawing.add(BoxKind::Call, call.name.clone(), site, Vec::new());
            self.drawing.boxes[at].step = Some(step);
            self.drawing.edges.extend(sources.into_iter().map(|(tensor, from)| Edge {
                from,
                to: at,
                tensor,
            }));
            for (position, meta) in graph.inferred.of_calls[step].iter().flatten().enumerate() {
                let handle = Handle { call: Some(step), position };
                let lives = lifetime(step, last_use.get(&handle));
                let number = self.row(meta, format!("{step} {}", call.name), lives);
                self.drawing.boxes[at].outs.push(number);
                self.numbers.insert(handle, (number, at));
            }
        }
        let outputs: Vec<(u32, usize)> =
            graph.outputs.iter().filter_map(|handle| self.numbers.get(handle).copied()).collect();
        for (number, (tensor, from)) in outputs.iter().copied().enumerate() {
            let name = format!("output {number}");
            let to = self.drawing.add(BoxKind::Output, name, "output".to_owned(), Vec::new());
            self.drawing.edges.push(Edge { from, to, tensor });
        }
        ViewModel {
            summary: [
                counted(graph.inferred.inputs.len(), "input"),
                counted(calls.len(), "call"),
                counted(self.rows.len(), "tensor"),
                counted(graph.outputs.len(), "output"),
            ],
            notes: self.notes(),
            rows: self.rows,
            drawing: self.drawing,
            outputs: outputs.into_iter().map(|(number, _)| number).collect(),
        }
    }

    fn row(&mut self, meta: &Meta, by: String, lifetime: String) -> u32 {
        let number = self.rows.len() as u32;
        self.rows.push(TensorRow {
            buffer: number,
            by,
            dtype: meta.dtype.to_string(),
            shape: meta.shape.named(self.symbols).to_string(),
            layout: self.layout(meta),
            bytes: meta
                .shape
                .numel()
                .known()
                .and_then(|numel| usize::try_from(numel).ok()?.checked_mul(meta.dtype.size())),
            lifetime,
            memory: "–".to_owned(),
        });
        number
    }

    fn constant(&mut self, tensor: &Tensor) -> (u32, usize) {
        let number = self.row(&Meta::describe(tensor), "constant".to_owned(), "–".to_owned());
        let name = format!("%{number}");
        (number, self.drawing.add(BoxKind::Constant, name, "constant".to_owned(), vec![number]))
    }

    fn layout(&self, meta: &Meta) -> String {
        match &meta.strides {
            Strides::Contiguous => "row-major".to_owned(),
            Strides::Unknown => "?".to_owned(),
            Strides::Given { strides, offset } => {
                let strides: Vec<String> =
                    strides.iter().map(|stride| stride.named(self.symbols).to_string()).collect();
                let from = match offset {
                    Size::Const(0) => String::new(),
                    offset => format!(" from {}", offset.named(self.symbols)),
                };
                format!("strides ({}){from}", strides.join(", "))
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut named: Vec<&str> = Vec::new();
        for (number, spec) in self.graph.builder.inputs.iter().enumerate() {
            for (position, dim) in spec.dims.iter().enumerate() {
                let Dim::Symbol { name, multiple_of, least, most } = dim else { continue };
                if named.contains(&name.as_str()) {
                    continue;
                }
                named.push(name);
                let input = input_name(&self.graph.builder.inputs, number);
                let mut note = format!("symbol {name}: dimension {position} of {input}; at least {least}");
                if let Some(most) = most {
                    note.push_str(&format!(", at most {most}"));
                }
                if *multiple_of > 1 {
                    note.push_str(&format!(", a multiple of {multiple_of}"));
                }
                notes.push(note);
            }
        }
        notes
            .extend(self.graph.check().requirements.iter().map(|requirement| format!("needs {requirement}")));
        notes
    }
}

/// The last call that uses each tensor; outputs are used after all calls.
fn last_uses(graph: &OpenGraph) -> HashMap<Handle, usize> {
    let calls = &graph.builder.calls;
    let used =
        calls.iter().enumerate().flat_map(|(step, call)| handles(call).into_iter().map(move |of| (of, step)));
    let outputs = graph.outputs.iter().map(|output| (*output, calls.len().saturating_sub(1)));
    used.chain(outputs).collect()
}

fn lifetime(first: usize, last: Option<&usize>) -> String {
    match last {
        Some(last) if *last > first => format!("{first}–{last}"),
        _ => first.to_string(),
    }
}

/// The constant tensors among a call's arguments.
fn constants(call: &Call) -> Vec<Tensor> {
    let values = call.args.iter().chain(call.named.iter().map(|(_, arg)| arg));
    let mut found = Vec::new();
    for arg in values {
        if let BuilderArg::Value(value) = arg {
            match value {
                Value::Tensor(tensor) => found.push(tensor.clone()),
                Value::Tensors(tensors) => found.extend(tensors.iter().cloned()),
                Value::OptionalTensors(tensors) => found.extend(tensors.iter().flatten().cloned()),
                _ => {}
            }
        }
    }
    found
}
