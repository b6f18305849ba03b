//! Values of a block while it is replayed.
//!
//! In: results of nodes. Out: arguments of later ones. Of numbers that depend on elements, a traced replay has placeholders,
//! so that each value has bounds, too.

use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use crate::errors::unsupported;
use crate::model::{Argument, Binding, Block, Node, Number, Slot};
use crate::numbers::Bounds;

/// The values of a block.
pub(super) struct Frame {
    /// `None` for those of nodes that failed.
    values: Vec<Option<Value>>,
    /// Of a tensor, whether its sizes depend on elements.
    bounds: Vec<Bounds>,
    levels: Vec<Levels>,
}

/// The numbers of the mapped functions around a tensor whose results differ from element to element of a dimension, from the
/// outermost to the innermost. These dimensions are the first ones of the tensor, and nodes do not see them.
pub(super) type Levels = Vec<i64>;

/// Arguments by position and by name.
pub(super) type Arguments<'n> = (Vec<Value>, Vec<(&'n str, Value)>);

impl Frame {
    /// A block's values before its first node.
    pub fn new(block: &Block, inputs: &[Option<Value>], bounds: &Bounds) -> Frame {
        let mut frame = Frame {
            values: vec![None; block.slots],
            bounds: vec![Bounds::Exact; block.slots],
            levels: vec![Levels::new(); block.slots],
        };
        for (slot, value) in block.inputs.iter().zip(inputs) {
            frame.values[*slot].clone_from(value);
            frame.bounds[*slot].clone_from(bounds);
        }
        frame
    }

    /// The value of a slot; `None` if it is of a failed node.
    pub fn at(&self, slot: Slot) -> Option<&Value> {
        self.values[slot].as_ref()
    }

    /// The bounds of an argument that is a value of its own or of the block.
    pub fn bounds(&self, argument: &Argument) -> Bounds {
        match argument {
            Argument::Slot(slot) => self.bounds[*slot].clone(),
            _ => Bounds::Exact,
        }
    }

    /// Whether an argument of a node depends on elements that the replay lacks.
    pub fn is_inexact(&self, node: &Node) -> bool {
        node.slots().any(|slot| !self.bounds[slot].is_exact())
    }

    /// The mapped dimensions of each tensor of an argument.
    pub fn levels(&self, argument: &Argument) -> Vec<&Levels> {
        argument.slots().into_iter().map(|slot| &self.levels[slot]).collect()
    }

    /// The mapped dimensions of all arguments of a node.
    pub fn all_levels(&self, node: &Node) -> Levels {
        let mut all: Levels = node.slots().flat_map(|slot| &self.levels[slot]).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The values of a node's arguments; `None` if one is of a failed node.
    pub fn arguments<'n>(&self, node: &'n Node) -> Option<Arguments<'n>> {
        let args = node.args.iter().map(|arg| self.value(arg)).collect::<Option<_>>()?;
        let named = node.named.iter().map(|(name, arg)| Some((name.as_str(), self.value(arg)?)));
        Some((args, named.collect::<Option<_>>()?))
    }

    /// Whether an argument of a node is of a failed one.
    pub fn lacks(&self, node: &Node) -> bool {
        node.slots().any(|slot| self.values[slot].is_none())
    }

    /// The value of an argument; `None` if it is of a failed node, or a block.
    pub fn value(&self, argument: &Argument) -> Option<Value> {
        let tensor = |slot: &usize| match self.values[*slot].as_ref()? {
            Value::Tensor(tensor) => Some(tensor.clone()),
            _ => None,
        };
        Some(match argument {
            Argument::Slot(slot) => self.values[*slot].clone()?,
            Argument::Tensors(slots) => Value::Tensors(slots.iter().map(tensor).collect::<Option<_>>()?),
            Argument::OptionalTensors(slots) => {
                let mut list = Vec::with_capacity(slots.len());
                for slot in slots {
                    list.push(match slot {
                        Some(slot) => Some(tensor(slot)?),
                        None => None,
                    });
                }
                Value::OptionalTensors(list)
            }
            Argument::Numbers(numbers) => {
                let number = |number: &Number| match number {
                    Number::Int(number) => Some(*number),
                    Number::Slot(slot) => match self.values[*slot].as_ref()? {
                        Value::Int(number) => Some(*number),
                        _ => None,
                    },
                };
                Value::Ints(numbers.iter().map(number).collect::<Option<_>>()?)
            }
            Argument::Value(value) => value.clone(),
            Argument::Block(_) => return None,
        })
    }

    /// Tensors among arguments, lists joined; `None` if one is of a failed node.
    ///
    /// # Errors
    /// If one is no tensor.
    pub fn operands(&self, arguments: &[Argument]) -> Result<Option<Vec<Tensor>>> {
        let mut tensors = Vec::new();
        for argument in arguments {
            match self.value(argument) {
                Some(Value::Tensor(tensor)) => tensors.push(tensor),
                Some(Value::Tensors(list)) => tensors.extend(list),
                Some(other) => {
                    return Err(unsupported(format!(
                        "an operand of a block that is {}",
                        other.as_arg().kind()
                    )));
                }
                None => return Ok(None),
            }
        }
        Ok(Some(tensors))
    }

    /// Stores the results of a node, with their bounds and, of tensors, their mapped dimensions.
    ///
    /// # Errors
    /// If they are others than the program has.
    pub fn bind(&mut self, node: &Node, results: Vec<Value>, bounds: &Bounds, levels: &Levels) -> Result<()> {
        let mut results = results.into_iter();
        for (number, binding) in node.outputs.iter().enumerate() {
            let result = results.next();
            match (binding, result) {
                (Binding::None, _) => {}
                (Binding::One(slot), Some(value)) => self.store(*slot, value, bounds, levels),
                (Binding::List(slots), Some(Value::Tensors(list))) if list.len() == slots.len() => {
                    for (slot, tensor) in slots.iter().zip(list) {
                        self.store(*slot, Value::Tensor(tensor), bounds, levels);
                    }
                }
                (Binding::List(slots), found) => {
                    let found = found.map_or("nothing".to_owned(), |value| match value {
                        Value::Tensors(list) => format!("{} tensors", list.len()),
                        other => other.as_arg().kind().to_owned(),
                    });
                    let text = format!("result {number} is {found}, and the program has {}", slots.len());
                    return Err(Error::graph(text));
                }
                (Binding::One(_), None) => {
                    let text =
                        format!("the program takes {} results, and there are {number}", node.outputs.len());
                    return Err(Error::graph(text));
                }
            }
        }
        Ok(())
    }

    fn store(&mut self, slot: Slot, value: Value, bounds: &Bounds, levels: &Levels) {
        if matches!(value, Value::Tensor(_)) {
            self.levels[slot].clone_from(levels);
        }
        self.values[slot] = Some(value);
        self.bounds[slot] = bounds.clone();
    }
}
