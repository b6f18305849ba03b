//! Shares of a loop: each thread begins with one of its own, and helps with the others at its end.
//!
//! In: a number of visits. Out: each made once. A thread's share is the same in each loop of a length, so that it finds the
//! elements of the last one in its own caches, and none waits for lines that another processor's cache has.

use std::array;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most shares; further threads begin with another's.
const MOST: usize = 64;

/// The next visit of a share, in a cache line of its own.
#[repr(align(64))]
struct Next(AtomicUsize);

/// Visits in shares of neighbours.
pub(super) struct Shares {
    visits: usize,
    count: usize,
    next: [Next; MOST],
}

impl Shares {
    /// A share for each of so many threads.
    pub fn new(visits: usize, threads: usize) -> Shares {
        let count = threads.clamp(1, MOST).min(visits.max(1));
        let next = array::from_fn(|share| Next(AtomicUsize::new(start(share.min(count), visits, count))));
        Shares { visits, count, next }
    }

    /// Makes the visits of a share, then those that are left of the next ones.
    pub fn take(&self, own: usize, mut visit: impl FnMut(usize)) {
        for share in (0..self.count).map(|offset| (own + offset) % self.count) {
            let end = start(share + 1, self.visits, self.count);
            loop {
                let number = self.next[share].0.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    break;
                }
                visit(number);
            }
        }
    }
}

/// The first visit of a share.
fn start(share: usize, visits: usize, count: usize) -> usize {
    (share as u128 * visits as u128 / count as u128) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visit_is_made_once_whoever_comes() {
        for visits in [0, 1, 2, 7, 64, 1000] {
            for threads in [1, 2, 3, 64, 1000] {
                for comers in [&[0][..], &[2, 0, 1], &[70, 1]] {
                    let shares = Shares::new(visits, threads);
                    let made: Vec<AtomicUsize> = (0..visits).map(|_| AtomicUsize::new(0)).collect();
                    for &own in comers {
                        shares.take(own, |number| _ = made[number].fetch_add(1, Ordering::Relaxed));
                    }
                    assert!(made.iter().all(|made| made.load(Ordering::Relaxed) == 1), "{visits} {threads}");
                }
            }
        }
    }

    #[test]
    fn a_thread_begins_with_its_own_share() {
        let shares = Shares::new(100, 4);
        let first = std::cell::Cell::new(None);
        shares.take(2, |number| first.set(first.get().or(Some(number))));
        assert_eq!(first.get(), Some(50));
    }
}
