//! The order of results in memory: that of the operands of an element-wise operator, if all have the same one, else row-major.

use opsmith::runtime::parallel::set_num_threads;
use opsmith::{Result, Tensor, TensorOps};

/// Numbers from 1 on, of a shape.
fn counted(shape: &[i64]) -> Tensor {
    let count = shape.iter().product::<i64>();
    let elements: Vec<f32> = (1..=count).map(|number| number as f32).collect();
    Tensor::from_slice(&elements, shape).unwrap()
}

/// Images with channels last: 2 of 3 channels and 4 x 5 places.
fn channels_last() -> Tensor {
    counted(&[2, 4, 5, 3]).permute([0, 3, 1, 2]).unwrap()
}

/// Compares a result with the same call over row-major copies.
#[track_caller]
fn check(inputs: &[&Tensor], strides: &[i64], call: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let given: Vec<Tensor> = inputs.iter().map(|tensor| (**tensor).clone()).collect();
    let copies: Vec<Tensor> = inputs.iter().map(|tensor| tensor.contiguous().unwrap()).collect();
    let (result, expected) = (call(&given).unwrap(), call(&copies).unwrap());
    assert_eq!(result.strides(), strides);
    assert!(expected.is_contiguous());
    assert_eq!(result.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
}

#[test]
fn operands_of_one_order_give_it_to_the_result() {
    let (a, b) = (counted(&[5, 3]).t().unwrap(), counted(&[5, 3]).t().unwrap());
    check(&[&a, &b], &[1, 3], |x| x[0].add(&x[1]));
    check(&[&a], &[1, 3], |x| x[0].exp());
    check(&[&a], &[1, 3], |x| x[0].mul(2.0));
    let images = channels_last();
    check(&[&images], &[60, 1, 15, 3], |x| x[0].relu());
    // A number and a bias for each channel are repeated, and have no part in it.
    check(&[&images, &counted(&[3, 1, 1])], &[60, 1, 15, 3], |x| x[0].add(&x[1]));
    check(&[&counted(&[]), &images], &[60, 1, 15, 3], |x| x[0].mul(&x[1]));
}

#[test]
fn the_dtype_of_a_result_has_no_part_in_its_order() {
    let images = channels_last();
    let mask = images.gt(30.0).unwrap();
    assert_eq!(mask.strides(), images.strides());
    let expected = images.contiguous().unwrap().gt(30.0).unwrap();
    assert_eq!(mask.to_vec::<bool>().unwrap(), expected.to_vec::<bool>().unwrap());
}

#[test]
fn other_results_are_row_major() {
    let (a, b) = (counted(&[5, 3]).t().unwrap(), counted(&[3, 5]));
    check(&[&a, &b], &[5, 1], |x| x[0].add(&x[1]));
    check(&[&b, &a], &[5, 1], |x| x[0].add(&x[1]));
    // Of a tensor with gaps, one that repeats elements, and one that is reversed there is no new one.
    let wide = counted(&[5, 4]).narrow(1, 0, 3).unwrap();
    check(&[&wide.t().unwrap()], &[5, 1], |x| x[0].exp());
    check(&[&counted(&[3, 1]).expand([3, 4]).unwrap()], &[4, 1], |x| x[0].exp());
    // Sums are no element-wise operator.
    check(&[&channels_last()], &[12, 4, 1], |x| x[0].sum_dim(Some(&[3])));
}

#[test]
fn a_result_larger_than_a_part_of_a_thread_has_each_element() {
    for threads in [1, 2, 5] {
        set_num_threads(threads).unwrap();
        let (a, b) = (counted(&[300, 401]).t().unwrap(), counted(&[300, 401]).t().unwrap());
        check(&[&a, &b], &[1, 401], |x| x[0].add(&x[1]));
        let target = counted(&[300, 401]).t().unwrap();
        let expected = target.mul(3.0).unwrap().to_vec::<f32>().unwrap();
        target.mul_(3.0).unwrap();
        assert_eq!(target.to_vec::<f32>().unwrap(), expected);
    }
}

#[test]
fn gradients_have_the_elements_of_a_row_major_call() {
    let gradient = |x: Tensor| {
        let x = x.detach().requires_grad_(true)?;
        x.sigmoid()?.mul(&x)?.sum()?.backward()?;
        Ok(x.grad().expect("a leaf has a gradient"))
    };
    let images = channels_last();
    let found: Result<Tensor> = gradient(images.clone());
    let expected: Result<Tensor> = gradient(images.contiguous().unwrap());
    assert_eq!(found.unwrap().to_vec::<f32>().unwrap(), expected.unwrap().to_vec::<f32>().unwrap());
}
