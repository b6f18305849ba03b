//! The modules of the reader of exported programs, from the lowest, each with those that it may use.
//!
//! The format (`archive`, `schema`) and the model know nothing of each other; `lower` leads from one to the other, and
//! only `replay` and the modules above it know graphs.

use crate::Table;

pub const TABLE: Table = Table {
    folder: "runtime/graph/programs/src",
    rows: &[
        ("errors", &[]),
        ("expression", &[]),
        ("structural", &[]),
        ("conditions", &["expression"]),
        ("numbers", &["expression"]),
        ("archive", &["errors"]),
        ("models", &["archive"]),
        ("schema", &["errors"]),
        ("model", &["expression"]),
        ("lower", &["errors", "expression", "model", "schema", "structural"]),
        ("pickle", &["archive", "errors", "lower"]),
        ("weights", &["archive", "errors", "expression", "lower", "model", "pickle", "schema"]),
        ("operators", &["model", "numbers", "structural"]),
        ("inputs", &["errors", "expression", "model"]),
        ("ranges", &["conditions", "inputs"]),
        ("replay", &["errors", "model", "numbers", "operators", "structural"]),
        ("checkpoint", &[]),
        ("source", &["checkpoint", "errors", "inputs", "model", "operators", "replay"]),
        ("form", &["errors", "inputs", "source"]),
        (
            "program",
            &[
                "archive",
                "checkpoint",
                "conditions",
                "errors",
                "form",
                "inputs",
                "lower",
                "models",
                "ranges",
                "schema",
                "source",
                "weights",
            ],
        ),
    ],
    core: &[],
};
