//! Every message of the front end with its hint, one function a mistake.
//!
//! `E00xx` YAML, `E01xx` signatures, `E02xx` entries and keys. Wording: the headline says what is
//! wrong, the label says what is there, the help says what to write.
