//! Parts of tensors by position, range and axis: `x.i((.., 1..3, -1))`.
//!
//! In: a tensor and an index for each of its axes. Out: a view of the part, made of calls of the library's views, so that
//! it is differentiable, recorded in graphs, and of the tensor's device. Must not know how views are made.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::{Error, Result, SliceOptions, Tensor};

/// Parts of a tensor by an index for each axis.
///
/// An integer takes one position and the axis away, a range keeps that part of the axis, `..` all of it, [`NewAxis`] adds an
/// axis of size 1, and [`Ellipsis`] stands for all axes that no other index is for. Negative numbers count from the end.
/// Axes behind the last index stay whole. The result is a view: writing into it writes into the tensor.
///
/// ```
/// use opsmith::{Ellipsis, IndexOp, NewAxis, Tensor};
///
/// # fn main() -> opsmith::Result<()> {
/// // [[0, 1, 2],
/// //  [3, 4, 5]]
/// let x = Tensor::from_slice(&[0i64, 1, 2, 3, 4, 5], &[2, 3])?;
/// assert_eq!(x.i(1)?.to_vec::<i64>()?, [3, 4, 5]);
/// assert_eq!(x.i((.., 1..3))?.to_vec::<i64>()?, [1, 2, 4, 5]);
/// assert_eq!(x.i((-1, ..2))?.to_vec::<i64>()?, [3, 4]);
/// assert_eq!(x.i((Ellipsis, -1))?.to_vec::<i64>()?, [2, 5]);
/// assert_eq!(x.i((.., NewAxis, 0..=1))?.shape(), [2, 1, 2]);
/// # Ok(())
/// # }
/// ```
pub trait IndexOp {
    /// The part of the tensor.
    ///
    /// # Errors
    /// If a position or an end of a range lies outside its axis, if a range ends before it starts, or if there are more
    /// indices than axes.
    fn i(&self, indices: impl Indices) -> Result<Tensor>;
}

impl IndexOp for Tensor {
    #[track_caller]
    fn i(&self, indices: impl Indices) -> Result<Tensor> {
        part(self, &indices.into_list())
    }
}

/// An axis of size 1 at this place of the result, as an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewAxis;

/// All axes that no other index is for, as an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ellipsis;

/// The index of one axis; integers, ranges, [`NewAxis`] and [`Ellipsis`] convert to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Index {
    /// One position; the axis goes.
    At(i64),
    /// From the first position to before the second, the ends of the axis where they are absent.
    Range(Option<i64>, Option<i64>),
    /// An axis of size 1.
    NewAxis,
    /// As many whole axes as are left.
    Ellipsis,
}

/// The argument of [`IndexOp::i`]: one index, a tuple of up to eight, or a list of [`Index`].
pub trait Indices {
    /// The indices in order.
    #[doc(hidden)]
    fn into_list(self) -> Vec<Index>;
}

impl<T: Into<Index>> Indices for T {
    fn into_list(self) -> Vec<Index> {
        vec![self.into()]
    }
}

impl Indices for &[Index] {
    fn into_list(self) -> Vec<Index> {
        self.to_vec()
    }
}

macro_rules! tuples {
    ($($($name:ident)+;)*) => {$(
        impl<$($name: Into<Index>),+> Indices for ($($name,)+) {
            #[allow(non_snake_case, reason = "values have the names of their types")]
            fn into_list(self) -> Vec<Index> {
                let ($($name,)+) = self;
                vec![$($name.into()),+]
            }
        }
    )*};
}

tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; }

