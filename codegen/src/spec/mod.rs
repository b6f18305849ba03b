//! From the text of a spec to its entries, every piece with its span.
//!
//! [`encoding`] turns bytes into text, [`yaml`] gives a tree with spans, [`document`] sorts the tree into entries and
//! keys, [`schema`] reads signatures. The meaning of entries is decided later. Must not know operators.

pub mod braces;
pub mod document;
pub mod encoding;
pub mod schema;
pub mod yaml;
