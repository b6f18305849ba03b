//! Places of elements in sequences in order.

pub use super::sequence::searchsorted;
