//! `dispatch: {CPU: "aot:kernels/add_reduce.cc:CustomKernel"}`: kernels of the interface for custom operators, which
//! are compiled and loaded at run time.
//!
//! In: the text after `aot:` and the operator. Out: the kernel's source, or the arguments that the interface cannot
//! pass.

use std::path::PathBuf;

use opsmith_core::{ArgKind, Backend};

use super::{Context, kernel, names};
use crate::diagnostics::catalogue;
use crate::model::{KernelSource, Op};
use crate::spec::document::{RawOp, Text};

/// The prefix of such a kernel.
pub(super) const PREFIX: &str = "aot:";

/// `kernels/add_reduce.cc:CustomKernel`.
pub(super) fn source(
    context: &mut Context<'_>,
    op: &Op,
    raw: &RawOp,
    text: &Text,
    written: &str,
    backend: Backend,
) -> Option<KernelSource> {
    let (file, symbol) = written.rsplit_once(':').unwrap_or((written, ""));
    let (file, symbol) = (file.trim(), symbol.trim());
    let problem = match file.rsplit_once('.').map(|(_, extension)| extension) {
        _ if file.starts_with('/') => Some("an absolute path"),
        Some("cc" | "cpp" | "cxx" | "cu" | "so") => None,
        _ => Some("neither a source nor a library"),
    };
    if let Some(label) = problem {
        let place = kernel::place(context, text, file);
        context.push(catalogue::aot_file(place, label));
        return None;
    }
    if file.ends_with(".cu") && backend == Backend::Cpu {
        let place = kernel::place(context, text, file);
        context.push(catalogue::aot_target(place));
        return None;
    }
    let symbol = kernel::symbol(context, text, symbol)?;
    refuse_arguments(context, op, raw);
    Some(KernelSource::Aot { file: PathBuf::from(file), symbol })
}

/// Kernels get tensors, and attributes of the interface's types.
fn refuse_arguments(context: &mut Context<'_>, op: &Op, raw: &RawOp) {
    let mut lists = 0;
    for arg in &op.args {
        lists += usize::from(arg.ty.holds_tensors() && !arg.ty.is_tensor());
        let why = match arg.ty.kind.argument() {
            Some(ArgKind::Tensors | ArgKind::OptionalTensors) if lists > 1 => {
                "the interface passes one tensor after the other, so only one argument can be a list"
            }
            Some(kind) if !kind.holds_tensors() && !kind.is_custom_attribute() => {
                "the interface has no attribute of this type"
            }
            _ => continue,
        };
        let place = names::argument_place(context, raw, &arg.name).unwrap_or(op.span);
        context.push(catalogue::aot_argument(place, &op.name, &arg.name, &arg.ty.to_string(), why));
    }
}
