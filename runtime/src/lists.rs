//! Lists of lists: attributes such as `int[][]`.
//!
//! In: rows of items. Out: all items one row after the other, and the end of each row, so that two blocks of memory
//! hold any number of rows, definitions can hold them as constants, and kernels in C read them without a copy. Must not
//! know operators.

use std::borrow::Cow;
use std::fmt;
use std::ops::Index;

use opsmith_core::{DType, ItemKind};

use crate::scalar::Scalar;

/// A text that is a constant or owned.
pub type Text = Cow<'static, str>;

/// A list of lists of `T`: `Lists::from([[1, 2], [3, 4]])`, or of rows of different lengths
/// `Lists::from(vec![vec![1], vec![2, 3]])`.
#[derive(Clone, PartialEq)]
pub struct Lists<T: Clone + 'static> {
    items: Cow<'static, [T]>,
    /// The end of each row in `items`; a row begins at the end of the one before.
    ends: Cow<'static, [usize]>,
}

impl<T: Clone + 'static> Lists<T> {
    /// Rows that are constants: their items in order, and the end of each row among them.
    ///
    /// # Panics
    /// If the ends are not in order or the last one is not the number of items; in a constant this is a compile error.
    pub const fn of_static(items: &'static [T], ends: &'static [usize]) -> Lists<T> {
        let (mut row, mut last) = (0, 0);
        while row < ends.len() {
            assert!(last <= ends[row], "the ends of rows are in order");
            last = ends[row];
            row += 1;
        }
        assert!(last == items.len(), "the last row ends with the items");
        Lists { items: Cow::Borrowed(items), ends: Cow::Borrowed(ends) }
    }

    /// Whether both have rows of the same lengths, and equal items at each position.
    fn same_by(&self, other: &Lists<T>, same: impl Fn(&T, &T) -> bool) -> bool {
        self.ends == other.ends && self.items.iter().zip(&*other.items).all(|(a, b)| same(a, b))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A row; `None` if it does not exist.
    pub fn get(&self, row: usize) -> Option<&[T]> {
        let end = *self.ends.get(row)?;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        Some(&self.items[start..end])
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> + Clone {
        (0..self.len()).map(|row| &self[row])
    }

    /// The items of all rows.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The end of each row among the items.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The same rows with other items.
    pub fn map<U: Clone + 'static>(&self, to: impl FnMut(&T) -> U) -> Lists<U> {
        Lists { items: self.items.iter().map(to).collect(), ends: self.ends.clone() }
    }

    /// The same rows with other items; `None` if one cannot be converted.
    pub(crate) fn try_map<U: Clone + 'static>(&self, to: impl FnMut(&T) -> Option<U>) -> Option<Lists<U>> {
        let items: Option<Vec<U>> = self.items.iter().map(to).collect();
        Some(Lists { items: items?.into(), ends: self.ends.clone() })
    }

    /// Each row as a vector of its own.
    pub fn to_vecs(&self) -> Vec<Vec<T>> {
        self.iter().map(<[T]>::to_vec).collect()
    }
}

impl<T: Clone + 'static> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists { items: Cow::Borrowed(&[]), ends: Cow::Borrowed(&[]) }
    }
}

impl<T: Clone + 'static> Index<usize> for Lists<T> {
    type Output = [T];

    fn index(&self, row: usize) -> &[T] {
        self.get(row).unwrap_or_else(|| panic!("row {row} of {} rows", self.len()))
    }
}

impl<T: Clone + fmt::Debug + 'static> fmt::Debug for Lists<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Clone + 'static, Row: IntoIterator<Item: Into<T>>> FromIterator<Row> for Lists<T> {
    fn from_iter<Rows: IntoIterator<Item = Row>>(rows: Rows) -> Lists<T> {
        let (mut items, mut ends) = (Vec::new(), Vec::new());
        for row in rows {
            items.extend(row.into_iter().map(Into::into));
            ends.push(items.len());
        }
        Lists { items: items.into(), ends: ends.into() }
    }
}

impl<T: Clone + 'static, U: Into<T>> From<Vec<Vec<U>>> for Lists<T> {
    fn from(rows: Vec<Vec<U>>) -> Lists<T> {
        rows.into_iter().collect()
    }
}

