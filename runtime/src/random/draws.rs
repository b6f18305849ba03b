//! Draws of a kernel that runs again: it gets the blocks that it got before, and no generator moves.
//!
//! In: a piece of work, run by this thread. Out: its draws from any generators; and the same work with the same
//! draws. The check that kernels write every element (`check_written` of `dispatch`) needs it, since a program
//! must not draw other numbers because it was checked.

use std::cell::{Cell, RefCell};

use super::Stream;
use crate::scratch::Scratch;

/// The draws of a piece of work, in order.
pub(crate) struct Draws(Scratch<Stream>);

#[derive(Default)]
struct Watch {
    /// Draws are recorded here.
    notes: Option<Scratch<Stream>>,
    /// Draws are taken from here, from the last to the first.
    repeated: Option<Scratch<Stream>>,
}

thread_local! {
    /// Whether draws are recorded or repeated.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static WATCH: RefCell<Watch> = const { RefCell::new(Watch { notes: None, repeated: None }) };
}

/// Restores the watch from before the work, however that ends.
struct Restore(Option<Watch>);

impl Restore {
    /// Watches as told from now on.
    fn after(change: impl FnOnce(&mut Watch) -> Watch) -> Restore {
        let before = WATCH.with_borrow_mut(change);
        WATCHED.set(true);
        Restore(Some(before))
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        let Some(before) = self.0.take() else { return };
        WATCHED.set(before.notes.is_some() || before.repeated.is_some());
        WATCH.set(before);
    }
}

/// Does some work, and records this thread's draws meanwhile.
pub(crate) fn noted<R>(work: impl FnOnce() -> R) -> (R, Draws) {
    let mut restore =
        Restore::after(|watch| Watch { notes: watch.notes.replace(Scratch::new()), repeated: None });
    let result = work();
    let notes = WATCH.with_borrow_mut(|watch| watch.notes.take()).unwrap_or_default();
    if let Some(before) = &mut restore.0 {
        // Work inside of other work is part of it.
        before.notes.iter_mut().for_each(|outer| outer.extend_from_slice(&notes));
        before.repeated = WATCH.with_borrow_mut(|watch| watch.repeated.take());
    }
    (result, Draws(notes))
}

/// Does some work with the draws of other work.
pub(crate) fn repeated<R>(draws: &Draws, work: impl FnOnce() -> R) -> R {
    let repeated = draws.0.iter().rev().copied().collect();
    let _restore =
        Restore::after(|watch| std::mem::replace(watch, Watch { notes: None, repeated: Some(repeated) }));
    work()
}

/// The next blocks of some generator: those that it gives, unless the work is repeated.
#[inline]
pub(super) fn next(give: impl FnOnce() -> Stream) -> Stream {
    if WATCHED.get() { watched(give) } else { give() }
}

#[cold]
fn watched(give: impl FnOnce() -> Stream) -> Stream {
    WATCH.with_borrow_mut(|watch| {
        let stream = match &mut watch.repeated {
            // Work that draws more often than before gets something; its result shows that it is another.
            Some(repeated) => repeated.pop().unwrap_or(Stream { seed: 0, offset: 0 }),
            None => give(),
        };
        watch.notes.iter_mut().for_each(|notes| notes.push(stream));
        stream
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn repeated_work_draws_the_same_and_moves_nothing() {
        let (a, b) = (Generator::new(1), Generator::new(2));
        let work = || [a.reserve(3), b.reserve(1), a.reserve(2)];
        let (first, draws) = noted(work);
        let places = (a.place(), b.place());
        assert_eq!(repeated(&draws, work), first);
        assert_eq!(repeated(&draws, || [work(), [a.reserve(1); 3]])[0], first);
        assert_eq!((a.place(), b.place()), places);
        assert_ne!(work(), first);
        assert!(!WATCHED.get());
    }

    #[test]
    fn work_inside_of_work_is_part_of_it() {
        let generator = Generator::new(1);
        let inner = || {
            let (first, draws) = noted(|| generator.reserve(1));
            assert_eq!(repeated(&draws, || generator.reserve(1)), first);
            first
        };
        let work = || [generator.reserve(5), inner(), generator.reserve(7)];
        let (first, draws) = noted(work);
        assert_eq!(first.map(|stream| stream.offset), [0, 5, 6]);
        assert_eq!(repeated(&draws, work), first);
        assert_eq!(generator.place().offset, 13);
    }

    #[test]
    fn work_that_panics_is_forgotten() {
        let generator = Generator::new(1);
        let panics = || noted(|| -> () { panic!("expected") });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(!WATCHED.get());
        assert_eq!(generator.reserve(1).offset, 0);
    }
}
