//! Entries to model: names resolved, types checked, defaults filled in.
//!
//! In: parsed documents. Out: a [`Model`], or diagnostics for every mistake in every entry. Two
//! passes: the heads of all operators first, so that expressions may call any of them.

mod body;
mod derivatives;
mod derived;
mod forms;
mod function;
mod head;
mod infer;
mod symbolic;

use crate::diagnostics::{Diagnostic, Diagnostics, SourceMap};
use crate::expr::check::OpTable;
use crate::model::{Model, Op};
use crate::spec::document::{Document, RawOp};

/// A document and whether another crate generated its operators.
pub struct Loaded {
    /// The entries.
    pub document: Document,
    /// Whether the operators exist already, in a parent library.
    pub external: bool,
}

/// What every step needs at hand.
pub(crate) struct Context<'a> {
    pub sources: &'a SourceMap,
    pub diagnostics: &'a mut Diagnostics,
}

/// Lowers documents, parents first. Entries with mistakes are left out; the mistakes go to
/// `diagnostics`.
pub fn lower(documents: &[Loaded], sources: &SourceMap, diagnostics: &mut Diagnostics) -> Model {
    let mut context = Context { sources, diagnostics };
    let mut functions = Vec::new();
    let mut heads: Vec<(Op, &RawOp)> = Vec::new();
    for loaded in documents {
        for raw in &loaded.document.functions {
            function::lower(&mut context, raw, loaded.external, &mut functions);
        }
        for raw in &loaded.document.ops {
            if let Some(op) = head::lower(&mut context, raw, loaded.external) {
                refuse_duplicate(&mut context, &heads, &op);
                heads.push((op, raw));
            }
        }
    }
    let (mut ops, raws): (Vec<Op>, Vec<&RawOp>) = heads.into_iter().unzip();
    let bodies: Vec<_> = {
        let table = OpTable::new(&ops);
        ops.iter()
            .zip(&raws)
            .map(|(op, raw)| body::lower(&mut context, op, raw, &table, &functions))
            .collect()
    };
    for (op, body) in ops.iter_mut().zip(bodies) {
        body.install(op);
    }
    Model { ops, functions }
}

fn refuse_duplicate(context: &mut Context<'_>, heads: &[(Op, &RawOp)], op: &Op) {
    let Some((first, _)) = heads.iter().find(|(other, _)| other.name == op.name) else { return };
    context.diagnostics.push(
        Diagnostic::error(
            "E0401",
            format!("`{}` is declared twice", op.name),
            op.span,
            "declared again here",
        )
        .with_secondary(first.span, "first declared here")
        .with_help("give one of them another overload name, as in `add.Scalar`"),
    );
}
