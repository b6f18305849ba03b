//! Which dtypes an operator takes, by its samples.

use opsmith::{DType, Value};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, boxed};

use super::caught;
use crate::results::CheckOutcome;
use crate::samples::{repeatable, samples};

/// The outcome of a call of every sample in each dtype. A dtype that no sample is accepted in is skipped with the reason
/// of the first.
pub fn forward(op: &'static OpDef) -> Vec<(DType, CheckOutcome)> {
    DType::ALL.into_iter().map(|dtype| (dtype, of_dtype(op, dtype))).collect()
}

fn of_dtype(op: &'static OpDef, dtype: DType) -> CheckOutcome {
    let (mut accepted, mut refused, mut findings) = (0, None, Vec::new());
    for (number, values) in samples(op, dtype).into_iter().enumerate() {
        let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
        match caught(|| Ok(repeatable(op, || boxed::functional(op, &args)))) {
            Ok(Ok(_)) => accepted += 1,
            Ok(Err(error)) => _ = refused.get_or_insert(error.to_string()),
            Err(why) => {
                findings.push(format!("{} ({}), sample {number} in {dtype}: {why}", op.name, op.location))
            }
        }
    }
    match (findings.is_empty(), accepted) {
        (false, _) => CheckOutcome::Failed(findings),
        (true, 0) => CheckOutcome::Skipped(refused.unwrap_or_else(|| "no sample has this dtype".to_owned())),
        (true, accepted) => CheckOutcome::Passed(accepted),
    }
}
