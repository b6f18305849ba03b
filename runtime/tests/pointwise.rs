//! The plan of pointwise loops, against a loop over every index.

mod support;

use opsmith_runtime::generated::pointwise::for_each_row;
use opsmith_runtime::{Layout, Tensor};
use proptest::prelude::*;
use support::strided;

/// A layout of these sizes and strides, moved so that its lowest element is element 0; and the number of elements that
/// its storage needs.
fn placed(sizes: &[i64], strides: &[i64]) -> (Layout, usize) {
    let mut layout = Layout { sizes: sizes.into(), strides: strides.into(), offset: 0 };
    let Some((low, high)) = layout.extent() else { return (layout, 1) };
    layout.offset = -low;
    (layout, (high - low) as usize)
}

/// A tensor whose elements are their own offsets in the storage.
fn numbered(sizes: &[i64], strides: &[i64], first: i64) -> Tensor {
    let (layout, length) = placed(sizes, strides);
    let storage: Vec<i64> = (first..first + length as i64).collect();
    strided(&storage, sizes, strides, layout.offset)
}

/// Every index of a shape in row-major order.
fn indices(sizes: &[i64]) -> Vec<Vec<i64>> {
    let mut indices = vec![vec![]];
    for &size in sizes {
        indices = indices
            .iter()
            .flat_map(|index| (0..size).map(|i| [index.as_slice(), &[i]].concat()).collect::<Vec<_>>())
            .collect();
    }
    indices
}

/// The offset, in elements, of an index of the output in an operand that is broadcast to it.
fn place(tensor: &Tensor, index: &[i64]) -> i64 {
    let own = &index[index.len() - tensor.dim()..];
    let steps = own.iter().zip(tensor.shape()).zip(tensor.strides());
    tensor.layout().offset
        + steps.map(|((i, size), stride)| if *size == 1 { 0 } else { i * stride }).sum::<i64>()
}

/// Runs the plan and returns the addresses it visits, in elements from each operand's storage.
fn visited(operands: &[&Tensor]) -> Vec<Vec<i64>> {
    let bases: Vec<_> = operands.iter().map(|tensor| tensor.storage().data().cast_const()).collect();
    let mut visited = Vec::new();
    for_each_row(operands, &mut |row| {
        for position in 0..row.length as isize {
            let address = |(operand, base): (usize, &*const u8)| {
                let address = row.pointers[operand].wrapping_offset(row.strides[operand] * position);
                (address as i64 - *base as i64) / size_of::<i64>() as i64
            };
            visited.push(bases.iter().enumerate().map(address).collect());
        }
    })
    .unwrap();
    visited
}

fn check(operands: &[&Tensor]) {
    let mut expected: Vec<Vec<i64>> = indices(operands[0].shape())
        .iter()
        .map(|index| operands.iter().map(|tensor| place(tensor, index)).collect())
        .collect();
    let mut found = visited(operands);
    // The plan may choose any order.
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

/// Number of rows in the plan.
fn rows(operands: &[&Tensor]) -> usize {
    let mut rows = 0;
    for_each_row(operands, &mut |_| rows += 1).unwrap();
    rows
}

#[test]
fn dimensions_that_all_operands_step_through_as_one_become_one_row() {
    let whole = || numbered(&[2, 3, 4], &[12, 4, 1], 0);
    assert_eq!(rows(&[&whole(), &whole(), &Tensor::of(&[7i64])]), 1);
    // Both transposed alike: still one stretch of memory.
    let turned = || numbered(&[4, 3, 2], &[1, 4, 12], 0);
    assert_eq!(rows(&[&turned(), &turned()]), 1);
    // A vector along the last dimension: one row each time it starts over.
    assert_eq!(rows(&[&whole(), &numbered(&[4], &[1], 0)]), 6);
    // A column along the first: the last two dimensions are one.
    assert_eq!(rows(&[&whole(), &numbered(&[2, 1, 1], &[1, 1, 1], 0)]), 2);
    // Every other element.
    assert_eq!(rows(&[&numbered(&[2, 3], &[6, 2], 0), &numbered(&[2, 3], &[3, 1], 0)]), 1);
    assert_eq!(rows(&[&numbered(&[0, 3], &[3, 1], 0)]), 0);
    assert_eq!(rows(&[&numbered(&[], &[], 0)]), 1);
}

/// Sizes, and strides without overlap: some order of the dimensions, gaps between elements, some dimensions backwards.
fn output() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    let dimension = (0i64..5, 0i64..3, any::<bool>());
    prop::collection::vec(dimension, 0..5).prop_flat_map(|dims| {
        Just((0..dims.len()).collect::<Vec<_>>()).prop_shuffle().prop_map(move |order| {
            let mut strides = vec![0; dims.len()];
            let mut step = 1;
            for dim in order {
                let (size, gap, backwards) = dims[dim];
                strides[dim] = if backwards { -step } else { step };
                step *= size.max(1) + gap;
            }
            (dims.iter().map(|(size, _, _)| *size).collect(), strides)
        })
    })
}

/// An operand that broadcasts to the sizes: leading dimensions missing, sizes of 1, any strides.
fn input(sizes: Vec<i64>) -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    let count = sizes.len();
    let dims = prop::collection::vec((prop::bool::weighted(0.3), -7i64..8), count);
    (dims, 0..=count).prop_map(move |(dims, missing)| {
        let all = sizes.iter().zip(dims).map(|(size, (one, stride))| (if one { 1 } else { *size }, stride));
        all.skip(missing).unzip()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_index_is_visited_once_with_its_elements(
        (out, inputs) in output().prop_flat_map(|out| {
            let inputs = prop::collection::vec(input(out.0.clone()), 0..4);
            (Just(out), inputs)
        }),
    ) {
        let out = numbered(&out.0, &out.1, 0);
        let inputs: Vec<_> = inputs.iter().map(|(sizes, strides)| numbered(sizes, strides, 0)).collect();
        let operands: Vec<_> = std::iter::once(&out).chain(&inputs).collect();
        check(&operands);
    }
}

#[test]
fn operands_of_different_sizes_keep_their_own_steps() {
    let bytes = strided(&[1u8, 2, 3, 4, 5, 6], &[2, 3], &[-3, 1], 3);
    let numbers = strided(&[0.0f64; 6], &[2, 3], &[1, 2], 0);
    opsmith_runtime::copy::copy(&numbers, &bytes).unwrap();
    assert_eq!(numbers.to_vec::<f64>().unwrap(), [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
}