impl<T: Clone + 'static, U: Into<T>, const ROWS: usize, const LENGTH: usize> From<[[U; LENGTH]; ROWS]>
    for Lists<T>
{
    fn from(rows: [[U; LENGTH]; ROWS]) -> Lists<T> {
        rows.into_iter().collect()
    }
}

impl<T: Clone + 'static> From<&[Vec<T>]> for Lists<T> {
    fn from(rows: &[Vec<T>]) -> Lists<T> {
        rows.iter().cloned().collect()
    }
}

impl<T: Clone + 'static> From<&Lists<T>> for Lists<T> {
    fn from(lists: &Lists<T>) -> Lists<T> {
        lists.clone()
    }
}

/// The type of an item of [`Lists`] in an argument.
pub trait ListItem: Clone + 'static {
    /// The kind in signatures.
    const KIND: ItemKind;

    /// Lists of this type as lists of some type.
    fn borrow(lists: &Lists<Self>) -> AnyLists<'_>;

    /// As [`ListItem::borrow`], owned.
    fn own(lists: Lists<Self>) -> OwnedLists;

    /// The lists, if they are of this type.
    fn of(lists: AnyLists<'_>) -> Option<&Lists<Self>>;
}

macro_rules! any_lists {
    ($($variant:ident $ty:ty, $doc:literal;)*) => {
        /// Lists of lists of some type, borrowed.
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub enum AnyLists<'a> {
            $(#[doc = $doc] $variant(&'a Lists<$ty>),)*
        }

        /// Lists of lists of some type.
        #[derive(Clone, PartialEq, Debug)]
        pub enum OwnedLists {
            $(#[doc = $doc] $variant(Lists<$ty>),)*
        }

        impl OwnedLists {
            /// The same lists, borrowed.
            pub fn borrow(&self) -> AnyLists<'_> {
                match self { $(OwnedLists::$variant(lists) => AnyLists::$variant(lists),)* }
            }
        }

        impl<'a> AnyLists<'a> {
            /// The same lists, owned.
            pub fn to_owned(self) -> OwnedLists {
                match self { $(AnyLists::$variant(lists) => OwnedLists::$variant(lists.clone()),)* }
            }

            /// The kind of the items.
            pub fn kind(self) -> ItemKind {
                match self { $(AnyLists::$variant(_) => ItemKind::$variant,)* }
            }

            /// Number of rows.
            pub fn len(self) -> usize {
                match self { $(AnyLists::$variant(lists) => lists.len(),)* }
            }

            /// Whether there is no row.
            pub fn is_empty(self) -> bool {
                self.len() == 0
            }

            /// Whether there is no item, so that the kind is arbitrary.
            fn has_no_items(self) -> bool {
                match self { $(AnyLists::$variant(lists) => lists.items().is_empty(),)* }
            }

            /// The end of each row among the items.
            fn ends(self) -> &'a [usize] {
                match self { $(AnyLists::$variant(lists) => lists.ends(),)* }
            }
        }

        impl OwnedLists {
            /// No rows.
            pub fn empty(kind: ItemKind) -> OwnedLists {
                OwnedLists::empty_rows(kind, &[])
            }

            /// The same number of rows, all of them empty.
            fn empty_rows(kind: ItemKind, ends: &[usize]) -> OwnedLists {
                match kind {
                    $(ItemKind::$variant => OwnedLists::$variant(Lists {
                        items: Cow::Borrowed(&[]),
                        ends: ends.to_vec().into(),
                    }),)*
                }
            }
        }

        $(
            impl ListItem for $ty {
                const KIND: ItemKind = ItemKind::$variant;

                fn borrow(lists: &Lists<$ty>) -> AnyLists<'_> {
                    AnyLists::$variant(lists)
                }

                fn own(lists: Lists<$ty>) -> OwnedLists {
                    OwnedLists::$variant(lists)
                }

                fn of(lists: AnyLists<'_>) -> Option<&Lists<$ty>> {
                    match lists {
                        AnyLists::$variant(lists) => Some(lists),
                        _ => None,
                    }
                }
            }
        )*
    };
}

