//! Agreement of a graph for many sizes with a trace of its function at some alone.
//!
//! In: both graphs, as they were traced. Out: whether they make the same calls at these sizes. The formulas and the choices of the
//! first are generalised from the sizes at which its function was traced; at sizes between these the function may do otherwise.

use opsmith_runtime::error::Error;
use opsmith_runtime::infer::symbolic::{Bindings, Size};

use crate::ir::{Argument, BufferKind, Graph, Moving, Node, NodeKind, Region, SymbolSource};
use crate::plan::bind::argument;
use crate::trace::compare::contents_equal;

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
        let fits = self.variants.iter().find(|variant| match self.source(variant.symbol) {
            SymbolSource::Input { input, dim } => {
                shapes.get(input).and_then(|shape| shape.get(dim)) == Some(&variant.value)
            }
            SymbolSource::Node { .. } | SymbolSource::Derived => false,
        });
        fits.map_or(self, |variant| variant.graph.variant_of(shapes))
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
        let regions = |a: &Region, b: &Region| self.nodes(&a.nodes, &b.nodes);
        let same = match (&a.kind, &b.kind) {
            (NodeKind::Call { op, compute }, NodeKind::Call { op: other, compute: dtype }) => {
                std::ptr::eq(*op, *other) && compute == dtype
            }
            (NodeKind::View { op }, NodeKind::View { op: other }) => std::ptr::eq(*op, *other),
            (NodeKind::Copy, NodeKind::Copy) | (NodeKind::Add, NodeKind::Add) => true,
            (NodeKind::Cond { branches: a }, NodeKind::Cond { branches: b }) => {
                a.iter().zip(b.iter()).all(|(a, b)| regions(a, b))
            }
            (
                NodeKind::While { condition, predicate, body },
                NodeKind::While { condition: other, predicate: tensor, body: nodes },
            ) => predicate == tensor && regions(condition, other) && regions(body, nodes),
            (
                NodeKind::Scan { length, moving, body },
                NodeKind::Scan { length: other, moving: tensors, body: nodes },
            ) => self.numbers(length, other) && self.moving(moving, tensors) && regions(body, nodes),
            _ => false,
        };
        same && a.outs == b.outs
            && a.args.len() == b.args.len()
            && a.args.iter().zip(&b.args).all(|(a, b)| self.arguments(a, b))
    }

    fn moving(&self, a: &[Moving], b: &[Moving]) -> bool {
        let same = |(a, b): (&Moving, &Moving)| a.tensor == b.tensor && self.numbers(&a.step, &b.step);
        a.len() == b.len() && a.iter().zip(b).all(same)
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
