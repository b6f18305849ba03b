//! The modules of the loader, from the lowest, each with those that it may use.
//!
//! The core is one cycle: a call's inference evaluates expressions, which call operators, whose definitions infer.

use crate::Table;

pub const TABLE: Table = Table {
    folder: "python/loader/src",
    rows: &[
        ("check", &[]),
        ("item", &[]),
        ("arguments", &["item"]),
        ("query", &["item"]),
        ("evaluate", &["infer", "item", "operator", "query"]),
        ("infer", &["evaluate", "item", "operator"]),
        ("operator", &["evaluate", "infer", "item"]),
        ("elements", &["evaluate", "item", "operator"]),
        ("gradients", &["evaluate", "item", "operator"]),
        ("kernel", &["arguments", "elements", "operator"]),
        ("slots", &["operator"]),
        ("define", &["arguments", "check", "gradients", "kernel", "operator", "slots"]),
    ],
    core: &["evaluate", "infer", "operator"],
};
