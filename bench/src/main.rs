//! Times operators and prints one JSON line a case.

fn main() {}
