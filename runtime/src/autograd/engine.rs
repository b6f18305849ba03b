//! The backward pass.
//!
//! Nodes wait, with the gradients they have received, in a map ordered by sequence number. Edges
//! lead to older nodes only, so when a node is the newest that waits, every node that could still
//! give it a gradient has run: no counting of dependencies is needed, from however many roots. The
//! pass is a loop, so the depth of a graph costs no stack. It belongs to the thread that called;
//! passes of several threads may run through the same nodes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::adjust::adjust;
use super::call::Call;
use super::context::{GradContext, Gradient};
use super::node::{Edge, Kind, Node};
use super::strided::Strided;
use super::{Options, leaf, mode};
use crate::error::{Error, Result, ShapeText};
use crate::library::Roles;
use crate::op::Formula;
use crate::tensor::Tensor;

/// Gradients of a node's outputs.
type Gradients = SmallVec<[Option<Tensor>; 1]>;

/// The roles used last in this process, for gradients that meet before any operator ran.
static KNOWN_ROLES: OnceLock<&'static Roles> = OnceLock::new();

/// Runs backward from the roots and adds to the gradients of leaves.
pub(super) fn backward(roots: Vec<(Edge, Tensor)>, options: Options) -> Result<()> {
    Pass::new(options, None).run(roots)
}

/// Runs backward from the roots and returns the gradients that reach the given edges; those of
/// leaves stay as they are.
pub(super) fn gradients(
    roots: Vec<(Edge, Tensor)>,
    targets: &[Edge],
    options: Options,
) -> Result<Vec<Option<Tensor>>> {
    let mut capture = Capture::new(&roots, targets);
    Pass::new(options, Some(&mut capture)).run(roots)?;
    Ok(capture.found)
}

/// One backward pass.
struct Pass<'a> {
    options: Options,
    capture: Option<&'a mut Capture>,
    waiting: BTreeMap<Rank, Waiting>,
    roles: Option<&'static Roles>,
}

/// Order of execution, the greatest first. The address tells apart nodes of different threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    sequence: u64,
    address: usize,
}

struct Waiting {
    node: Arc<Node>,
    gradients: Gradients,
}

