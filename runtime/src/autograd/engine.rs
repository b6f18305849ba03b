//! The backward pass.
//!
//! In: roots with gradients. Out: gradients added to leaves, or those that `grad` requests. Ready nodes wait, with the
//! gradients they have received, ordered by sequence number (`queue`). Edges lead to older nodes only, so when the
//! newest waiting node runs, every node that could still send it a gradient has run: no dependency counts are needed,
//! for any number of roots. The pass is a loop, so a deep graph needs no deep stack. It runs on the caller's thread;
//! passes of several threads may run through the same nodes.

use std::cell::Cell;
use std::sync::OnceLock;

use smallvec::{SmallVec, smallvec};

use super::adjust::{adjust, roles_of};
use super::call::Call;
use super::capture::Capture;
use super::context::{GradContext, Gradient};
use super::custom::Custom;
use super::handle::Options;
use super::hooks::Extras;
use super::node::{Edge, Kind, Node};
use super::queue::{Gradients, Queue, Waiting};
use super::{anomaly, leaf, mode};
use crate::dispatch::spans::{self, Span};
use crate::embedder;
use crate::error::{Error, Result};
use crate::library::Roles;
use crate::op::GradientFormula;
use crate::shared::Shared;
use crate::tensor::Tensor;

/// Gradients of a node's inputs, with the positions of their edges.
pub(super) type Passed = SmallVec<[(usize, Tensor); 2]>;

/// The roots of a pass with their gradients. The edges keep every node of the pass alive.
#[derive(Default)]
pub(super) struct Roots {
    pub edges: SmallVec<[Edge; 1]>,
    pub gradients: SmallVec<[Tensor; 1]>,
}

/// The first roles found in this process, for sums of gradients in a pass without operators.
static KNOWN_ROLES: OnceLock<&'static Roles> = OnceLock::new();

/// Runs backward from the roots and adds to the gradients of leaves.
pub(super) fn backward(roots: Roots, options: Options) -> Result<()> {
    Pass::new(options, None).run(&roots.edges, roots.gradients)
}

/// Runs backward from the roots and returns the gradients that reach the given edges; those of
/// leaves stay as they are.
pub(super) fn gradients(roots: Roots, targets: &[Edge], options: Options) -> Result<Vec<Option<Tensor>>> {
    let mut capture = Capture::new(targets, &roots.edges);
    Pass::new(options, Some(&mut capture)).run(&roots.edges, roots.gradients)?;
    Ok(capture.found)
}

thread_local! {
    /// Nesting depth of this thread's passes, and whether one was refused.
    static DEPTH: Cell<(usize, bool)> = const { Cell::new((0, false)) };
}

/// One nested pass: hooks and user functions may run passes themselves.
struct Nested;

impl Nested {
    /// Above any intended nesting depth, and small enough for a thread's stack.
    const MOST: usize = 32;

    fn enter() -> Result<Nested> {
        let (depth, refused) = DEPTH.get();
        // After a refusal all nested passes end, so that a hook that ignores errors cannot retry at every depth.
        if depth >= Nested::MOST || refused && depth > 0 {
            DEPTH.set((depth, true));
            return Err(Error::autograd(format!(
                "backward runs inside of backward, {} deep: a hook or a function with its own backward goes \
                 through the graph that it belongs to",
                Nested::MOST
            ))
            .with_help("use the gradient that the hook is given, or go through another graph"));
        }
        DEPTH.set((depth + 1, false));
        Ok(Nested)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        let (depth, refused) = DEPTH.get();
        DEPTH.set((depth - 1, refused && depth > 1));
    }
}

/// One backward pass through a graph that the roots keep alive.
struct Pass<'g, 'c> {
    options: Options,
    capture: Option<&'c mut Capture>,
    queue: Queue<'g>,
    roles: Option<&'static Roles>,
    anomaly: bool,
}

impl<'g, 'c> Pass<'g, 'c> {
    fn new(options: Options, capture: Option<&'c mut Capture>) -> Self {
        let options = Options { retain_graph: options.retain_graph || options.create_graph, ..options };
        Pass { options, capture, queue: Queue::default(), roles: None, anomaly: anomaly::detecting() }
    }

    fn run(&mut self, edges: &'g [Edge], gradients: SmallVec<[Tensor; 1]>) -> Result<()> {
        let _nested = Nested::enter()?;
        let _phase = spans::open(|| Span::Phase { name: "backward" });
        let _mode = mode::Scope::enter(self.options.create_graph);
        for (edge, gradient) in edges.iter().zip(gradients) {
            self.deliver(edge, gradient)?;
        }
        let mut next = self.queue.pop();
        while let Some(Waiting { node, gradients }) = next {
            embedder::step()?;
            next = match self.run_node(node, gradients)? {
                Some(only) => Some(only),
                None => self.queue.pop(),
            };
        }
        Ok(())
    }

