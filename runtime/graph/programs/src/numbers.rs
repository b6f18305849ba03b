//! Python's functions of numbers, with which exported programs compute sizes.
//!
//! In: the name of a function, and numbers. Out: the number that Python gives. Integers have 64 bits: an overflow is an
//! error.

use std::cmp::Ordering;

use opsmith_runtime::arg::Value;

use crate::expression::{floor_quotient, floor_remainder};

/// The values that a number may have in a run.
#[derive(Clone, Debug)]
pub(crate) enum Bounds {
    /// The known one.
    Exact,
    /// From the first to the second, which depends on elements.
    Between(Value, Value),
    /// Any, which depends on elements.
    Any,
}

impl Bounds {
    /// Whether the known value is that of every run.
    pub fn is_exact(&self) -> bool {
        matches!(self, Bounds::Exact)
    }
}

/// A function of numbers.
type Function = fn(&[Value]) -> Option<Value>;

/// The functions by the names under which programs call them. PyTorch's verifier of programs has this list.
const FUNCTIONS: [(&str, Function); 29] = [
    ("_operator.add", |of| exact(of, i64::checked_add, |a, b| a + b)),
    ("_operator.sub", |of| exact(of, i64::checked_sub, |a, b| a - b)),
    ("_operator.mul", |of| exact(of, i64::checked_mul, |a, b| a * b)),
    ("_operator.floordiv", |of| exact(of, floor_quotient, |a, b| (a / b).floor())),
    ("_operator.mod", |of| exact(of, floor_remainder, |a, b| a - b * (a / b).floor())),
    ("_operator.pow", |of| exact(of, |a, b| a.checked_pow(u32::try_from(b).ok()?), f64::powf)),
    ("_operator.truediv", |of| floats(of, |a, b| (b != 0.0).then(|| Value::Float(a / b)))),
    ("_operator.neg", |of| match of {
        [Value::Int(a)] => a.checked_neg().map(Value::Int),
        [a] => Some(Value::Float(-float(a)?)),
        _ => None,
    }),
    ("_operator.abs", |of| match of {
        [Value::Int(a)] => a.checked_abs().map(Value::Int),
        [a] => Some(Value::Float(float(a)?.abs())),
        _ => None,
    }),
    ("_operator.lshift", |of| integers(of, |a, b| a.checked_mul(1i64.checked_shl(u32::try_from(b).ok()?)?))),
    ("_operator.rshift", |of| integers(of, |a, b| a.checked_shr(u32::try_from(b).ok()?))),
    ("_operator.and_", |of| bits(of, |a, b| a & b, |a, b| a & b)),
    ("_operator.or_", |of| bits(of, |a, b| a | b, |a, b| a | b)),
    ("_operator.eq", |of| compare(of, |a, b| a == b)),
    ("_operator.ne", |of| compare(of, |a, b| a != b)),
    ("_operator.lt", |of| compare(of, |a, b| a < b)),
    ("_operator.le", |of| compare(of, |a, b| a <= b)),
    ("_operator.gt", |of| compare(of, |a, b| a > b)),
    ("_operator.ge", |of| compare(of, |a, b| a >= b)),
    ("_operator.not_", not),
    ("torch.sym_not", not),
    ("torch.sym_max", |of| exact(of, |a, b| Some(a.max(b)), f64::max)),
    ("torch.sym_min", |of| exact(of, |a, b| Some(a.min(b)), f64::min)),
    ("torch.sym_ite", |of| match of {
        [Value::Bool(condition), then, otherwise] => Some(if *condition { then } else { otherwise }.clone()),
        _ => None,
    }),
    ("torch.sym_float", |of| Some(Value::Float(float(of.first()?)?))),
    ("torch._sym_sqrt", |of| {
        let root = float(of.first()?)?.sqrt();
        (!root.is_nan()).then_some(Value::Float(root))
    }),
    ("math.floor", |of| whole(of, f64::floor)),
    ("math.ceil", |of| whole(of, f64::ceil)),
    ("math.trunc", |of| whole(of, f64::trunc)),
];

