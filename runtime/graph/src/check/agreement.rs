//! Agreement of a graph for many sizes with a trace of its function at some alone.
//!
//! In: both graphs, as they were traced. Out: whether they make the same calls at these sizes. The formulas and the choices of the
//! first are generalised from the sizes at which its function was traced; at sizes between these the function may do otherwise.

use opsmith_runtime::error::Error;
use opsmith_runtime::infer::symbolic::{Bindings, Size};

use crate::ir::{Argument, BufferKind, Graph, Node, NodeKind, SymbolSource};
use crate::plan::bind::argument;
use crate::trace::compare::{contents_equal, kinds_equal};

impl Graph {
    /// Whether the graph makes the calls of another trace of its function, at the sizes of that one's inputs.
    ///
    /// Both are as they were traced, before passes, and the other one has no symbols but data-dependent sizes.
    ///
    /// ```
    /// use opsmith_graph::{Graph, InputSpec};
    /// use opsmith_runtime::{DType, Tensor};
    /// // A function would call operators here.
    /// let function = |x: &[Tensor]| Ok(x[0].clone());
    /// let general = Graph::trace(function, [InputSpec::new(DType::F32, ["n".into()])])?;
    /// let exact = Graph::trace(function, [InputSpec::new(DType::F32, [3.into()])])?;
    /// assert!(general.agrees_with(&exact));
    /// # Ok::<(), opsmith_runtime::Error>(())
    /// ```
    pub fn agrees_with(&self, exact: &Graph) -> bool {
        let shape = |id| exact.tensor(id).layout.sizes.iter().map(Size::known).collect::<Option<Vec<i64>>>();
        let Some(shapes) = exact.inputs.iter().map(|id| shape(*id)).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let graph = self.variant_of(&shapes);
        let symbols = graph.symbols.values(|symbol| match graph.source(symbol) {
            SymbolSource::Input { input, dim } => shapes.get(input)?.get(dim).copied(),
            SymbolSource::Node { .. } | SymbolSource::Derived => None,
        });
        let sides = Sides { graph, symbols, exact, unknown: exact.symbols.values(|_| None) };
        sides.agree()
    }

    /// The graph that runs at some shapes of inputs.
    fn variant_of(&self, shapes: &[Vec<i64>]) -> &Graph {
        let variant = self.variant_where(|input, dim| shapes.get(input)?.get(dim).copied());
        variant.map_or(self, |variant| variant.variant_of(shapes))
    }
}

/// Both graphs, with the values of their symbols.
struct Sides<'a> {
    graph: &'a Graph,
    symbols: Bindings,
    exact: &'a Graph,
    unknown: Bindings,
}

impl Sides<'_> {
    fn agree(&self) -> bool {
        let Sides { graph, symbols, exact, unknown } = self;
        let tensors = graph.tensors.iter().zip(&exact.tensors);
        let buffers = graph.buffers.iter().zip(&exact.buffers);
        graph.tensors.len() == exact.tensors.len()
            && graph.buffers.len() == exact.buffers.len()
            && (&graph.inputs, &graph.outputs) == (&exact.inputs, &exact.outputs)
            && tensors.into_iter().all(|(a, b)| {
                (a.buffer, a.dtype, a.device) == (b.buffer, b.dtype, b.device)
                    && a.layout.evaluate(symbols) == b.layout.evaluate(unknown)
            })
            && buffers.into_iter().all(|(a, b)| match (&a.kind, &b.kind) {
                (BufferKind::Input(a), BufferKind::Input(b)) => a == b,
                (BufferKind::Internal, BufferKind::Internal) => true,
                (BufferKind::Constant(a), BufferKind::Constant(b)) => {
                    contents_equal(a.storage(), b.storage())
                }
                _ => false,
            })
            && self.nodes(&graph.nodes, &exact.nodes)
    }

    fn nodes(&self, a: &[Node], b: &[Node]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.node(a, b))
    }

    fn node(&self, a: &Node, b: &Node) -> bool {
        let scans = match (&a.kind, &b.kind) {
            (
                NodeKind::Scan { length, moving, .. },
                NodeKind::Scan { length: other, moving: tensors, .. },
            ) => {
                self.numbers(length, other)
                    && moving.iter().zip(tensors).all(|(a, b)| self.numbers(&a.step, &b.step))
            }
            _ => true,
        };
        let (regions, others) = (a.kind.regions(), b.kind.regions());
        let same = kinds_equal(&a.kind, &b.kind)
            && scans
            && regions.iter().zip(&others).all(|(a, b)| self.nodes(&a.nodes, &b.nodes));
        same && a.outs == b.outs
            && a.args.len() == b.args.len()
            && a.args.iter().zip(&b.args).all(|(a, b)| self.arguments(a, b))
    }

    /// Whether two numbers are equal, or depend on elements both.
    fn numbers(&self, a: &Size, b: &Size) -> bool {
        a.bind(&self.symbols) == b.bind(&self.unknown)
    }

    fn arguments(&self, a: &Argument, b: &Argument) -> bool {
        match (a, b) {
            (Argument::Tensor(a), Argument::Tensor(b)) => a == b,
            (Argument::Tensors(a), Argument::Tensors(b)) => a == b,
            (Argument::OptionalTensors(a), Argument::OptionalTensors(b)) => a == b,
            _ => {
                let value = |arg: &Argument, symbols: &Bindings| {
                    argument(arg, symbols, &mut |_| Err(Error::graph("a tensor stands beside a number"))).ok()
                };
                match (value(a, &self.symbols), value(b, &self.unknown)) {
                    (Some(a), Some(b)) => a.same_bits(&b),
                    // Numbers that depend on elements are the same formula of these, or both unknown.
                    (None, None) => std::mem::discriminant(a) == std::mem::discriminant(b),
                    _ => false,
                }
            }
        }
    }
}
