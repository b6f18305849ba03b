//! Element-wise operators that write into given tensors, where all operands have one order in memory that is not row-major:
//! transposed matrices, images with channels last.

use opsmith::runtime::parallel::set_num_threads;
use opsmith::{Tensor, TensorOps};

/// Numbers from 1 on, of a shape.
fn counted(shape: &[i64]) -> Tensor {
    let count = shape.iter().product::<i64>();
    let elements: Vec<f32> = (1..=count).map(|number| number as f32).collect();
    Tensor::from_slice(&elements, shape).unwrap()
}

/// Tensors whose dimensions lie in another order, of one part of a thread and of several: a matrix of 3 x 5, one of 401 x 300, and
/// images of 3 channels.
fn permuted() -> [Tensor; 3] {
    [
        counted(&[5, 3]).t().unwrap(),
        counted(&[300, 401]).t().unwrap(),
        counted(&[2, 40, 50, 3]).permute([0, 3, 1, 2]).unwrap(),
    ]
}

#[test]
fn a_tensor_in_place_has_the_elements_of_a_row_major_one() {
    for threads in [1, 2, 5] {
        set_num_threads(threads).unwrap();
        for (target, other) in std::iter::zip(permuted(), permuted()) {
            let copy = target.contiguous().unwrap();
            copy.mul_(3.0).unwrap();
            copy.add_(&other.contiguous().unwrap()).unwrap();
            target.mul_(3.0).unwrap();
            target.add_(&other).unwrap();
            assert_eq!(target.to_vec::<f32>().unwrap(), copy.to_vec::<f32>().unwrap());
        }
    }
}

#[test]
fn a_given_result_has_the_elements_of_a_new_one() {
    for (target, other) in std::iter::zip(permuted(), permuted()) {
        let expected = other.sub(2.0).unwrap().mul(&other).unwrap();
        let mut out = target;
        other.sub(2.0).unwrap().mul_out(&other, &mut out).unwrap();
        assert_eq!(out.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
        // Operands that lie in the order of the result, and one that does not.
        other.add_out(&other, &mut out).unwrap();
        assert_eq!(out.to_vec::<f32>().unwrap(), other.mul(2.0).unwrap().to_vec::<f32>().unwrap());
        other.contiguous().unwrap().add_out(&other, &mut out).unwrap();
        assert_eq!(out.to_vec::<f32>().unwrap(), other.mul(2.0).unwrap().to_vec::<f32>().unwrap());
    }
}

#[test]
fn tensors_with_gaps_and_repeated_elements_are_walked() {
    let wide = counted(&[5, 4]);
    let part = wide.narrow(1, 0, 3).unwrap().t().unwrap();
    part.mul_(-1.0).unwrap();
    let negated: Vec<f32> =
        (1..=20).map(|number| if number % 4 == 0 { number as f32 } else { -(number as f32) }).collect();
    assert_eq!(wide.to_vec::<f32>().unwrap(), negated);
    let mut out = counted(&[5, 3]).t().unwrap();
    let repeated = counted(&[3, 1]).expand([3, 5]).unwrap();
    repeated.add_out(&repeated, &mut out).unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap(), repeated.mul(2.0).unwrap().to_vec::<f32>().unwrap());
}
