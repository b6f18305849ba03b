//! The modules of the devices of CUDA, from the lowest, each with those that it may use.

use crate::Table;

pub const TABLE: Table = Table {
    folder: "runtime/cuda/src",
    rows: &[
        ("table", &[]),
        ("driver", &["table"]),
        ("geometry", &[]),
        ("key", &[]),
        ("settings", &[]),
        ("ticket", &[]),
        ("allocator", &["ticket"]),
        ("stream", &["driver", "ticket"]),
        ("marks", &["driver", "stream"]),
        ("properties", &["driver"]),
        ("memory", &["allocator", "driver", "settings", "stream"]),
        ("staging", &["driver", "memory", "stream"]),
        ("status", &["driver", "memory", "stream"]),
        ("images", &["key"]),
        ("libraries", &["driver", "table"]),
        ("compile", &["driver", "images", "key", "libraries", "settings", "status"]),
        ("launch", &["compile", "driver", "status", "stream"]),
        ("device", &["compile", "driver", "libraries", "memory", "staging", "status"]),
        ("movement", &["device", "geometry", "launch", "stream"]),
        ("requests", &["driver", "launch", "libraries", "movement", "stream"]),
        ("capture", &["device", "driver", "launch", "stream"]),
        ("host_memory", &["capture", "device", "driver", "memory", "staging", "stream"]),
        (
            "backend",
            &[
                "capture",
                "compile",
                "device",
                "driver",
                "host_memory",
                "launch",
                "marks",
                "movement",
                "properties",
                "requests",
                "stream",
            ],
        ),
    ],
    core: &[],
};
