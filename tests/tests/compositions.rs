//! Operators composed of others: results at arguments on which the way of composing depends.

use opsmith::{Result, Tensor, TensorOps};

#[test]
fn differences_are_taken_as_often_as_asked_for() -> Result<()> {
    let cubes = Tensor::from_slice(&[1.0f64, 8.0, 27.0, 64.0, 125.0], &[5])?;
    let times = |n| cubes.diff_with(opsmith::DiffOptions::new().n(n));
    assert_eq!(times(3)?.to_vec::<f64>()?, [6.0, 6.0]);
    assert_eq!(times(4)?.to_vec::<f64>()?, [0.0]);
    assert_eq!(times(5)?.shape(), [0]);
    assert_eq!(times(i64::MAX)?.shape(), [0]);
    // Not the tensor itself: writes to the result stay there.
    times(0)?.fill_(0)?;
    assert_eq!(cubes.diff()?.to_vec::<f64>()?, [7.0, 19.0, 37.0, 61.0]);
    let long = opsmith::ones([5000])?;
    assert_eq!(long.diff_with(opsmith::DiffOptions::new().n(4000))?.shape(), [1000]);
    Ok(())
}
