//! Kernel tables of elementwise functions, generated from `ops.yaml`: for each operator its kernels by backend and dtype.
//!
//! In: generic kernels of `opsmith-kernels`, and expressions. Out: a `KernelTable` for each operator, which the definitions of
//! `opsmith` point to. Kernels are instantiated here alone, so that cargo compiles them beside the rest of the library. For
//! `opsmith` only: the tables change with the spec.

include!(concat!(env!("OUT_DIR"), "/opsmith/lib.rs"));
