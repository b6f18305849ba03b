//! The modules of the profiler, from the lowest, each with those that it may use.

use crate::Table;

pub const TABLE: Table = Table {
    folder: "runtime/profile/src",
    rows: &[
        ("axis", &[]),
        ("error", &[]),
        ("limits", &[]),
        ("table", &[]),
        ("model", &["error", "limits"]),
        ("recorder", &["model"]),
        ("collect", &["model", "recorder"]),
        ("session", &["collect", "error", "limits", "model", "recorder"]),
        ("averages", &["limits", "model", "table"]),
        ("tree", &["model", "table"]),
        ("diff", &["averages", "model", "table"]),
        ("repro", &["error", "model", "table"]),
        ("export", &["averages", "axis", "error", "model", "table", "tree"]),
        ("compare", &["axis", "error", "export", "table"]),
        ("spans", &["collect", "error"]),
    ],
    core: &[],
};
