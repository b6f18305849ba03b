//! Shapes of symbolic sizes.

use std::fmt;

use smallvec::SmallVec;

use super::size::Size;
use super::symbols::{Bindings, Symbols};
use crate::layout::Dims;

/// Sizes of a tensor's dimensions; up to four stay off the heap.
pub type Sizes = SmallVec<[Size; 4]>;

/// A shape whose sizes, or even rank, may be unknown.
///
/// Written `(s0, 4*s0+1, -1)`, and `(-2)` for an unknown rank.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// A size for each dimension.
    Known(Sizes),
    /// Any number of dimensions of any sizes; written −2.
    UnknownRank,
}

impl Shape {
    /// A shape of known sizes.
    pub fn concrete(sizes: &[i64]) -> Shape {
        Shape::Known(sizes.iter().map(|&size| Size::Const(size)).collect())
    }

    /// The sizes, unless the rank is unknown.
    #[inline]
    pub fn sizes(&self) -> Option<&[Size]> {
        match self {
            Shape::Known(sizes) => Some(sizes),
            Shape::UnknownRank => None,
        }
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> Option<usize> {
        self.sizes().map(<[Size]>::len)
    }

    /// The sizes, if all are numbers.
    pub fn known(&self) -> Option<Dims> {
        self.sizes()?.iter().map(Size::known).collect()
    }

    /// The number of elements.
    pub fn numel(&self) -> Size {
        let Some(sizes) = self.sizes() else { return Size::Unknown };
        // A size of 0 leaves no elements, for any values of unknown sizes.
        if sizes.iter().any(|size| *size == 0) {
            return Size::Const(0);
        }
        sizes.iter().fold(Size::Const(1), |product, size| &product * size)
    }

    /// The strides of the row-major layout; `None` for an unknown rank.
    ///
    /// A size of 0 counts as 1, as in [`crate::layout::contiguous_strides`]; a formula is assumed not to be 0.
    pub fn contiguous_strides(&self) -> Option<Sizes> {
        let sizes = self.sizes()?;
        let mut strides: Sizes = SmallVec::from_elem(Size::Const(1), sizes.len());
        for dim in (1..sizes.len()).rev() {
            let size = if sizes[dim] == 0 { &Size::Const(1) } else { &sizes[dim] };
            strides[dim - 1] = &strides[dim] * size;
        }
        Some(strides)
    }

    /// The sizes for these values of symbols; `None` if a size stays unknown.
    pub fn bind(&self, bindings: &Bindings) -> Option<Dims> {
        self.sizes()?.iter().map(|size| size.bind(bindings)).collect()
    }

    /// Its text with the names of a symbol table.
    pub fn named<'a>(&'a self, symbols: &'a Symbols) -> impl fmt::Display + 'a {
        std::fmt::from_fn(move |f| self.write(f, &|f, size| write!(f, "{}", size.named(symbols))))
    }

    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        size_text: &dyn Fn(&mut fmt::Formatter<'_>, &Size) -> fmt::Result,
    ) -> fmt::Result {
        let Some(sizes) = self.sizes() else { return f.write_str("(-2)") };
        f.write_str("(")?;
        for (position, size) in sizes.iter().enumerate() {
            f.write_str(if position > 0 { ", " } else { "" })?;
            size_text(f, size)?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &|f, size| write!(f, "{size}"))
    }
}

impl FromIterator<Size> for Shape {
    fn from_iter<I: IntoIterator<Item = Size>>(sizes: I) -> Shape {
        Shape::Known(sizes.into_iter().collect())
    }
}
