//! Equality of attribute values.

use opsmith_runtime::arg::Value;
use opsmith_runtime::internals::GeneratorInternals as _;

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
