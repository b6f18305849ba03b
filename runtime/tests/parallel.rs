//! Ranges of a loop in several threads: each item once, whatever runs beside it, and the error of the first range.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use opsmith_runtime::internals::TensorInternals;
use opsmith_runtime::parallel::{
    CHUNK, MAX_THREADS, for_each_range, for_each_range_of, for_each_with, num_threads, set_num_threads,
    try_for_each_range, try_for_each_range_of,
};
use opsmith_runtime::{DType, Error, ErrorKind, Scratch, Tensor};

#[path = "support/ops.rs"]
mod ops;

/// The number of threads belongs to the program, so that one test changes it at a time.
static THREADS: Mutex<()> = Mutex::new(());

fn with_threads<R>(count: usize, body: impl FnOnce() -> R) -> R {
    let _alone = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    set_num_threads(count).unwrap();
    assert_eq!(num_threads(), count);
    body()
}

/// Long enough for other threads to join.
fn work() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(30) {}
}

#[test]
fn every_item_is_visited_once() {
    for threads in [1, 2, 3, 8] {
        with_threads(threads, || {
            for (count, chunk) in [(0, 1), (1, 1), (7, 7), (8, 7), (100, 1), (1001, 10), (64, 64)] {
                let visits: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                for_each_range(count, chunk, |range| {
                    work();
                    assert!(range.start % chunk == 0 && (range.end % chunk == 0 || range.end == count));
                    range.for_each(|item| _ = visits[item].fetch_add(1, Ordering::Relaxed));
                });
                assert!(visits.iter().all(|visits| visits.load(Ordering::Relaxed) == 1), "{count} {chunk}");
            }
        });
    }
}

#[test]
fn every_item_of_any_size_is_visited_once() {
    for threads in [1, 2, 3, 8] {
        with_threads(threads, || {
            for (elements, count) in
                [(0, 5), (1, 0), (1, 3 * CHUNK), (CHUNK, 1), (CHUNK, 31), (CHUNK, 1000), (100 * CHUNK, 2)]
            {
                let visits: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                let visit = |range: std::ops::Range<usize>| {
                    range.for_each(|item| _ = visits[item].fetch_add(1, Ordering::Relaxed));
                };
                for_each_range_of(elements, count, visit);
                try_for_each_range_of(elements, count, |range| {
                    visit(range);
                    Ok(())
                })
                .unwrap();
                assert!(visits.iter().all(|seen| seen.load(Ordering::Relaxed) == 2), "{elements} {count}");
            }
        });
    }
}

#[test]
fn two_long_items_run_at_the_same_time() {
    with_threads(2, || {
        // Each waits for the other.
        let arrived = AtomicUsize::new(0);
        for_each_range_of(1 << 20, 2, |range| {
            let start = Instant::now();
            arrived.fetch_add(range.len(), Ordering::Relaxed);
            while arrived.load(Ordering::Relaxed) < 2 {
                assert!(start.elapsed() < Duration::from_secs(20), "the second item did not begin");
                std::thread::yield_now();
            }
        });
    });
}

#[test]
fn the_error_of_the_first_long_item_is_that_of_the_loop() {
    with_threads(3, || {
        let failed = try_for_each_range_of(CHUNK, 100, |range| match range.end > 40 {
            true => Err(Error::value(format!("item {}", range.end - 1))),
            false => Ok(()),
        });
        let text = failed.unwrap_err().to_string();
        assert!(text.contains("item 4"), "{text}");
    });
}

#[test]
fn loops_inside_of_loops_and_of_several_threads_share_the_pool() {
    with_threads(3, || {
        let total = AtomicUsize::new(0);
        let nested = || {
            for_each_range(20, 1, |outer| {
                for _ in outer {
                    for_each_range(10, 1, |inner| {
                        work();
                        total.fetch_add(inner.len(), Ordering::Relaxed);
                    });
                }
            });
        };
        std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(nested)));
        assert_eq!(total.into_inner(), 4 * 20 * 10);
    });
}

