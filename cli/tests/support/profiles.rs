//! Profiles as files, made by tests.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::support::Run;

/// An event of the first thread: parent and name; numbers of operator, kernel, site and operands; beginning, duration and bytes
/// that it allocated; node.
pub fn event(
    kind: &str,
    parent: Option<usize>,
    name: usize,
    of: [Option<usize>; 4],
    [start, duration, bytes]: [u64; 3],
    node: Option<u64>,
) -> Value {
    json!([[kind, 0, parent, name], of, [start, duration, bytes, 0, node]])
}

/// A profile of 20 calls of an operator of `shop`, a kernel in each, within a step; a call takes so long.
pub fn profile(name: &str, nanoseconds: u64) -> Value {
    let call = nanoseconds + 200;
    let mut events = vec![event("Range", None, 0, [None; 4], [100, 20 * (call + 50), 81920], None)];
    for number in 0..20 {
        // Each a little longer than the one before, as times are.
        let start = 150 + number * (call + 50);
        let parent = events.len();
        let of_call = [Some(0), None, Some(3), Some(0)];
        events.push(event("Call", Some(0), 1, of_call, [start, call - 20 + number, 4096], Some(77 + number)));
        let of_kernel = [Some(0), Some(0), Some(3), Some(1)];
        let times = [start + 100, nanoseconds - 20 + number, 0];
        events.push(event("Kernel", Some(parent), 2, of_kernel, times, None));
    }
    let tensor =
        json!({"dtype": "float32", "item_bytes": 4, "sizes": [32, 32], "strides": [32, 1], "device": "cpu"});
    let attribute = json!({"Attribute": {"text": "0.5", "rust": "Value::Float(0.5)"}});
    json!({
        "format": 2, "name": name, "started_ms": 0, "duration_ns": 30 * (call + 50),
        "has_shapes": true, "has_memory": true,
        "threads": [{"name": "main", "overwritten": 0}],
        "operators": [{
            "name": "leak.Scalar", "library": "shop", "entry": "ops.yaml:7",
            "arguments": ["self", "slope", "weight"], "positional": 2,
            "inplace": "leak_.Scalar", "writes": [0], "out": "leak.out",
        }],
        "kernels": [{"name": "shop::leak", "operator": 0, "backend": "cpu", "source": ""}],
        "texts": ["step", "leak.Scalar", "shop::leak", "src/model.rs:12:20"],
        "operands": [
            {"args": [{"Tensor": tensor}, attribute, "None"], "outs": []},
            {"args": [{"Tensor": tensor}, attribute, "None"], "outs": [tensor]},
        ],
        "events": events,
        "changes": [{"at_ns": 300, "address": 64, "bytes": 4096, "thread": 0, "event": 1}],
        "notes": ["3 events were overwritten by later ones: record more with `ProfileOptions::records`"],
        "limits": null,
    })
}

/// Files of one test, removed at the end.
pub struct Files(PathBuf);

impl Files {
    pub fn new(test: &str) -> Files {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("profile-{test}"));
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Files(folder)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub fn write(&self, name: &str, profile: &Value) -> String {
        std::fs::write(self.0.join(name), profile.to_string()).unwrap();
        self.path(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
pub fn assert_fine(run: &Run) {
    assert_eq!(run.status, Some(0), "{}{}", run.stdout, run.stderr);
}
