//! Formulas of numbers that vary with the sizes of a trace.
//!
//! In: sample points, and a number for each. Out: the formula over symbols that gives these numbers. Sizes that a
//! function divides get formulas of quotients, symbols that are computed from others; finding them takes more points
//! than other formulas, to tell one quotient from another.

use std::cell::{Cell, RefCell};

use opsmith_runtime::infer::symbolic::{Size, Symbol};

use super::sample_points::Point;
use crate::ir::Quotient;

/// Divisors that are tried, with every number that can be added before.
const DIVISORS: [i64; 37] = [
    2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
    30, 31, 32, 48, 64, 96, 100, 128, 256,
];

/// How many quotients a graph may have.
const MOST: usize = 16;

pub(crate) struct FormulaFinder<'a> {
    points: &'a [Point],
    /// The symbols that formulas are made of.
    free: &'a [usize],
    /// How many symbols are of inputs; only those are divided.
    inputs: usize,
    /// Whether quotients are looked for.
    divides: bool,
    /// Those that were found; their symbols come after all others.
    quotients: RefCell<Vec<Quotient>>,
    /// Whether some numbers had no formula.
    unfitted: Cell<bool>,
}

impl<'a> FormulaFinder<'a> {
    pub fn new(points: &'a [Point], free: &'a [usize], inputs: usize, divides: bool) -> FormulaFinder<'a> {
        FormulaFinder {
            points,
            free,
            inputs,
            divides,
            quotients: RefCell::default(),
            unfitted: Cell::new(false),
        }
    }

    /// Whether some numbers had no formula, so that more points may help.
    pub fn has_unfitted(&self) -> bool {
        self.unfitted.get()
    }

    /// The quotients that formulas are made of, in the order of their symbols.
    pub fn into_quotients(self) -> Vec<Quotient> {
        self.quotients.into_inner()
    }

    /// The formula that gives a number at each point.
    pub fn fit(&self, numbers: impl Iterator<Item = i64> + Clone) -> Option<Size> {
        let mut all = numbers.clone();
        let first = all.next()?;
        if all.all(|number| number == first) {
            return Some(Size::Const(first));
        }
        let numbers: Vec<i64> = numbers.collect();
        let with_known =
            || (!self.quotients.borrow().is_empty()).then(|| self.fit_over(&numbers, true)).flatten();
        let found = self.fit_over(&numbers, false).or_else(with_known).or_else(|| self.divide(&numbers));
        self.unfitted.set(self.unfitted.get() || found.is_none());
        found
    }

    fn fit_over(&self, numbers: &[i64], with_quotients: bool) -> Option<Size> {
        let quotients = self.quotients.borrow();
        let known = if with_quotients { quotients.as_slice() } else { &[] };
        let row = |point: &Point| {
            let free = self.free.iter().map(|&symbol| Some(point[symbol]));
            free.chain(known.iter().map(|quotient| quotient.of(point[quotient.symbol]))).collect()
        };
        let rows: Vec<Vec<i64>> = self.points.iter().map(row).collect::<Option<_>>()?;
        let points: Vec<(&[i64], i64)> =
            rows.iter().map(Vec::as_slice).zip(numbers.iter().copied()).collect();
        let symbol = |column: usize| match self.free.get(column) {
            Some(&symbol) => Size::from(Symbol(symbol as u32)),
            None => self.quotient(column - self.free.len()),
        };
        Size::fit(&points).map(|size| size.substitute(|column| symbol(column.0 as usize)))
    }

    /// The symbol of a quotient.
    fn quotient(&self, number: usize) -> Size {
        let others = self.points.first().map_or(0, Vec::len);
        Size::from(Symbol((others + number) as u32))
    }

    /// A formula of one quotient, known or new: with its symbol, or a multiple of it and one other symbol.
    fn divide(&self, numbers: &[i64]) -> Option<Size> {
        if !self.divides {
            return None;
        }
        let known = self.quotients.borrow().clone();
        let of_known =
            known.iter().enumerate().find_map(|(number, known)| self.formula_of(*known, number, numbers));
        let number = known.len();
        if of_known.is_some() || number >= MOST {
            return of_known;
        }
        for &symbol in self.free.iter().filter(|&&symbol| symbol < self.inputs) {
            for by in DIVISORS {
                for plus in 0..by {
                    let quotient = Quotient { symbol, plus, by };
                    if let Some(size) = self.formula_of(quotient, number, numbers) {
                        self.quotients.borrow_mut().push(quotient);
                        return Some(size);
                    }
                }
            }
        }
        None
    }

    fn formula_of(&self, quotient: Quotient, number: usize, numbers: &[i64]) -> Option<Size> {
        let parts: Vec<i64> =
            self.points.iter().map(|point| quotient.of(point[quotient.symbol])).collect::<Option<_>>()?;
        let column = |symbol: usize| self.points.iter().map(move |point| point[symbol]);
        let own = self.quotient(number);
        let rows: Vec<[i128; 3]> = parts
            .iter()
            .zip(column(quotient.symbol))
            .zip(numbers)
            .map(|((&part, size), &number)| [part.into(), size.into(), number.into()])
            .collect();
        if let Some([constant, parts, sizes]) = linear(&rows) {
            let symbol = Size::from(Symbol(quotient.symbol as u32));
            return Some(own * Size::Const(parts) + symbol * Size::Const(sizes) + Size::Const(constant));
        }
        self.free.iter().find_map(|&other| {
            let rows =
                parts.iter().zip(column(other)).map(|(&part, other)| i128::from(part) * i128::from(other));
            let factor = multiple(rows, numbers)?;
            Some(own.clone() * Size::from(Symbol(other as u32)) * Size::Const(factor))
        })
    }
}

