//! The modules of the C interface, from the lowest, each with those that it may use.

use crate::Table;

pub const TABLE: Table = Table {
    folder: "runtime/abi/src",
    rows: &[
        ("structures", &[]),
        ("failure", &[]),
        ("memory", &[]),
        ("derivative", &[]),
        ("device", &["failure", "structures"]),
        ("arguments", &["device", "failure", "memory", "structures"]),
        ("outputs", &["arguments", "device", "failure", "structures"]),
        ("operators", &["derivative", "failure", "structures"]),
        ("call", &["arguments", "derivative", "device", "failure", "operators", "outputs", "structures"]),
        ("infer", &["arguments", "device", "failure", "operators", "structures"]),
    ],
    core: &[],
};
