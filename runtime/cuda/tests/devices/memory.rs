//! Memory: statistics, reuse, exhaustion.

use opsmith_cuda::{memory_statistics, set_memory_cap, trim};
use opsmith_runtime::backend::DeviceMemory;

use crate::common::{DEVICE, Part, done, download, says, upload};

/// The parts of this file.
pub const PARTS: &[Part] = &[
    ("statistics", statistics),
    ("exhausted", exhausted),
    ("retried", retried),
    ("capped", capped),
    ("bad_cap", bad_cap),
];

const MIB: usize = 1 << 20;

#[test]
fn statistics_count_bytes() {
    done("statistics", &[]);
}

#[test]
fn an_exhausted_device_says_its_state() {
    done("exhausted", &[("STANDIN_MEMORY", "67108864")]);
}

#[test]
fn cached_memory_is_returned_before_an_error() {
    done("retried", &[("STANDIN_MEMORY", "67108864")]);
}

#[test]
fn a_cap_is_respected() {
    done("capped", &[("OPSMITH_CUDA_MEMORY_CAP", "16M")]);
    done("bad_cap", &[("OPSMITH_CUDA_MEMORY_CAP", "much")]);
}

fn statistics() {
    let blocks: Vec<DeviceMemory> = (0..10).map(|_| DeviceMemory::new(DEVICE, 1000).unwrap()).collect();
    let large = DeviceMemory::new(DEVICE, 5 * MIB).unwrap();
    assert!(blocks.iter().all(|block| block.start().addr() % 512 == 0));
    let now = memory_statistics(0).unwrap();
    assert_eq!(now.live_bytes, 10 * 1024 + 6 * MIB, "a rest below 1 MiB stays with a large block");
    assert_eq!((now.segments, now.allocations, now.segment_allocations), (2, 11, 2));
    assert_eq!(now.live_bytes + now.cached_bytes, 8 * MIB);
    drop((blocks, large));
    let now = memory_statistics(0).unwrap();
    assert_eq!((now.live_bytes, now.cached_bytes), (0, 8 * MIB));
    assert_eq!(now.peak_bytes, 10 * 1024 + 6 * MIB);
    let again = DeviceMemory::new(DEVICE, 6 * MIB).unwrap();
    assert_eq!(memory_statistics(0).unwrap().segment_allocations, 2, "a cached block serves");
    assert_eq!(trim(0).unwrap(), 2 * MIB);
    drop(again);
    assert_eq!(trim(0).unwrap(), 6 * MIB);
    let now = memory_statistics(0).unwrap();
    assert_eq!((now.live_bytes, now.cached_bytes, now.segments), (0, 0, 0));
}

fn exhausted() {
    let kept = upload(DEVICE, &[5; 40 * MIB]);
    let error = says(
        DeviceMemory::new(DEVICE, 30 * MIB).map(|_| ()),
        &[
            "no memory for 31457280 bytes more",
            "41943040 bytes are live, 0 cached",
            "of 67108864 bytes free",
            "help: ",
        ],
    );
    assert_eq!(error.kind(), opsmith_runtime::ErrorKind::Memory);
    says(DeviceMemory::new(DEVICE, usize::MAX).map(|_| ()), &["no memory for"]);
    // The device works on.
    assert_eq!(download(&kept, 10).unwrap(), [5; 10]);
    drop(kept);
    assert!(DeviceMemory::new(DEVICE, 30 * MIB).is_ok());
}

fn retried() {
    // Blocks of another stream, whose work is not done.
    std::thread::spawn(|| {
        for _ in 0..3 {
            drop([upload(DEVICE, &[1; 10 * MIB]), upload(DEVICE, &[2; 8 * MIB])]);
        }
    })
    .join()
    .unwrap();
    let before = memory_statistics(0).unwrap();
    assert!(before.cached_bytes >= 18 * MIB);
    let all = upload(DEVICE, &[3; 60 * MIB]);
    let after = memory_statistics(0).unwrap();
    assert_eq!((after.retries, after.segments, after.cached_bytes), (1, 1, 0));
    assert_eq!(download(&all, 3).unwrap(), [3; 3]);
}

fn capped() {
    let first = DeviceMemory::new(DEVICE, 12 * MIB).unwrap();
    says(DeviceMemory::new(DEVICE, 6 * MIB).map(|_| ()), &["the limit of this process is 16777216 bytes"]);
    set_memory_cap(0, None).unwrap();
    assert!(DeviceMemory::new(DEVICE, 6 * MIB).is_ok());
    set_memory_cap(0, Some(12 * MIB)).unwrap();
    drop(first);
    assert!(DeviceMemory::new(DEVICE, 12 * MIB).is_ok(), "cached memory was returned");
}

fn bad_cap() {
    says(memory_statistics(0), &["OPSMITH_CUDA_MEMORY_CAP is `much`", "500M"]);
}
