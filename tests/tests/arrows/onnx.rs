//! The modules of the reader of ONNX models, from the lowest, each with those that it may use.
//!
//! The core is the model and the operators of its nodes: a node has its operator, and an operator reads its node; the
//! table of operators that are written calls the writer, which looks operators up there.

use crate::Table;

pub const TABLE: Table = Table {
    folder: "runtime/graph/onnx/src",
    rows: &[
        ("errors", &[]),
        ("libraries", &[]),
        ("mapped", &[]),
        ("proto", &[]),
        ("tensors", &["errors", "mapped", "proto"]),
        ("values", &["errors", "libraries"]),
        ("messages", &["errors", "libraries", "proto", "tensors"]),
        ("model", &["operators"]),
        ("call", &["errors", "model", "tensors", "values"]),
        (
            "operators",
            &["call", "errors", "libraries", "messages", "model", "proto", "save", "tensors", "values"],
        ),
        ("save", &["custom", "errors", "libraries", "messages", "operators", "proto", "tensors"]),
        ("attributes", &["errors", "model", "proto", "tensors"]),
        ("custom", &["call", "libraries", "model", "values"]),
        ("lower", &["attributes", "errors", "libraries", "model", "operators", "proto", "tensors"]),
        ("replay", &["call", "custom", "libraries", "lower", "model", "operators", "values"]),
        ("onnx_model", &["errors", "lower", "model", "operators", "proto", "replay", "tensors"]),
    ],
    core: &["call", "custom", "model", "operators", "save"],
};
