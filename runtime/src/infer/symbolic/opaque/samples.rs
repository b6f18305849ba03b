//! Fitting: a size from its numbers at sample points.
//!
//! In: symbols with their values at each point, and a number for each point. Out: the size that gives exactly these
//! numbers, if there is one. Formulas come in families: polynomials (`fit`), quotients, fractions, bounds
//! (`piecewise`), extremes; a client tries those that its points can distinguish. Opaque inference (`sample`) has many
//! points, with consecutive values of each symbol; graph mode has a few traces at distant sizes. Must not know either.

use super::{DIVISORS, fit, piecewise};
use crate::infer::symbolic::size::Size;
use crate::infer::symbolic::symbols::{Origin, Symbol, Symbols};

/// Maximal number of quotients in a symbol table; beyond it no new ones are tried.
const MOST_QUOTIENTS: usize = 16;

/// Symbols with their values at sample points.
pub struct Samples {
    columns: Vec<Column>,
}

/// A symbol and its value at each point.
type Column = (Symbol, Vec<i64>);

impl Samples {
    /// The values of several symbols, all at the same points.
    pub fn new(columns: Vec<Column>) -> Samples {
        Samples { columns }
    }

    /// A polynomial of the symbols.
    pub fn polynomial(&self, numbers: &[i64]) -> Option<Size> {
        let columns: Vec<&Column> = self.columns.iter().collect();
        polynomial(&columns, numbers)
    }

    /// A polynomial of the symbols and of the table's symbols derived from them.
    pub fn polynomial_of_derived(&self, numbers: &[i64], symbols: &Symbols) -> Option<Size> {
        let derived = self.derived(symbols);
        let columns: Vec<&Column> = self.columns.iter().chain(&derived).collect();
        if derived.is_empty() { None } else { polynomial(&columns, numbers) }
    }

    /// A multiple of a product of two or three symbols, of which the table's derived ones may be some: the number of places that
    /// an image has after a convolution with strides, for a batch.
    pub fn product_of_derived(&self, numbers: &[i64], symbols: &Symbols) -> Option<Size> {
        let derived = self.derived(symbols);
        let columns: Vec<&Column> = self.columns.iter().chain(&derived).collect();
        let times = |product: &[i128], column: &Column| -> Vec<i128> {
            product
                .iter()
                .zip(&column.1)
                .map(|(product, value)| product.saturating_mul(i128::from(*value)))
                .collect()
        };
        let one = vec![1i128; numbers.len()];
        for (first, a) in columns.iter().enumerate() {
            let of_a = times(&one, a);
            for (second, b) in columns.iter().enumerate().skip(first) {
                let of_b = times(&of_a, b);
                let size = Size::from(a.0) * Size::from(b.0);
                if let Some(factor) = multiple(of_b.iter().copied(), numbers) {
                    return Some(size * Size::Const(factor));
                }
                for c in &columns[second..] {
                    if let Some(factor) = multiple(times(&of_b, c).into_iter(), numbers) {
                        return Some(size * Size::from(c.0) * Size::Const(factor));
                    }
                }
            }
        }
        None
    }

    /// A sum of multiples of a quotient and its dividend, or a multiple of a quotient and another symbol. The quotient
    /// is an existing one, or a new one of one of the first `divided` symbols.
    pub fn quotient(&self, numbers: &[i64], divided: usize, symbols: &mut Symbols) -> Option<Size> {
        let known = self.derived(symbols);
        let of_known = known.iter().find_map(|(symbol, parts)| {
            let [of] = symbols.info(*symbol)?.made_of()[..] else { return None };
            let of = self.columns.iter().find(|(known, _)| *known == of)?;
            self.with_quotient(parts, of, numbers, &mut || Size::from(*symbol))
        });
        if of_known.is_some() || known.len() >= MOST_QUOTIENTS {
            return of_known;
        }
        for of in self.columns.iter().take(divided) {
            for (by, plus) in DIVISORS.into_iter().flat_map(|by| (0..by).map(move |plus| (by, plus))) {
                let parts = of.1.iter().map(|value| Some(value.checked_add(plus)? / by));
                let parts: Vec<i64> = parts.collect::<Option<_>>()?;
                let mut own = || symbols.quotient(&(Size::from(of.0) + Size::Const(plus)), &Size::Const(by));
                let found = self.with_quotient(&parts, of, numbers, &mut own);
                if found.is_some() {
                    return found;
                }
            }
        }
        self.product_of_quotients(numbers, divided, symbols)
    }

