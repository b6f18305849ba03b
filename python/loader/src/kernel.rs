//! The kernels of loaded operators, as tables have them: loops over expressions, and custom kernels.
//!
//! In: an operator. Out: its table. A kernel is one function for all operators, which its call's definition leads to the right
//! one.

use std::path::{Path, PathBuf};

use opsmith_aot::SpecKernel;
use opsmith_codegen::analysis::rows::has_kernels;
use opsmith_codegen::model::{KernelSource, Op};
use opsmith_core::{Backend, DType};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::op::{KernelCall, KernelFn, KernelTable, Kernels};

use crate::arguments::text;
use crate::elements;
use crate::operator::Operator;

/// The custom kernels of an operator, by the rows that they serve; files lie beside the spec.
pub fn custom(op: &Op, folder: &Path) -> Vec<(Backend, &'static SpecKernel)> {
    let rows =
        Backend::ALL.into_iter().filter_map(|backend| Some((backend, op.body.kernel_of_row(backend)?)));
    let custom = rows.filter_map(|(backend, kernel)| match &kernel.source {
        KernelSource::Aot { file, symbol } => {
            let path = std::path::absolute(folder.join(file)).unwrap_or_else(|_| PathBuf::from(file));
            let (path, file) = (text(&path.display().to_string()), text(&file.display().to_string()));
            let kernel = SpecKernel::new(path, file, text(symbol), kernel.backend);
            Some((backend, &*Box::leak(Box::new(kernel))))
        }
        _ => None,
    });
    custom.collect()
}

/// The table of an operator.
pub fn table(operator: &Operator) -> Kernels {
    let op = operator.op();
    if !has_kernels(op) {
        return Kernels::NONE;
    }
    let mut table = KernelTable::new();
    for backend in Backend::ALL {
        let dtypes = op.body.dtypes_of_row(backend);
        let is_custom = operator.kernels.iter().any(|(row, _)| *row == backend);
        let is_loop = backend == Backend::Cpu && op.body.pointwise.is_some();
        let entry = |dtype: DType| -> Option<(DType, KernelFn)> {
            match (is_custom, is_loop) {
                (true, _) => Some((dtype, run_custom)),
                (false, true) => Some((dtype, elements::kernel(dtype))),
                (false, false) => None,
            }
        };
        let entries: Vec<(DType, KernelFn)> = dtypes.iter().filter_map(entry).collect();
        if !entries.is_empty() {
            let source = op.body.kernel_of_row(backend).map_or("pointwise", |kernel| text(&kernel.text));
            let place =
                op.body.kernel_of_row(backend).map_or(Some(&op.location), |kernel| kernel.place.as_ref());
            table = table.with(backend, source, &entries).at(backend, place.map_or("", |place| text(place)));
        }
    }
    // SAFETY: the kernels of the table take the operator, with its types, from each call's definition.
    unsafe { Kernels::of(Box::leak(Box::new(table))) }
}

fn run_custom(call: &KernelCall<'_>) -> Result<()> {
    let operator = Operator::of(call.op())?;
    let backend = call.device().backend;
    match operator.kernels.iter().find(|(row, _)| *row == backend) {
        Some((_, kernel)) => kernel.run(call),
        None => Err(Error::not_implemented(format!("it has no kernel for {}", backend.key()))),
    }
}
