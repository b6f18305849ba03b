//! Reading and writing at indices that are data.
//!
//! Where several elements lead to one place, their order is that of the index in row-major order: entries are sorted by their
//! targets, and one thread has all of a target. An index outside its dimension is reported.

mod advanced;
mod bag;
mod lead;
mod scatter;
mod select;

pub use super::compact::masked_scatter;
pub use advanced::{index, index_put};
pub use bag::embedding_bag;
pub(super) use scatter::sums_by_number;
pub use scatter::{gather, scatter, scatter_add, scatter_reduce_two, scatter_value};
pub use select::{embedding, embedding_dense_backward, index_add, index_copy, index_select};
