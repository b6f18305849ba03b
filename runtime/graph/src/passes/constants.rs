//! Constant folding: nodes that depend on constants alone run once, when the graph is optimised.
//!
//! A constant with other owners may change between runs, so it counts only if the caller declares it frozen
//! ([`Passes::frozen`]). Results much larger than their inputs stay nodes.

use opsmith_core::DType;
use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::Bindings;
use opsmith_runtime::internals::{self, Borrows, OperatorInternals as _, TensorInternals as _};
use opsmith_runtime::layout::{Layout, checked_numel};
use opsmith_runtime::op::{KernelCall, OpDef};
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use super::facts::Facts;
use super::{Passes, keep, repeats};
use crate::ir::{Argument, BufferKind, Graph, Node, NodeKind, TensorId};
use crate::plan::bind::argument;
use crate::plan::verify::broadcasts;

/// Results up to this size are folded even if they are larger than their inputs.
const SMALL: usize = 64 << 10;

pub(super) fn fold(graph: &mut Graph, passes: &Passes) -> bool {
    let facts = Facts::of(graph);
    let constants = graph.buffers.iter().enumerate().map(|(number, buffer)| match &buffer.kind {
        BufferKind::Constant(whole) => {
            facts.writes[number] == 0 && (passes.frozen || whole.storage().references() == 1)
        }
        _ => false,
    });
    let mut constants: Vec<bool> = constants.collect();
    let mut kept = vec![true; graph.nodes.len()];
    for (number, kept) in kept.iter_mut().enumerate() {
        let node = &graph.nodes[number];
        let Some(layouts) = foldable(graph, &facts, &constants, number) else { continue };
        // A failing node stays; its error is reported when the graph runs.
        let Ok(results) = compute(graph, node, &layouts) else { continue };
        *kept = false;
        let buffers: SmallVec<[usize; 1]> =
            node.outs.iter().map(|out| graph.buffer_of(*out).index()).collect();
        for (buffer, result) in buffers.into_iter().zip(results) {
            constants[buffer] = true;
            graph.buffers[buffer].kind = BufferKind::Constant(result);
        }
    }
    keep(&mut graph.nodes, &kept)
}

/// The layouts of a node's results, if it can be computed now.
fn foldable(graph: &Graph, facts: &Facts, constants: &[bool], number: usize) -> Option<Vec<Layout>> {
    let node = &graph.nodes[number];
    let custom = node.kind.op().is_some_and(|op| op.custom.is_some());
    if !matches!(node.kind, NodeKind::Call { .. } | NodeKind::Copy) || !repeats(node) || custom {
        return None;
    }
    let (mut all_constant, mut read) = (true, 0);
    node.for_each_read(&mut |id| {
        let bytes = part_of_constant(graph, id).map(|part| part.numel() as usize * part.dtype().size());
        all_constant &= constants[graph.buffer_of(id).index()] && bytes.is_some();
        read += bytes.unwrap_or(0);
    });
    let layouts = node.outs.iter().map(|out| {
        let buffer = graph.buffer_of(*out).index();
        let own = facts.maker[buffer] == Some(number) && !facts.is_output[buffer];
        let layout = own.then(|| graph.tensor(*out).layout.evaluate(&Bindings::default())).flatten();
        layout.filter(|layout| checked_numel(&layout.sizes).is_ok())
    });
    let layouts = layouts.collect::<Option<Vec<Layout>>>()?;
    let made: usize = node
        .outs
        .iter()
        .zip(&layouts)
        .map(|(out, layout)| layout.numel() as usize * graph.tensor(*out).dtype.size())
        .sum();
    (all_constant && made <= read.max(SMALL)).then_some(layouts)
}

/// A tensor over a constant, if its layout is known and lies inside.
fn part_of_constant(graph: &Graph, id: TensorId) -> Option<Tensor> {
    let info = graph.tensor(id);
    let BufferKind::Constant(whole) = &graph.buffers[info.buffer.index()].kind else { return None };
    let layout = info.layout.evaluate(&Bindings::default())?;
    layout.check_inside((whole.storage().bytes() / info.dtype.size()) as i64).ok()?;
    // SAFETY: the layout was just checked to lie inside the constant, all of which is written.
    Some(unsafe { Tensor::from_parts(whole.storage().clone(), layout, info.dtype, info.device) })
}

/// The results of a node.
fn compute(graph: &Graph, node: &Node, layouts: &[Layout]) -> Result<Vec<Tensor>> {
    let only_constants = || Error::graph("a step that is folded reads constants only");
    let mut tensor = |id: TensorId| part_of_constant(graph, id).ok_or_else(only_constants);
    let values = node.args.iter().map(|arg| argument(arg, &Bindings::default(), &mut tensor));
    let values = values.collect::<Result<SmallVec<[Value; 6]>>>()?;
    let args: SmallVec<[Arg<'_>; 6]> = values.iter().map(Value::as_arg).collect();
    let outs = node.outs.iter().zip(layouts).map(|(out, layout)| {
        let info = graph.tensor(*out);
        // SAFETY: the kernel or copy below writes every element.
        unsafe { Tensor::with_memory(&layout.sizes, info.dtype, info.device) }
    });
    let outs = outs.collect::<Result<Vec<Tensor>>>()?;
    if outs.iter().all(|out| out.numel() == 0) {
        return Ok(outs);
    }
    let _held = Borrows::acquire(&args, &[])?;
    match (&node.kind, node.args.as_slice()) {
        (NodeKind::Call { op, compute }, _) => {
            check_call(op, *compute, &args, &outs)?;
            let kernel = op.kernel(outs[0].device().backend, *compute)?;
            // SAFETY: tracing inferred the outputs, which are new, and converted the inputs; the storages of these
            // are borrowed.
            unsafe { internals::run_kernel(kernel, &KernelCall::new(op, &args, &outs))? };
        }
        (_, [Argument::Tensor(_)]) if broadcasts(args[0].tensor().shape(), outs[0].shape()) => {
            // SAFETY: the result is new, and the argument's storage is borrowed.
            unsafe { internals::convert(&outs[0], args[0].tensor())? };
        }
        _ => return Err(Error::graph("a copy has one argument, which broadcasts to its result")),
    }
    Ok(outs)
}

/// Rejects a call that differs from its inference, as one of a loaded graph may.
fn check_call(op: &OpDef, compute: DType, args: &[Arg<'_>], outs: &[Tensor]) -> Result<()> {
    let inferred =
        op.inferred(args).ok_or_else(|| Error::graph("the operator's inference is not known"))??;
    let alike = inferred.compute == compute
        && internals::are_converted(op, args, compute, inferred.device)
        && inferred.outs.len() == outs.len()
        && outs.iter().zip(&inferred.outs).all(|(out, spec)| {
            out.dtype() == spec.dtype && out.shape() == &spec.sizes[..] && out.device() == inferred.device
        });
    if alike { Ok(()) } else { Err(Error::graph("the step has other results than inference says")) }
}
