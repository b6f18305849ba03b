//! Mistakes of entries, keys and kinds of values.
