//! Functions of definitions for operators that no code was generated for.
//!
//! In: an operator. Out: functions without data, as definitions have them: inference, a composition, the condition of
//! results. Each belongs to a number, which leads to its operator.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use opsmith_runtime::arg::Arg;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::op::{CompositeFn, InferFn, Inferred, Outputs, PresentFn};

use crate::operator::Operator;

/// Most operators that a program loads.
const SLOTS: usize = 2048;

static OPERATORS: [OnceLock<&'static Operator>; SLOTS] = [const { OnceLock::new() }; SLOTS];
static USED: AtomicUsize = AtomicUsize::new(0);

/// The functions of an operator.
#[derive(Clone, Copy)]
pub struct Functions {
    pub infer: InferFn,
    pub composite: CompositeFn,
    pub present: PresentFn,
}

/// Numbers for some operators.
///
/// # Errors
/// If there are not so many left.
pub fn reserve(count: usize) -> Result<std::ops::Range<usize>> {
    let taken = |used: usize| used.checked_add(count).filter(|used| *used <= SLOTS);
    match USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken) {
        Ok(first) => Ok(first..first + count),
        Err(used) => Err(Error::value(format!(
            "{count} operators more than the {used} that the program has loaded; {SLOTS} are possible"
        ))
        .with_help("load each spec once, and keep its operators")),
    }
}

/// Gives a reserved number to an operator.
pub fn fill(slot: usize, operator: &'static Operator) -> Functions {
    let _ = OPERATORS[slot].set(operator);
    TABLE[slot / 16][slot % 16]
}

fn operator(slot: usize) -> Result<&'static Operator> {
    OPERATORS[slot].get().copied().ok_or_else(|| Error::not_found("the operator was not loaded"))
}

fn infer(slot: usize, args: &[Arg<'_>]) -> Result<Inferred> {
    operator(slot)?.infer(args)
}

fn compose(slot: usize, args: &[Arg<'_>]) -> Result<Outputs> {
    operator(slot)?.compose(args)
}

fn present(slot: usize, args: &[Arg<'_>]) -> Result<u64> {
    operator(slot)?.present(args)
}

/// The functions of a number: nothing but calls, since each is compiled as often as there are numbers.
const fn functions<const SLOT: usize>() -> Functions {
    fn infer_at<const SLOT: usize>(args: &[Arg<'_>]) -> Result<Inferred> {
        infer(SLOT, args)
    }
    fn compose_at<const SLOT: usize>(args: &[Arg<'_>]) -> Result<Outputs> {
        compose(SLOT, args)
    }
    fn present_at<const SLOT: usize>(args: &[Arg<'_>]) -> Result<u64> {
        present(SLOT, args)
    }
    Functions { infer: infer_at::<SLOT>, composite: compose_at::<SLOT>, present: present_at::<SLOT> }
}

/// Functions for 16 numbers, from a multiple of 16.
macro_rules! sixteen {
    ($($high:literal)*) => {
        [$([
            functions::<{ $high * 16 }>(), functions::<{ $high * 16 + 1 }>(), functions::<{ $high * 16 + 2 }>(),
            functions::<{ $high * 16 + 3 }>(), functions::<{ $high * 16 + 4 }>(), functions::<{ $high * 16 + 5 }>(),
            functions::<{ $high * 16 + 6 }>(), functions::<{ $high * 16 + 7 }>(), functions::<{ $high * 16 + 8 }>(),
            functions::<{ $high * 16 + 9 }>(), functions::<{ $high * 16 + 10 }>(), functions::<{ $high * 16 + 11 }>(),
            functions::<{ $high * 16 + 12 }>(), functions::<{ $high * 16 + 13 }>(), functions::<{ $high * 16 + 14 }>(),
            functions::<{ $high * 16 + 15 }>(),
        ]),*]
    };
}

/// The functions of all numbers, in rows of 16.
static TABLE: [[Functions; 16]; SLOTS / 16] = sixteen! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
    16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
    48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
    64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79
    80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95
    96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111
    112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127
};
