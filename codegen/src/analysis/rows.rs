//! Tables and rows that an operator has in generated code.

use crate::model::Op;

/// Whether an operator has a table of kernels.
pub fn has_kernels(op: &Op) -> bool {
    op.body.pointwise.is_some() || !op.body.kernels.is_empty()
}

/// Whether gradients are defined; also where the definition says that nothing flows.
pub fn defines_gradients(op: &Op) -> bool {
    !op.derivatives.is_empty() || op.refuses_gradients()
}

/// Whether inference of an operator is data too.
pub fn has_rules(op: &Op) -> bool {
    op.infer.is_some() || !op.checks.is_empty() || op.outputs.iter().any(|output| output.present.is_some())
}