impl OwnedLists {
    /// Whether both have the same rows of items of one kind, numbers by their bits.
    pub fn same_bits(&self, other: &OwnedLists) -> bool {
        match (self, other) {
            (OwnedLists::Float(a), OwnedLists::Float(b)) => a.same_by(b, |a, b| a.to_bits() == b.to_bits()),
            (OwnedLists::Scalar(a), OwnedLists::Scalar(b)) => a.same_by(b, |a, b| a.same_bits(*b)),
            _ => self == other,
        }
    }
}

any_lists! {
    Bool bool, "Of truth values.";
    Int i64, "Of integers.";
    Float f64, "Of floating-point numbers.";
    Scalar Scalar, "Of numbers of any kind.";
    Str Text, "Of texts.";
    DType DType, "Of element types.";
}

/// Lists converted to another kind, if that is unambiguous: integers to numbers, names to dtypes, rows without items to
/// any kind.
pub(crate) fn convert(lists: AnyLists<'_>, to: ItemKind) -> Option<OwnedLists> {
    Some(match (lists, to) {
        (lists, to) if lists.has_no_items() => OwnedLists::empty_rows(to, lists.ends()),
        (AnyLists::Int(lists), ItemKind::Float) => OwnedLists::Float(lists.map(|value| *value as f64)),
        (AnyLists::Int(lists), ItemKind::Scalar) => {
            OwnedLists::Scalar(lists.map(|value| Scalar::Int(*value)))
        }
        (AnyLists::Float(lists), ItemKind::Scalar) => {
            OwnedLists::Scalar(lists.map(|value| Scalar::Float(*value)))
        }
        (AnyLists::Bool(lists), ItemKind::Scalar) => {
            OwnedLists::Scalar(lists.map(|value| Scalar::Bool(*value)))
        }
        (AnyLists::Str(lists), ItemKind::DType) => {
            OwnedLists::DType(lists.try_map(|name| DType::from_name(name))?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_length_lie_one_after_the_other() {
        let lists: Lists<i64> = vec![vec![1, 2], vec![], vec![3]].into();
        assert_eq!((lists.items(), lists.ends()), (&[1, 2, 3][..], &[2, 2, 3][..]));
        assert_eq!(
            (lists.len(), &lists[0], lists.get(1), lists.get(3)),
            (3, &[1, 2][..], Some(&[][..]), None)
        );
        assert_eq!(lists, Lists::of_static(&[1, 2, 3], &[2, 2, 3]));
        assert_eq!(format!("{lists:?}"), "[[1, 2], [], [3]]");
        assert_eq!(lists.to_vecs(), [vec![1, 2], vec![], vec![3]]);
    }

    #[test]
    fn numbers_are_the_same_by_their_bits() {
        let floats = |rows: &[Vec<f64>]| OwnedLists::Float(rows.to_vec().into());
        assert!(floats(&[vec![f64::NAN], vec![1.0]]).same_bits(&floats(&[vec![f64::NAN], vec![1.0]])));
        assert!(!floats(&[vec![0.0]]).same_bits(&floats(&[vec![-0.0]])));
        assert!(!floats(&[vec![0.0], vec![]]).same_bits(&floats(&[vec![], vec![0.0]])));
        assert!(!floats(&[vec![]]).same_bits(&OwnedLists::Int(vec![Vec::<i64>::new()].into())));
    }

    #[test]
    fn lists_become_what_a_caller_means() {
        let ints = Lists::<i64>::from([[1], [2]]);
        let floats = OwnedLists::Float([[1.0], [2.0]].into());
        assert_eq!(convert(AnyLists::Int(&ints), ItemKind::Float), Some(floats));
        assert_eq!(convert(AnyLists::Int(&ints), ItemKind::Str), None);
        let names = Lists::<Text>::from([["float32", "int64"]]);
        let dtypes = OwnedLists::DType([[DType::F32, DType::I64]].into());
        assert_eq!(convert(AnyLists::Str(&names), ItemKind::DType), Some(dtypes));
        let empty = Lists::<i64>::from(vec![Vec::<i64>::new(); 2]);
        let texts = OwnedLists::Str(vec![Vec::<Text>::new(); 2].into());
        assert_eq!(convert(AnyLists::Int(&empty), ItemKind::Str), Some(texts));
    }
}
