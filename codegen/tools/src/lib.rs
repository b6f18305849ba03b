//! The libraries behind the `opsmith` command, for programs that work on specs.
//!
//! In: specs as text, or specs that `opsmith-codegen` checked. Out: formatted specs, tables, documents, comparisons,
//! new crates and operators; nothing is printed, and only the caller writes files. Build scripts need none of it.
//! Nothing here names an operator or knows the runtime.

pub mod coverage;
pub mod describe;
pub mod diff;
pub mod export;
pub mod fmt;
pub mod import;
pub mod json_schema;
pub mod rust_code;
pub mod scaffold;
