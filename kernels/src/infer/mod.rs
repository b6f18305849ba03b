//! Shapes that no rule expresses: functions that a spec names where `broadcast` or `reduce` do not do.
//!
//! In: the arguments of a call, tensors as handles. Out: the sizes of an output, or an error about the arguments.
//! Only elements of arguments that the spec declares in `value_depends` are read.

mod assorted;
mod by_value;
mod channels;
mod detection;
mod indexing;
mod indices;
mod matrices;
mod operations;
mod paths;
mod pieces;
mod products;
mod reduced;
mod resized;
mod sequence;
mod slices;
mod windows;

pub use assorted::{
    cdist, cdist_backward, embedding_bag, embedding_bag_maxima, fft_c2r, fft_r2c, grid_sampler_2d, pdist,
};
pub use by_value::{
    arange_by_tensor, elements, repeat_by_tensor, repeated_positions, repeats_between, reshape_by_tensor,
    slice_by_tensor, unique,
};
pub use channels::{
    channel_groups, channels, channels_as_pixels, one_sample, pixel_shuffled, pixel_unshuffled,
    pixels_as_channels, places_of,
};
pub use detection::nms;
pub use indexing::{embedding, embedding_dense_backward, gather, index_select, scatter, topk};
pub use indices::{Indexed, Placed, check_mask, index, index_put, indexed, is_mask, placed};
pub use matrices::{
    contracted_labels, diagonal_of, free_labels, is_vector_system, kron_parts, kron_sizes, left_factor,
    matrix_of, relative_tolerance, right_factor, row_of, solution, stacked, system, vector_cross,
};
pub use operations::{halvings, transform_operations};
pub(crate) use paths::ctc_samples;
pub use paths::{ctc_losses, ctc_states};
pub use pieces::{constant_pad_nd, masked_select, negated, nonzero, repeat_dims, repeat_groups, stack};
pub use products::{as_batch, as_rows, batched, grouped, product};
pub use reduced::{
    Reduced, along, broadcast_sizes, classes_of, keep_reduced, other_dims, reduced, reduced_count, rows_of,
    with_size,
};
pub(crate) use resized::resized;
pub use resized::{interpolated_sizes, resize_ratio, upsample, upsample_backward, upsampled_sizes};
pub use sequence::{arange, flip, layer_norm_statistics, linspace, repeat, rms_norm, roll, sort};
pub use slices::{bincount, classes, common_sizes, lengths, searchsorted, tril_indices, triu_indices};
pub(crate) use windows::padded_sizes;
pub use windows::{
    adaptive_avg_pool, avg_pool2d, avg_pool3d, col2im, convolution, im2col, max_pool2d, max_pool3d, pad,
    same_border, same_padding, unpooled,
};
