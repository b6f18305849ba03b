//! The operators of ONNX in terms of operators of the library: one table.
//!
//! In: a call. Out: its results. The table is sorted by ONNX's names; a row has the way to call it and whether calls on
//! known values are computed while the model is read. This folder is the only place of the crate that names operators.

mod arrays;
mod attention;
mod control;
mod convolution;
mod detection;
mod losses;
mod normalization;
mod pointwise;
mod pooling;
mod products;
mod quantization;
mod random;
mod recurrent;
mod recurrent_steps;
mod reductions;
mod resize;
mod scatter;
mod selection;
mod sequences;
mod shapes;
mod table;
mod windows;
pub(crate) mod written;
mod written_layers;

use opsmith_runtime::error::Result;

use crate::call::Call;
use crate::libraries::run;
use crate::values::Datum;

pub(crate) use table::{CONTRIBUTED, CONTRIBUTED_DOMAIN, TABLE};

/// A row of the table.
pub(crate) struct Operator {
    pub name: &'static str,
    pub fold: Fold,
    way: Way,
}

/// Whether a call on known values is computed while the model is read.
#[derive(Clone, Copy)]
pub(crate) enum Fold {
    /// Never: it draws random numbers, has blocks, or its result may be large.
    Never,
    /// Yes: the shape of its result follows from shapes of operands.
    Values,
    /// If operands after the first, which decide about the shape, do not vary with sizes.
    First,
    /// If all operands are constants, and the result, whose number of elements the function gives, is small.
    Constants(fn(&Call<'_>) -> Option<i64>),
    /// The result follows from the shape of the first operand, whether its elements are known or not.
    Sizes,
}

/// The way to call an operator.
enum Way {
    /// The library's operator of this name, on one tensor.
    Unary(&'static str),
    /// The library's operator of this name, on two tensors.
    Binary(&'static str),
    /// A function.
    By(fn(&Call<'_>) -> Result<Vec<Datum>>),
    /// A function with one result.
    To(fn(&Call<'_>) -> Result<opsmith_runtime::tensor::Tensor>),
}

impl Operator {
    /// Calls the operator.
    ///
    /// # Errors
    /// Errors of its operands and of the operators of the library.
    pub fn call(&self, call: &Call<'_>) -> Result<Vec<Datum>> {
        let tensor = match self.way {
            Way::Unary(name) => run!(name, call.tensor(0)?)?,
            Way::Binary(name) => run!(name, call.tensor(0)?, call.tensor(1)?)?,
            Way::To(function) => function(call)?,
            Way::By(function) => return function(call),
        };
        Ok(vec![Datum::Tensor(tensor)])
    }
}

/// The operator of a name: ONNX's if no domain is given, or one that ONNX Runtime adds.
pub(crate) fn find(domain: &str, name: &str) -> Option<&'static Operator> {
    let table: &[Operator] = match domain {
        "" => TABLE,
        CONTRIBUTED_DOMAIN => CONTRIBUTED,
        _ => return None,
    };
    table.binary_search_by(|row| row.name.cmp(name)).ok().map(|at| &table[at])
}

/// The operator whose name differs only in upper and lower case, if there is one.
pub(crate) fn similar(name: &str) -> Option<&'static str> {
    TABLE.iter().map(|row| row.name).find(|known| known.eq_ignore_ascii_case(name))
}

/// Tensors as values.
fn all(tensors: impl IntoIterator<Item = opsmith_runtime::tensor::Tensor>) -> Vec<Datum> {
    tensors.into_iter().map(Datum::Tensor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_name() {
        let names: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        assert!(names.len() >= 110, "{} operators", names.len());
        assert_eq!(find("", "Relu").map(|row| row.name), Some("Relu"));
        assert!(find("", "relu").is_none());
        assert!(find(CONTRIBUTED_DOMAIN, "MatMulNBits").is_some() && find("", "MatMulNBits").is_none());
    }
}
