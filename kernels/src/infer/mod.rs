//! Shapes that no rule expresses: what a spec names where `broadcast` or `reduce` do not do.
//!
//! In: the arguments of a call, tensors as handles. Out: the sizes of an output, or an error about the
//! arguments. Nothing here reads elements.

mod indexing;
mod sequence;

pub use indexing::{
    Indexed, embedding, embedding_dense_backward, gather, index, index_put, index_select, indexed, scatter,
    topk,
};
pub use sequence::{arange, flip, layer_norm_statistics, linspace, repeat, roll, sort};
