//! Graphs built call by call, by names of operators.
//!
//! In: inputs and calls. Out: a traced graph (`builder`), or deferred calls (`calls`) that are inferred and traced
//! later, for inputs of unknown rank (`unranked`).

pub(crate) mod builder;
pub(crate) mod calls;
mod check;
pub(crate) mod unranked;
mod unranked_view;