/// The function of a name.
pub(crate) fn find(target: &str) -> Option<Function> {
    FUNCTIONS.iter().find(|(name, _)| *name == target).map(|(_, function)| *function)
}

/// Functions that are monotonic in each operand, so that their values at the ends of ranges are the ends of theirs; those of
/// bits are such of truth values.
const MONOTONIC: [&str; 19] = [
    "_operator.add",
    "_operator.sub",
    "_operator.mul",
    "_operator.neg",
    "_operator.and_",
    "_operator.or_",
    "_operator.lt",
    "_operator.le",
    "_operator.gt",
    "_operator.ge",
    "_operator.not_",
    "torch.sym_not",
    "torch.sym_max",
    "torch.sym_min",
    "torch.sym_float",
    "torch._sym_sqrt",
    "math.floor",
    "math.ceil",
    "math.trunc",
];

/// The bounds of a function's value, of operands with these values and bounds.
pub(crate) fn bounds(target: &str, operands: &[(Value, Bounds)]) -> Bounds {
    let (Some(function), true) = (find(target), MONOTONIC.contains(&target)) else { return Bounds::Any };
    let is_of_truths = operands.iter().all(|(value, _)| matches!(value, Value::Bool(_)));
    if matches!(target, "_operator.and_" | "_operator.or_") && !is_of_truths {
        return Bounds::Any;
    }
    // Each combination of ends: the functions have two operands at most.
    let mut corners: Vec<Vec<Value>> = vec![Vec::new()];
    for (value, bounds) in operands.iter().take(2) {
        let ends = match bounds {
            Bounds::Exact => vec![value.clone()],
            Bounds::Between(least, most) => vec![least.clone(), most.clone()],
            Bounds::Any => return Bounds::Any,
        };
        let longer = |corner: &Vec<Value>| {
            let corner = corner.clone();
            let with = move |end: &Value| corner.iter().cloned().chain([end.clone()]).collect();
            ends.iter().map(with).collect::<Vec<_>>()
        };
        corners = corners.iter().flat_map(longer).collect();
    }
    let values: Option<Vec<Value>> = corners.iter().map(|corner| function(corner)).collect();
    let order = |a: &&Value, b: &&Value| float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal);
    let of = |values: &[Value]| {
        let (least, most) = (values.iter().min_by(order)?, values.iter().max_by(order)?);
        Some(Bounds::Between(least.clone(), most.clone()))
    };
    values.and_then(|values| of(&values)).unwrap_or(Bounds::Any)
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
        _ => None,
    }
}

fn integers(of: &[Value], function: fn(i64, i64) -> Option<i64>) -> Option<Value> {
    match of {
        [Value::Int(a), Value::Int(b)] => function(*a, *b).map(Value::Int),
        _ => None,
    }
}

fn floats(of: &[Value], function: fn(f64, f64) -> Option<Value>) -> Option<Value> {
    match of {
        [a, b] => function(float(a)?, float(b)?),
        _ => None,
    }
}

/// Of two integers an integer, else a float.
fn exact(of: &[Value], whole: fn(i64, i64) -> Option<i64>, real: fn(f64, f64) -> f64) -> Option<Value> {
    match of {
        [Value::Int(a), Value::Int(b)] => whole(*a, *b).map(Value::Int),
        [a, b] => Some(Value::Float(real(float(a)?, float(b)?))),
        _ => None,
    }
}

fn bits(of: &[Value], truths: fn(bool, bool) -> bool, whole: fn(i64, i64) -> i64) -> Option<Value> {
    match of {
        [Value::Bool(a), Value::Bool(b)] => Some(Value::Bool(truths(*a, *b))),
        [Value::Int(a), Value::Int(b)] => Some(Value::Int(whole(*a, *b))),
        _ => None,
    }
}

