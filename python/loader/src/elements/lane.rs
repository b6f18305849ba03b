//! Types of arithmetic, with the operations of expressions on them.
//!
//! In: two numbers of one compute type. Out: another. Arithmetic is the runtime's; order, bits and functions exist for some
//! types alone, and the checker lets no expression use them for others.

use opsmith_codegen::model::Operation;
use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::{Complex32, Complex64};

use super::function::Function;
use super::groups;

/// A type that elements are computed in.
pub trait Lane: Arithmetic {
    /// The type of real parts.
    type Part: Lane<Part = Self::Part>;
    /// The functions of numbers, by the name of their function in Rust.
    const FUNCTIONS: &[&[Function<Self>]];

    /// A real part as an element.
    fn of_part(part: Self::Part) -> Self;
    /// A comparison by order; false for types without one.
    fn order(operation: Operation, a: Self, b: Self) -> bool;
    /// `&`, `|` or `^`; the first operand for types without bits.
    fn bits(operation: Operation, a: Self, b: Self) -> Self;
}

fn order<T: Ordered>(operation: Operation, a: T, b: T) -> bool {
    match operation {
        Operation::Lt => a.lt(b),
        Operation::Le => a.le(b),
        Operation::Gt => a.gt(b),
        _ => a.ge(b),
    }
}

macro_rules! lanes {
    ($($ty:ty, $part:ty, order: $order:expr, bits: $bits:expr, functions: [$($group:ident)*];)*) => {$(
        impl Lane for $ty {
            type Part = $part;
            const FUNCTIONS: &[&[Function<Self>]] = &[$(groups::$group!($ty)),*];

            #[inline(always)]
            fn of_part(part: $part) -> $ty {
                <$ty>::from(part)
            }
            #[inline(always)]
            fn order(operation: Operation, a: $ty, b: $ty) -> bool {
                let order: fn(Operation, $ty, $ty) -> bool = $order;
                order(operation, a, b)
            }
            #[inline(always)]
            fn bits(operation: Operation, a: $ty, b: $ty) -> $ty {
                let bits: fn(Operation, $ty, $ty) -> $ty = $bits;
                bits(operation, a, b)
            }
        }
    )*};
}

/// `&`, `|` and `^` of a type that has them.
macro_rules! bits {
    () => {
        |operation, a, b| match operation {
            Operation::BitAnd => a & b,
            Operation::BitOr => a | b,
            _ => a ^ b,
        }
    };
}

lanes! {
    bool, bool, order: order, bits: bits!(), functions: [all real integral];
    u8, u8, order: order, bits: bits!(), functions: [all numeric real real_numeric integral integer];
    u16, u16, order: order, bits: bits!(), functions: [all numeric real real_numeric integral integer];
    u32, u32, order: order, bits: bits!(), functions: [all numeric real real_numeric integral integer];
    u64, u64, order: order, bits: bits!(), functions: [all numeric real real_numeric integral integer];
    i8, i8, order: order, bits: bits!(), functions: [all numeric real real_numeric integral integer];
    i16, i16, order: order, bits: bits!(), functions: [all numeric real real_numeric integral integer];
    i32, i32, order: order, bits: bits!(), functions: [all numeric real real_numeric integral integer];
    i64, i64, order: order, bits: bits!(), functions: [all numeric real real_numeric integral integer];
    f32, f32, order: order, bits: |_, a, _| a, functions: [all numeric real real_numeric floating inexact];
    f64, f64, order: order, bits: |_, a, _| a, functions: [all numeric real real_numeric floating inexact];
    Complex32, f32, order: |_, _, _| false, bits: |_, a, _| a, functions: [all numeric inexact complex];
    Complex64, f64, order: |_, _, _| false, bits: |_, a, _| a, functions: [all numeric inexact complex];
}
