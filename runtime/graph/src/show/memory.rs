//! The memory report of a graph.
//!
//! In: a graph and values of its symbols. Out: a [`MemoryReport`]: for each buffer its location and live range, as in
//! the plan of a run. Allocates nothing.

use std::ops::Range;

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::{Bindings, Origin, SymbolInfo};
use opsmith_runtime::layout::{Layout, checked_numel};

use crate::ir::{BufferId, Graph, TensorId};
use crate::plan::bind::{Bound, bind, check_guards};
use crate::plan::fusion::Fusion;
use crate::plan::liveness::{self, BufferAssignment, BufferLocation};
use crate::plan::schedule::levels;

/// The memory of a graph at known sizes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryReport {
    /// Bytes of the arenas, one per device, which contain all private buffers but those of fused calls.
    pub planned: usize,
    /// The maximum over levels of their live bytes: no plan needs less.
    pub lower_bound: usize,
    /// Bytes of intermediate results of one tile of fused calls; each thread has so many.
    pub tile: usize,
    /// The nodes of each fused group on the host: they run for one tile of rows after the other.
    pub fused: Vec<Range<usize>>,
    /// The nodes of each fused group on a device: they run as one kernel.
    pub kernels: Vec<Range<usize>>,
    /// Bytes of outputs.
    pub results: usize,
    /// Bytes of constants.
    pub constants: usize,
    /// Bytes of inputs.
    pub inputs: usize,
    /// Every buffer with memory.
    pub buffers: Vec<BufferReport>,
    /// The layout of each tensor that is used.
    pub(crate) layouts: Vec<Option<Layout>>,
}

/// The location and live range of a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferReport {
    /// The buffer.
    pub buffer: BufferId,
    /// The tensor over the whole buffer.
    pub tensor: TensorId,
    /// Its size.
    pub bytes: usize,
    /// The first and last level that uses it, if a node does. Nodes in sequential execution have a level each, in the
    /// order of [`Graph::nodes`]; with several threads, nodes that run together share one, as fused calls do.
    pub span: Option<(usize, usize)>,
    /// Its location.
    pub place: Place,
}

/// The location of a buffer.
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
        /// Offset in bytes.
        offset: usize,
        /// The buffer whose memory it reuses, as the output of an element-wise call does.
        over: Option<BufferId>,
    },
    /// In memory of an output, until that is written.
    Lent {
        /// The output.
        output: TensorId,
        /// Offset in bytes.
        offset: usize,
        /// The buffer whose memory it reuses, as the output of an element-wise call does.
        over: Option<BufferId>,
    },
    /// In memory of a tile: fused calls write and read it tile by tile.
    Tile {
        /// Offset in bytes.
        offset: usize,
    },
    /// In registers: the kernel of fused calls on a device has it for the elements at hand.
    Register,
}

impl Graph {
    /// The memory of the graph at the sizes of the trace. A graph with data-dependent sizes is planned in segments when
    /// it runs; the report covers all of it at once.
    ///
    /// # Errors
    /// If a size is unknown before the graph runs.
    pub fn memory(&self) -> Result<MemoryReport> {
        self.memory_at(&[])
    }

    /// The memory of the graph at values of symbols, by name; the others have their values from the trace.
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
    /// If a name is not a symbol's, the graph does not accept a size, or a size is unknown before it runs.
    pub fn memory_at(&self, symbols: &[(&str, i64)]) -> Result<MemoryReport> {
        let (graph, symbols) = self.variant_at(symbols);
        graph.memory_where(graph.values_by_name(&symbols)?)
    }

    fn memory_where(&self, values: Bindings) -> Result<MemoryReport> {
        let bound = self.bound_at(values)?;
        let Bound { layouts, cleared, .. } = &bound;
        let fusion = Fusion::of(self, &bound);
        let arranged = BufferAssignment::new(self, layouts, &levels(self, &fusion), &fusion, cleared)?;
        let nodes = |kernels: bool| {
            let groups = fusion.groups.iter().filter(|group| group.links.is_some() == kernels);
            groups.map(|group| group.nodes.clone()).collect()
        };
        let mut report = MemoryReport {
            planned: arranged.arenas.iter().map(|arena| arena.bytes).sum(),
            lower_bound: arranged.arenas.iter().map(|arena| arena.lower_bound).sum(),
            tile: fusion.tile_bytes(),
            fused: nodes(false),
            kernels: nodes(true),
            results: 0,
            constants: 0,
            inputs: 0,
            buffers: Vec::new(),
            layouts: layouts.clone(),
        };
        for (number, buffer) in self.buffers.iter().enumerate() {
            let over = arranged.shares[number].map(|buffer| BufferId(buffer as u32));
            let place = match arranged.locations[number] {
                BufferLocation::Nowhere => continue,
                BufferLocation::Input => Place::Input,
                BufferLocation::Constant => Place::Constant,
                BufferLocation::Result => Place::Output,
                BufferLocation::Arena { offset, .. } => Place::Arena { offset, over },
                BufferLocation::Lent { result, offset } => {
                    Place::Lent { output: self.buffers[result].root, offset, over }
                }
                BufferLocation::Tile { offset } => Place::Tile { offset },
                BufferLocation::Register => Place::Register,
            };
            let bytes = liveness::bytes(self, layouts, number)?;
            match place {
                Place::Input => report.inputs += bytes,
                Place::Constant => report.constants += bytes,
                Place::Output => report.results += bytes,
                Place::Arena { .. } | Place::Lent { .. } | Place::Tile { .. } | Place::Register => {}
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

    /// The values of the symbols: given by name, or from the trace.
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
