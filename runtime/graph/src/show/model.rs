//! The view model of a graph: rows of text, boxes and edges, for tables, drawings and pages.
//!
//! In: a graph, and its memory where sizes are known. Out: a row for each tensor, a box for each input, constant,
//! node and output, and an edge for each tensor between boxes.

use opsmith_runtime::infer::symbolic::{Guard, Size, Symbol, SymbolInfo};
use opsmith_runtime::layout::{Layout, checked_numel};

use super::memory::{BufferReport, MemoryReport, Place};
use super::table::counted;
use crate::ir::{BufferKind, Graph, NodeKind, SymbolSource, TensorId, TensorInfo};

/// The view model of a graph, without its memory.
pub(crate) struct ViewModel {
    /// Counts of inputs, nodes, tensors, outputs.
    pub summary: [String; 4],
    /// Symbols, and conditions on sizes, a line each.
    pub notes: Vec<String>,
    /// A row for each tensor, by number.
    pub rows: Vec<TensorRow>,
    pub drawing: Drawing,
    /// The numbers of the outputs' tensors.
    pub outputs: Vec<u32>,
}

/// A tensor.
pub(crate) struct TensorRow {
    /// The buffer of the tensor.
    pub buffer: u32,
    /// The node or input that makes it.
    pub by: String,
    pub dtype: String,
    pub shape: String,
    pub layout: String,
    /// Bytes of its elements, if their number is known.
    pub bytes: Option<usize>,
    /// The range of nodes in which its memory is live.
    pub lifetime: String,
    /// The location of its memory.
    pub memory: String,
}

/// The kind of a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BoxKind {
    Input,
    Constant,
    Call,
    View,
    Copy,
    Control,
    Output,
}

impl BoxKind {
    pub fn name(self) -> &'static str {
        match self {
            BoxKind::Input => "input",
            BoxKind::Constant => "constant",
            BoxKind::Call => "call",
            BoxKind::View => "view",
            BoxKind::Copy => "moves",
            BoxKind::Control => "control",
            BoxKind::Output => "output",
        }
    }
}

pub(crate) struct DrawnBox {
    pub kind: BoxKind,
    pub name: String,
    /// The call site, or other text.
    pub site: String,
    /// The node's number, if it is one.
    pub step: Option<usize>,
    /// The operators in its regions.
    pub inside: Vec<&'static str>,
    /// The numbers of the tensors that it makes or writes.
    pub outs: Vec<u32>,
}

/// A tensor between two boxes.
pub(crate) struct Edge {
    pub from: usize,
    pub to: usize,
    /// Its number.
    pub tensor: u32,
}

#[derive(Default)]
pub(crate) struct Drawing {
    pub boxes: Vec<DrawnBox>,
    pub edges: Vec<Edge>,
}

impl Drawing {
    /// Adds a box; returns its number.
    pub fn add(&mut self, kind: BoxKind, name: String, site: String, outs: Vec<u32>) -> usize {
        self.boxes.push(DrawnBox { kind, name, site, step: None, inside: Vec::new(), outs });
        self.boxes.len() - 1
    }
}

impl ViewModel {
    /// The view model of a graph.
    pub fn of(graph: &Graph, memory: Option<&MemoryReport>) -> ViewModel {
        ViewModel {
            summary: [
                counted(graph.inputs.len(), "input"),
                counted(graph.nodes.len(), "step"),
                counted(graph.tensors.len(), "tensor"),
                counted(graph.outputs.len(), "output"),
            ],
            notes: notes(graph),
            rows: rows(graph, memory),
            drawing: drawing(graph),
            outputs: graph.outputs.iter().map(|id| id.0).collect(),
        }
    }
}

