//! Whether what two runs of a function did is the same.

use super::recorder::RawKind;
use crate::arg::Value;
use crate::storage::Storage;

/// Whether two storages hold the same bytes.
pub(super) fn same_content(a: &Storage, b: &Storage) -> bool {
    if a.same(b) {
        return true;
    }
    if b.is_meta() || a.bytes() != b.bytes() {
        return false;
    }
    let bytes = |storage: &Storage| {
        // SAFETY: the storage holds that many bytes; traced functions make them whole with `from_slice`
        // or `scalar`, and nothing writes while runs are compared.
        unsafe { std::slice::from_raw_parts(storage.data(), storage.bytes()) }.to_vec()
    };
    bytes(a) == bytes(b)
}

/// Whether two steps do the same, apart from their arguments.
pub(super) fn same_kind(a: &RawKind, b: &RawKind) -> bool {
    match (a, b) {
        (RawKind::Call { op: a, compute: x }, RawKind::Call { op: b, compute: y }) => {
            std::ptr::eq(*a, *b) && x == y
        }
        (RawKind::View { op: a }, RawKind::View { op: b }) => std::ptr::eq(*a, *b),
        (RawKind::While { predicate: a, .. }, RawKind::While { predicate: b, .. }) => a == b,
        (RawKind::Scan { moving: a, .. }, RawKind::Scan { moving: b, .. }) => {
            a.iter().map(|moving| moving.0).eq(b.iter().map(|moving| moving.0))
        }
        (RawKind::Copy, RawKind::Copy) | (RawKind::Add, RawKind::Add) => true,
        (RawKind::Cond { .. }, RawKind::Cond { .. }) => true,
        _ => false,
    }
}

/// Whether two attributes are the same, bit for bit.
pub(super) fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Scalar(a), Value::Scalar(b)) => format!("{a:?}") == format!("{b:?}"),
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Ints(a), Value::Ints(b)) => a == b,
        (Value::Floats(a), Value::Floats(b)) => {
            a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits()))
        }
        (Value::Bools(a), Value::Bools(b)) => a == b,
        (Value::Scalars(a), Value::Scalars(b)) => format!("{a:?}") == format!("{b:?}"),
        (Value::Strs(a), Value::Strs(b)) => a == b,
        (Value::DTypes(a), Value::DTypes(b)) => a == b,
        (Value::Lists(a), Value::Lists(b)) => format!("{a:?}") == format!("{b:?}"),
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
