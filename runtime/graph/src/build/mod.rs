//! Graphs built call by call, by names of operators.
//!
//! In: inputs and calls. Out: a traced graph (`builder`), or calls that are inferred and traced later, for inputs whose
//! rank is unknown (`unranked`). Deferred calls are `calls`.

pub(crate) mod builder;
pub(crate) mod calls;
mod check;
pub(crate) mod unranked;
mod unranked_view;