fn notes(graph: &Graph) -> Vec<String> {
    let symbol = |(symbol, info): (Symbol, &SymbolInfo)| {
        let name = graph.text(&Size::from(symbol));
        let example = info.example.map_or(String::new(), |example| format!("; traced with {example}"));
        let from = match graph.source(symbol) {
            SymbolSource::Input { input, dim } => {
                format!("dimension {dim} of {}", graph.input_names.get(input).map_or("", String::as_str))
            }
            SymbolSource::Node { tensor, dim } => {
                format!("dimension {dim} of %{}, found by its step", tensor.0)
            }
            SymbolSource::Derived => {
                let of: Vec<String> =
                    info.made_of().into_iter().map(|of| graph.text(&Size::from(of))).collect();
                return format!("symbol {name}: computed from {}{example}", of.join(", "));
            }
        };
        let mut text = format!("symbol {name}: {from}; at least {}", info.least);
        if !info.most.is_unknown() {
            text.push_str(&format!(", at most {}", graph.text(&info.most)));
        }
        if info.multiple_of > 1 {
            text.push_str(&format!(", a multiple of {}", info.multiple_of));
        }
        text + &example
    };
    let guard = |guard: &Guard| format!("guard {}: {}", guard.condition.named(&graph.symbols), guard.reason);
    let variant = |(symbol, value, graph): (&str, i64, &Graph)| {
        format!(
            "where {symbol} = {value}, a graph of its own with {} runs",
            counted(graph.nodes.len(), "step")
        )
    };
    let checked = graph.check().unwrap_or_default();
    let requirements = checked.requirements.iter().map(|requirement| format!("needs {requirement}"));
    let guards = graph.guards.iter().map(guard);
    let symbols = graph.symbols.all().zip(graph.symbols.infos());
    symbols.map(symbol).chain(graph.variants().map(variant)).chain(guards).chain(requirements).collect()
}

/// A row for each tensor, by number.
fn rows(graph: &Graph, memory: Option<&MemoryReport>) -> Vec<TensorRow> {
    let makers = makers(graph);
    let mut by_buffer: Vec<Option<&BufferReport>> = vec![None; graph.buffers.len()];
    for report in memory.iter().flat_map(|memory| &memory.buffers) {
        by_buffer[report.buffer.index()] = Some(report);
    }
    let example = graph.example();
    let row = |(number, info): (usize, &TensorInfo)| {
        let report = by_buffer[info.buffer.index()];
        TensorRow {
            buffer: info.buffer.0,
            by: makers[number].clone().unwrap_or_else(|| source(graph, TensorId(number as u32))),
            dtype: info.dtype.to_string(),
            shape: shape(graph, info),
            layout: {
                let found = memory.and_then(|memory| memory.layouts[number].clone());
                layout(graph, info, info.layout.evaluate(&example).or(found))
            },
            bytes: memory
                .and_then(|memory| memory.layouts[number].as_ref())
                .map(|layout| layout.numel() as usize * info.dtype.size()),
            lifetime: match report.and_then(|report| report.span) {
                Some((first, last)) if first == last => first.to_string(),
                Some((first, last)) => format!("{first}–{last}"),
                None => "–".to_owned(),
            },
            memory: report.map_or_else(|| "–".to_owned(), place),
        }
    };
    graph.tensors.iter().enumerate().map(row).collect()
}

/// A shape with the names of symbols.
fn shape(graph: &Graph, info: &TensorInfo) -> String {
    let sizes: Vec<String> = info.layout.sizes.iter().map(|size| graph.text(size)).collect();
    format!("({})", sizes.join(", "))
}

/// A layout as text; at the sizes of the trace it is `example`, if that is known.
fn layout(graph: &Graph, info: &TensorInfo, example: Option<Layout>) -> String {
    let offset = graph.text(&info.layout.offset);
    let is_counted = |layout: &Layout| checked_numel(&layout.sizes).is_ok();
    let mut text = if example.filter(is_counted).is_some_and(|layout| layout.is_contiguous()) {
        "row-major".to_owned()
    } else {
        let strides: Vec<String> = info.layout.strides.iter().map(|stride| graph.text(stride)).collect();
        format!("strides ({})", strides.join(", "))
    };
    if offset != "0" {
        text.push_str(&format!(" from {offset}"));
    }
    text
}

fn place(report: &BufferReport) -> String {
    match report.place {
        Place::Input => "input".to_owned(),
        Place::Constant => "constant".to_owned(),
        Place::Output => "output".to_owned(),
        Place::Tile { offset } => format!("tile {offset}"),
        Place::Register => "register".to_owned(),
        Place::Arena { offset, over: None } => format!("arena {offset}"),
        Place::Arena { offset, over: Some(_) } => format!("arena {offset}, in place"),
        Place::Lent { output, offset, over: None } => format!("in %{} {offset}", output.0),
        Place::Lent { output, offset, over: Some(_) } => format!("in %{} {offset}, in place", output.0),
    }
}