    /// A multiple of the product of quotients of two of the first `divided` symbols, and of another symbol or none.
    fn product_of_quotients(&self, numbers: &[i64], divided: usize, symbols: &mut Symbols) -> Option<Size> {
        let columns = self.columns.get(..divided.min(self.columns.len()))?;
        // Of some thousand quotients of a symbol, few divide all numbers.
        let quotients = |values: &[i64]| -> Vec<(i64, i64, Vec<i64>)> {
            let each = DIVISORS.into_iter().flat_map(|by| (0..by).map(move |plus| (by, plus)));
            let parts = each.map(|(by, plus)| {
                let parts = values.iter().map(|value| value.saturating_add(plus) / by);
                (by, plus, parts.collect::<Vec<i64>>())
            });
            let divides = |parts: &[i64]| {
                parts.iter().zip(numbers).all(|(part, number)| *part != 0 && number % part == 0)
            };
            parts.filter(|(_, _, parts)| divides(parts)).collect()
        };
        let of: Vec<_> = columns.iter().map(|column| quotients(&column.1)).collect();
        let one = vec![1; numbers.len()];
        for (first, a) in columns.iter().enumerate() {
            for (second, b) in columns.iter().enumerate().skip(first + 1) {
                let others = columns.iter().enumerate().filter(|(at, _)| *at != first && *at != second);
                let others = others.map(|(_, (symbol, values))| (Size::from(*symbol), values));
                for (other, values) in std::iter::once((Size::Const(1), &one)).chain(others) {
                    for (by_a, plus_a, of_a) in &of[first] {
                        for (by_b, plus_b, of_b) in &of[second] {
                            let products = of_a.iter().zip(of_b).zip(values);
                            let products =
                                products.map(|((a, b), c)| i128::from(*a) * i128::from(*b) * i128::from(*c));
                            let Some(factor) = multiple(products, numbers) else { continue };
                            let mut quotient = |of: Symbol, by: i64, plus: i64| {
                                symbols.quotient(&(Size::from(of) + Size::Const(plus)), &Size::Const(by))
                            };
                            let both = quotient(a.0, *by_a, *plus_a) * quotient(b.0, *by_b, *plus_b);
                            return Some(both * other * Size::Const(factor));
                        }
                    }
                }
            }
        }
        None
    }

    /// A fraction of a polynomial, if it has integer values.
    pub fn fraction(&self, numbers: &[i64], symbols: &mut Symbols) -> Option<Size> {
        DIVISORS.into_iter().find_map(|divisor| {
            let many: Vec<i64> = numbers.iter().map(|number| number.saturating_mul(divisor)).collect();
            Some(symbols.quotient(&self.polynomial(&many)?, &Size::Const(divisor)))
        })
    }

