//! Equality of traces: storages, node kinds and attribute values of two runs of a function.

use opsmith_runtime::arg::Value;
use opsmith_runtime::internals::{self, GeneratorInternals as _};
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
pub(crate) fn kinds_equal(a: &NodeKind<i64>, b: &NodeKind<i64>) -> bool {
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

/// Whether two attributes are the same, bit for bit.
pub(crate) fn values_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Scalar(a), Value::Scalar(b)) => a.same_bits(*b),
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Ints(a), Value::Ints(b)) => a == b,
        (Value::Floats(a), Value::Floats(b)) => {
            a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits()))
        }
        (Value::Bools(a), Value::Bools(b)) => a == b,
        (Value::Scalars(a), Value::Scalars(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_bits(*b))
        }
        (Value::Strs(a), Value::Strs(b)) => a == b,
        (Value::DTypes(a), Value::DTypes(b)) => a == b,
        (Value::Lists(a), Value::Lists(b)) => a.same_bits(b),
        (Value::DType(a), Value::DType(b)) => a == b,
        (Value::Device(a), Value::Device(b)) => a == b,
        (Value::MemoryFormat(a), Value::MemoryFormat(b)) => a == b,
        (Value::MemoryLayout(a), Value::MemoryLayout(b)) => a == b,
        (Value::Generator(a), Value::Generator(b)) => {
            a.same(b) || (a.start().is_some() && a.start() == b.start())
        }
        _ => false,
    }
}
