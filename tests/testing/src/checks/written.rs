//! Whether kernels write every element of their results, from their arguments alone.
//!
//! In: an operator. Out: failures, in sentences. Every sample is run in several dtypes and sizes, over memory filled
//! before the run, row-major and with gaps.

use opsmith::{DType, Tensor};
use opsmith_runtime::internals::check_written;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, Value};

use super::caught;
use crate::calls::{call, resized, tensors, with_tensors};
use crate::report::Report;
use crate::samples::{repeatable, samples};

/// Sizes substituted for those of the samples, as functions of them.
const SIZES: [fn(i64) -> i64; 4] = [|size| size, |size| size + 4, |_| 1, |_| 0];

/// The failures of an operator's kernels.
pub fn written(op: &'static OpDef) -> Report {
    let mut report = Report::default();
    if op.host.is_some() || op.view.is_some() || op.kernels.is_none() {
        return report;
    }
    for dtype in [DType::F64, DType::F32, DType::I64, DType::Bool, DType::C128] {
        for (number, args) in samples(op, dtype).into_iter().enumerate() {
            for sizes in SIZES {
                let inputs = tensors(&args).iter().map(|tensor| resized(tensor, sizes)).collect();
                let Ok(inputs): opsmith::Result<Vec<Tensor>> = inputs else { continue };
                let args: Vec<Value> = with_tensors(&args, &inputs);
                // Debug builds check calls, too; a call rejected by that check alone is not skipped.
                if repeatable(op, || call(op, &args))
                    .is_err_and(|error| error.kind() != opsmith::ErrorKind::Kernel)
                {
                    continue;
                }
                let borrowed: Vec<Arg<'_>> = args.iter().map(Value::as_arg).collect();
                let result = caught(|| {
                    repeatable(op, || check_written(op, &borrowed)).map_err(|error| error.to_string())
                });
                report.compare(result.err().map(|why| {
                    format!("{} ({}), {dtype}, written at sample {number}: {why}", op.name, op.location)
                }));
            }
        }
    }
    report
}
