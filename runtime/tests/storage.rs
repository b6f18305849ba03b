//! Storages: handles, versions, borrowed memory, sharing between threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use opsmith_runtime::copy::copy;
use opsmith_runtime::storage::Storage;
use opsmith_runtime::{DType, Device, Layout, Tensor};

#[test]
fn handles_are_counted_and_versions_shared() {
    let tensor = Tensor::of(&[1.0f32, 2.0]);
    let view = tensor.detach();
    assert!(tensor.shares_storage(&view) && !tensor.same(&view));
    assert_eq!(tensor.storage().references(), 2);
    assert_eq!(tensor.version(), 0);
    copy(&view, &Tensor::scalar(5, DType::F32)).unwrap();
    assert_eq!((tensor.version(), view.version()), (1, 1));
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [5.0, 5.0]);
    drop(view);
    assert_eq!(tensor.storage().references(), 1);
}

#[test]
fn memory_of_others_is_used_where_it_is_and_released_once() {
    struct Owner(Arc<AtomicUsize>, Vec<i32>);
    impl Drop for Owner {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let mut owner = Box::new(Owner(drops.clone(), vec![1, 2, 3, 4]));
    let data = owner.1.as_mut_ptr().cast::<u8>();
    // SAFETY: the vector's buffer does not move while the owner lives.
    let storage = unsafe { Storage::external(data, 16, owner) };
    // SAFETY: the layout covers the four elements.
    let tensor = unsafe { Tensor::from_parts(storage, Layout::contiguous(&[2, 2]), DType::I32, Device::CPU) };
    assert_eq!(tensor.data_ptr(), data);
    assert_eq!(tensor.to_vec::<i32>().unwrap(), [1, 2, 3, 4]);
    let weak = tensor.downgrade();
    let other = tensor.clone();
    drop(tensor);
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(other);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    assert!(weak.upgrade().is_none());
}

#[test]
fn readers_never_see_half_a_write() {
    const LENGTH: usize = 10_000;
    let shared = Tensor::of(&vec![0i64; LENGTH]);
    std::thread::scope(|scope| {
        for writer in 1..=2i64 {
            let shared = &shared;
            scope.spawn(move || {
                for round in 0..100 {
                    copy(shared, &Tensor::scalar(writer * 1000 + round, DType::I64)).unwrap();
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let seen = shared.to_vec::<i64>().unwrap();
                    assert!(seen.iter().all(|value| *value == seen[0]));
                }
            });
        }
    });
    assert_eq!(shared.version(), 200);
}

#[test]
fn two_copies_in_opposite_directions_do_not_wait_for_each_other() {
    let (a, b) = (Tensor::of(&[1i64; 1000]), Tensor::of(&[2i64; 1000]));
    std::thread::scope(|scope| {
        scope.spawn(|| (0..1000).for_each(|_| copy(&a, &b).unwrap()));
        scope.spawn(|| (0..1000).for_each(|_| copy(&b, &a).unwrap()));
    });
    assert_eq!(a.to_vec::<i64>().unwrap(), b.to_vec::<i64>().unwrap());
}