/// The whole numbers `[a, b, c]` with `a + b·x + c·y = z` in all rows `[x, y, z]`, where `b` is not 0; `c` is 0 if `x`
/// and `y` say the same.
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

/// How many times the numbers are as large as others, if they all are the same number of times.
fn multiple(of: impl Iterator<Item = i128> + Clone, numbers: &[i64]) -> Option<i64> {
    let first = of.clone().next().filter(|first| *first != 0)?;
    let number = i128::from(*numbers.first()?);
    let factor = (number % first == 0).then(|| number / first).filter(|factor| *factor != 0)?;
    let holds = of.zip(numbers).all(|(of, number)| of * factor == i128::from(*number));
    holds.then(|| i64::try_from(factor).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{FormulaFinder, Quotient};
    use crate::trace::sample_points::Point;

    fn points() -> Vec<Point> {
        const SIZES: [i64; 17] = [6, 11, 1024, 9, 14, 35, 64, 25, 130, 7, 48, 2049, 27, 16, 77, 10, 512];
        (0..16).map(|at| vec![SIZES[at], SIZES[(at * 5 + 3) % 17]]).collect()
    }

    #[test]
    fn numbers_of_divisions_are_formulas_of_quotients() {
        let points = points();
        let values = |of: &dyn Fn(i64, i64) -> i64| points.iter().map(|p| of(p[0], p[1])).collect::<Vec<_>>();
        let finder = FormulaFinder::new(&points, &[0, 1], 2, true);
        let check = |of: &dyn Fn(i64, i64) -> i64| {
            let size = finder.fit(values(of).into_iter());
            let size = size.unwrap_or_else(|| panic!("{:?}", values(of)));
            let quotients = finder.quotients.borrow();
            for point in &points {
                let value = |symbol: usize| match point.get(symbol) {
                    Some(value) => Some(*value),
                    None => quotients[symbol - 2].of(point[quotients[symbol - 2].symbol]),
                };
                assert_eq!(size.evaluate(|symbol| value(symbol.0 as usize)), Some(of(point[0], point[1])));
            }
        };
        check(&|n, _| n / 2);
        check(&|n, _| (8 - n % 8) % 8);
        check(&|_, m| (m + 2 - 3) / 2 + 1);
        check(&|n, m| n / 2 * m);
        check(&|n, _| n - n / 2);
        assert_eq!(finder.quotients.borrow()[0], Quotient { symbol: 0, plus: 0, by: 2 });
        assert_eq!(finder.quotients.borrow().len(), 3);
        assert!(!finder.has_unfitted());
        assert!(finder.fit(values(&|n, _| n.min(64)).into_iter()).is_none());
        assert!(finder.has_unfitted());
    }

    #[test]
    fn half_of_an_even_size_is_one_quotient() {
        let points: Vec<Point> = points().into_iter().map(|point| vec![2 * point[0]]).collect();
        let finder = FormulaFinder::new(&points, &[0], 1, true);
        let fit = |of: &dyn Fn(i64) -> i64| {
            finder.fit(points.iter().map(|point| of(point[0])).collect::<Vec<_>>().into_iter())
        };
        assert_eq!(fit(&|n| n / 2), fit(&|n| n - n / 2));
        assert!(fit(&|n| n / 2 * 3 + 1).is_some());
        assert_eq!(finder.into_quotients(), [Quotient { symbol: 0, plus: 0, by: 2 }]);
    }
}