    /// A size that depends on one symbol alone and is not a polynomial: a rounded quotient, or clamped at a bound.
    pub fn piecewise(&self, numbers: &[i64], symbols: &mut Symbols) -> Option<Size> {
        let [(symbol, values)] = self.columns.as_slice() else { return None };
        let mut pairs: Vec<(i64, i64)> = values.iter().copied().zip(numbers.iter().copied()).collect();
        pairs.sort_unstable();
        pairs.dedup();
        // Two results for one value of the symbol are not a function of it.
        if pairs.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return None;
        }
        // The leading run of consecutive values is fitted; the other points must match.
        let run = 1 + pairs.windows(2).take_while(|pair| pair[1].0 == pair[0].0 + 1).count();
        let size = piecewise::fit(&pairs[..run], &Size::from(*symbol), symbols)?;
        let fits = |&(value, result): &(i64, i64)| {
            let given = |known| (known == *symbol).then_some(value);
            size.evaluate(|symbol| symbols.derived_from(symbol, &given)) == Some(result)
        };
        pairs.iter().all(fits).then_some(size)
    }

    /// The minimum or maximum of two symbols with a constant added to each.
    pub fn extreme(&self, numbers: &[i64], symbols: &mut Symbols) -> Option<Size> {
        let [(first, a), (second, b)] = self.columns.as_slice() else { return None };
        let more = |values: &[i64]| -> Vec<i64> {
            values.iter().zip(numbers).map(|(value, number)| number - value).collect()
        };
        let size = |symbol: &Symbol, more: i64| Size::from(*symbol) + Size::Const(more);
        let fits = |of: fn(i64, i64) -> i64, x: i64, y: i64| {
            a.iter().zip(b).zip(numbers).all(|((a, b), number)| of(a + x, b + y) == *number)
        };
        let (of_first, of_second) = (more(a), more(b));
        let (x, y) = (*of_first.iter().max()?, *of_second.iter().max()?);
        if fits(i64::min, x, y) {
            return Some(symbols.smaller(&size(first, x), &size(second, y)));
        }
        let (x, y) = (*of_first.iter().min()?, *of_second.iter().min()?);
        fits(i64::max, x, y).then(|| symbols.greater(&size(first, x), &size(second, y)))
    }

    /// The table's derived symbols whose values the points determine.
    fn derived(&self, symbols: &Symbols) -> Vec<Column> {
        let points = self.columns.first().map_or(0, |column| column.1.len());
        let values = |symbol: Symbol| -> Option<Vec<i64>> {
            let at = |point: usize| {
                let of = |symbol| self.columns.iter().find(|column| column.0 == symbol);
                symbols.value(symbol, &|symbol| of(symbol).map(|column| column.1[point]))
            };
            (0..points).map(at).collect()
        };
        let derived = symbols.all().filter(|symbol| matches!(symbols.origin(*symbol), Origin::Derived(_)));
        derived.filter_map(|symbol| Some((symbol, values(symbol)?))).collect()
    }

    /// A formula with a quotient of the symbol `of`; `parts` are the quotient's values.
    fn with_quotient(
        &self,
        parts: &[i64],
        of: &Column,
        numbers: &[i64],
        quotient: &mut dyn FnMut() -> Size,
    ) -> Option<Size> {
        let rows = parts.iter().zip(&of.1).zip(numbers);
        let rows: Vec<[i128; 3]> =
            rows.map(|((&part, &size), &number)| [part.into(), size.into(), number.into()]).collect();
        if let Some([constant, parts, sizes]) = linear(&rows) {
            let dividend = Size::from(of.0) * Size::Const(sizes);
            return Some(quotient() * Size::Const(parts) + dividend + Size::Const(constant));
        }
        self.columns.iter().find_map(|(other, values)| {
            let products =
                parts.iter().zip(values).map(|(part, other)| i128::from(*part) * i128::from(*other));
            let factor = multiple(products, numbers)?;
            Some(quotient() * Size::from(*other) * Size::Const(factor))
        })
    }
}

fn polynomial(columns: &[&Column], numbers: &[i64]) -> Option<Size> {
    let row = |(point, number): (usize, &i64)| -> (Vec<i64>, i64) {
        (columns.iter().map(|column| column.1[point]).collect(), *number)
    };
    let mut rows: Vec<(Vec<i64>, i64)> = numbers.iter().enumerate().map(row).collect();
    // Many points differ only in other symbols.
    rows.sort_unstable();
    rows.dedup();
    let points: Vec<(&[i64], i64)> = rows.iter().map(|(row, number)| (&row[..], *number)).collect();
    Some(fit::fit(&points)?.substitute(|column| Size::from(columns[column.0 as usize].0)))
}

/// The integers `[a, b, c]` with `a + b·x + c·y = z` in all rows `[x, y, z]`, where `b` is not 0; `c` is 0 if `x` and
/// `y` are dependent.
fn linear(rows: &[[i128; 3]]) -> Option<[i64; 3]> {
    let (start, rest) = rows.split_first()?;
    let steps: Vec<[i128; 3]> =
        rest.iter().map(|row| [row[0] - start[0], row[1] - start[1], row[2] - start[2]]).collect();
    let one = steps.iter().find(|step| step[0] != 0)?;
    let whole = |a: i128, b: i128| (a % b == 0).then(|| a / b);
    let (b, c) = match steps.iter().find(|step| one[0] * step[1] != step[0] * one[1]) {
        Some(other) => {
            let determinant = one[0] * other[1] - other[0] * one[1];
            let b = whole(one[2] * other[1] - other[2] * one[1], determinant)?;
            (b, whole(one[0] * other[2] - other[0] * one[2], determinant)?)
        }
        None => (whole(one[2], one[0])?, 0),
    };
    let a = start[2] - b * start[0] - c * start[1];
    let holds = rows.iter().all(|row| a + b * row[0] + c * row[1] == row[2]);
    let small = |number: i128| i64::try_from(number).ok();
    (holds && b != 0).then(|| Some([small(a)?, small(b)?, small(c)?])).flatten()
}

