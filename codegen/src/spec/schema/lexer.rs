//! Signature text into tokens.
