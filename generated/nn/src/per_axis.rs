//! Numbers for each axis of a window.

/// A number for each of `N` axes; one number alone is for all.
///
/// ```
/// use opsmith_nn::PerAxis;
///
/// assert_eq!(PerAxis::<2>::from(3).0, [3, 3]);
/// assert_eq!(PerAxis::from([3, 5]).0, [3, 5]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerAxis<const N: usize>(pub [i64; N]);

impl<const N: usize> From<i64> for PerAxis<N> {
    fn from(number: i64) -> Self {
        PerAxis([number; N])
    }
}

impl<const N: usize> From<[i64; N]> for PerAxis<N> {
    fn from(numbers: [i64; N]) -> Self {
        PerAxis(numbers)
    }
}