/// The common ratio of the numbers to others, if there is one.
fn multiple(of: impl Iterator<Item = i128> + Clone, numbers: &[i64]) -> Option<i64> {
    let first = of.clone().next().filter(|first| *first != 0)?;
    let number = i128::from(*numbers.first()?);
    let factor = (number % first == 0).then(|| number / first).filter(|factor| *factor != 0)?;
    let holds = of.zip(numbers).all(|(of, number)| of * factor == i128::from(*number));
    holds.then(|| i64::try_from(factor).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{Samples, Size, Symbol, Symbols};

    const SIZES: [i64; 17] = [6, 11, 1024, 9, 14, 35, 64, 25, 130, 7, 48, 2049, 27, 16, 77, 10, 512];

    fn points() -> Vec<(i64, i64)> {
        (0..16).map(|at| (SIZES[at], SIZES[(at * 5 + 3) % 17])).collect()
    }

    #[test]
    fn numbers_of_divisions_are_formulas_of_quotients() {
        let mut symbols = Symbols::new();
        let (n, m) = (symbols.fresh(), symbols.fresh());
        let column = |of: &dyn Fn(i64, i64) -> i64| points().iter().map(|p| of(p.0, p.1)).collect::<Vec<_>>();
        let samples = Samples::new(vec![(n, column(&|n, _| n)), (m, column(&|_, m| m))]);
        let mut check = |of: &dyn Fn(i64, i64) -> i64, text: &str| {
            let numbers = column(of);
            let size = samples
                .polynomial_of_derived(&numbers, &symbols)
                .or_else(|| samples.quotient(&numbers, 2, &mut symbols))
                .unwrap_or_else(|| panic!("{numbers:?}"));
            assert_eq!(size.named(&symbols).to_string(), text);
            for (x, y) in points() {
                let bindings = symbols.values(|symbol| Some(if symbol == n { x } else { y }));
                assert_eq!(size.bind(&bindings), Some(of(x, y)));
            }
        };
        check(&|n, _| n / 2, "floor(s0/2)");
        check(&|n, _| (8 - n % 8) % 8, "-s0+8*floor((s0+7)/8)");
        check(&|_, m| (m + 2 - 3) / 2 + 1, "s1-floor(s1/2)");
        check(&|n, m| n / 2 * m, "s1*floor(s0/2)");
        check(&|n, _| n - n / 2, "s0-floor(s0/2)");
        assert_eq!(symbols.len(), 5);
        let places =
            samples.product_of_derived(&column(&|n, m| 3 * (n / 2) * (m / 2) * m), &symbols).unwrap();
        assert_eq!(places.named(&symbols).to_string(), "3*s1*floor(s0/2)*floor(s1/2)");
        assert!(samples.product_of_derived(&column(&|n, m| n / 2 * (m / 2) + 1), &symbols).is_none());
        assert!(samples.quotient(&column(&|n, _| n.min(64)), 2, &mut symbols).is_none());
    }

    #[test]
    fn half_of_an_even_size_is_one_quotient() {
        let mut symbols = Symbols::new();
        let n = symbols.fresh();
        let sizes: Vec<i64> = SIZES.iter().map(|size| 2 * size).collect();
        let samples = Samples::new(vec![(n, sizes.clone())]);
        let mut find = |of: &dyn Fn(i64) -> i64| {
            samples.quotient(&sizes.iter().map(|size| of(*size)).collect::<Vec<_>>(), 1, &mut symbols)
        };
        let half = find(&|n| n / 2);
        assert_eq!(half, Some(Size::from(Symbol(1))));
        assert_eq!(half, find(&|n| n - n / 2));
        assert!(find(&|n| n / 2 * 3 + 1).is_some());
        assert_eq!(symbols.len(), 2);
    }
}
