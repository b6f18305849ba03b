//! Layouts of views: the same memory in another shape.
//!
//! In: a layout and the arguments of a view operator. Out: the layout, or layouts, of the result.
//! No function reaches outside the elements of its input, except [`as_strided`], which the runtime
//! checks against the storage.

mod dimensions;
mod extents;
mod order;
mod parts;
mod reshape;

pub use dimensions::{alias, expand, permute, squeeze, squeeze_dim, squeeze_dims, t, transpose, unsqueeze};
pub use extents::{
    count, diagonal_places, embedded, even_sizes, exchanged, extent, leading_ones, of_rank, picked,
    sizes_between,
};
pub use order::{
    can_view, chunk_sizes, flattened, inverse_order, moved_order, reversed_order, split_sizes, unflattened,
};
pub use parts::{as_strided, diagonal, narrow, select, slice, split, split_with_sizes, unbind, unfold};
pub(crate) use parts::{parts_of_sizes, slices};
pub use reshape::{infer_size, view};

#[cfg(test)]
mod tests;