#[test]
fn the_error_is_that_of_the_first_range_that_failed() {
    with_threads(4, || {
        for _ in 0..20 {
            let failed = try_for_each_range(100, 1, |range| {
                work();
                match range.into_iter().find(|item| *item >= 30) {
                    Some(item) => Err(Error::value(format!("item {item}"))),
                    None => Ok(()),
                }
            });
            let error = failed.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Value);
            assert!(error.to_string().contains("item 30"), "{error}");
        }
    });
}

#[test]
fn a_panic_reaches_the_caller_and_the_next_loop_runs() {
    with_threads(2, || {
        for _ in 0..10 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                for_each_range(50, 1, |range| {
                    work();
                    if range.contains(&49) {
                        std::panic::resume_unwind(Box::new("the last item"));
                    }
                });
            }));
            assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"the last item"));
        }
        let count = AtomicUsize::new(0);
        for_each_range(50, 1, |range| _ = count.fetch_add(range.len(), Ordering::Relaxed));
        assert_eq!(count.into_inner(), 50);
    });
}

#[test]
fn memory_that_a_helping_thread_does_not_get_is_the_error_of_the_kernel() {
    with_threads(2, || {
        let op = ops::unary(
            "greedy",
            |_| {
                for_each_range(4, 1, |range| {
                    work();
                    // In one of the threads, whichever it is.
                    if range.contains(&3) {
                        drop(Scratch::<u8>::with_capacity(1 << 62));
                    }
                });
                Ok(())
            },
            &[(None, DType::F32)],
            false,
        );
        let error = ops::call(op, &Tensor::of(&[1.0f32])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Memory);
    });
}

#[test]
fn a_number_of_threads_out_of_range_is_an_error() {
    for count in [0, MAX_THREADS + 1] {
        let error = set_num_threads(count).unwrap_err();
        assert!(error.to_string().contains(&format!("{count}")), "{error}");
    }
}

#[test]
fn copies_in_several_threads_give_the_same_elements() {
    let elements: Vec<i32> = (0..300 * 1000).collect();
    let tensor = Tensor::from_slice(&elements, &[300, 1000]).unwrap();
    let layout =
        opsmith_runtime::Layout { sizes: [1000, 300][..].into(), strides: [1, 1000][..].into(), offset: 0 };
    let turned = TensorInternals::with_layout(&tensor, layout).unwrap();
    let expected: Vec<i32> =
        (0..1000).flat_map(|column| (0..300).map(move |row| row * 1000 + column)).collect();
    for threads in [1, 2, 5] {
        assert_eq!(with_threads(threads, || turned.to_vec::<i32>().unwrap()), expected);
    }
}

#[test]
fn a_state_belongs_to_one_thread_and_each_number_has_one_call() {
    for threads in [1, 2, 3, 8] {
        with_threads(threads, || {
            for (is_long, count) in [(true, 0), (true, 1), (true, 5), (true, 1000), (false, 1), (false, 1000)]
            {
                let visits: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                let states = AtomicUsize::new(0);
                let state = || {
                    states.fetch_add(1, Ordering::Relaxed);
                    std::thread::current().id()
                };
                for_each_with(is_long, count, state, |state, number| {
                    assert_eq!(*state, std::thread::current().id());
                    visits[number].fetch_add(1, Ordering::Relaxed);
                });
                assert!(visits.iter().all(|visits| visits.load(Ordering::Relaxed) == 1), "{is_long} {count}");
                assert!(!is_long || states.into_inner() <= threads.min(count), "{count}");
            }
        });
    }
}

#[test]
fn short_loops_in_a_row_are_shared() {
    with_threads(2, || {
        let (own, start) = (std::thread::current().id(), Instant::now());
        let is_shared = AtomicUsize::new(0);
        let of_one = |range: std::ops::Range<usize>| {
            let start = Instant::now();
            while start.elapsed() < Duration::from_nanos(500) * range.len() as u32 {}
            is_shared.fetch_or(usize::from(std::thread::current().id() != own), Ordering::Relaxed);
        };
        // A machine with other work may run the second thread late, hence the row of loops without an end.
        while is_shared.load(Ordering::Relaxed) == 0 {
            assert!(start.elapsed() < Duration::from_secs(100), "no other thread takes a range");
            for_each_range(16, 1, of_one);
        }
    });
}
