//! Tests of several modules together.

mod loom;
