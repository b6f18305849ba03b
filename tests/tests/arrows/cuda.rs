//! The modules of the devices of CUDA, from the lowest, each with those that it may use.

use crate::Table;

pub const TABLE: Table = Table {
    folder: "runtime/cuda/src",
    rows: &[
        ("driver", &[]),
        ("geometry", &[]),
        ("settings", &[]),
        ("ticket", &[]),
        ("allocator", &["ticket"]),
        ("stream", &["driver", "ticket"]),
        ("marks", &["driver", "stream"]),
        ("properties", &["driver"]),
        ("memory", &["allocator", "driver", "settings", "stream"]),
        ("staging", &["driver", "memory", "stream"]),
        ("status", &["driver", "memory", "stream"]),
        ("compile", &["driver", "settings", "status"]),
        ("launch", &["compile", "driver", "status", "stream"]),
        ("device", &["compile", "driver", "memory", "staging", "status"]),
        ("movement", &["device", "geometry", "launch", "stream"]),
        ("capture", &["device", "driver", "launch", "stream"]),
        (
            "backend",
            &[
                "capture",
                "compile",
                "device",
                "driver",
                "launch",
                "marks",
                "movement",
                "properties",
                "stream",
            ],
        ),
    ],
    core: &[],
};
