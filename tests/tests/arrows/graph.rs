//! The folders of graph mode, from the lowest, each with those that it may use.
//!
//! They form no cycle: a graph (`ir`) keeps the plans that its runs reuse in a place whose type it does not know.

use crate::Table;

pub const TABLE: Table = Table {
    folder: "runtime/graph/src",
    rows: &[
        ("ir", &[]),
        ("plan", &["ir"]),
        ("show", &["ir", "plan"]),
        ("exec", &["ir", "plan", "show"]),
        ("trace", &["ir"]),
        ("check", &["ir", "plan", "show", "trace"]),
        ("build", &["check", "ir", "plan", "show", "trace"]),
        ("file", &["build", "ir", "plan"]),
        ("passes", &["ir", "plan", "trace"]),
    ],
    core: &[],
};
