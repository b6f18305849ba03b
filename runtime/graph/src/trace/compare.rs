//! Equality of traces: storages and node kinds of two runs of a function.

use opsmith_runtime::internals;
use opsmith_runtime::storage::Storage;

use crate::ir::NodeKind;

/// Whether two storages hold the same bytes.
pub(crate) fn contents_equal(a: &Storage, b: &Storage) -> bool {
    if a.same(b) {
        return true;
    }
    if b.is_meta() || a.bytes() != b.bytes() {
        return false;
    }
    // SAFETY: traced functions initialise storages completely with `from_slice` or `scalar`, and no code writes them
    // while runs are compared.
    match unsafe { (internals::bytes_of(a), internals::bytes_of(b)) } {
        (Ok(a), Ok(b)) => a == b,
        // Unreadable bytes count as different.
        _ => false,
    }
}

/// Whether two nodes do the same, apart from their arguments.
pub(crate) fn kinds_equal<N>(a: &NodeKind<N>, b: &NodeKind<N>) -> bool {
    match (a, b) {
        (NodeKind::Call { op: a, compute: x }, NodeKind::Call { op: b, compute: y }) => {
            std::ptr::eq(*a, *b) && x == y
        }
        (NodeKind::View { op: a }, NodeKind::View { op: b }) => std::ptr::eq(*a, *b),
        (NodeKind::While { predicate: a, .. }, NodeKind::While { predicate: b, .. }) => a == b,
        (NodeKind::Scan { moving: a, .. }, NodeKind::Scan { moving: b, .. }) => {
            a.iter().map(|moving| moving.tensor).eq(b.iter().map(|moving| moving.tensor))
        }
        (NodeKind::Copy, NodeKind::Copy) | (NodeKind::Add, NodeKind::Add) => true,
        (NodeKind::Cond { .. }, NodeKind::Cond { .. }) => true,
        _ => false,
    }
}
