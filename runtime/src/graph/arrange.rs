//! When each buffer is needed, and where it lies.
//!
//! In: a graph, how large its buffers are, and the moment at which each node runs. Out: an [`Arrangement`]: for
//! each buffer whether it is a caller's, a constant, a result, or a part of the arena and which. Nothing is
//! allocated, so a graph can be described as it would run.

use super::ir::{Argument, BufferId, BufferKind, Graph, Node, NodeKind, TensorId};
use super::memory::{self, Lifetime};
use crate::error::{Error, Result};
use crate::layout::Layout;

/// Where a buffer lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Home {
    /// Nothing needs it.
    Nowhere,
    /// In memory that a caller brings.
    Input,
    /// In memory that the function found.
    Constant,
    /// In memory that callers get.
    Result,
    /// In the arena.
    Arena {
        /// Where it starts, in bytes.
        offset: usize,
    },
}

/// Where all buffers lie, and when they are needed.
pub(super) struct Arrangement {
    pub homes: Vec<Home>,
    /// The first and last moment at which each buffer is needed.
    pub spans: Vec<Option<(usize, usize)>>,
    /// The buffer whose memory a buffer takes over, if it does.
    pub shares: Vec<Option<usize>>,
    pub written: Vec<bool>,
    /// How much memory the arena has.
    pub bytes: usize,
    /// How much it needs at least.
    pub lower_bound: usize,
}

/// When buffers are needed.
pub(super) struct Uses {
    /// The first and last moment that needs each buffer.
    pub spans: Vec<Option<(usize, usize)>>,
    /// How many nodes need each buffer at the last moment.
    at_last: Vec<usize>,
    written: Vec<bool>,
    /// The buffers that outputs show.
    is_result: Vec<bool>,
}

impl Uses {
    pub fn of(graph: &Graph, moments: &[usize]) -> Uses {
        let count = graph.buffers.len();
        let mut uses = Uses {
            spans: vec![None; count],
            at_last: vec![0; count],
            written: vec![false; count],
            is_result: vec![false; count],
        };
        // The node that touched a buffer last, so that one node counts once.
        let mut counted = vec![usize::MAX; count];
        for (number, node) in graph.nodes.iter().enumerate() {
            let moment = moments[number];
            let Uses { spans, at_last, written, .. } = &mut uses;
            let mut touch = |id: TensorId| {
                let buffer = graph.buffer_of(id).index();
                if std::mem::replace(&mut counted[buffer], number) == number {
                    return;
                }
                let span = spans[buffer].get_or_insert((moment, moment));
                if moment > span.1 {
                    at_last[buffer] = 0;
                }
                *span = (span.0.min(moment), span.1.max(moment));
                at_last[buffer] += usize::from(moment == span.1);
            };
            node.for_each_read(&mut touch);
            node.for_each_write(&mut touch);
            node.for_each_write(&mut |id| written[graph.buffer_of(id).index()] = true);
        }
        for output in &graph.outputs {
            uses.is_result[graph.buffer_of(*output).index()] = true;
        }
        uses
    }

    fn in_arena(&self, graph: &Graph, buffer: usize) -> bool {
        matches!(graph.buffers[buffer].kind, BufferKind::Internal)
            && !self.is_result[buffer]
            && self.spans[buffer].is_some()
    }
}

