//! Mistakes of the file's syntax.
