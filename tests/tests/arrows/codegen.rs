//! Modules of the generator and of the tools around it.

use crate::Table;

pub const CODEGEN: Table = Table {
    folder: "codegen/src",
    rows: &[
        ("chain", &[]),
        ("diagnostics", &[]),
        ("config", &["chain"]),
        ("manifest", &["config"]),
        ("model", &["diagnostics"]),
        ("spec", &["diagnostics"]),
        ("expr", &["diagnostics", "model"]),
        ("analysis", &["expr", "model"]),
        ("kernel_file", &["config", "diagnostics", "model"]),
        ("code_places", &["config", "kernel_file", "model"]),
        ("reader", &["config", "diagnostics", "spec"]),
        ("lower", &["analysis", "diagnostics", "expr", "model", "spec"]),
        ("emit", &["analysis", "config", "diagnostics", "expr", "model"]),
        ("output", &["config", "emit"]),
        (
            "pipeline",
            &[
                "analysis",
                "code_places",
                "config",
                "diagnostics",
                "emit",
                "expr",
                "kernel_file",
                "lower",
                "model",
                "reader",
                "spec",
            ],
        ),
        ("build", &["chain", "config", "diagnostics", "emit", "manifest", "model", "output", "pipeline"]),
    ],
    core: &[],
};

pub const TOOLS: Table = Table {
    folder: "codegen/tools/src",
    rows: &[
        ("describe", &[]),
        ("export", &[]),
        ("fmt", &[]),
        ("import", &[]),
        ("json_schema", &[]),
        ("results", &[]),
        ("coverage", &["results"]),
        ("rust_code", &[]),
        ("scalar", &[]),
        ("plot", &["scalar"]),
        ("typeset", &["scalar"]),
        ("diff", &["export"]),
        ("scaffold", &["fmt"]),
        ("bridge", &["scaffold"]),
        ("editor", &["json_schema"]),
        ("site", &["coverage", "describe", "diff", "export", "plot", "results", "typeset"]),
    ],
    core: &[],
};
