//! Expressions as text: parsing, checking, printing.
//!
//! In: Rust expressions as text ([`parse`]) and the heads of all operators. Out: the model's typed trees
//! ([`check`]), in which every name is resolved and every operand has the type its place wants, so that what
//! passes compiles. Nothing here knows which keys of an entry hold expressions.

pub mod check;
pub mod parse;
pub mod path;
pub mod print;
