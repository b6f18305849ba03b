//! Checked operations for expressions of a spec: each fails with an error where Rust's would panic.
//!
//! In: lists, sizes and integers. Out: an element, a size, a quotient. Must not know tensors or operators.

use std::cell::Cell;

use crate::error::{Error, Result};
use crate::lists::Lists;

/// An optional value that a spec's expression requires.
///
/// # Errors
/// If it is absent.
pub fn present<T>(value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::argument("an optional argument is absent that this call needs"))
}

/// A value of each item of a list, up to the first error.
///
/// # Errors
/// That of an item.
pub fn map<I, T>(
    items: impl ExactSizeIterator<Item = I>,
    value: impl FnMut(I) -> Result<T>,
) -> Result<Vec<T>> {
    items.map(value).collect()
}

/// Levels of compositions inside each other that a stack of 2 MiB holds in a build without optimisation.
const LEVELS: usize = 64;

thread_local! {
    static LEVEL: Cell<usize> = const { Cell::new(0) };
}

/// One level of a composition that may call itself; it ends when it is dropped.
#[derive(Debug)]
pub struct Level(());

impl Drop for Level {
    fn drop(&mut self) {
        LEVEL.set(LEVEL.get() - 1);
    }
}

/// A level of a composition that may call itself.
///
/// # Errors
/// If the levels are more than a stack holds.
pub fn level() -> Result<Level> {
    let level = LEVEL.get() + 1;
    if level > LEVELS {
        return Err(Error::value(format!(
            "the composition calls itself more than {LEVELS} times inside itself"
        ))
        .with_help(
            "compositions of this depth could overflow the stack; compute the value in several calls",
        ));
    }
    LEVEL.set(level);
    Ok(Level(()))
}

/// An element of a list in a spec's expression.
///
/// # Errors
/// If the list is shorter.
pub fn item<T>(list: &[T], position: i64) -> Result<&T> {
    usize::try_from(position)
        .ok()
        .and_then(|position| list.get(position))
        .ok_or_else(|| Error::index(format!("position {position} is outside a list of {}", list.len())))
}

/// A row of a list of lists in a spec's expression.
///
/// # Errors
/// If there is no such row.
pub fn row<T: Clone>(lists: &Lists<T>, position: i64) -> Result<&[T]> {
    usize::try_from(position)
        .ok()
        .and_then(|position| lists.get(position))
        .ok_or_else(|| Error::index(format!("position {position} is outside a list of {}", lists.len())))
}

/// A size in a spec's expression; negative dimensions count from the end.
///
/// # Errors
/// If there is no such dimension.
#[inline]
pub fn size(sizes: &[i64], dim: i64) -> Result<i64> {
    let wrapped = crate::layout::wrap_dim(dim, sizes.len())?;
    sizes.get(wrapped).copied().ok_or_else(|| Error::index("a tensor without dimensions has no sizes"))
}

/// The integer quotient in a spec's expression, rounded toward zero.
///
/// # Errors
/// If the divisor is zero.
pub fn int_div(a: i64, b: i64) -> Result<i64> {
    if b == 0 {
        return Err(Error::value(format!("{a} cannot be divided by zero")));
    }
    Ok(a.wrapping_div(b))
}

/// The remainder in a spec's expression, with the sign of the dividend.
///
/// # Errors
/// If the divisor is zero.
pub fn int_rem(a: i64, b: i64) -> Result<i64> {
    if b == 0 {
        return Err(Error::value(format!("{a} cannot be divided by zero")));
    }
    Ok(a.wrapping_rem(b))
}
