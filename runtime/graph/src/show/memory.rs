//! The memory report of a graph.
//!
//! In: a graph and values of its symbols. Out: a [`MemoryReport`]: for each buffer its location and live range, as in
//! the plan of a run. Nothing is allocated.

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::{Bindings, Origin, SymbolInfo};
use opsmith_runtime::layout::{Layout, checked_numel};

use crate::ir::{BufferId, Graph, TensorId};
use crate::plan::bind::{Bound, bind, check_guards};
use crate::plan::liveness::{self, BufferAssignment, BufferLocation};
use crate::plan::schedule::levels;

/// The memory of a graph at known sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryReport {
    /// Bytes of the arenas, one a device, in which everything lies that only the graph sees.
    pub planned: usize,
    /// The largest sum of bytes that are needed there at one level: no plan takes less.
    pub lower_bound: usize,
    /// Bytes of outputs, which callers get.
    pub results: usize,
    /// Bytes of constants.
    pub constants: usize,
    /// Bytes of inputs.
    pub inputs: usize,
    /// Every buffer that takes memory.
    pub buffers: Vec<BufferReport>,
    /// The layout of each tensor that a step or a caller needs.
    pub(crate) layouts: Vec<Option<Layout>>,
}

/// Where a buffer lies, and when it is needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferReport {
    /// The buffer.
    pub buffer: BufferId,
    /// The tensor that shows all of it.
    pub tensor: TensorId,
    /// How large it is.
    pub bytes: usize,
    /// The first and last level that needs it, if a step does. Steps that run one after another have a
    /// level each, in the order of [`Graph::nodes`]; with several threads those that run together have one.
    pub span: Option<(usize, usize)>,
    /// Where it lies.
    pub place: Place,
}

/// Where a buffer lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In memory of an input.
    Input,
    /// In memory of a constant.
    Constant,
    /// In memory of an output.
    Output,
    /// In the arena of its device.
    Arena {
        /// Where it starts, in bytes.
        offset: usize,
        /// The buffer whose memory it takes over, as an element-wise call writes where it reads.
        over: Option<BufferId>,
    },
}

impl Graph {
    /// The memory of the graph at the sizes that it was traced with. A graph with sizes that depend on
    /// elements is planned in segments when it runs; the report is of all of it at once.
    ///
    /// # Errors
    /// If a size is not known before the graph runs.
    pub fn memory(&self) -> Result<MemoryReport> {
        self.memory_at(&[])
    }

    /// The memory of the graph where symbols have values, by name; others have those that the graph was
    /// traced with.
    ///
    /// ```
    /// use opsmith_graph::{Graph, InputSpec};
    /// use opsmith_runtime::DType;
    /// let spec = InputSpec::new(DType::F32, ["batch".into(), 64.into()]);
    /// // A function would call operators here.
    /// let graph = Graph::trace(|x| Ok(x[0].clone()), [spec])?;
    /// let report = graph.memory_at(&[("batch", 16)])?;
    /// assert_eq!((report.inputs, report.planned, report.lower_bound), (16 * 64 * 4, 0, 0));
    /// # Ok::<(), opsmith_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no symbol of a name, the graph is not for a size, or a size is not known before it runs.
    pub fn memory_at(&self, symbols: &[(&str, i64)]) -> Result<MemoryReport> {
        let (graph, symbols) = self.variant_at(symbols);
        graph.memory_where(graph.values_by_name(&symbols)?)
    }

    fn memory_where(&self, values: Bindings) -> Result<MemoryReport> {
        let Bound { layouts, cleared, .. } = self.bound_at(values)?;
        let layouts = &layouts;
        let arranged = BufferAssignment::new(self, layouts, &levels(self), &cleared)?;
        let mut report = MemoryReport {
            planned: arranged.arenas.iter().map(|arena| arena.bytes).sum(),
            lower_bound: arranged.arenas.iter().map(|arena| arena.lower_bound).sum(),
            results: 0,
            constants: 0,
            inputs: 0,
            buffers: Vec::new(),
            layouts: layouts.clone(),
        };
        for (number, buffer) in self.buffers.iter().enumerate() {
            let place = match arranged.locations[number] {
                BufferLocation::Nowhere => continue,
                BufferLocation::Input => Place::Input,
                BufferLocation::Constant => Place::Constant,
                BufferLocation::Result => Place::Output,
                BufferLocation::Arena { offset, .. } => {
                    let over = arranged.shares[number].map(|buffer| BufferId(buffer as u32));
                    Place::Arena { offset, over }
                }
            };
            let bytes = liveness::bytes(self, layouts, number)?;
            match place {
                Place::Input => report.inputs += bytes,
                Place::Constant => report.constants += bytes,
                Place::Output => report.results += bytes,
                Place::Arena { .. } => {}
            }
            let buffer_id = BufferId(number as u32);
            let span = arranged.live_ranges[number];
            report.buffers.push(BufferReport { buffer: buffer_id, tensor: buffer.root, bytes, span, place });
        }
        Ok(report)
    }

    fn bound_at(&self, symbols: Bindings) -> Result<Bound> {
        if self.sized_by_nodes().next().is_none() {
            return bind(self, symbols);
        }
        // Data-dependent sizes cannot be inferred again.
        check_guards(self, &symbols)?;
        let layouts: Vec<Option<Layout>> =
            self.tensors.iter().map(|info| info.layout.evaluate(&symbols)).collect();
        layouts.iter().flatten().try_for_each(|layout| checked_numel(&layout.sizes).map(drop))?;
        Ok(Bound { symbols, layouts, cleared: Vec::new() })
    }

    /// The values of the symbols: given ones by name, or those that the graph was traced with.
    pub(crate) fn values_by_name(&self, given: &[(&str, i64)]) -> Result<Bindings> {
        let free: Vec<&SymbolInfo> =
            self.symbols.infos().iter().filter(|info| !matches!(info.origin, Origin::Derived(_))).collect();
        if let Some((name, _)) = given.iter().find(|(name, _)| !free.iter().any(|info| info.name == *name)) {
            let known: Vec<String> = free.iter().map(|info| format!("`{}`", info.name)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Error::graph(format!("the graph has no symbol `{name}`"))
                .with_help(format!("its symbols are: {known}")));
        }
        Ok(self.symbols.values(|symbol| {
            let info = self.symbols.info(symbol)?;
            let given = given.iter().find(|(known, _)| *known == info.name);
            given.map_or(info.example, |(_, value)| Some(*value))
        }))
    }
}
