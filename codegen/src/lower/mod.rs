//! Entries to model: names resolved, types checked, defaults filled in.
//!
//! In: parsed documents. Out: a [`Model`], or diagnostics for every mistake in every entry. The heads of all operators
//! come first, so that expressions may call any of them; then the rest of each entry, the checks across entries, and
//! finally warnings for entries without mistakes.

mod alias;
mod aot;
mod args;
mod attributes;
mod body;
mod changed;
mod combinations;
mod cycle;
mod derivatives;
mod derived;
mod dtypes;
mod facts;
mod flops;
mod follow;
mod forms;
mod formula;
mod forward;
mod function;
mod head;
mod implied;
mod infer;
mod kept;
mod kernel;
mod known;
mod lint;
mod merge;
mod missing;
mod names;
mod notation;
mod pointwise;
mod results;
mod roles;
mod samples;
mod supplied;
mod symbolic;
mod tolerance;
pub mod types;

pub use kept::KeptBodies;
pub use supplied::note;

use opsmith_core::Backend;

use crate::diagnostics::{Diagnostic, Diagnostics, SourceMap};
use crate::expr::check::OpTable;
use crate::expr::check::Undeclared;
use crate::model::{Deprecated, Model, Op};
use crate::spec::document::{Loaded, RawOp};

/// The shared state of all steps.
pub(crate) struct Context<'a> {
    pub sources: &'a SourceMap,
    pub diagnostics: &'a mut Diagnostics,
    /// The backends that have kernels in Rust.
    pub backends: &'a [Backend],
}

impl Context<'_> {
    fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }
}

/// The head of an operator with the entry it comes from.
struct Head<'a> {
    op: Op,
    raw: &'a RawOp,
}

/// The bodies of all entries, and whether no part of each is missing; `None` if there are too many mistakes.
fn lower_bodies(
    context: &mut Context<'_>,
    ops: &[Op],
    raws: &[&RawOp],
    table: &OpTable<'_>,
    mut kept: Option<&mut KeptBodies>,
) -> Option<(Vec<body::Lowered>, Vec<bool>)> {
    let mut bodies = Vec::with_capacity(ops.len());
    let mut whole = Vec::with_capacity(ops.len());
    for (op, raw) in ops.iter().zip(raws) {
        if context.diagnostics.is_full() {
            return None;
        }
        let (body, is_whole) = lower_body(context, op, raw, table, kept.as_deref_mut());
        bodies.push(body);
        whole.push(is_whole);
    }
    Some((bodies, whole))
}

/// The body of an entry, and whether no part of it is missing.
fn lower_body(
    context: &mut Context<'_>,
    op: &Op,
    raw: &RawOp,
    table: &OpTable<'_>,
    mut kept: Option<&mut KeptBodies>,
) -> (body::Lowered, bool) {
    if let Some(known) = kept.as_mut().and_then(|kept| kept.body(raw)) {
        return (known, raw.complete);
    }
    let reported = context.diagnostics.reported();
    let body = body::lower(context, op, raw, table);
    let (met_broken, lookups) = (table.met_broken(), table.take_lookups());
    if let Some(kept) = kept.filter(|_| context.diagnostics.reported() == reported && !met_broken) {
        kept.keep(raw, &body, lookups);
    }
    (body, raw.complete && !met_broken)
}

/// Resolves the operators in `deprecated`, once all are known.
fn deprecations(context: &mut Context<'_>, heads: &mut [Head<'_>]) {
    let found: Vec<Option<Deprecated>> = {
        let row =
            |head: &'_ Head<'_>| (head.op.name.clone(), head.op.base.clone(), head.op.rust_name.clone());
        let rows: Vec<(String, String, String)> = heads.iter().map(row).collect();
        let names =
            rows.iter().map(|(full, base, rust)| (full.as_str(), base.as_str(), rust.as_str())).collect();
        let known = facts::Known { names };
        heads.iter().map(|head| facts::deprecated(context, head.raw, &head.op.name, &known)).collect()
    };
    for (head, deprecated) in heads.iter_mut().zip(found) {
        head.op.facts.deprecated = deprecated;
    }
}

