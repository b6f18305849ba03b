//! Views of numbered elements: each element of a view is the number of an element of its input.

use opsmith_runtime::{Dims, Layout};

use super::*;

/// The storage positions of a layout in row-major order.
fn positions(layout: &Layout) -> Vec<i64> {
    let mut all = vec![layout.offset];
    for (&size, &stride) in layout.sizes.iter().zip(&layout.strides) {
        all = all.into_iter().flat_map(|start| (0..size).map(move |i| start + i * stride)).collect();
    }
    all
}

fn dense(sizes: &[i64]) -> Layout {
    Layout::contiguous(sizes)
}

#[track_caller]
fn check(layout: opsmith_runtime::Result<Layout>, sizes: &[i64], expected: &[i64]) {
    let layout = layout.unwrap();
    assert_eq!((&layout.sizes[..], positions(&layout)), (sizes, expected.to_vec()));
}

#[test]
fn dimensions_move() {
    check(transpose(&dense(&[2, 3]), 0, -1), &[3, 2], &[0, 3, 1, 4, 2, 5]);
    check(t(&dense(&[2, 2])), &[2, 2], &[0, 2, 1, 3]);
    check(t(&dense(&[2])), &[2], &[0, 1]);
    check(permute(&dense(&[1, 2, 3]), &[2, 0, -2]), &[3, 1, 2], &[0, 3, 1, 4, 2, 5]);
    assert!(permute(&dense(&[1, 2]), &[0, 0]).is_err());
    assert!(permute(&dense(&[1, 2]), &[0]).is_err());
    assert!(t(&dense(&[1, 1, 1])).unwrap_err().help().unwrap().contains("transpose"));
}

#[test]
fn shapes_that_need_no_copy() {
    check(view(&dense(&[2, 6]), &[3, -1]), &[3, 4], &(0..12).collect::<Vec<_>>());
    check(view(&dense(&[]), &[1, 1]), &[1, 1], &[0]);
    check(view(&dense(&[1, 1]), &[]), &[], &[0]);
    check(view(&dense(&[0, 3]), &[3, 0]), &[3, 0], &[]);
    let columns = transpose(&dense(&[4, 6]), 0, 1).unwrap();
    check(
        view(&columns, &[3, 2, 2, 2]),
        &[3, 2, 2, 2],
        &(0..6).flat_map(|c| (0..4).map(move |r| r * 6 + c)).collect::<Vec<_>>(),
    );
    assert!(view(&columns, &[24]).unwrap_err().help().unwrap().contains("reshape"));
    let gap = slice(&dense(&[4, 6]), 1, Some(0), Some(4), 1).unwrap();
    check(view(&gap, &[4, 2, 2]), &[4, 2, 2], &positions(&gap));
    assert!(view(&gap, &[2, 8]).is_err());
    let repeated = expand(&dense(&[1]), &[6], false).unwrap();
    check(view(&repeated, &[2, 3]), &[2, 3], &[0; 6]);
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    for (sizes, message) in [
        (&[5][..], "12 elements cannot have the shape (5)"),
        (&[-1, 5], "12 elements cannot have the shape (-1, 5)"),
        (&[-1, -1], "the shape (-1, -1) has two unknown sizes"),
        (&[-2, 6], "the shape (-2, 6) has a negative size"),
    ] {
        assert_eq!(view(&dense(&[12]), sizes).unwrap_err().message(), message);
    }
    assert!(view(&dense(&[0]), &[-1, 0]).is_err());
}

#[test]
fn slices() {
    let x = dense(&[5]);
    check(slice(&x, 0, Some(1), Some(4), 2), &[2], &[1, 3]);
    check(slice(&x, 0, Some(-2), None, 1), &[2], &[3, 4]);
    check(slice(&x, 0, None, Some(i64::MAX), 3), &[2], &[0, 3]);
    check(slice(&x, 0, Some(i64::MIN), Some(-4), 1), &[1], &[0]);
    check(slice(&x, 0, Some(4), Some(2), 1), &[0], &[]);
    check(slice(&x, 0, Some(9), None, i64::MAX), &[0], &[]);
    assert!(slice(&x, 0, None, None, 0).is_err());
    check(narrow(&x, 0, -3, 2), &[2], &[2, 3]);
    assert!(narrow(&x, 0, 4, 2).is_err() && narrow(&x, 0, 0, i64::MAX).is_err());
    check(select(&dense(&[2, 3]), 1, -1), &[2], &[2, 5]);
    assert_eq!(select(&x, 0, 5).unwrap_err().help(), Some("use -5 to 4"));
}

