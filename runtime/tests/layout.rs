//! Layouts: strides, extents, overlap, and shapes that come from users.

use std::collections::HashSet;

use opsmith_runtime::Layout;
use opsmith_runtime::layout::{MAX_NUMEL, checked_numel, contiguous_strides, is_contiguous, wrap_dim};
use proptest::prelude::*;

fn layout(sizes: &[i64], strides: &[i64], offset: i64) -> Layout {
    Layout { sizes: sizes.into(), strides: strides.into(), offset }
}

/// The position of every index in row-major order, one index at a time.
fn positions(layout: &Layout) -> Vec<i64> {
    let mut positions = vec![layout.offset];
    for (&size, &stride) in layout.sizes.iter().zip(&layout.strides) {
        positions = positions.iter().flat_map(|base| (0..size).map(move |i| base + i * stride)).collect();
    }
    positions
}

#[test]
fn contiguous_strides_are_row_major() {
    let check = |sizes: &[i64], expected: &[i64]| assert_eq!(contiguous_strides(sizes)[..], *expected);
    check(&[], &[]);
    check(&[5], &[1]);
    check(&[2, 3, 4], &[12, 4, 1]);
    check(&[2, 1, 4], &[4, 4, 1]);
    check(&[2, 0, 4], &[4, 4, 1]);
}

#[test]
fn contiguity_ignores_sizes_of_one_and_tensors_without_elements() {
    let check = |sizes: &[i64], strides: &[i64], expected: bool| {
        assert_eq!(is_contiguous(sizes, strides), expected, "{sizes:?} {strides:?}");
    };
    check(&[], &[], true);
    check(&[2, 3], &[3, 1], true);
    check(&[2, 3], &[1, 2], false);
    check(&[2, 1, 3], &[3, 99, 1], true);
    check(&[3], &[-1], false);
    check(&[3], &[0], false);
    check(&[0, 3], &[7, 7], true);
    check(&[3, 0], &[7, 7], true);
}

#[test]
fn dimensions_count_from_either_end() {
    let check = |dim: i64, rank: usize, expected: Result<usize, &str>| {
        let found = wrap_dim(dim, rank).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    };
    check(0, 3, Ok(0));
    check(-1, 3, Ok(2));
    check(-3, 3, Ok(0));
    check(0, 0, Ok(0));
    check(-1, 0, Ok(0));
    check(3, 3, Err("dimension 3 is out of range for a tensor with 3 dimensions\n  help: use -3 to 2"));
    check(-2, 1, Err("dimension -2 is out of range for a tensor with 1 dimension\n  help: use -1 to 0"));
    check(
        i64::MIN,
        0,
        Err(
            "dimension -9223372036854775808 is out of range for a tensor with 0 dimensions\n  help: use -1 to 0",
        ),
    );
}

#[test]
fn shapes_from_users_are_counted_without_overflow() {
    let check = |sizes: &[i64], expected: Result<i64, &str>| {
        let found = checked_numel(sizes).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    };
    check(&[], Ok(1));
    check(&[2, 3], Ok(6));
    check(&[2, 0, 3], Ok(0));
    check(&[MAX_NUMEL], Ok(MAX_NUMEL));
    check(&[2, -1], Err("the shape (2, -1) has a negative size"));
    let huge = 1 << 40;
    check(
        &[huge, huge],
        Err("the shape (1099511627776, 1099511627776) has more elements than memory can hold"),
    );
    // No elements, but the strides would overflow.
    check(
        &[0, huge, huge],
        Err("the shape (0, 1099511627776, 1099511627776) has more elements than memory can hold"),
    );
}

#[test]
fn an_extent_never_looks_smaller_than_it_is() {
    assert_eq!(layout(&[3, 2], &[-2, 1], 4).extent(), Some((0, 6)));
    assert_eq!(layout(&[], &[], 7).extent(), Some((7, 8)));
    assert_eq!(layout(&[3, 0], &[1, 1], 7).extent(), None);
    // (2^32) steps of 2^32 would wrap around to a small number.
    let wide = layout(&[(1 << 32) + 1, 2], &[1 << 32, 1], 0).extent();
    assert_eq!(wide, Some((0, i64::MAX)));
    assert_eq!(layout(&[3], &[i64::MIN], 0).extent(), Some((i64::MIN, 1)));
}

#[test]
fn overlap_is_found() {
    let check = |sizes: &[i64], strides: &[i64], expected: bool| {
        assert_eq!(layout(sizes, strides, 0).has_internal_overlap(), expected, "{sizes:?} {strides:?}");
    };
    check(&[2, 3], &[3, 1], false);
    check(&[2, 3], &[1, 2], false);
    check(&[2, 3], &[0, 1], true);
    check(&[3, 3], &[1, 1], true);
    check(&[1, 3], &[0, 1], false);
    check(&[0, 3], &[0, 0], false);
    check(&[3], &[-1], false);
    check(&[3], &[i64::MIN], false);
}

proptest! {
    #[test]
    fn layouts_agree_with_their_positions(
        dims in prop::collection::vec((0i64..5, -6i64..7), 0..4),
        offset in -5i64..5,
    ) {
        let (sizes, strides): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
        let layout = layout(&sizes, &strides, offset);
        let positions = positions(&layout);
        prop_assert_eq!(layout.numel(), positions.len() as i64);
        let extent = positions.iter().min().map(|low| (*low, positions.iter().max().unwrap() + 1));
        prop_assert_eq!(layout.extent(), extent);
        let contiguous = positions.iter().copied().eq(offset..offset + positions.len() as i64);
        prop_assert_eq!(layout.is_contiguous(), contiguous);
        // Overlap is never missed; some layouts that interleave are reported too.
        let distinct = positions.iter().collect::<HashSet<_>>().len();
        if distinct < positions.len() {
            prop_assert!(layout.has_internal_overlap());
        }
    }
}

#[test]
fn a_layout_has_a_stride_for_each_size() {
    let layout = Layout { sizes: [1000, 1000][..].into(), strides: contiguous_strides(&[]), offset: 0 };
    // Without strides no dimension contradicts that it is row-major.
    assert!(layout.is_contiguous());
    let error = layout.check_inside(4).unwrap_err();
    assert_eq!(error.message(), "a view of the shape (1000, 1000) has 0 strides");
}
