//! Every message of the front end with its hint, one function a mistake.
//!
//! `E00xx` YAML, `E01xx` signatures, `E02xx` entries and keys. Wording: the headline says what is
//! wrong, the label says what is there or what was expected, the help says what to write.

mod entry;
mod signature;
mod yaml;

pub use entry::*;
pub use signature::*;
pub use yaml::*;
