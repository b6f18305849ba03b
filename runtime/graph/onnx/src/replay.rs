//! Replay: the nodes of a model as calls of operators.
//!
//! In: a model and input tensors. Out: the results. `Graph::trace` replays a model on meta tensors at several sizes, so that
//! integers computed from shapes become formulas. Values that follow from constants and sizes alone are computed aside. A
//! node that fails does not end the replay: all mistakes are found, except of nodes that need a failed one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use opsmith_graph::{at_source, untraced};
use opsmith_runtime::embedder;
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::internals;
use opsmith_runtime::tensor::Tensor;

use crate::call::Call;
use crate::custom;
use crate::libraries::run;
use crate::lower::ABSENT;
use crate::model::{Block, Called, Declared, DeclaredSize, Model, Node};
use crate::operators::{Fold, Operator};
use crate::values::{Datum, KNOWN_ELEMENTS, Known, VARYING_ELEMENTS};

/// Results of nodes whose operands are constants, by the number of the node: they are computed once, so that each replay
/// has the same constants.
pub(crate) type Folded = Mutex<BTreeMap<usize, Vec<Datum>>>;

/// Sizes that symbols cannot exceed, because a value that the file declares with the symbol is not larger.
pub(crate) type Limits = Mutex<BTreeMap<String, i64>>;

/// A model that can be called.
pub(crate) struct Replay<'a> {
    pub model: &'a Model,
    pub folded: &'a Folded,
    limits: &'a Limits,
    /// Values by their numbers; `None` for those of nodes that failed.
    values: RefCell<Vec<Option<Datum>>>,
    errors: RefCell<Vec<Error>>,
    /// The sizes of symbols, by the inputs of this replay.
    sizes: &'a BTreeMap<String, i64>,
    varies: bool,
    /// Whether sizes of a value before follow from elements, so that sizes of the replay are bounds.
    open_sizes: Cell<bool>,
    /// Nodes that were called.
    calls: Cell<usize>,
}

/// Calls of nodes in one replay, with those of loops at each of their iterations.
const CALLS: usize = 1 << 20;

/// Calls the model on tensors, given the sizes of its symbols.
///
/// # Errors
/// Every mistake.
pub(crate) fn call(
    model: &Model,
    folded: &Folded,
    limits: &Limits,
    inputs: &[Tensor],
    sizes: &BTreeMap<String, i64>,
) -> Result<Vec<Tensor>, Vec<Error>> {
    let varies = !sizes.is_empty();
    let values = RefCell::new(vec![None; model.names.len()]);
    let replay = Replay {
        model,
        folded,
        limits,
        values,
        errors: RefCell::default(),
        sizes,
        varies,
        open_sizes: Cell::new(false),
        calls: Cell::new(0),
    };
    for weight in &model.weights {
        replay.set(weight.slot, Datum::constant(weight.tensor.clone()));
    }
    for (slot, input) in model.block.inputs.iter().zip(inputs) {
        replay.set(*slot, Datum::Tensor(input.clone()));
    }
    let outputs = replay.outputs(inputs);
    let errors = replay.errors.into_inner();
    match outputs {
        Ok(Some(outputs)) if errors.is_empty() => Ok(outputs),
        Err(error) if errors.is_empty() => Err(vec![error]),
        _ => Err(errors),
    }
}

