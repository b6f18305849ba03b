//! The difference of two runs' entries: which names denote something else.
//!
//! In: the documents of the last run and of this one. Out: the lookups whose answer may differ. Only the parts that callers see of an
//! entry counts, wherever it is written.

use std::collections::HashSet;
use std::sync::Arc;

use super::head;
use crate::expr::check::Lookup;
use crate::spec::document::keys::KeyName;
use crate::spec::document::{Document, Entry, Loaded, RawFunction, RawOp, Text};
use crate::spec::yaml::{Key, Node, NodeKind};

/// The keys whose values no head depends on; the presence of some matters.
const BODY_KEYS: [KeyName; 16] = [
    KeyName::Doc,
    KeyName::Descriptions,
    KeyName::Check,
    KeyName::Length,
    KeyName::Shape,
    KeyName::RunSizes,
    KeyName::RunShape,
    KeyName::Compute,
    KeyName::Pointwise,
    KeyName::Dispatch,
    KeyName::Flops,
    KeyName::Decompose,
    KeyName::Derivatives,
    KeyName::Forward,
    KeyName::Samples,
    KeyName::Tolerance,
];

/// An argument with its aliases.
type Aliases = (Key, Vec<Text>);

/// A document, its library, and the aliases that hold in it.
pub(super) struct LoadedContext {
    document: Arc<Document>,
    parent: Option<usize>,
    inherited_aliases: Vec<Aliases>,
}

impl LoadedContext {
    /// That of a document.
    pub fn of(loaded: &Loaded) -> LoadedContext {
        LoadedContext {
            document: loaded.document.clone(),
            parent: loaded.parent,
            inherited_aliases: loaded.inherited.aliases.clone(),
        }
    }
}

/// The lookups that may have another answer than in the last run; `None` if that is so of all.
pub(super) fn changed_lookups(last: &[LoadedContext], documents: &[Loaded]) -> Option<HashSet<Lookup>> {
    if last.len() != documents.len() {
        return None;
    }
    let mut changed: Vec<&RawOp> = Vec::new();
    for (old, new) in last.iter().zip(documents) {
        let same = old.parent == new.parent && same_lists(&old.inherited_aliases, &new.inherited.aliases);
        if !same || !same_file(&old.document, &new.document) {
            return None;
        }
        if !Arc::ptr_eq(&old.document, &new.document) {
            changed.extend(changed_entries(&old.document.ops, &new.document.ops));
        }
    }
    if changed.is_empty() {
        return Some(HashSet::new());
    }
    let mut lookups: HashSet<Lookup> = changed.iter().flat_map(|raw| head::lookups(raw)).collect();
    // An alias has properties of its operator, and the other way round.
    for document in last.iter().map(|old| &old.document).chain(documents.iter().map(|new| &new.document)) {
        for alias in document.ops.iter().filter(|raw| raw.get(KeyName::AliasOf).is_some()) {
            let target = alias.text(KeyName::AliasOf).map(|text| head::base_of(text.as_str()).to_owned());
            let target: Vec<Lookup> = target.iter().flat_map(|base| head::lookups_of_base(base)).collect();
            let own = head::lookups(alias);
            let meets = own.iter().chain(&target).any(|lookup| lookups.contains(lookup));
            if meets {
                lookups.extend(own.into_iter().chain(target));
            }
        }
    }
    Some(lookups)
}

/// The entries of both that are not the same in the other, in their order.
fn changed_entries<'a>(old: &'a [RawOp], new: &'a [RawOp]) -> impl Iterator<Item = &'a RawOp> {
    let before = old.iter().zip(new).take_while(|(old, new)| same_head(old, new)).count();
    let (old, new) = (&old[before..], &new[before..]);
    let after = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| same_head(old, new)).count();
    old[..old.len() - after].iter().chain(&new[..new.len() - after])
}

/// Whether two files are the same apart from their operators.
fn same_file(old: &Document, new: &Document) -> bool {
    old.functions.len() == new.functions.len()
        && same_lists(&old.of_arguments.aliases, &new.of_arguments.aliases)
        && old.functions.iter().zip(&new.functions).all(|(old, new)| same_function(old, new))
}

fn same_head(old: &RawOp, new: &RawOp) -> bool {
    let same = |(old, new): (&Entry, &Entry)| {
        old.spec.key == new.spec.key
            && (BODY_KEYS.contains(&old.spec.key) || same_content(&old.value, &new.value))
    };
    old.declared == new.declared
        && old.complete == new.complete
        && old.span.source == new.span.source
        && old.entries.len() == new.entries.len()
        && old.entries.iter().zip(&new.entries).all(same)
}

fn same_function(old: &RawFunction, new: &RawFunction) -> bool {
    let same =
        |(old, new): (&Entry, &Entry)| old.spec.key == new.spec.key && same_content(&old.value, &new.value);
    old.complete == new.complete
        && old.entries.len() == new.entries.len()
        && old.entries.iter().zip(&new.entries).all(same)
}

fn same_lists(old: &[Aliases], new: &[Aliases]) -> bool {
    let same = |((old_key, old), (new_key, new)): (&Aliases, &Aliases)| {
        old_key.text == new_key.text && old.iter().map(Text::as_str).eq(new.iter().map(Text::as_str))
    };
    old.len() == new.len() && old.iter().zip(new).all(same)
}

/// Whether two values are the same, wherever they are written.
fn same_content(old: &Node, new: &Node) -> bool {
    match (&old.kind, &new.kind) {
        (NodeKind::Null, NodeKind::Null) => true,
        (NodeKind::Scalar(old), NodeKind::Scalar(new)) => old == new,
        (NodeKind::Seq(old), NodeKind::Seq(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same_content(old, new))
        }
        (NodeKind::Map(old), NodeKind::Map(new)) => {
            let same = |((old_key, old), (new_key, new)): (&(Key, Node), &(Key, Node))| {
                old_key.text == new_key.text && same_content(old, new)
            };
            old.len() == new.len() && old.iter().zip(new).all(same)
        }
        _ => false,
    }
}

/// Whether two entries are the same, spans included.
pub(super) fn same_entry(old: &RawOp, new: &RawOp) -> bool {
    let same = |(old, new): (&Entry, &Entry)| {
        old.spec.key == new.spec.key && old.key == new.key && old.value == new.value
    };
    old.complete == new.complete
        && old.declared == new.declared
        && old.entries.len() == new.entries.len()
        && old.entries.iter().zip(&new.entries).all(same)
}
