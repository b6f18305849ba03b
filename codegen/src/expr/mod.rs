//! Expressions as text: parsing, checking, printing.
//!
//! In: Rust expressions as text ([`parse`]) and the heads of all operators. Out: the model's typed trees ([`check`]),
//! in which every name is resolved and every operand has the required type, so that checked expressions compile. Must
//! not know the keys of entries.

pub mod check;
pub mod parse;
pub mod path;
pub mod print;
