//! Tests of what several modules do together.

mod loom;
