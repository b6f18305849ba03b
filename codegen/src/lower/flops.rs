//! `flops`: the arithmetic operations of a call of the entry's kernel.
//!
//! In: the text, the arguments and the results, whose sizes it may read. Out: an integer expression, which may call functions of the kernels crate.

use super::Context;
use super::infer::Expressions;
use crate::analysis::flops;
use crate::diagnostics::catalogue;
use crate::expr::check::Mode;
use crate::model::expr::Expr;
use crate::model::{Kind, Ty};
use crate::spec::document::RawOp;
use crate::spec::document::keys::KeyName;

pub(super) fn lower(context: &mut Context<'_>, expressions: &Expressions<'_>, raw: &RawOp) -> Option<Expr> {
    let text = raw.text(KeyName::Flops)?;
    if raw.complete && raw.get(KeyName::Dispatch).is_none() && raw.get(KeyName::Pointwise).is_none() {
        context.push(catalogue::flops_without_kernel(text.span(), &expressions.op.name));
        return None;
    }
    let results = flops::results(expressions.op).map(|(_, name, ty)| (name, ty.clone()));
    let results: Vec<(String, Ty)> = results.collect();
    expressions.check_with(context, &text, Mode::Operations, &Ty::new(Kind::Int), &results)
}
