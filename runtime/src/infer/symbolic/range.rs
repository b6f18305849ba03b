//! Interval arithmetic: the bounds of a size, from the bounds of its symbols.

use super::formula::{Formula, Term};
use super::size::Size;
use super::symbols::{Symbol, Symbols};

/// A closed interval from `low` to `high`; the extremes of `i64` mean no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub low: i64,
    pub high: i64,
}

/// Maximal depth of substitutions of an upper bound for its symbol.
const DEPTH: usize = 4;

impl Range {
    pub const ALL: Range = Range { low: i64::MIN, high: i64::MAX };

    pub fn only(value: i64) -> Range {
        Range { low: value, high: value }
    }

    pub fn contains(self, value: i64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The values of a formula.
    pub fn of(formula: &Formula, symbols: &Symbols) -> Range {
        let negated = Size::Formula(formula.clone().into()) * Size::Const(-1);
        let negated_low = match &negated {
            Size::Formula(negated) => low(negated, symbols, DEPTH),
            _ => i64::MIN,
        };
        // `i64::MIN` has no negative; it means no bound on both sides.
        Range { low: low(formula, symbols, DEPTH), high: negated_low.checked_neg().unwrap_or(i64::MAX) }
    }

    /// The range divided by a positive number, rounded toward zero.
    pub fn divide(self, divisor: i64) -> Range {
        let end = |end: i64| if end == i64::MIN || end == i64::MAX { end } else { end / divisor };
        Range { low: end(self.low), high: end(self.high) }
    }

    fn times(self, other: Range) -> Range {
        let products = [
            times(self.low, other.low),
            times(self.low, other.high),
            times(self.high, other.low),
            times(self.high, other.high),
        ];
        let (low, high) = products
            .iter()
            .fold((i64::MAX, i64::MIN), |(low, high), &product| (low.min(product), high.max(product)));
        Range { low, high }
    }
}

/// A product in which the extremes of `i64` mean infinity and 0 times anything is 0.
fn times(a: i64, b: i64) -> i64 {
    if a == 0 || b == 0 { 0 } else { a.saturating_mul(b) }
}

/// The least value of a formula.
fn low(formula: &Formula, symbols: &Symbols, depth: usize) -> i64 {
    let own = formula.terms().iter().map(|term| term_range(term, symbols).low).fold(0i64, |sum, low| {
        if sum == i64::MIN || low == i64::MIN { i64::MIN } else { sum.saturating_add(low) }
    });
    if depth == 0 {
        return own;
    }
    // Of s0*s1 - u0 with u0 <= s0*s1, terms alone give no bound; the upper bound substituted for u0 gives 0.
    let replaceable = formula.terms().iter().filter(|term| term.coefficient < 0).find_map(|term| {
        let not_negative = |symbol: Symbol| symbols.range(symbol).low >= 0;
        let all = term.powers.iter().all(|power| not_negative(power.0));
        let (symbol, high) = term.powers.iter().find_map(|&(symbol, power)| match symbols.high(symbol) {
            high @ Size::Formula(_) if power == 1 => Some((symbol, high)),
            _ => None,
        })?;
        all.then_some((term, symbol, high))
    });
    let Some((term, symbol, high)) = replaceable else { return own };
    let rest = formula.terms().iter().filter(|other| *other != term).cloned().collect();
    let product = Size::from_terms(Some(vec![term.clone()]))
        .substitute(|other| if other == symbol { high.clone() } else { Size::from(other) });
    let better = match Size::from_terms(Some(rest)) + product {
        Size::Const(value) => value,
        Size::Formula(formula) => low(&formula, symbols, depth - 1),
        Size::Unknown => i64::MIN,
    };
    own.max(better)
}

fn term_range(term: &Term, symbols: &Symbols) -> Range {
    term.powers.iter().fold(Range::only(term.coefficient), |product, &(symbol, power)| {
        let factor = symbols.range(symbol);
        (0..power).fold(product, |product, _| product.times(factor))
    })
}
