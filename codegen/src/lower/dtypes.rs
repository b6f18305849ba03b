//! Dtypes and sets of them in the values of keys.

use opsmith_core::{Backend, DType, DTypeSet};

use super::Context;
use crate::diagnostics::catalogue;
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};
use crate::spec::yaml::Node;

/// `dtypes: floating`, `dtypes: [float32, float64]`, `dtypes: {CPU: all, CUDA: [float32]}`
pub(super) fn of_backends(context: &mut Context<'_>, raw: &RawOp) -> [DTypeSet; Backend::COUNT] {
    const EXAMPLE: &str = "[float32, float64]";
    let all = DTypeSet::ALL;
    let Some(node) = raw.get(KeyName::Dtypes) else { return [all; Backend::COUNT] };
    let Some(entries) = node.as_map() else {
        let words = words(context, "dtypes", EXAMPLE, node).unwrap_or_default();
        return [union(context, &words); Backend::COUNT];
    };
    let mut sets = [DTypeSet::EMPTY; Backend::COUNT];
    for (key, value) in entries {
        let Some(backend) = Backend::from_key(&key.text) else {
            let known: Vec<&str> = Backend::ALL.iter().map(|backend| backend.key()).collect();
            context.push(catalogue::backend_unknown(key.span, &key.text, &known));
            continue;
        };
        let words = words(context, "dtypes", EXAMPLE, value).unwrap_or_default();
        sets[backend.index()] = union(context, &words);
    }
    sets
}

/// The union of sets by name.
pub(super) fn union(context: &mut Context<'_>, words: &[Text]) -> DTypeSet {
    let sets: Vec<&str> = DTypeSet::NAMED.iter().map(|(name, _)| *name).collect();
    let hint = format!("use dtype names such as `float32`, or a set: {}", sets.join(", "));
    words.iter().fold(DTypeSet::EMPTY, |union, word| {
        union.union(set(context, word, &[], &hint).unwrap_or(DTypeSet::EMPTY))
    })
}

/// A dtype or a named set; `more` are other allowed words.
pub(super) fn set(context: &mut Context<'_>, word: &Text, more: &[&str], hint: &str) -> Option<DTypeSet> {
    let found = DTypeSet::from_name(word.as_str());
    if found.is_none() {
        let sets = DTypeSet::NAMED.iter().map(|(name, _)| *name);
        let dtypes = DType::ALL.iter().map(|dtype| dtype.name());
        let known: Vec<&str> = sets.chain(dtypes).chain(more.iter().copied()).collect();
        context.push(catalogue::dtype_unknown(word.span(), word.as_str(), &known, hint));
    }
    found
}

/// One text or a list of them; reports anything else.
pub(super) fn words(context: &mut Context<'_>, key: &str, example: &str, node: &Node) -> Option<Vec<Text>> {
    let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
    match items.iter().find(|item| item.as_text().is_none()) {
        Some(odd) => {
            context.push(catalogue::nested_not_text(odd.span, key, example));
            None
        }
        None => Some(items.iter().map(|node| Text { node: node.clone() }).collect()),
    }
}
