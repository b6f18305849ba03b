//! The allocator: alignment, reuse, and memory that moves between threads.

use opsmith_runtime::allocator::{
    ALIGNMENT, cached_bytes, empty_cache, live_bytes, peak_bytes, set_cache_limit, set_limit,
    system_allocations, trim,
};
use opsmith_runtime::storage::Storage;

/// The counters are global to the process, so this file has only one test.
#[test]
fn memory_is_reused_and_given_back() {
    let work = || {
        for size in [0usize, 1, 63, 64, 1000, 1 << 20, 5 << 20] {
            let storage = Storage::uninitialized(size).unwrap();
            assert_eq!(storage.bytes(), size);
            assert_eq!(storage.data() as usize % ALIGNMENT, 0);
            // SAFETY: the storage has that many bytes, and this is its only handle.
            unsafe { std::ptr::write_bytes(storage.data(), 0xAB, size) };
        }
    };
    let before = live_bytes();
    work();
    let warm = system_allocations();
    work();
    assert_eq!(system_allocations(), warm, "a warm loop asked the system for memory");
    assert_eq!(live_bytes(), before);

    empty_cache();
    work();
    assert!(system_allocations() > warm);

    let held = Storage::uninitialized(1 << 20).unwrap();
    assert_eq!(live_bytes() - before, 1 << 20);
    // A block freed by another thread is reused there, and counted once.
    std::thread::spawn(move || drop(held)).join().unwrap();
    assert_eq!(live_bytes(), before);

    let (peak, ()) = peak_bytes(work);
    assert_eq!(peak, before + (5 << 20));

    let threads = (0..4u8).map(|thread| {
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for round in 0..200usize {
                let size = 1 + round * 37 % 5000;
                let storage = Storage::uninitialized(size).unwrap();
                // SAFETY: the storage has that many bytes, and this is its only handle.
                unsafe { std::ptr::write_bytes(storage.data(), thread, size) };
                held.push(storage);
                if round % 3 == 0 {
                    held.swap_remove(round / 2 % held.len());
                }
            }
            for storage in &held {
                // SAFETY: the block has as many bytes, and they were written.
                let bytes = unsafe { std::slice::from_raw_parts(storage.data(), storage.bytes()) };
                assert!(bytes.iter().all(|byte| *byte == thread), "two storages share memory");
            }
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(live_bytes(), before);

    cached_blocks_go_back_to_the_system(before);
}

fn cached_blocks_go_back_to_the_system(before: usize) {
    let large = |megabytes: usize| Storage::uninitialized(megabytes << 20).unwrap();
    empty_cache();
    assert_eq!(cached_bytes(), 0);
    drop((large(8), large(16)));
    assert!((24 << 20..25 << 20).contains(&cached_bytes()), "{}", cached_bytes());
    trim(10 << 20);
    assert!((8 << 20..9 << 20).contains(&cached_bytes()), "{}", cached_bytes());
    // A block that would pass the limit together with cached ones takes their place.
    set_limit(Some(before + (30 << 20)));
    let held = large(28);
    assert_eq!(cached_bytes(), 0);
    drop(held);
    set_limit(None);
    set_cache_limit(1 << 20);
    assert_eq!(cached_bytes(), 0);
    drop(large(8));
    assert_eq!(cached_bytes(), 0, "the block is larger than the cache");
    set_cache_limit(2 << 30);
}
