//! The tensor operands of a call, for its errors.
//!
//! In: the arguments of a call and their names. Out: a row for each tensor.

use super::Arg;
use crate::error::ErrorOperand;
use crate::tensor::Tensor;

/// Describes the tensor operands of a call, for an error.
pub fn describe_operands<'a>(args: impl Iterator<Item = (&'a str, Arg<'a>)>) -> Vec<ErrorOperand> {
    let mut operands = Vec::new();
    let mut push = |name: String, tensor: &Tensor| {
        let shape = tensor.shape().to_vec();
        operands.push(ErrorOperand { name, dtype: tensor.dtype(), shape, formulas: None });
    };
    for (name, arg) in args {
        match arg {
            Arg::Tensor(tensor) => push(name.to_owned(), tensor),
            Arg::Tensors(tensors) => {
                for (index, tensor) in tensors.iter().enumerate() {
                    push(format!("{name}[{index}]"), tensor);
                }
            }
            Arg::OptionalTensors(tensors) => {
                for (index, tensor) in tensors.iter().enumerate() {
                    if let Some(tensor) = tensor {
                        push(format!("{name}[{index}]"), tensor);
                    }
                }
            }
            _ => {}
        }
    }
    operands
}