impl<'a> Pass<'a> {
    fn new(options: Options, capture: Option<&'a mut Capture>) -> Pass<'a> {
        let options = Options { retain_graph: options.retain_graph || options.create_graph, ..options };
        Pass { options, capture, waiting: BTreeMap::new(), roles: None }
    }

    fn run(&mut self, roots: Vec<(Edge, Tensor)>) -> Result<()> {
        let _mode = mode::Scope::enter(self.options.create_graph);
        for (edge, gradient) in roots {
            self.deliver(&edge, gradient)?;
        }
        while let Some((_, Waiting { node, gradients })) = self.waiting.pop_last() {
            if let Some(capture) = &mut self.capture {
                capture.take(&node, &gradients);
            }
            match &node.kind {
                Kind::Leaf(leaf) => {
                    if self.capture.is_none()
                        && let Some(leaf) = leaf.upgrade()
                        && let Some(gradient) = gradients.into_iter().next().flatten()
                    {
                        leaf::accumulate(&leaf, gradient, || self.roles())?;
                    }
                }
                Kind::Call(call) => self.run_call(&node, call, gradients)?,
                Kind::Strided(step) => self.run_step(&node, step, gradients)?,
            }
        }
        Ok(())
    }

    /// Runs the formulas of a call and passes their gradients on.
    fn run_call(&mut self, node: &Arc<Node>, call: &Call, gradients: Gradients) -> Result<()> {
        let Some(definition) = call.op.grad else { return Ok(()) };
        for formula in definition.formulas {
            let wanted = self.capture.as_ref().map(|capture| &capture.wanted);
            let context = GradContext { node, call, grads: &gradients, wanted };
            if !formula.arguments.iter().any(|&argument| context.needs(argument as usize)) {
                continue;
            }
            let results = (formula.backward)(&context).map_err(|error| in_formula(error, call, formula))?;
            debug_assert_eq!(results.len(), formula.arguments.len(), "a formula of {}", call.op.name);
            for (&argument, result) in formula.arguments.iter().zip(results) {
                self.pass_on(node, call, argument as usize, result)
                    .map_err(|error| in_formula(error, call, formula))?;
            }
        }
        if !self.options.retain_graph {
            call.saved().free();
        }
        Ok(())
    }

    /// Runs a step between a base and a view.
    fn run_step(&mut self, node: &Node, step: &Strided, gradients: Gradients) -> Result<()> {
        let Some(gradient) = gradients.into_iter().next().flatten() else { return Ok(()) };
        let passed = step.backward(&gradient, |position| self.wants(node, position)).map_err(|error| {
            let shape = ShapeText(&step.view.sizes);
            error.with_note(format!("in backward: the gradient of a view of shape {shape}"))
        })?;
        for (position, gradient) in passed {
            if let Some(edge) = &node.edges[position] {
                self.deliver(edge, gradient)?;
            }
        }
        Ok(())
    }

    /// Whether the gradient that goes along an edge is wanted.
    fn wants(&self, node: &Node, position: usize) -> bool {
        node.edges.get(position).and_then(Option::as_ref).is_some_and(|edge| {
            self.capture.as_ref().is_none_or(|capture| capture.wanted.contains(&edge.node))
        })
    }

    /// Passes the gradients of one argument to the nodes behind it.
    fn pass_on(&mut self, node: &Node, call: &Call, argument: usize, result: Gradient) -> Result<()> {
        let positions = call.positions(argument);
        let mut pass = |position: usize, gradient: Tensor| {
            let Some(edge) = node.edges[position].as_ref().filter(|_| self.wants(node, position)) else {
                return Ok(());
            };
            let gradient = adjust(gradient, &call.inputs[position], call, argument, position)?;
            self.deliver_from(edge, gradient, call)
        };
        match result {
            Gradient::None => Ok(()),
            Gradient::Tensor(gradient) => pass(positions.start, gradient),
            Gradient::List(gradients) => {
                if gradients.len() != positions.len() {
                    return Err(Error::shape(format!(
                        "the formula for `{}` of `{}` gave {} gradients for a list of {}",
                        call.op.schema.args[argument].name,
                        call.op.name,
                        gradients.len(),
                        positions.len()
                    )));
                }
                for (position, gradient) in positions.zip(gradients) {
                    if let Some(gradient) = gradient {
                        pass(position, gradient)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn deliver_from(&mut self, edge: &Edge, gradient: Tensor, call: &Call) -> Result<()> {
        if self.roles.is_none() {
            self.roles = call.op.library.roles();
        }
        self.deliver(edge, gradient)
    }

    /// Adds a gradient to those that wait at the end of an edge. The first is moved, not copied.
    fn deliver(&mut self, edge: &Edge, gradient: Tensor) -> Result<()> {
        let rank = Rank { sequence: edge.node.sequence, address: Arc::as_ptr(&edge.node).addr() };
        let output = edge.output as usize;
        let waiting = self.waiting.entry(rank).or_insert_with(|| Waiting {
            node: edge.node.clone(),
            gradients: SmallVec::from_elem(None, edge.node.outputs.len()),
        });
        match waiting.gradients[output].take() {
            None => waiting.gradients[output] = Some(gradient),
            Some(earlier) => {
                let sum = (self.roles()?.accumulate)(&earlier, &gradient)?;
                if let Some(waiting) = self.waiting.get_mut(&rank) {
                    waiting.gradients[output] = Some(sum);
                }
            }
        }
        Ok(())
    }

    fn roles(&mut self) -> Result<&'static Roles> {
        if let Some(roles) = self.roles.or_else(|| KNOWN_ROLES.get().copied()) {
            let _ = KNOWN_ROLES.set(roles);
            return Ok(roles);
        }
        Err(Error::autograd(
            "two gradients of one tensor meet, but no operator ran that says how to add them",
        ))
    }
}

#[cold]
fn in_formula(error: Error, call: &Call, formula: &Formula) -> Error {
    let names: Vec<_> = formula
        .arguments
        .iter()
        .map(|&argument| format!("`{}`", call.op.schema.args[argument as usize].name))
        .collect();
    error.with_note(format!(
        "in backward: the gradient of {} of `{}` ({})",
        names.join(", "),
        call.op.name,
        call.op.location
    ))
}

/// The nodes that lead to a wanted gradient, by address.
pub(crate) struct Wanted(HashSet<usize>);

impl Wanted {
    pub fn contains(&self, node: &Arc<Node>) -> bool {
        self.0.contains(&Arc::as_ptr(node).addr())
    }
}

/// Gradients that are taken on their way instead of reaching leaves.
struct Capture {
    wanted: Wanted,
    /// Which results are the gradient of a node's output.
    targets: HashMap<(usize, u32), SmallVec<[usize; 1]>>,
    found: Vec<Option<Tensor>>,
}

impl Capture {
    fn new(roots: &[(Edge, Tensor)], targets: &[Edge]) -> Capture {
        let mut by_output: HashMap<(usize, u32), SmallVec<[usize; 1]>> = HashMap::new();
        for (index, edge) in targets.iter().enumerate() {
            by_output.entry((Arc::as_ptr(&edge.node).addr(), edge.output)).or_default().push(index);
        }
        let wanted = leading_to(roots, targets);
        Capture { wanted, targets: by_output, found: vec![None; targets.len()] }
    }

    fn take(&mut self, node: &Arc<Node>, gradients: &Gradients) {
        for (output, gradient) in gradients.iter().enumerate() {
            if let Some(indices) = self.targets.get(&(Arc::as_ptr(node).addr(), output as u32)) {
                for &index in indices {
                    self.found[index].clone_from(gradient);
                }
            }
        }
    }
}

/// The nodes from which a target can be reached, found by a depth-first walk without recursion.
fn leading_to(roots: &[(Edge, Tensor)], targets: &[Edge]) -> Wanted {
    let address = |node: &Arc<Node>| Arc::as_ptr(node).addr();
    let mut wanted: HashSet<usize> = targets.iter().map(|edge| address(&edge.node)).collect();
    let oldest = targets.iter().map(|edge| edge.node.sequence).min().unwrap_or(u64::MAX);
    let mut visited: HashSet<usize> = HashSet::new();
    // A node comes up twice: before the nodes behind it, and after them, when they are decided.
    let mut stack: Vec<(&Arc<Node>, bool)> = roots.iter().map(|(edge, _)| (&edge.node, false)).collect();
    while let Some((node, decided)) = stack.pop() {
        if decided {
            if node.edges.iter().flatten().any(|edge| wanted.contains(&address(&edge.node))) {
                wanted.insert(address(node));
            }
        } else if node.sequence >= oldest && visited.insert(address(node)) {
            stack.push((node, true));
            stack.extend(node.edges.iter().flatten().map(|edge| (&edge.node, false)));
        }
    }
    Wanted(wanted)
}
