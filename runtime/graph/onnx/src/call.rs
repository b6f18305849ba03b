//! A call of an operator: its operands and attributes.
//!
//! In: a node and values. Out: operands and attributes, for the functions of `operators`.

use opsmith_core::DType;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use crate::errors::unsupported;
use crate::model::{Attribute, Block, Node};
use crate::tensors;
use crate::values::Datum;

/// Runs blocks of the node on given values.
pub(crate) type RunBlock<'a> = dyn Fn(&Block, &[Datum]) -> Result<Vec<Datum>> + 'a;

/// A call.
pub(crate) struct Call<'a> {
    pub node: &'a Node,
    /// Operands; `None` for those that are left out.
    pub inputs: Vec<Option<Datum>>,
    /// Whether sizes may differ from replay to replay.
    pub varies: bool,
    pub run_block: &'a RunBlock<'a>,
    /// Set by operators whose sizes of results follow from elements: those of the replay are bounds.
    pub opens_sizes: &'a std::cell::Cell<bool>,
}

impl Call<'_> {
    /// Whether a result is used.
    pub fn wants(&self, result: usize) -> bool {
        self.node.outputs.get(result).is_some_and(Option::is_some)
    }

    pub fn datum(&self, position: usize) -> Option<&Datum> {
        self.inputs.get(position)?.as_ref()
    }

    /// An operand that must be there.
    ///
    /// # Errors
    /// If it is left out.
    pub fn given(&self, position: usize) -> Result<&Datum> {
        self.datum(position).ok_or_else(|| Error::argument(format!("input {position} is missing")))
    }

    /// A tensor that must be there.
    ///
    /// # Errors
    /// If it is left out, or no tensor.
    pub fn tensor(&self, position: usize) -> Result<Tensor> {
        self.given(position)?.tensor().map_err(|error| error.with_note(format!("for input {position}")))
    }

    /// A tensor that may be left out.
    ///
    /// # Errors
    /// If it is no tensor.
    pub fn maybe(&self, position: usize) -> Result<Option<Tensor>> {
        self.datum(position).map(Datum::tensor).transpose()
    }

    /// All tensors from a position on.
    ///
    /// # Errors
    /// If one is left out, or no tensor.
    pub fn tensors(&self, from: usize) -> Result<Vec<Tensor>> {
        (from..self.inputs.len()).map(|position| self.tensor(position)).collect()
    }

    /// The elements of an operand that are known integers, if it is not left out.
    ///
    /// # Errors
    /// If they are not known.
    pub fn numbers(&self, position: usize, what: &str) -> Result<Option<Vec<i64>>> {
        self.datum(position).map(|datum| datum.ints(what)).transpose()
    }

    /// The only element of an operand that is a known integer, if it is not left out.
    ///
    /// # Errors
    /// If it is not known.
    pub fn number(&self, position: usize, what: &str) -> Result<Option<i64>> {
        match self.numbers(position, what)?.as_deref() {
            None => Ok(None),
            Some([only]) => Ok(Some(*only)),
            Some(several) => {
                Err(Error::argument(format!("`{what}` is one number, and {} are given", several.len())))
            }
        }
    }

    /// The dtype and shape of a tensor's operand.
    ///
    /// # Errors
    /// As [`Call::tensor`].
    pub fn shape(&self, position: usize) -> Result<Vec<i64>> {
        match self.given(position)? {
            Datum::Tensor(tensor) => Ok(tensor.shape().to_vec()),
            Datum::Known(known) => Ok(known.tensor.shape().to_vec()),
            other => other.tensor().map(|tensor| tensor.shape().to_vec()),
        }
    }

    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.node.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub fn int(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.maybe_int(name)?.unwrap_or(default))
    }

    pub fn maybe_int(&self, name: &str) -> Result<Option<i64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Int(number)) => Ok(Some(*number)),
            Some(_) => Err(misfit(name, "an integer")),
        }
    }

    pub fn flag(&self, name: &str, default: bool) -> Result<bool> {
        Ok(self.int(name, i64::from(default))? != 0)
    }

    pub fn float(&self, name: &str, default: f64) -> Result<f64> {
        match self.attribute(name) {
            None => Ok(default),
            Some(Attribute::Float(number)) => Ok(*number),
            Some(_) => Err(misfit(name, "a float")),
        }
    }

    pub fn text(&self, name: &str, default: &str) -> Result<String> {
        match self.attribute(name) {
            None => Ok(default.to_owned()),
            Some(Attribute::Text(text)) => Ok(text.clone()),
            Some(_) => Err(misfit(name, "a text")),
        }
    }

    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Texts(texts)) => Ok(Some(texts.clone())),
            Some(_) => Err(misfit(name, "a list of texts")),
        }
    }

    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Ints(numbers)) => Ok(Some(numbers.clone())),
            Some(_) => Err(misfit(name, "a list of integers")),
        }
    }

    pub fn floats(&self, name: &str) -> Result<Option<Vec<f64>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Floats(numbers)) => Ok(Some(numbers.clone())),
            Some(_) => Err(misfit(name, "a list of floats")),
        }
    }

    pub fn block(&self, name: &str) -> Result<&Block> {
        match self.attribute(name) {
            Some(Attribute::Block(block)) => Ok(block),
            _ => Err(misfit(name, "a graph")),
        }
    }

    /// The element type that an attribute names by its number.
    pub fn dtype(&self, name: &str) -> Result<Option<DType>> {
        self.maybe_int(name)?.map(tensors::dtype).transpose()
    }

    /// Rejects an attribute that says more than the operators of this reader.
    ///
    /// # Errors
    /// If the attribute has another value.
    pub fn only_int(&self, name: &str, expected: i64) -> Result<()> {
        match self.maybe_int(name)? {
            Some(given) if given != expected => Err(unsupported(format!("`{name}` = {given}"))),
            _ => Ok(()),
        }
    }
}

fn misfit(name: &str, kind: &str) -> Error {
    Error::argument(format!(
        "the attribute `{name}` is no {}",
        kind.trim_start_matches("an ").trim_start_matches("a ")
    ))
}

/// A dimension as one from the front.
///
/// # Errors
/// If there is no such dimension.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<i64> {
    if rank == 0 {
        return Err(Error::shape(format!("the axis {axis} is one of a tensor without dimensions")));
    }
    opsmith_runtime::layout::wrap_dim(axis, rank).map(|axis| axis as i64)
}

/// Dimensions as ones from the front.
///
/// # Errors
/// If one is not there.
pub(crate) fn axes(given: &[i64], rank: usize) -> Result<Vec<i64>> {
    given.iter().map(|each| axis(*each, rank)).collect()
}
