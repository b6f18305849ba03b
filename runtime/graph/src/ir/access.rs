//! Read access to the parts of a graph.

use opsmith_runtime::infer::symbolic::{Bindings, Guard, Origin, Size, Symbol, SymbolInfo, Symbols};

use super::{Buffer, BufferId, Graph, Node, SymbolSource, TensorId, TensorInfo};

impl Graph {
    /// The nodes in execution order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Every tensor.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Every buffer.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The inputs in order.
    pub fn inputs(&self) -> &[TensorId] {
        &self.inputs
    }

    /// The names of the inputs in order; empty for one without a name.
    pub fn input_names(&self) -> &[String] {
        &self.input_names
    }

    /// The outputs in order.
    pub fn outputs(&self) -> &[TensorId] {
        &self.outputs
    }

    /// The symbolic sizes.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The source of each symbol's value, in the order of [`Graph::symbols`].
    pub fn symbol_sources(&self) -> &[SymbolSource] {
        &self.sources
    }

    /// The conditions on sizes under which the graph is valid.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// A size as text, with the names of the graph's symbols.
    pub fn text(&self, size: &Size) -> String {
        size.named(&self.symbols).to_string()
    }

    /// The source of a symbol's value. A symbol without an entry is derived.
    pub(crate) fn source(&self, symbol: Symbol) -> SymbolSource {
        self.sources.get(symbol.0 as usize).copied().unwrap_or(SymbolSource::Derived)
    }

    /// Adds a symbol whose value is read from a dimension.
    pub(crate) fn add_symbol(&mut self, info: SymbolInfo, source: SymbolSource) {
        let origin = match source {
            SymbolSource::Input { .. } => Origin::Input,
            SymbolSource::Node { .. } | SymbolSource::Derived => Origin::Run,
        };
        self.symbols.add(SymbolInfo { origin, ..info });
        self.sources.push(source);
    }

    /// The tensors with data-dependent sizes, in the order of their symbols.
    pub(crate) fn sized_by_nodes(&self) -> impl Iterator<Item = TensorId> {
        self.sources.iter().filter_map(|source| match source {
            SymbolSource::Node { tensor, .. } => Some(*tensor),
            SymbolSource::Input { .. } | SymbolSource::Derived => None,
        })
    }

    /// The values of all symbols at the sizes of the example.
    pub(crate) fn example(&self) -> Bindings {
        self.symbols.values(|symbol| self.symbols.example(symbol))
    }

    /// Whether a tensor has a data-dependent size.
    pub(crate) fn is_found_by_node(&self, id: TensorId) -> bool {
        self.sized_by_nodes().any(|tensor| tensor == id)
    }

    pub(crate) fn tensor(&self, id: TensorId) -> &TensorInfo {
        &self.tensors[id.index()]
    }

    pub(crate) fn buffer_of(&self, id: TensorId) -> BufferId {
        self.tensors[id.index()].buffer
    }
}
