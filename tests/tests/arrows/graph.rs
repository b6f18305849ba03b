//! The folders of graph mode, from the lowest, each with those that it may use.
//!
//! A graph (`ir`) keeps the plans that its runs reuse, and a plan is made of a graph: these two depend on each other. Add no
//! folder to the core.

use crate::Table;

pub const TABLE: Table = Table {
    folder: "runtime/graph/src",
    rows: &[
        ("ir", &["plan"]),
        ("plan", &["ir"]),
        ("show", &["ir", "plan"]),
        ("exec", &["ir", "plan", "show"]),
        ("trace", &["exec", "ir", "plan"]),
        ("check", &["ir", "plan", "show", "trace"]),
        ("build", &["check", "ir", "plan", "show", "trace"]),
        ("file", &["build", "exec", "ir", "plan"]),
        ("passes", &["exec", "ir", "plan"]),
    ],
    core: &["ir", "plan"],
};
