//! The modules of layers and optimizers, from the lowest, each with those that it may use.

use crate::Table;

pub const TABLE: Table = Table {
    folder: "generated/nn/src",
    rows: &[
        ("guide", &[]),
        ("config", &[]),
        ("per_axis", &[]),
        ("init", &[]),
        ("npz", &[]),
        ("state", &["config", "npz"]),
        ("module", &["state"]),
        ("activation", &["module"]),
        ("dropout", &["module"]),
        ("sequential", &["module"]),
        ("linear", &["config", "init", "module"]),
        ("embedding", &["config", "init", "module"]),
        ("conv", &["config", "init", "module", "per_axis"]),
        ("pooling", &["config", "module", "per_axis"]),
        ("norm", &["config", "module"]),
        ("recurrent", &["config", "init", "module"]),
        ("attention", &["config", "init", "linear", "module"]),
        ("transformer", &["attention", "config", "dropout", "linear", "module", "norm"]),
        ("optim", &["config", "state"]),
    ],
    core: &[],
};