impl Arrangement {
    /// Arranges the buffers of a graph, of which the `cleared` ones are needed from the start.
    ///
    /// # Errors
    /// If the size of a buffer that is needed is not known, or all of them are more than can be addressed.
    pub fn new(
        graph: &Graph,
        layouts: &[Option<Layout>],
        moments: &[usize],
        cleared: &[BufferId],
    ) -> Result<Arrangement> {
        check_total(graph, layouts)?;
        let mut uses = Uses::of(graph, moments);
        for buffer in cleared {
            if let Some(span) = &mut uses.spans[buffer.index()] {
                span.0 = 0;
            }
        }
        let count = graph.buffers.len();
        let mut shares = vec![None; count];
        let mut spans = uses.spans.clone();
        if graph.reuse {
            for (number, node) in graph.nodes.iter().enumerate() {
                if let Some((from, to)) = takes_over(graph, &uses, layouts, node, moments[number]) {
                    shares[to] = Some(from);
                }
            }
        }
        // The first buffer of each chain is placed, for as long as any of them is needed.
        let first_of = |mut buffer: usize| {
            while let Some(before) = shares[buffer] {
                buffer = before;
            }
            buffer
        };
        for buffer in 0..count {
            if shares[buffer].is_some()
                && let Some((_, last)) = uses.spans[buffer]
                && let Some(span) = &mut spans[first_of(buffer)]
            {
                span.1 = span.1.max(last);
            }
        }
        let arena: Vec<usize> =
            (0..count).filter(|&buffer| uses.in_arena(graph, buffer) && shares[buffer].is_none()).collect();
        let lifetimes = arena.iter().map(|&buffer| {
            let (first, last) = spans[buffer].expect("only buffers that are needed are in the arena");
            Ok(Lifetime { bytes: bytes(graph, layouts, buffer)?, first, last })
        });
        let lifetimes = lifetimes.collect::<Result<Vec<_>>>()?;
        let placement = memory::place(&lifetimes);
        let mut homes: Vec<Home> = (0..count)
            .map(|buffer| match graph.buffers[buffer].kind {
                BufferKind::Input(_) => Home::Input,
                BufferKind::Constant(_) => Home::Constant,
                BufferKind::Internal if uses.is_result[buffer] => Home::Result,
                BufferKind::Internal => Home::Nowhere,
            })
            .collect();
        for (&buffer, &offset) in arena.iter().zip(&placement.offsets) {
            homes[buffer] = Home::Arena { offset };
        }
        for buffer in 0..count {
            if shares[buffer].is_some() {
                homes[buffer] = homes[first_of(buffer)];
            }
        }
        let lower_bound = memory::lower_bound(&lifetimes);
        Ok(Arrangement {
            homes,
            spans: uses.spans,
            shares,
            written: uses.written,
            bytes: placement.bytes,
            lower_bound,
        })
    }
}

/// The buffers of an element-wise call's input and output if the output can have the input's memory: nothing
/// needs the input any more, and its elements lie where the output's do.
fn takes_over(
    graph: &Graph,
    uses: &Uses,
    layouts: &[Option<Layout>],
    node: &Node,
    moment: usize,
) -> Option<(usize, usize)> {
    let NodeKind::Call { op, .. } = &node.kind else { return None };
    let [out] = node.outs.as_slice() else { return None };
    let to = graph.buffer_of(*out).index();
    let made_here = graph.buffers[to].root == *out && uses.spans[to]?.0 == moment;
    if !op.forms.elementwise || !made_here || !uses.in_arena(graph, to) {
        return None;
    }
    let wanted = layouts[out.index()].as_ref()?;
    let fits = |id: TensorId| -> Option<usize> {
        let from = graph.buffer_of(id).index();
        let dies = uses.in_arena(graph, from) && uses.spans[from]?.1 == moment && uses.at_last[from] == 1;
        let alike = graph.tensor(id).dtype == graph.tensor(*out).dtype
            && layouts[id.index()].as_ref()? == wanted
            && layouts[graph.buffers[from].root.index()].as_ref()?.numel() == wanted.numel();
        // Read at other positions too, its elements would be gone before.
        let mut only_so = true;
        let mut look = |other: TensorId| {
            only_so &= graph.buffer_of(other).index() != from
                || (graph.tensor(other).dtype == graph.tensor(id).dtype
                    && layouts[other.index()].as_ref() == Some(wanted));
        };
        node.args.iter().for_each(|arg| arg.for_each_tensor(&mut look));
        (from != to && dies && alike && only_so).then_some(from)
    };
    node.args.iter().find_map(|arg| match arg {
        Argument::Tensor(id) => Some((fits(*id)?, to)),
        _ => None,
    })
}

/// Refuses sizes of which not even the sum of all buffers' bytes can be counted.
fn check_total(graph: &Graph, layouts: &[Option<Layout>]) -> Result<()> {
    let sizes = graph.buffers.iter().filter_map(|buffer| {
        let layout = layouts[buffer.root.index()].as_ref()?;
        Some(layout.numel() as usize * graph.tensor(buffer.root).dtype.size() + memory::ALIGNMENT)
    });
    let total = sizes.into_iter().try_fold(0usize, usize::checked_add);
    match total.filter(|total| isize::try_from(*total).is_ok()) {
        Some(_) => Ok(()),
        None => Err(Error::memory("the graph's tensors have more bytes than can be addressed")
            .with_help("run it with smaller sizes")),
    }
}

/// How large a buffer is.
///
/// # Errors
/// If its size is not known.
pub(super) fn bytes(graph: &Graph, layouts: &[Option<Layout>], buffer: usize) -> Result<usize> {
    let root = graph.buffers[buffer].root;
    let layout = layouts[root.index()]
        .as_ref()
        .ok_or_else(|| Error::graph(format!("the size of tensor {} is not known", root.0)))?;
    Ok(layout.numel() as usize * graph.tensor(root).dtype.size())
}
