//! A user's C++ kernel that leaves elements unwritten, or writes invalid bytes for `bool`.

use opsmith_golden as golden;
use opsmith_runtime::{Arg, Result, Tensor, dispatch};

fn forgetful(left: i64, flag: i64) -> Result<(Vec<f32>, Vec<bool>)> {
    let (copy, flags) = golden::forgetful(&Tensor::of(&[1.0f32, 2.0, 3.0]), left, flag)?;
    Ok((copy.to_vec()?, flags.to_vec()?))
}

/// The result of the generated checks, in every build.
fn checked(left: i64, flag: i64) -> Result<()> {
    let op = golden::LIBRARY.find("forgetful").unwrap().0;
    let x = Tensor::of(&[1.0f32, 2.0, 3.0]);
    dispatch::check_written(op, &[(&x).into(), Arg::Int(left), Arg::Int(flag)])
}

#[test]
fn a_kernel_that_writes_everything() {
    assert_eq!(forgetful(0, 1).unwrap(), (vec![1.0, 2.0, 3.0], vec![true; 3]));
    assert_eq!(forgetful(0, 0).unwrap(), (vec![1.0, 2.0, 3.0], vec![false; 3]));
}

#[test]
fn elements_that_are_left_out() {
    let expected = "forgetful: the kernel `kernels.cc:golden_forgetful` did not write every element of the output \
                    `copy`: the first is at [2] of the shape (3)\n  self: float32 (3)\n  help: a kernel writes every \
                    element of its outputs: their memory may hold any values before";
    assert_eq!(checked(1, 1).unwrap_err().to_string(), expected);
    if cfg!(debug_assertions) {
        assert_eq!(forgetful(1, 1).unwrap_err().to_string(), expected);
        return;
    }
    // A release build does not check; yet an unwritten `bool` is a valid one, whatever the memory contained.
    for _ in 0..100 {
        drop(Tensor::of(&[0xC7u8; 3]));
        assert_eq!(forgetful(1, 1).unwrap().1, [true, true, false]);
    }
}

#[test]
fn bytes_that_are_no_truth_values() {
    let expected = "forgetful: the kernel `kernels.cc:golden_forgetful` wrote the truth value 7 at [0] of the output \
                    `flags`\n  self: float32 (3)\n  help: a truth value is a byte that is 0 or 1";
    assert_eq!(checked(0, 7).unwrap_err().to_string(), expected);
    if cfg!(debug_assertions) {
        assert_eq!(forgetful(0, 7).unwrap_err().to_string(), expected);
    }
}