    /// Runs a node and passes its gradients on. Returns the next node if it is the only one ready, as in a chain, so
    /// that it bypasses the queue.
    #[inline]
    fn run_node(&mut self, node: &'g Shared<Node>, mut gradients: Gradients) -> Result<Option<Waiting<'g>>> {
        let extras = node.existing_extras();
        if let Some(extras) = extras {
            self.before(node, extras, &mut gradients)?;
        }
        if let Some(capture) = &mut self.capture {
            capture.take(node, &gradients);
        }
        if gradients.iter().all(Option::is_none) {
            return Ok(None);
        }
        let span = spans::open(|| Span::Backward { name: node.name(), op: node.op(), node: node.number() });
        let mut passed = match &node.kind {
            Kind::Call(call) => self.run_call(node, call, &gradients)?,
            Kind::Leaf(leaf) => {
                if self.capture.is_none()
                    && let Some(leaf) = leaf.upgrade()
                    && leaf.requires_grad()
                {
                    // Hooks that run after the node still read the gradient; without any it is moved.
                    let gradient = if extras.is_some() { gradients[0].clone() } else { gradients[0].take() };
                    leaf::accumulate(&leaf, gradient, || self.roles())?;
                }
                Passed::new()
            }
            Kind::Strided(step) => step.backward(&gradients, |position| self.wants(node, position))?,
            Kind::Custom(custom) => self
                .run_custom(node, custom, &gradients)
                .map_err(|error| error.with_note(format!("in backward of `{}`", custom.name)))?,
        };
        drop(span);
        if self.anomaly {
            anomaly::check(node, &passed, &gradients)?;
        }
        if let Some(extras) = extras.filter(|extras| extras.has_after()) {
            passed = after(node, extras, passed, &gradients)?;
        }
        if let [(position, _)] = passed[..]
            && let Some(edge) = &node.edges[position]
            && self.queue.is_empty()
            && edge.node.outputs.len() == 1
        {
            let gradient = passed.pop().map(|(_, gradient)| gradient);
            return Ok(Some(Waiting { node: &edge.node, gradients: smallvec![gradient] }));
        }
        for (position, gradient) in passed {
            if let Some(edge) = &node.edges[position] {
                self.deliver(edge, gradient)?;
            }
        }
        Ok(None)
    }

    /// Runs the formulas of a call.
    fn run_call(&mut self, node: &Shared<Node>, call: &Call, gradients: &Gradients) -> Result<Passed> {
        self.roles = self.roles.or_else(|| call.op.library.roles());
        let mut passed = Passed::new();
        let definition = call.op.grad.expect("only calls with formulas are recorded");
        let device = node.outputs[0].device;
        let wanted = self.capture.as_ref().map(|capture| &capture.wanted);
        if gradients.len() > 1 {
            refuse_unfollowed(node, call, gradients)?;
        }
        let context = GradContext { node, call, grads: gradients, wanted };
        for formula in definition.formulas.iter().filter(|formula| formula.is_for(device)) {
            if !formula.arguments.iter().any(|&argument| context.needs(argument as usize)) {
                continue;
            }
            (formula.backward)(&context)
                .and_then(|results| self.sort(results, node, call, formula, &mut passed))
                .map_err(|error| in_formula(error, call, formula))?;
        }
        if !self.options.retain_graph {
            call.saved.free();
        }
        Ok(passed)
    }

    /// Assigns the results of a formula to its inputs.
    fn sort(
        &self,
        results: SmallVec<[Gradient; 2]>,
        node: &Node,
        call: &Call,
        formula: &GradientFormula,
        passed: &mut Passed,
    ) -> Result<()> {
        let count = formula.arguments.len();
        if results.len() != count {
            let found = results.len();
            return Err(Error::autograd(format!("the formula gave {found} gradients for {count} arguments")));
        }
        let mut pass = |position: usize, gradient: Tensor| {
            if self.wants(node, position) {
                let roles = || roles_of(call.op);
                passed.push((position, adjust(gradient, &call.inputs[position], node, position, roles)?));
            }
            Ok(())
        };
        for (&argument, result) in formula.arguments.iter().zip(results) {
            let positions = call.positions(argument as usize);
            match result {
                Gradient::None => {}
                Gradient::Tensor(gradient) => pass(positions.start, gradient)?,
                Gradient::List(gradients) => {
                    if gradients.len() != positions.len() {
                        let (found, count) = (gradients.len(), positions.len());
                        return Err(Error::autograd(format!(
                            "the formula gave {found} gradients for a list of {count}"
                        )));
                    }
                    for (position, gradient) in positions.zip(gradients) {
                        gradient.map_or(Ok(()), |gradient| pass(position, gradient))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs the backward of a custom function.
    fn run_custom(&mut self, node: &Shared<Node>, custom: &Custom, gradients: &Gradients) -> Result<Passed> {
        let wanted = self.capture.as_ref().map(|capture| &capture.wanted);
        let mut passed = Passed::new();
        for (position, gradient) in custom.run(node, gradients, wanted)? {
            if self.wants(node, position) {
                let meta = &custom.inputs[position];
                passed.push((position, adjust(gradient, meta, node, position, || self.roles())?));
            }
        }
        if !self.options.retain_graph {
            custom.saved.free();
        }
        Ok(passed)
    }

    /// Whether the gradient of an edge is needed.
    fn wants(&self, node: &Node, position: usize) -> bool {
        node.edges.get(position).and_then(Option::as_ref).is_some_and(|edge| {
            self.capture.as_ref().is_none_or(|capture| capture.wanted.contains(&edge.node))
        })
    }

    /// Adds a gradient to the one that waits at the end of an edge. The first is moved, not copied.
    #[inline]
    fn deliver(&mut self, edge: &'g Edge, gradient: Tensor) -> Result<()> {
        let slot = self.queue.slot(edge);
        *slot = Some(match slot.take() {
            None => gradient,
            Some(earlier) => {
                let roles = known_roles(&mut self.roles)?;
                (roles.accumulate)(&earlier, &gradient)?
            }
        });
        Ok(())
    }

    /// Runs hooks before a node and stores gradients in the tensors that retain them.
    #[cold]
    fn before(&mut self, node: &Shared<Node>, extras: &Extras, gradients: &mut Gradients) -> Result<()> {
        extras
            .run_before(gradients, &node.outputs)
            .map_err(|error| error.with_note(format!("in a hook before backward of `{}`", node.name())))?;
        if self.capture.is_some() {
            return Ok(());
        }
        for (output, tensor) in extras.retained() {
            if let Some(tensor) = tensor.upgrade()
                && tensor.autograd().is_at(node, output)
            {
                leaf::accumulate(&tensor, gradients[output as usize].clone(), || self.roles())?;
            }
        }
        Ok(())
    }

    fn roles(&mut self) -> Result<&'static Roles> {
        known_roles(&mut self.roles)
    }
}

/// Returns an error for a gradient of a result without derivative: a formula that read it is being differentiated.
fn refuse_unfollowed(node: &Node, call: &Call, gradients: &Gradients) -> Result<()> {
    let mut given = gradients.iter().enumerate().filter(|(_, gradient)| gradient.is_some());
    match given.find(|(output, _)| call.op.is_unfollowed(*output, node.outputs[*output].dtype)) {
        Some((output, _)) => Err(call.op.unfollowed(output)),
        None => Ok(()),
    }
}

/// The roles for adding gradients: those of this pass's operators, else the first that any pass found.
fn known_roles(roles: &mut Option<&'static Roles>) -> Result<&'static Roles> {
    let linked = || crate::library::linked().find_map(|library| library.roles());
    let Some(roles) = roles.or_else(|| KNOWN_ROLES.get().copied()).or_else(linked) else {
        return Err(Error::autograd(
            "gradients have to be added or converted, but no operator ran that says how",
        ));
    };
    let _ = KNOWN_ROLES.set(roles);
    Ok(roles)
}

/// Runs hooks after a node, with a gradient for each edge.
#[cold]
fn after(node: &Node, extras: &Extras, passed: Passed, gradients: &Gradients) -> Result<Passed> {
    let mut inputs = vec![None; node.edges.len()];
    for (position, gradient) in passed {
        inputs[position] = Some(gradient);
    }
    extras
        .run_after(&mut inputs, gradients)
        .map_err(|error| error.with_note(format!("in a hook after backward of `{}`", node.name())))?;
    Ok(inputs
        .into_iter()
        .enumerate()
        .filter_map(|(position, gradient)| Some((position, gradient?)))
        .collect())
}

#[cold]
fn in_formula(error: Error, call: &Call, formula: &GradientFormula) -> Error {
    let names: Vec<_> = formula
        .arguments
        .iter()
        .map(|&argument| format!("`{}`", call.op.schema.args[argument as usize].name))
        .collect();
    let (names, op, location) = (names.join(", "), call.op.name, call.op.location);
    error.with_note(format!("in backward: the gradient of {names} of `{op}` ({location})"))
}
