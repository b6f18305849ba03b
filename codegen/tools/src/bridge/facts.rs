//! The facts of an entry that decide whether a framework can have its operator.
//!
//! In: an operator of the model. Out: the reason against it, that of its definition in a build.

use opsmith_codegen::model::{Kind, Op, ValueUse};
use opsmith_core::BridgeFacts;

/// The tag of operators whose results have sizes that elements decide.
const DYNAMIC: &str = "dynamic_output_shape";

/// The reason for which no framework can have an operator; `None` if one can.
pub fn refusal(op: &Op) -> Option<String> {
    if op.alias_of.is_some() {
        return Some("it is another name of an operator, without a definition of its own".to_owned());
    }
    if op.supplied.is_some() {
        return Some("its kernels are those of another project".to_owned());
    }
    let visible = op.visible();
    let holds_tensors = |kind: &Kind| kind.argument().is_some_and(opsmith_core::ArgKind::holds_tensors);
    let shares = op.signature.match_indices("Tensor(").any(|(at, found)| {
        op.signature[at + found.len()..].starts_with(|letter: char| letter.is_ascii_lowercase())
    });
    let is_foreign = |kind: &Kind| matches!(kind, Kind::Lists(_) | Kind::MemoryLayout | Kind::Foreign(_));
    let has_run_sizes = op.infer.as_ref().is_some_and(|infer| !infer.run_sizes.is_empty());
    let has_kernels = op.body.pointwise.is_some() || op.body.kernels.iter().any(|kernel| kernel.is_built);
    let names_four_bits = ["=int4", "=uint4"].iter().any(|text| op.signature.contains(text));
    let facts = BridgeFacts {
        is_backward: op.facts.backward_only,
        gives_tensors: op.body.host.is_none() && !visible.is_empty() && op.returns_tensors(),
        is_view: op.body.view.is_some() || shares,
        takes_tensors: op.args.iter().any(|arg| holds_tensors(&arg.ty.kind)),
        is_random: !op.facts.deterministic || op.args.iter().any(|arg| arg.ty.kind == Kind::Generator),
        read_argument: op
            .args
            .iter()
            .find(|arg| arg.value == ValueUse::Required)
            .map(|arg| arg.name.as_str()),
        may_lack_results: visible.iter().any(|output| output.ty.optional),
        has_unnamed_sizes: op.facts.tags.iter().any(|tag| tag == DYNAMIC) && !has_run_sizes,
        gives_four_bits: !has_kernels && names_four_bits,
        foreign_argument: op.args.iter().find(|arg| is_foreign(&arg.ty.kind)).map(|arg| arg.name.as_str()),
    };
    facts.refusal(false)
}
