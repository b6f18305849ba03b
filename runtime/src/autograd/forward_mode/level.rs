//! Levels of forward mode, and the tangents of a tensor at each level.
//!
//! Each `jvp` opens a level and closes it at its end, which removes every tangent of the level. Levels have distinct
//! numbers and later ones are inner, so that nested derivatives do not mix: an operator handles the innermost level of
//! its arguments first, and hides that level from the calls that it makes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use smallvec::SmallVec;

use crate::tensor::Tensor;

/// The number of a level.
pub(crate) type LevelId = u64;

static NEXT: AtomicU64 = AtomicU64::new(1);
static OPEN: AtomicUsize = AtomicUsize::new(0);
static HOLDERS: Mutex<Option<HashMap<LevelId, Vec<Weak<TangentList>>>>> = Mutex::new(None);

thread_local! {
    static HIDDEN: RefCell<Vec<LevelId>> = const { RefCell::new(Vec::new()) };
}

/// Whether any level is open, in any thread. False lets a call skip the search for tangents.
#[inline]
pub(crate) fn is_active() -> bool {
    OPEN.load(Ordering::Relaxed) != 0
}

/// A level that is open as long as this value lives.
pub(super) struct Level(LevelId);

impl Level {
    pub fn open() -> Level {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Level(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    pub fn id(&self) -> LevelId {
        self.0
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        let holders = holders().as_mut().and_then(|holders| holders.remove(&self.0)).unwrap_or_default();
        // Tangents own graphs, so they are dropped without a lock held.
        let removed: Vec<Option<Tensor>> =
            holders.iter().filter_map(Weak::upgrade).map(|list| list.set(self.0, None)).collect();
        OPEN.fetch_sub(1, Ordering::Relaxed);
        drop(removed);
    }
}

fn holders() -> MutexGuard<'static, Option<HashMap<LevelId, Vec<Weak<TangentList>>>>> {
    HOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hides a level from this thread while the value lives.
pub(super) struct Hidden(LevelId);

impl Hidden {
    pub fn new(level: LevelId) -> Hidden {
        HIDDEN.with_borrow_mut(|hidden| hidden.push(level));
        Hidden(level)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        HIDDEN.with_borrow_mut(|hidden| {
            if let Some(position) = hidden.iter().rposition(|level| *level == self.0) {
                hidden.remove(position);
            }
        });
    }
}

fn is_hidden(level: LevelId) -> bool {
    HIDDEN.with_borrow(|hidden| hidden.contains(&level))
}

/// The tangents of one tensor, one per level. Tensors with the same elements may share a list.
#[derive(Default)]
pub(crate) struct TangentList(Mutex<SmallVec<[(LevelId, Tensor); 1]>>);

impl TangentList {
    fn lock(&self) -> MutexGuard<'_, SmallVec<[(LevelId, Tensor); 1]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tangent at a level.
    pub fn get(&self, level: LevelId) -> Option<Tensor> {
        self.lock().iter().find(|(other, _)| *other == level).map(|(_, tangent)| tangent.clone())
    }

    /// Replaces the tangent at a level; returns the old one.
    fn set(&self, level: LevelId, tangent: Option<Tensor>) -> Option<Tensor> {
        let mut list = self.lock();
        match (list.iter().position(|(other, _)| *other == level), tangent) {
            (Some(position), Some(tangent)) => Some(std::mem::replace(&mut list[position].1, tangent)),
            (Some(position), None) => Some(list.swap_remove(position).1),
            (None, Some(tangent)) => {
                list.push((level, tangent));
                None
            }
            (None, None) => None,
        }
    }

    /// The levels of the list that are not hidden from this thread.
    pub fn visible(&self) -> SmallVec<[LevelId; 2]> {
        self.lock().iter().map(|(level, _)| *level).filter(|level| !is_hidden(*level)).collect()
    }
}

/// Stores a tangent in a list and registers the list with the level, whose end removes the tangent.
pub(crate) fn put(list: &Arc<TangentList>, level: LevelId, tangent: Option<Tensor>) {
    if tangent.is_some() {
        let mut holders = holders();
        let of_level = holders.get_or_insert_default().entry(level).or_default();
        // Dropped lists are removed whenever the vector would have to grow.
        if of_level.len() == of_level.capacity() {
            of_level.retain(|list| list.strong_count() > 0);
        }
        of_level.push(Arc::downgrade(list));
    }
    drop(list.set(level, tangent));
}
