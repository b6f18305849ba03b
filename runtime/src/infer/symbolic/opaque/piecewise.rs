//! Piecewise formulas of one size: quotients, and clamping at a bound.
//!
//! In: a function's values at consecutive integers. Out: a size that gives them all, made of a quotient (`(s0+1)/2`), a
//! minimum or a maximum, if there is one.

use super::DIVISORS;
use crate::infer::symbolic::size::Size;
use crate::infer::symbolic::symbols::Symbols;

/// The size that fits `points`, pairs of an integer and its value in ascending order, as a function of `argument`.
pub(super) fn fit(points: &[(i64, i64)], argument: &Size, symbols: &mut Symbols) -> Option<Size> {
    let (first, last) = (points.first()?, points.last()?);
    // The upper half is not affected by clamping at the low end.
    let tail = &points[points.len() / 2..];
    let all = |function: &dyn Fn(i64) -> i64, points: &[(i64, i64)]| {
        points.iter().all(|&(value, result)| function(value) == result)
    };
    if tail.iter().all(|point| point.1 == last.1) {
        // Grows up to a bound.
        let (shift, bound) = (first.1 - first.0, last.1);
        let grows = |value: i64| (value + shift).min(bound);
        if points.len() >= 8 && all(&grows, points) {
            return Some(symbols.smaller(&(argument + &Size::Const(shift)), &Size::Const(bound)));
        }
        return None;
    }
    for step in std::iter::once(1).chain(DIVISORS) {
        let Some((rise, shift)) = slope(tail, step) else { continue };
        let line = |value: i64| (rise * value + shift) / step;
        let least = first.1;
        let bounded = !all(&line, points);
        if bounded && !all(&|value| line(value).max(least), points) {
            continue;
        }
        let dividend = argument * &Size::Const(rise) + Size::Const(shift);
        let size = symbols.quotient(&dividend, &Size::Const(step));
        return Some(if bounded { symbols.greater(&size, &Size::Const(least)) } else { size });
    }
    None
}

/// The slope per `step`, and the offset added before the division by `step`.
fn slope(points: &[(i64, i64)], step: i64) -> Option<(i64, i64)> {
    // One period alone would prove nothing.
    if (points.len() as i64) < 2 * step + 2 {
        return None;
    }
    let ahead = points.iter().zip(&points[step as usize..]);
    let mut rises = ahead.map(|(low, high)| (high.0 - low.0 == step).then_some(high.1 - low.1));
    let rise = rises.next()??;
    if rise == 0 || !rises.all(|other| other == Some(rise)) {
        return None;
    }
    // step * result <= rise * value + shift < step * result + step, at each point.
    let low = points.iter().map(|point| step * point.1 - rise * point.0).max()?;
    let high = points.iter().map(|point| step * point.1 - rise * point.0 + step - 1).min()?;
    (low <= high).then_some((rise, low))
}
