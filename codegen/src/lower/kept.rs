//! Bodies of an earlier run, for a spec that is checked again after each keystroke.
//!
//! In: the documents of two runs. Out: the lowered bodies of entries that did not change. A body depends on its own entry,
//! on the scalar functions, and on the heads of the operators that its expressions look up, which are recorded. Bodies with
//! diagnostics are never kept, because those may point into other entries.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::body::Lowered;
use super::changed::{LoadedContext, changed_lookups, same_entry};
use super::head;
use crate::diagnostics::Span;
use crate::expr::check::Lookup;
use crate::model::expr::ExprKind;
use crate::model::{Op, OpId};
use crate::spec::document::{Loaded, RawOp};

/// The bodies of the last run, with all that they were made from.
#[derive(Default)]
pub struct KeptBodies {
    context: Vec<LoadedContext>,
    broken: BTreeSet<String>,
    names: Vec<OpName>,
    /// Those of the last run that this one has not used.
    last: HashMap<Span, KeptBody>,
    bodies: HashMap<Span, KeptBody>,
    /// The numbers of the last run's operators in this one; `None` if they are the same.
    renumbered: Option<Vec<Option<OpId>>>,
    changed: Changed,
}

/// An operator, in any run: its library and its full name.
type OpName = (Option<usize>, String);

/// The names that denote something else than in the last run.
#[derive(Default)]
enum Changed {
    /// Any name may.
    #[default]
    All,
    These(HashSet<Lookup>),
}

struct KeptBody {
    raw: RawOp,
    body: Lowered,
    lookups: HashSet<Lookup>,
}

impl KeptBodies {
    /// Compares the heads with those of the last run; `broken` are the names of entries without a head.
    pub(super) fn begin(&mut self, documents: &[Loaded], ops: &[Op], broken: &[String]) {
        let broken: BTreeSet<String> = broken.iter().cloned().collect();
        let names: Vec<OpName> = ops.iter().map(|op| (op.parent, op.name.clone())).collect();
        self.last = std::mem::take(&mut self.bodies);
        self.changed = match changed_lookups(&self.context, documents) {
            Some(mut changed) => {
                let differs = self.broken.symmetric_difference(&broken);
                differs.for_each(|name| changed.extend(head::lookups_of_base(name)));
                Changed::These(changed)
            }
            None => Changed::All,
        };
        self.renumbered = (self.names != names).then(|| {
            let mut numbers: HashMap<&OpName, OpId> = HashMap::new();
            for (index, name) in names.iter().enumerate() {
                numbers.entry(name).or_insert(OpId(index));
            }
            self.names.iter().map(|name| numbers.get(name).copied()).collect()
        });
        self.context = documents.iter().map(LoadedContext::of).collect();
        (self.broken, self.names) = (broken, names);
    }

    /// The body of an entry that is as it was, with the same span, and whose names denote the same.
    pub(super) fn body(&mut self, raw: &RawOp) -> Option<Lowered> {
        let Changed::These(changed) = &self.changed else { return None };
        let mut kept = self.last.remove(&raw.span)?;
        if !same_entry(&kept.raw, raw) || kept.lookups.iter().any(|lookup| changed.contains(lookup)) {
            return None;
        }
        if let Some(numbers) = &self.renumbered {
            renumber(&mut kept.body, numbers)?;
        }
        let body = kept.body.clone();
        self.bodies.insert(raw.span, kept);
        Some(body)
    }

    /// Keeps the body of an entry that has no diagnostics and met no entry with mistakes.
    pub(super) fn keep(&mut self, raw: &RawOp, body: &Lowered, lookups: HashSet<Lookup>) {
        self.bodies.insert(raw.span, KeptBody { raw: raw.clone(), body: body.clone(), lookups });
    }
}

/// Gives the operators of a body their numbers in this run; `None` if one is gone.
fn renumber(body: &mut Lowered, numbers: &[Option<OpId>]) -> Option<()> {
    let mut all = Some(());
    body.for_each_expr(&mut |expr| {
        expr.walk_mut(&mut |part| {
            if let ExprKind::Op(id, _) = &mut part.kind {
                match numbers.get(id.0).copied().flatten() {
                    Some(number) => *id = number,
                    None => all = None,
                }
            }
        });
    });
    all
}
