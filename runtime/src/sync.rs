//! Atomics, locks and yields of what threads share: the standard library's, or loom's.
//!
//! In: nothing. Out: the same names for both. `--cfg loom` puts loom's in place of the standard library's, so that
//! models (`tests/loom.rs`) run every order of their steps that the memory model allows; see
//! `scripts/loom.sh`. Other builds get the standard library's own items. Must know nothing of the crate.

#[cfg(loom)]
pub(crate) use loom::{
    sync::{Mutex, atomic},
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::{Mutex, atomic},
    thread::yield_now,
};