/// The heads of all entries, and the names of those with mistakes: their users get no diagnostics about them.
fn heads<'a>(
    context: &mut Context<'_>,
    documents: &'a [Loaded],
    functions: &mut function::Functions,
) -> (Vec<Head<'a>>, Vec<String>) {
    let (mut heads, mut broken) = (Vec::new(), Vec::new());
    for loaded in documents {
        facts::check_file_aliases(context, &loaded.document.of_arguments.aliases);
        for raw in &loaded.document.functions {
            functions.lower(context, raw, loaded.parent);
        }
        let of_arguments = loaded.all_of_arguments();
        for raw in &loaded.document.ops {
            if context.diagnostics.is_full() {
                break;
            }
            match head::lower(context, raw, loaded, &of_arguments) {
                Some(op) => heads.push(Head { op, raw }),
                None => broken.push(head::base_name(raw)),
            }
        }
    }
    (heads, broken)
}

/// Lowers documents as far as the kernel tables of their entries need: bodies and the types of results. Entries with
/// mistakes are left out without a diagnostic.
pub fn lower_tables(documents: &[Loaded], sources: &SourceMap, backends: &[Backend]) -> Model {
    let mut diagnostics = Diagnostics::new();
    let mut context = Context { sources, diagnostics: &mut diagnostics, backends };
    let mut functions = function::Functions::default();
    let (heads, _) = heads(&mut context, documents, &mut functions);
    let (mut ops, raws): (Vec<Op>, Vec<&RawOp>) = heads.into_iter().map(|head| (head.op, head.raw)).unzip();
    let table = OpTable::new(&ops, functions.all());
    let bodies: Vec<body::Lowered> =
        ops.iter().zip(raws).map(|(op, raw)| body::lower_tables(&mut context, op, raw, &table)).collect();
    drop(table);
    for (op, body) in ops.iter_mut().zip(bodies) {
        body.install(op);
    }
    Model { ops, functions: functions.finish(), ..Model::default() }
}

/// Lowers documents, parents first. Entries with mistakes are left out; the mistakes go to
/// `diagnostics`. `kept` has the bodies of the last run, if this is one of many.
pub fn lower(
    documents: &[Loaded],
    sources: &SourceMap,
    undeclared: Undeclared,
    backends: &[Backend],
    diagnostics: &mut Diagnostics,
    mut kept: Option<&mut KeptBodies>,
) -> Model {
    let mut context = Context { sources, diagnostics, backends };
    let mut functions = function::Functions::default();
    let (mut heads, broken) = heads(&mut context, documents, &mut functions);
    alias::resolve(&mut context, &mut heads, &broken);
    merge::pair(&mut heads);
    alias::document(&mut heads);
    deprecations(&mut context, &mut heads);
    names::check(&mut context, &heads);
    roles::check_together(&mut context, &heads);
    let foreign_names = known::tables(&mut context, documents, &heads);

    let (mut ops, raws): (Vec<Op>, Vec<&RawOp>) = heads.into_iter().map(|head| (head.op, head.raw)).unzip();
    let mut table = OpTable::new(&ops, functions.all());
    table.undeclared = undeclared;
    if let Some(kept) = &mut kept {
        table.records = true;
        kept.begin(documents, &ops, &broken);
    }
    broken.into_iter().chain(functions.broken()).for_each(|name| table.add_broken(name));
    functions.check_derivatives(&mut context, &table);
    let Some((bodies, whole)) = lower_bodies(&mut context, &ops, &raws, &table, kept) else {
        return Model::default();
    };
    drop(table);
    for (op, body) in ops.iter_mut().zip(bodies) {
        body.install(op);
    }
    facts::follow_calls(&mut ops);
    missing::refuse(&mut ops);
    forward::choose(&mut ops);
    cycle::refuse(&mut context, &ops, &raws);
    cycle::mark(&mut ops);
    kernel::refuse_shared_symbols(&mut context, &ops);
    lint::warn(&mut context, &ops, &raws, &whole);
    Model {
        ops,
        functions: functions.finish(),
        foreign_names,
        documented: std::collections::BTreeMap::default(),
        kept_rules: crate::model::Kept::default(),
        kept_errors: crate::model::Kept::default(),
        kept_results: crate::model::Kept::default(),
    }
}
