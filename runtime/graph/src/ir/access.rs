//! Read access to the parts of a graph.

use opsmith_runtime::infer::symbolic::{Size, Symbol};

use super::{Buffer, BufferId, Graph, Guard, Node, SymbolInfo, SymbolSource, TensorId, TensorInfo};

impl Graph {
    /// The steps in the order they run.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Every tensor.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Every piece of memory.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The inputs in order.
    pub fn inputs(&self) -> &[TensorId] {
        &self.inputs
    }

    /// The outputs in order.
    pub fn outputs(&self) -> &[TensorId] {
        &self.outputs
    }

    /// The sizes that are not known before the graph runs.
    pub fn symbols(&self) -> &[SymbolInfo] {
        &self.symbols
    }

    /// The conditions on sizes under which the graph is right.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// A size as text, with the names of the graph's symbols.
    pub fn text(&self, size: &Size) -> String {
        let name = |symbol: Symbol| self.symbols.get(symbol.0 as usize).map(|info| info.name.as_str());
        size.with_names(&name).to_string()
    }

    /// Whether elements decide how large a tensor is.
    pub(crate) fn is_found_by_node(&self, id: TensorId) -> bool {
        let found =
            |symbol: &SymbolInfo| matches!(symbol.source, SymbolSource::Node { tensor, .. } if tensor == id);
        self.symbols.iter().any(found)
    }

    pub(crate) fn tensor(&self, id: TensorId) -> &TensorInfo {
        &self.tensors[id.index()]
    }

    pub(crate) fn buffer_of(&self, id: TensorId) -> BufferId {
        self.tensors[id.index()].buffer
    }
}
