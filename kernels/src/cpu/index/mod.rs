//! Reading and writing at indices that are data.
//!
//! Index tensors are `int64`. An index outside its dimension is an error that names it; only
//! [`index`] and [`index_put`] count negative ones from the end, as PyTorch does.

pub(super) mod advanced;
mod bag;
mod line;
mod masked;
pub(super) mod parts;
pub(super) mod places;
mod scatter;
pub(super) mod select;

use opsmith_runtime::{Error, Result};

pub use advanced::{index, index_put};
pub(crate) use bag::{check_weights, rows_and_width};
pub use bag::{embedding_bag, embedding_bag_dense_backward, embedding_bag_per_sample_weights_backward};
pub use masked::masked_scatter;
pub(crate) use scatter::{check_index, check_source, unknown_reduction};
pub use scatter::{gather, scatter, scatter_add, scatter_reduce_two, scatter_value};
pub(crate) use select::{check_joined, check_list, table};
pub use select::{embedding, embedding_dense_backward, index_add, index_copy, index_select};

/// The index as an offset, if it is one of a dimension with `size` elements.
#[inline(always)]
fn checked(index: i64, size: i64, dim: usize) -> Result<i64> {
    if index < 0 || index >= size {
        return Err(out_of_range(index, size, dim, 0));
    }
    Ok(index)
}

/// As [`checked`], counting negative indices from the end.
#[inline(always)]
fn wrapped(index: i64, size: i64, dim: usize) -> Result<i64> {
    let from_start = if index < 0 { index + size } else { index };
    if from_start < 0 || from_start >= size {
        return Err(out_of_range(index, size, dim, -size));
    }
    Ok(from_start)
}

#[cold]
fn out_of_range(index: i64, size: i64, dim: usize, lowest: i64) -> Error {
    let error =
        Error::index(format!("the index {index} is out of range for dimension {dim} with size {size}"));
    if size == 0 {
        return error.with_help("the dimension has no elements to index");
    }
    error.with_help(format!("use {lowest} to {}", size - 1))
}

#[cfg(test)]
mod tests;