impl Replay<'_> {
    fn set(&self, slot: usize, datum: Datum) {
        self.values.borrow_mut()[slot] = Some(datum);
    }

    fn get(&self, slot: usize) -> Option<Datum> {
        if slot == ABSENT { None } else { self.values.borrow()[slot].clone() }
    }

    /// The outputs; `None` if one is that of a failed node, or of one whose operator is missing.
    fn outputs(&self, inputs: &[Tensor]) -> Result<Option<Vec<Tensor>>> {
        self.nodes(&self.model.block);
        let mut outputs: Vec<Tensor> = Vec::with_capacity(self.model.block.outputs.len());
        for (slot, name) in self.model.block.outputs.iter().zip(&self.model.output_names) {
            let Some(datum) = self.get(*slot) else { return Ok(None) };
            let constant = datum.known().is_some_and(|known| !known.varies);
            let tensor =
                datum.tensor().map_err(|error| error.with_note(format!("for the output `{name}`")))?;
            // Each output is a tensor of its own.
            let shared = constant || inputs.iter().chain(&outputs).any(|known| known.same(&tensor));
            outputs.push(if shared { run!("clone", &tensor)? } else { tensor });
        }
        Ok(Some(outputs))
    }

    fn nodes(&self, block: &Block) {
        for node in &block.nodes {
            // A model that is read is only known to be right once all of it is.
            if !internals::is_tracing()
                && let Err(error) = embedder::step()
            {
                self.errors.borrow_mut().push(error);
                return;
            }
            let before = self.errors.borrow().len();
            let label = node.source.clone().unwrap_or_else(|| node.name.clone());
            let made = at_source(&label, || self.node(node));
            let made = made.and_then(|results| match results {
                Some(results) => self.bind(node, results),
                None => Ok(()),
            });
            // The nodes of a block inside have reported their errors.
            if let Err(error) = made
                && self.errors.borrow().len() == before
            {
                let line = node.source.as_ref().map_or(String::new(), |line| format!(", written in {line}"));
                let place = format!("in the node `{}` ({}){line}", node.name, node.operator.text());
                self.errors.borrow_mut().push(error.with_note(place));
            }
        }
    }

    /// The results of a block on values.
    fn block(&self, block: &Block, inputs: &[Datum]) -> Result<Vec<Datum>> {
        if inputs.len() != block.inputs.len() {
            let text = format!("a block takes {} values, and gets {}", block.inputs.len(), inputs.len());
            return Err(Error::argument(text));
        }
        for (slot, input) in block.inputs.iter().zip(inputs) {
            self.set(*slot, input.clone());
        }
        self.nodes(block);
        block.outputs.iter().map(|slot| self.get(*slot).ok_or_else(stopped)).collect()
    }

    /// The results of a node; `None` if an operand is that of a failed one, or its operator is reported as missing.
    fn node(&self, node: &Node) -> Result<Option<Vec<Datum>>> {
        self.calls.set(self.calls.get() + 1);
        if self.calls.get() > CALLS {
            return Err(Error::graph(format!("the loops of the model call more than {CALLS} nodes"))
                .with_help("export the model with fewer iterations"));
        }
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for slot in &node.inputs {
            inputs.push(match slot {
                None | Some(ABSENT) => None,
                Some(slot) => match self.get(*slot) {
                    None => return Ok(None),
                    found => found,
                },
            });
        }
        let run_block = |block: &Block, given: &[Datum]| self.block(block, given);
        let call =
            Call { node, inputs, varies: self.varies, run_block: &run_block, opens_sizes: &self.open_sizes };
        match &node.operator {
            Called::Unknown { .. } => Ok(None),
            Called::Library { domain, name } => custom::call(domain, name, &call).map(Some),
            Called::Standard(operator) => match folds(operator, &call) {
                None => operator.call(&call).map(Some),
                Some(varies) => self.folded(operator, &call, varies).map(Some),
            },
        }
    }

    /// The results of a node whose operands are known, computed aside.
    fn folded(&self, operator: &Operator, call: &Call<'_>, varies: bool) -> Result<Vec<Datum>> {
        if !varies && let Some(found) = self.lock().get(&call.node.number) {
            return Ok(found.clone());
        }
        let plain = |datum: &Datum| match datum {
            Datum::Known(known) => Datum::Known(Known { varies: false, ..known.clone() }),
            other => other.clone(),
        };
        let inputs = call.inputs.iter().map(|input| input.as_ref().map(plain)).collect();
        let aside = Call { inputs, ..*call };
        let results = untraced(|| operator.call(&aside))?;
        let large =
            |result: &Datum| matches!(result, Datum::Tensor(tensor) if tensor.numel() > VARYING_ELEMENTS);
        if varies && results.iter().any(large) {
            return operator.call(call);
        }
        let results: Vec<Datum> = results
            .into_iter()
            .map(|result| match result {
                Datum::Tensor(tensor) | Datum::Known(Known { tensor, .. }) => Datum::of(tensor, varies),
                other => other,
            })
            .collect();
        if !varies {
            self.lock().insert(call.node.number, results.clone());
        }
        Ok(results)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, Vec<Datum>>> {
        self.folded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the results of a node, and compares them with the types that the file declares.
    fn bind(&self, node: &Node, results: Vec<Datum>) -> Result<()> {
        let mut results = results.into_iter();
        for (number, slot) in node.outputs.iter().enumerate() {
            let (Some(slot), result) = (slot, results.next()) else { continue };
            let Some(result) = result else {
                return Err(Error::argument(format!("the node has no result {number}")));
            };
            if let Some(declared) = &self.model.declared[*slot] {
                self.compare(&result, declared, &self.model.names[*slot])?;
            }
            self.set(*slot, result);
        }
        Ok(())
    }

    /// # Errors
    /// If a value has another type than the file declares.
    fn compare(&self, result: &Datum, declared: &Declared, name: &str) -> Result<()> {
        let (Datum::Tensor(tensor) | Datum::Known(Known { tensor, .. })) = result else {
            return Ok(());
        };
        if let Some(dtype) = declared.dtype
            && dtype != tensor.dtype()
        {
            let text = format!("the value `{name}` is {}, and the model declares {dtype}", tensor.dtype());
            return Err(Error::new(opsmith_runtime::ErrorKind::DType, text).with_help(CURE));
        }
        let Some(sizes) = &declared.sizes else { return Ok(()) };
        let differs = |(size, found): (&DeclaredSize, &i64)| match size {
            DeclaredSize::Number(number) => number != found,
            DeclaredSize::Symbol(symbol) => self.sizes.get(symbol).is_some_and(|known| known != found),
            DeclaredSize::Unknown => false,
        };
        let compared = !self.open_sizes.get();
        for (size, found) in sizes.iter().zip(tensor.shape()).filter(|_| compared) {
            if let DeclaredSize::Symbol(symbol) = size
                && self.sizes.get(symbol).is_some_and(|known| found < known)
            {
                let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
                limits
                    .entry(symbol.clone())
                    .and_modify(|limit| *limit = (*limit).min(*found))
                    .or_insert(*found);
            }
        }
        if sizes.len() != tensor.dim() || compared && sizes.iter().zip(tensor.shape()).any(differs) {
            let text: Vec<String> = sizes
                .iter()
                .map(|size| match size {
                    DeclaredSize::Number(number) => number.to_string(),
                    DeclaredSize::Symbol(symbol) => symbol.clone(),
                    DeclaredSize::Unknown => "?".to_owned(),
                })
                .collect();
            let text = format!(
                "the value `{name}` has the shape {}, and the model declares ({})",
                ShapeText(tensor.shape()),
                text.join(", ")
            );
            return Err(Error::shape(text).with_help(CURE));
        }
        Ok(())
    }
}

const CURE: &str = "the model is damaged, or its shapes are of another version: run `onnx.checker.check_model(full_check=True)`";

/// Whether a call can be computed aside, and whether its results vary with sizes.
fn folds(operator: &Operator, call: &Call<'_>) -> Option<bool> {
    if let Fold::Sizes = operator.fold {
        // Sizes of a tensor are known while it is not; those of constants are constants.
        let constant = call.datum(0).is_some_and(|datum| datum.known().is_some_and(|known| !known.varies));
        return Some(call.varies && !constant);
    }
    let mut varying = Vec::new();
    for (position, input) in call.inputs.iter().enumerate() {
        match input {
            None => {}
            Some(Datum::Known(known)) if known.varies => varying.push(position),
            Some(Datum::Known(_)) => {}
            Some(_) => return None,
        }
    }
    match operator.fold {
        Fold::Never | Fold::Sizes => None,
        Fold::Values => Some(!varying.is_empty()),
        // The shape of the result follows from other operands than the first.
        Fold::First => varying.iter().all(|position| *position == 0).then_some(!varying.is_empty()),
        Fold::Constants(elements) => {
            let small = varying.is_empty() && elements(call).is_some_and(|count| count <= KNOWN_ELEMENTS);
            small.then_some(false)
        }
    }
}

/// The error that ends a replay whose mistakes are in the list.
fn stopped() -> Error {
    Error::graph("a node of the model failed")
}
