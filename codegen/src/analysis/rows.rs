//! Tables and rows that an operator has in generated code.

use opsmith_core::{Backend, DType, DTypeSet};

use crate::model::{Combination, Op};

/// Whether an operator has a table of kernels.
pub fn has_kernels(op: &Op) -> bool {
    op.body.pointwise.is_some() || !op.body.kernels.is_empty()
}

/// Whether gradients are defined, including definitions without any formula.
pub fn defines_gradients(op: &Op) -> bool {
    !op.derivatives.is_empty() || op.refuses_gradients()
}

/// Whether inference of an operator is also available as data.
pub fn has_rules(op: &Op) -> bool {
    op.infer.is_some() || !op.checks.is_empty() || op.outputs.iter().any(|output| output.present.is_some())
}

/// The dtype of a backend's row that gives the most readable message.
pub fn plainest_dtype(op: &Op, backend: Backend) -> Option<DType> {
    let dtypes = op.body.dtypes_of_row(backend);
    dtypes.contains(DType::F32).then_some(DType::F32).or_else(|| dtypes.iter().next())
}

/// The dtypes covered by each element type of a backend's Rust kernel.
pub fn kernel_dtypes(op: &Op, arguments: &[usize], backend: Backend) -> Vec<DTypeSet> {
    if op.combinations.is_empty() {
        return vec![op.body.dtypes_of_row(backend)];
    }
    let mut sets: Vec<DTypeSet> = Vec::new();
    for row in &op.combinations {
        let columns = columns(row, arguments);
        sets.resize(columns.len(), DTypeSet::EMPTY);
        for (set, dtype) in sets.iter_mut().zip(columns) {
            *set = set.union(DTypeSet::of(dtype));
        }
    }
    sets
}

/// The dtypes of the tensors that a kernel takes, and of the results.
pub fn columns(row: &Combination, taken: &[usize]) -> Vec<DType> {
    let inputs = taken
        .iter()
        .filter_map(|index| row.inputs.iter().find(|(argument, _)| argument == index))
        .map(|(_, dtype)| *dtype);
    inputs.chain(row.outputs.iter().copied()).collect()
}
