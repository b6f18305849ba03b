//! Lists of lists as arguments and values.
//!
//! In: lists of items of one type. Out: the argument or value that holds them.

use super::{Arg, Value};
use crate::lists::{ListItem, Lists};

impl<'a, T: ListItem> From<&'a Lists<T>> for Arg<'a> {
    fn from(lists: &'a Lists<T>) -> Arg<'a> {
        Arg::Lists(T::borrow(lists))
    }
}

impl<'a, T: ListItem> From<Option<&'a Lists<T>>> for Arg<'a> {
    fn from(lists: Option<&'a Lists<T>>) -> Arg<'a> {
        lists.map_or(Arg::None, Arg::from)
    }
}

impl<T: ListItem> From<Lists<T>> for Value {
    fn from(lists: Lists<T>) -> Value {
        Value::Lists(Box::new(T::own(lists)))
    }
}

impl<T: ListItem> From<Vec<Vec<T>>> for Value {
    fn from(rows: Vec<Vec<T>>) -> Value {
        Value::from(Lists::<T>::from(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::Scalar;

    /// Every call passes arguments by value.
    #[test]
    fn arguments_are_no_larger_than_a_number_of_any_kind_makes_them() {
        assert_eq!(size_of::<Arg<'_>>(), size_of::<Scalar>().max(24));
    }
}