#[test]
fn sizes_of_one_come_and_go() {
    check(expand(&dense(&[2, 1]), &[2, -1, 3], false), &[2, 2, 3], &[0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]);
    let kept = expand(&dense(&[1, 5]), &[1, 1, 5], false).unwrap();
    assert_eq!(kept.strides, Dims::from_slice(&[5, 5, 1]));
    assert!(expand(&dense(&[2]), &[3], false).is_err() && expand(&dense(&[2]), &[-1, 2], false).is_err());
    assert!(expand(&dense(&[2, 2]), &[2], false).is_err());
    check(squeeze(&dense(&[1, 2, 1])), &[2], &[0, 1]);
    check(squeeze_dim(&dense(&[1, 2, 1]), -1), &[1, 2], &[0, 1]);
    check(squeeze_dim(&dense(&[]), 0), &[], &[0]);
    check(squeeze_dims(&dense(&[1, 2, 1]), &[0, 1]), &[2, 1], &[0, 1]);
    assert!(squeeze_dims(&dense(&[1, 2]), &[0, -2]).is_err());
    let grown = unsqueeze(&dense(&[5, 10]), 0).unwrap();
    assert_eq!((&grown.sizes[..], &grown.strides[..]), (&[1, 5, 10][..], &[50, 10, 1][..]));
    check(unsqueeze(&dense(&[2]), -1), &[2, 1], &[0, 1]);
}

#[test]
fn diagonals_and_windows() {
    check(diagonal(&dense(&[2, 3]), 0, 0, 1), &[2], &[0, 4]);
    check(diagonal(&dense(&[2, 3]), 1, 0, 1), &[2], &[1, 5]);
    check(diagonal(&dense(&[2, 3]), -1, 0, 1), &[1], &[3]);
    check(diagonal(&dense(&[2, 3]), i64::MIN, 0, 1), &[0], &[]);
    check(diagonal(&dense(&[2, 3]), 9, -1, 0), &[0], &[]);
    assert!(diagonal(&dense(&[2, 3]), 0, 1, -1).is_err());
    check(unfold(&dense(&[5]), 0, 3, 2), &[2, 3], &[0, 1, 2, 2, 3, 4]);
    check(unfold(&dense(&[]), 0, 1, 1), &[1], &[0]);
    assert!(unfold(&dense(&[5]), 0, 6, 1).is_err());
    check(as_strided(&dense(&[4]), &[2, 2], &[1, 1], Some(1)), &[2, 2], &[1, 2, 2, 3]);
    assert!(as_strided(&dense(&[4]), &[2], &[i64::MAX], Some(i64::MAX)).is_err());
    assert!(as_strided(&dense(&[4]), &[2], &[-1], None).is_err());
}

#[test]
fn parts() {
    let parts = split_with_sizes(&dense(&[2, 3]), &[1, 0, 2], 1).unwrap();
    let all: Vec<_> = parts.iter().map(positions).collect();
    assert_eq!(all, [vec![0, 3], vec![], vec![1, 2, 4, 5]]);
    assert!(split_with_sizes(&dense(&[3]), &[1, 1], 0).is_err());
    assert!(split_with_sizes(&dense(&[3]), &[4, -1], 0).is_err());
    let sizes: Vec<_> = split(&dense(&[5]), 2, 0).unwrap().iter().map(Layout::numel).collect();
    assert_eq!(sizes, [2, 2, 1]);
    assert!(split(&dense(&[5]), 0, 0).is_err());
    assert_eq!(
        unbind(&dense(&[2, 3]), 0).unwrap().iter().map(positions).collect::<Vec<_>>(),
        [[0, 1, 2], [3, 4, 5]]
    );
}
