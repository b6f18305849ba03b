//! Fuzzers of files: mutated documents, and processes that look at them.

#![allow(dead_code, reason = "each test uses a part")]

pub mod children;
pub mod json;
