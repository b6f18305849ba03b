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
        ("outputs", &[]),
        ("model", &["expression", "outputs"]),
        ("sizes", &["errors", "expression", "model"]),
        ("lower", &["errors", "expression", "model", "outputs", "schema", "structural"]),
        ("pickle", &["archive", "errors", "lower"]),
        ("weights", &["archive", "errors", "expression", "lower", "model", "pickle", "schema"]),
        ("operators", &["errors", "model", "numbers", "structural"]),
        ("dead", &["model", "numbers", "operators", "structural"]),
        ("inputs", &["expression", "model", "sizes"]),
        ("checked", &["inputs"]),
        ("ranges", &["conditions", "inputs", "sizes"]),
        ("replay", &["errors", "model", "numbers", "operators", "structural"]),
        ("checkpoint", &[]),
        ("source", &["checkpoint", "errors", "inputs", "model", "operators", "outputs", "replay"]),
        ("form", &["errors", "inputs", "sizes", "source"]),
        (
            "program",
            &[
                "archive",
                "checked",
                "checkpoint",
                "conditions",
                "dead",
                "errors",
                "form",
                "inputs",
                "lower",
                "models",
                "outputs",
                "ranges",
                "schema",
                "sizes",
                "source",
                "weights",
            ],
        ),
    ],
    core: &[],
};
