//! Parts of tensors by position, range and axis: `x.i((.., 1..3, -1))`.

#![allow(clippy::reversed_empty_ranges, reason = "ends of ranges that count from the end, and refused ones")]

use opsmith::autograd::Options;
use opsmith::{DType, Ellipsis, ErrorKind, Index, IndexOp, Indices, NewAxis, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec};

/// Elements 0, 1, … in the shape 2 × 3 × 4.
fn counted() -> Tensor {
    opsmith::arange(24).unwrap().reshape([2, 3, 4]).unwrap()
}

#[track_caller]
fn check(indices: impl Indices, shape: &[i64], elements: &[i64]) {
    let part = counted().i(indices).unwrap();
    assert_eq!((part.shape(), part.to_vec::<i64>().unwrap()), (shape, elements.to_vec()));
}

#[track_caller]
fn refused(indices: impl Indices, message: &str) {
    let error = counted().i(indices).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Index);
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn a_position_takes_the_axis_away() {
    check((1, 2, 3), &[], &[23]);
    check((-1, 0, -4), &[], &[12]);
    check((0, 1), &[4], &[4, 5, 6, 7]);
    check((1usize, 2i64, 0), &[], &[20]);
}

#[test]
fn a_range_keeps_a_part_of_it() {
    check((.., 1..3, -1), &[2, 2], &[7, 11, 19, 23]);
    check((0, ..1), &[1, 4], &[0, 1, 2, 3]);
    check((0, 2.., 1..=2), &[1, 2], &[9, 10]);
    check((0, 0, -2..), &[2], &[2, 3]);
    check((0, 0, ..-2), &[2], &[0, 1]);
    check((0, 0, 2..=-1), &[2], &[2, 3]);
    check((0, 0, 4..), &[0], &[]);
    check((0, 0, 2..2), &[0], &[]);
    check((1, .., ..=0), &[3, 1], &[12, 16, 20]);
}

#[test]
fn axes_are_added_and_left_whole() {
    check((Ellipsis, 0), &[2, 3], &[0, 4, 8, 12, 16, 20]);
    check((1, Ellipsis, 3), &[3], &[15, 19, 23]);
    check((0, Ellipsis, 1, 1), &[], &[5]);
    check((0, NewAxis, 1), &[1, 4], &[4, 5, 6, 7]);
    check((0, 1, ..2, NewAxis), &[2, 1], &[4, 5]);
    let list = [Index::from(0), Index::from(1..2), Index::NewAxis];
    check(&list[..], &[1, 1, 4], &[4, 5, 6, 7]);
    assert_eq!(counted().i(..).unwrap().shape(), [2, 3, 4]);
}

#[test]
fn mistakes_name_index_size_and_axis() {
    refused(2, "index 2 is outside axis 0, whose size is 2");
    refused((0, -4), "index -4 is outside axis 1, whose size is 3");
    refused((Ellipsis, 4), "index 4 is outside axis 2, whose size is 4");
    refused((.., 1..5), "the end of a range 5 is outside axis 1, whose size is 3");
    refused((.., .., 3..1), "the range from 3 to 1 of axis 2, whose size is 4, ends before it starts");
    refused((0, 0, 0, 0), "4 indices for a tensor of 3 axes");
    refused((Ellipsis, Ellipsis), "two ellipses");
}

#[test]
fn parts_are_views_with_gradients() -> Result<()> {
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?.requires_grad_(true)?;
    let part = x.i((.., -1))?;
    (&part * &part)?.sum()?.backward_with(None, Options::default())?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.0, 4.0, 0.0, 8.0]);

    let x = Tensor::from_slice(&[1i64, 2, 3, 4], &[2, 2])?;
    x.i((1, ..))?.mul_(10)?;
    assert_eq!(x.to_vec::<i64>()?, [1, 2, 30, 40]);
    Ok(())
}

#[test]
fn graphs_count_from_the_end_at_every_size() -> Result<()> {
    let x = InputSpec::new(DType::F32, ["n".into(), 2.into()]);
    let graph = Graph::trace(|x: &[Tensor]| x[0].i((-2.., 0)), [x])?;
    let outputs = graph.run(&[Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2])?])?;
    assert_eq!(outputs[0].to_vec::<f32>()?, [3.0, 5.0]);
    Ok(())
}
