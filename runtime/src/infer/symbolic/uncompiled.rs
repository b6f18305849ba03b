//! Inference of operators without compiled code, for tools: by their rules alone.
//!
//! In: rules, and arguments as for any operator. Out: the results that the compiled operator would have. Rules that
//! call kernel functions are not supported.

use opsmith_core::Combination;
use opsmith_core::rule_tree::Rules;

use super::condition::Context;
use super::evaluate::Evaluation;
use super::infer::{OutputsMeta, by_rules, check, check_combinations, check_constants, constants, unknown};
use super::tensor_meta::ArgumentMeta;
use crate::error::Result;
use crate::facts::ValueUse;

/// The parts of an operator that its inference needs.
#[derive(Clone, Copy, Debug)]
pub struct Uncompiled<'a> {
    /// The arguments in order: the name, and whether elements decide a result's shape or dtype.
    pub args: &'a [(&'a str, ValueUse)],
    /// The allowed combinations of dtypes; empty if the rules alone decide.
    pub combinations: &'a [Combination],
    /// The rules.
    pub rules: Rules<'a>,
}

/// As [`super::infer()`], for an operator that is not compiled.
///
/// # Errors
/// As [`super::infer()`], without the operator and its operands.
pub fn infer_uncompiled(
    op: &Uncompiled<'_>,
    args: &[ArgumentMeta<'_>],
    context: &mut Context,
) -> Result<OutputsMeta> {
    let values_known = check_constants(op.args.iter().copied(), args)?;
    check_combinations(op.combinations, args, |at| op.args[at].0)?;
    let constants = constants(args);
    let mut on = Evaluation { name: "", args, context, locals: Vec::new(), constants: &constants };
    check(&mut on, &op.rules)?;
    // If all elements are known, only the compiled function can infer more.
    match values_known && !op.rules.run_sizes.is_empty() {
        true => unknown(&mut on, &op.rules, op.rules.length.is_some()),
        false => by_rules(&mut on, &op.rules),
    }
}