/// Compares two integers exactly, others as floats.
fn compare(of: &[Value], holds: fn(f64, f64) -> bool) -> Option<Value> {
    let ordering = match of {
        // The sign of a difference orders integers that floats cannot tell apart.
        [Value::Int(a), Value::Int(b)] => holds(a.cmp(b) as i8 as f64, 0.0),
        [a, b] => holds(float(a)?, float(b)?),
        _ => return None,
    };
    Some(Value::Bool(ordering))
}

fn not(of: &[Value]) -> Option<Value> {
    match of {
        [Value::Bool(truth)] => Some(Value::Bool(!truth)),
        _ => None,
    }
}

fn whole(of: &[Value], round: fn(f64) -> f64) -> Option<Value> {
    /// Floats in these bounds are integers of 64 bits.
    const BOUND: f64 = (1u64 << 63) as f64;
    match of {
        [Value::Int(number)] => Some(Value::Int(*number)),
        [Value::Float(number)] => {
            let rounded = round(*number);
            (-BOUND..BOUND).contains(&rounded).then_some(Value::Int(rounded as i64))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, of: &[Value]) -> String {
        format!("{:?}", find(name).unwrap()(of))
    }

    #[test]
    fn numbers_are_those_of_python() {
        let of = |a: i64, b: i64| [Value::Int(a), Value::Int(b)];
        assert_eq!(call("_operator.floordiv", &of(-7, 2)), "Some(Int(-4))");
        assert_eq!(call("_operator.mod", &of(-7, 2)), "Some(Int(1))");
        assert_eq!(call("_operator.mod", &of(7, -2)), "Some(Int(-1))");
        assert_eq!(call("_operator.truediv", &of(7, 2)), "Some(Float(3.5))");
        assert_eq!(call("_operator.lt", &of(i64::MAX - 1, i64::MAX)), "Some(Bool(true))");
        assert_eq!(call("math.ceil", &[Value::Float(2.1)]), "Some(Int(3))");
        assert_eq!(call("torch.sym_max", &of(3, 5)), "Some(Int(5))");
    }

    #[test]
    fn ranges_are_those_of_all_values_inside() {
        let size = (Value::Int(11), Bounds::Between(Value::Int(0), Value::Int(20)));
        let exact = |number: i64| (Value::Int(number), Bounds::Exact);
        let text = |name: &str, of: &[(Value, Bounds)]| format!("{:?}", bounds(name, of));
        assert_eq!(text("_operator.le", &[size.clone(), exact(20)]), "Between(Bool(true), Bool(true))");
        assert_eq!(text("_operator.le", &[size.clone(), exact(19)]), "Between(Bool(false), Bool(true))");
        assert_eq!(text("_operator.sub", &[exact(3), size.clone()]), "Between(Int(-17), Int(3))");
        assert_eq!(text("_operator.mul", &[size.clone(), exact(-2)]), "Between(Int(-40), Int(0))");
        // An equality holds inside, and at no end.
        assert_eq!(text("_operator.eq", &[size.clone(), exact(5)]), "Any");
        assert_eq!(text("_operator.mul", &[size, exact(i64::MAX)]), "Any");
    }

    #[test]
    fn what_has_no_value_is_none() {
        let of = |a: i64, b: i64| [Value::Int(a), Value::Int(b)];
        for name in ["_operator.floordiv", "_operator.mod", "_operator.truediv"] {
            assert_eq!(call(name, &of(1, 0)), "None", "{name}");
        }
        assert_eq!(call("_operator.mul", &of(i64::MAX, 2)), "None");
        assert_eq!(call("_operator.lshift", &of(1, 64)), "None");
        assert_eq!(call("_operator.neg", &of(i64::MIN, 0)[..1]), "None");
        assert_eq!(call("math.floor", &[Value::Float(f64::NAN)]), "None");
    }
}