macro_rules! from_numbers {
    ($($ty:ty)*) => {$(
        impl From<$ty> for Index {
            fn from(at: $ty) -> Index {
                Index::At(at as i64)
            }
        }

        impl From<Range<$ty>> for Index {
            fn from(range: Range<$ty>) -> Index {
                Index::Range(Some(range.start as i64), Some(range.end as i64))
            }
        }

        impl From<RangeFrom<$ty>> for Index {
            fn from(range: RangeFrom<$ty>) -> Index {
                Index::Range(Some(range.start as i64), None)
            }
        }

        impl From<RangeTo<$ty>> for Index {
            fn from(range: RangeTo<$ty>) -> Index {
                Index::Range(None, Some(range.end as i64))
            }
        }

        impl From<RangeInclusive<$ty>> for Index {
            fn from(range: RangeInclusive<$ty>) -> Index {
                Index::Range(Some(*range.start() as i64), behind(*range.end() as i64))
            }
        }

        impl From<RangeToInclusive<$ty>> for Index {
            fn from(range: RangeToInclusive<$ty>) -> Index {
                Index::Range(None, behind(range.end as i64))
            }
        }
    )*};
}

from_numbers! { i32 i64 usize }

/// The end of a range that includes a position; behind the last one, -1, there is no number.
fn behind(last: i64) -> Option<i64> {
    (last != -1).then(|| last.saturating_add(1))
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::Range(None, None)
    }
}

impl From<NewAxis> for Index {
    fn from(_: NewAxis) -> Index {
        Index::NewAxis
    }
}

impl From<Ellipsis> for Index {
    fn from(_: Ellipsis) -> Index {
        Index::Ellipsis
    }
}

#[track_caller]
fn part(tensor: &Tensor, indices: &[Index]) -> Result<Tensor> {
    let rank = tensor.shape().len();
    let used = indices.iter().filter(|index| matches!(index, Index::At(_) | Index::Range(..))).count();
    if used > rank {
        return Err(Error::index(format!("{used} indices for a tensor of {rank} axes"))
            .with_help(format!("its shape is {:?}; give at most an index for each axis", tensor.shape())));
    }
    if indices.iter().filter(|index| **index == Index::Ellipsis).count() > 1 {
        return Err(Error::index("two ellipses among the indices")
            .with_help("write `..` for each whole axis but in one place"));
    }
    let mut view = tensor.clone();
    // The axis of the tensor that is next, for messages, and its place in the view.
    let (mut axis, mut place) = (0, 0);
    for index in indices {
        match *index {
            Index::At(at) => {
                check(at, tensor, axis, false)?;
                view = crate::select(&view, place, at)?;
                axis += 1;
            }
            Index::Range(None, None) => (axis, place) = (axis + 1, place + 1),
            Index::Range(start, end) => {
                view = crate::slice_with(&view, range(start, end, tensor, axis)?.dim(place))?;
                (axis, place) = (axis + 1, place + 1);
            }
            Index::NewAxis => {
                view = crate::unsqueeze(&view, place)?;
                place += 1;
            }
            Index::Ellipsis => {
                axis += rank - used;
                place += (rank - used) as i64;
            }
        }
    }
    Ok(view)
}

/// A range as options of a slice, with its ends as they are written, so that a graph counts from the end too.
fn range(start: Option<i64>, end: Option<i64>, tensor: &Tensor, axis: usize) -> Result<SliceOptions> {
    let size = tensor.shape()[axis];
    for end in [start, end].into_iter().flatten() {
        check(end, tensor, axis, true)?;
    }
    let position = |end: i64| if end < 0 { end + size } else { end };
    let (first, behind) = (start.map_or(0, position), end.map_or(size, position));
    if first > behind {
        return Err(Error::index(format!(
            "the range from {first} to {behind} of axis {axis}, whose size is {size}, ends before it starts"
        )));
    }
    let mut options = SliceOptions::new();
    if let Some(start) = start {
        options = options.start(start);
    }
    if let Some(end) = end {
        options = options.end(end);
    }
    Ok(options)
}

/// Refuses a position outside its axis; the end of a range may be the axis's end.
fn check(at: i64, tensor: &Tensor, axis: usize, is_end: bool) -> Result<()> {
    let size = tensor.shape()[axis];
    let most = if is_end { size } else { size - 1 };
    if (-size..=most).contains(&at) {
        return Ok(());
    }
    let what = if is_end { "the end of a range" } else { "index" };
    Err(Error::index(format!("{what} {at} is outside axis {axis}, whose size is {size}")).with_help(format!(
        "the shape is {:?}; positions of axis {axis} are {}..={most}",
        tensor.shape(),
        -size
    )))
}
