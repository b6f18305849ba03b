//! The modules of custom kernels, from the lowest, each with those that it may use.
//!
//! The core is three cycles: calls with devices (`device`, `infer`, `instance`, `signature`); kernels with their checks
//! (`check`, `kernel`, `object`, `sandbox`); declared operators with their gradients (`gradient`, `registry`).

use crate::Table;

pub const TABLE: Table = Table {
    folder: "runtime/aot/src",
    rows: &[
        ("dtypes", &[]),
        ("attributes", &["dtypes"]),
        ("file", &[]),
        ("cache", &["file"]),
        ("manifest", &["cache", "file"]),
        ("compiler", &[]),
        ("build", &["cache", "compiler", "file", "manifest"]),
        ("elf", &["file"]),
        ("library", &["elf", "file"]),
        ("lookup", &["attributes"]),
        ("extra", &["attributes", "elf", "library", "lookup"]),
        ("device", &["compiler", "instance"]),
        ("infer", &["attributes", "dtypes", "extra", "instance", "library", "signature"]),
        ("instance", &["attributes", "device", "dtypes", "extra", "infer", "library", "signature"]),
        ("signature", &["attributes", "device"]),
        ("child", &[]),
        ("check", &["device", "instance", "kernel", "library"]),
        ("kernel", &["check", "device", "infer", "instance", "library", "object", "sandbox", "signature"]),
        ("object", &["build", "compiler", "elf", "file", "kernel", "library", "signature"]),
        (
            "sandbox",
            &["check", "child", "device", "dtypes", "file", "infer", "instance", "kernel", "library"],
        ),
        ("open", &["infer", "instance", "kernel"]),
        ("gradient", &["attributes", "registry", "signature"]),
        ("registry", &["file", "gradient", "kernel", "open", "signature"]),
        ("inspect", &["build", "child", "compiler", "elf", "file", "kernel", "library"]),
        ("operator", &["attributes", "elf", "file", "inspect", "instance", "registry"]),
        (
            "declare",
            &["attributes", "device", "gradient", "infer", "kernel", "operator", "registry", "signature"],
        ),
        ("record", &["attributes", "declare", "dtypes", "signature"]),
        ("spec", &["device", "infer", "kernel", "signature"]),
    ],
    core: &[
        "check",
        "device",
        "gradient",
        "infer",
        "instance",
        "kernel",
        "object",
        "registry",
        "sandbox",
        "signature",
    ],
};
