//! The libraries behind the `opsmith` command, for programs that work on specs.
//!
//! In: specs as text, or specs checked by `opsmith-codegen`. Out: formatted specs, tables, documents, comparisons, new
//! crates and operators; nothing is printed, and only the caller writes files. Not needed by build scripts. Must not
//! name operators or know the runtime.

pub mod bridge;
pub mod coverage;
pub mod describe;
pub mod diff;
pub mod editor;
pub mod export;
pub mod fmt;
pub mod import;
pub mod json_schema;
pub mod plot;
pub mod results;
pub mod rust_code;
pub mod scaffold;
mod scalar;
pub mod site;
pub mod typeset;