/// The name of the node that makes each tensor, if there is one.
fn makers(graph: &Graph) -> Vec<Option<String>> {
    fn visit(nodes: &[crate::ir::Node], inside: &str, makers: &mut [Option<String>]) {
        for (number, node) in nodes.iter().enumerate() {
            let label = format!("{inside}{number} {}", node.kind.name());
            for out in &node.outs {
                makers[out.index()].get_or_insert_with(|| label.clone());
            }
            for region in node.kind.regions() {
                visit(&region.nodes, &format!("{inside}{number}."), makers);
            }
        }
    }
    let mut makers = vec![None; graph.tensors.len()];
    visit(&graph.nodes, "", &mut makers);
    // Memory from outside has a maker before any node writes to it.
    for buffer in graph.buffers.iter().filter(|buffer| !matches!(buffer.kind, BufferKind::Internal)) {
        makers[buffer.root.index()] = None;
    }
    makers
}

fn source(graph: &Graph, id: TensorId) -> String {
    match &graph.buffers[graph.buffer_of(id).index()].kind {
        BufferKind::Input(number) => {
            format!("input {}", graph.input_names.get(*number).map_or("", String::as_str))
        }
        BufferKind::Constant(_) => "constant".to_owned(),
        BufferKind::Internal => "part of another".to_owned(),
    }
}

/// The boxes and edges of a graph.
pub(crate) fn drawing(graph: &Graph) -> Drawing {
    let mut drawer = Drawer {
        graph,
        drawing: Drawing::default(),
        made: vec![None; graph.tensors.len()],
        written: vec![None; graph.buffers.len()],
    };
    drawer.draw();
    drawer.drawing
}

struct Drawer<'a> {
    graph: &'a Graph,
    drawing: Drawing,
    /// The box that made each tensor, and the last box that wrote each buffer.
    made: Vec<Option<usize>>,
    written: Vec<Option<usize>>,
}

impl Drawer<'_> {
    fn draw(&mut self) {
        let graph = self.graph;
        for (number, id) in graph.inputs.iter().enumerate() {
            let name = graph.input_names.get(number).cloned().unwrap_or_default();
            let at = self.drawing.add(BoxKind::Input, name, "input".to_owned(), vec![id.0]);
            self.written[graph.buffer_of(*id).index()] = Some(at);
        }
        for (number, node) in graph.nodes.iter().enumerate() {
            let mut reads: Vec<TensorId> = Vec::new();
            let mut read = |id: TensorId| {
                if !reads.contains(&id) {
                    reads.push(id);
                }
            };
            match &node.kind {
                NodeKind::View { .. } => {
                    node.args.iter().for_each(|arg| arg.for_each_tensor(&mut read));
                }
                _ => node.for_each_read(&mut read),
            }
            let sources: Vec<Option<usize>> = reads.iter().map(|id| self.source(*id)).collect();
            let kind = match node.kind {
                NodeKind::Call { .. } => BoxKind::Call,
                NodeKind::View { .. } => BoxKind::View,
                NodeKind::Copy | NodeKind::Add => BoxKind::Copy,
                _ => BoxKind::Control,
            };
            let outs = node.outs.iter().map(|out| out.0).collect();
            let at = self.drawing.add(kind, node.kind.name().to_owned(), node.site.to_string(), outs);
            self.drawing.boxes[at].step = Some(number);
            let inside = node.kind.regions().into_iter().flat_map(|region| &region.nodes);
            self.drawing.boxes[at].inside = inside.map(|node| node.kind.name()).collect();
            for (tensor, from) in reads.into_iter().zip(sources) {
                // A tensor made and read inside the regions of one node has no edge.
                if let Some(from) = from {
                    self.drawing.edges.push(Edge { from, to: at, tensor: tensor.0 });
                }
            }
            if kind == BoxKind::View {
                node.outs.iter().for_each(|out| self.made[out.index()] = Some(at));
            } else {
                node.for_each_write(&mut |id| self.written[graph.buffer_of(id).index()] = Some(at));
            }
        }
        for (number, id) in graph.outputs.iter().enumerate() {
            let from = self.source(*id);
            let name = format!("output {number}");
            let at = self.drawing.add(BoxKind::Output, name, "output".to_owned(), Vec::new());
            if let Some(from) = from {
                self.drawing.edges.push(Edge { from, to: at, tensor: id.0 });
            }
        }
    }

    /// The source box of a tensor.
    fn source(&mut self, id: TensorId) -> Option<usize> {
        let buffer = self.graph.buffer_of(id).index();
        let known = self.made[id.index()].max(self.written[buffer]);
        if known.is_none() && matches!(self.graph.buffers[buffer].kind, BufferKind::Constant(_)) {
            let root = self.graph.buffers[buffer].root;
            let name = format!("%{}", root.0);
            // A separate box for each node that reads it: edges across the whole picture would be less readable.
            return Some(self.drawing.add(BoxKind::Constant, name, "constant".to_owned(), vec![root.0]));
        }
        known
    }
}
