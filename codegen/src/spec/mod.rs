//! From the text of a spec to its entries, every piece with its place in the file.
//!
//! [`encoding`] turns bytes into text, [`yaml`] gives a tree with spans, [`document`] sorts the tree into entries and keys, [`schema`]
//! reads signatures. What an entry *means* is decided later; nothing here knows an operator.

pub mod document;
pub mod encoding;
pub mod schema;
pub mod yaml;
