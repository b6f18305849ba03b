//! Tables of the stock library's loops over expressions by dtype, generated from `ops.yaml`.
//!
//! In: entries with `pointwise`. Out: a `KernelTable` for each, which the definitions of `opsmith` point to. Loops are compiled
//! here alone, so that cargo compiles them beside hand-written kernels and the rest of the library. For `opsmith` only: the
//! tables change with the spec.

include!(concat!(env!("OUT_DIR"), "/opsmith/lib.rs"));
