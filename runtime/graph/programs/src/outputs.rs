//! The results of a run: their names and their roles in training.
//!
//! In: the outputs of a file. Out: their specifications, as users see them, in the order of a run's results.

use std::fmt;

/// A result of each run. Its text is its name and, in training, its role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramOutput {
    /// Its name in an ONNX model, its path in a nested result of Python, as `logits` or `hidden.0` of a dictionary, or `out0` and
    /// so on by its position.
    pub name: String,
    /// Its role.
    pub role: OutputRole,
}

/// The role of a result. A program whose results have other roles than the first contains its own backward pass, as the joint
/// graphs that PyTorch exports do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutputRole {
    /// A result of the function.
    Result,
    /// The loss, whose gradients other results are.
    Loss,
    /// The gradient of the loss.
    Gradient {
        /// The name of the parameter, or of the input, that it is the gradient by.
        of: String,
    },
}

impl fmt::Display for ProgramOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.role {
            OutputRole::Result => Ok(()),
            OutputRole::Loss => f.write_str(" (loss)"),
            OutputRole::Gradient { of } => write!(f, " (gradient of {of})"),
        }
    }
}
