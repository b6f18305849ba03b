//! The modules of the C interface, from the lowest, each with those that it may use.

use crate::Table;

pub const TABLE: Table = Table {
    folder: "runtime/abi/src",
    rows: &[
        ("structures", &[]),
        ("failure", &[]),
        ("memory", &[]),
        ("derivative", &[]),
        ("arguments", &["failure", "memory", "structures"]),
        ("outputs", &["arguments", "failure", "structures"]),
        ("operators", &["derivative", "failure", "structures"]),
        ("call", &["arguments", "derivative", "failure", "operators", "outputs", "structures"]),
        ("infer", &["arguments", "failure", "operators", "structures"]),
    ],
    core: &[],
};
