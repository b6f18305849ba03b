//! A size that may be a number, a formula over symbols, or unknown.
//!
//! In: numbers and symbols. Out: sums, products, quotients, and comparisons that may be undecided. Constants cost as
//! much as numbers; only formulas allocate.

use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::Arc;

pub use super::formula::Formula;
use super::formula::{self, Powers, Sum, Term};
use super::range::Range;
use super::symbols::{Bindings, Symbol, Symbols};

/// A size, or another integer in the description of a shape.
///
/// It is a number, a polynomial over [`Symbol`]s with integer coefficients, or unknown. Equal sizes are equal data:
/// `s0+1-s0` is the number 1. A result of an unknown operand, or one that overflows 64 bits, is unknown.
///
/// ```
/// use opsmith_runtime::infer::symbolic::{Size, Symbols};
///
/// let mut symbols = Symbols::new();
/// let symbol = symbols.fresh();
/// let batch = Size::from(symbol);
/// let padded = &batch * &Size::from(4) + Size::from(1);
/// assert_eq!(padded.to_string(), "4*s0+1");
/// assert_eq!((padded - batch.clone() * Size::from(4)).known(), Some(1));
/// let bindings = symbols.bind(&[(symbol, 8)])?;
/// assert_eq!(batch.bind(&bindings), Some(8));
/// # Ok::<(), opsmith_runtime::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Size {
    /// A number.
    Const(i64),
    /// A formula, never a constant one.
    Formula(Arc<Formula>),
    /// Unknown; written −1. Two unknown sizes need not be equal, although they are equal as data.
    Unknown,
}

impl Size {
    /// The number, if it is one.
    #[inline]
    pub fn known(&self) -> Option<i64> {
        match self {
            Size::Const(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether it is unknown.
    #[inline]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Size::Unknown)
    }

    /// The symbols in it, each once, in order.
    pub fn symbols(&self) -> Vec<Symbol> {
        match self {
            Size::Formula(formula) => formula.symbols(),
            _ => Vec::new(),
        }
    }

    /// The symbol, if it is a single symbol.
    pub fn as_symbol(&self) -> Option<Symbol> {
        match self {
            Size::Formula(formula) => match formula.terms() {
                [Term { coefficient: 1, powers }] => match powers.as_slice() {
                    [(symbol, 1)] => Some(*symbol),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Its number for these values of symbols; `None` if it is unknown, a symbol has no value, or the number overflows
    /// 64 bits.
    #[inline]
    pub fn bind(&self, bindings: &Bindings) -> Option<i64> {
        self.evaluate(|symbol| bindings.get(symbol))
    }

    /// As [`Size::bind`], with a function that gives the values.
    #[inline]
    pub fn evaluate(&self, value_of: impl Fn(Symbol) -> Option<i64>) -> Option<i64> {
        match self {
            Size::Const(value) => Some(*value),
            Size::Formula(formula) => formula.value(value_of),
            Size::Unknown => None,
        }
    }

    /// The size with sizes substituted for its symbols.
    #[must_use]
    pub fn substitute(&self, size_of: impl Fn(Symbol) -> Size) -> Size {
        let Size::Formula(formula) = self else { return self.clone() };
        formula.terms().iter().fold(Size::Const(0), |sum, term| {
            let factors = term.powers.iter().flat_map(|&(symbol, power)| (0..power).map(move |_| symbol));
            sum + factors.fold(Size::Const(term.coefficient), |product, symbol| product * size_of(symbol))
        })
    }

    /// The quotient, if the division is exact for all values of the symbols: `6*s0*s1` by `2*s0` is `3*s1`. As in all
    /// formulas, symbols in a divisor are assumed not to be 0.
    pub fn div_exact(&self, divisor: &Size) -> Option<Size> {
        match (self, divisor) {
            (Size::Const(a), Size::Const(b)) => (a.checked_rem(*b)? == 0).then(|| Size::Const(a / b)),
            (Size::Unknown, _) | (_, Size::Unknown) => None,
            (a, b) => match formula::sum(formula::divide(&a.terms(), &b.terms())?)? {
                Sum::Constant(value) => Some(Size::Const(value)),
                Sum::Formula(formula) => Some(Size::Formula(Arc::new(formula))),
            },
        }
    }

    /// The formula that fits sample points: `points` are the values of the symbols 0, 1, … and the number for them.
    ///
    /// It is a constant, linear in the symbols, a coefficient times a product of powers, or a polynomial of second
    /// degree, the first of these that fits; always with integer coefficients and exact at every point.
    ///
    /// ```
    /// use opsmith_runtime::infer::symbolic::Size;
    ///
    /// let points: [(&[i64], i64); 4] = [(&[2, 3], 13), (&[5, 3], 19), (&[2, 7], 29), (&[11, 13], 71)];
    /// assert_eq!(Size::fit(&points).unwrap().to_string(), "2*s0+4*s1-3");
    /// ```
    /// `None` if no such formula fits, or if the points do not determine one: at least one of them must confirm the
    /// formula that the others determine. Linear formulas of n symbols take n + 2 points that lie in no plane.
    pub fn fit(points: &[(&[i64], i64)]) -> Option<Size> {
        super::opaque::fit::fit(points)
    }

    /// Whether two sizes are equal; `None` if that depends on unknown values.
    #[inline]
    pub fn equals(&self, other: &Size, symbols: &Symbols) -> Option<bool> {
        match (self, other) {
            (Size::Const(a), Size::Const(b)) => Some(a == b),
            (Size::Unknown, _) | (_, Size::Unknown) => None,
            (a, b) if a == b => Some(true),
            (a, b) => match (a.clone() - b.clone()).range(symbols) {
                range if !range.contains(0) => Some(false),
                _ => None,
            },
        }
    }

    /// Whether it is less than another; `None` if that depends on unknown values.
    #[inline]
    pub fn is_less(&self, other: &Size, symbols: &Symbols) -> Option<bool> {
        match (self, other) {
            (Size::Const(a), Size::Const(b)) => Some(a < b),
            (a, b) => match (a.clone() - b.clone()).range(symbols) {
                Range { high, .. } if high < 0 => Some(true),
                Range { low, .. } if low >= 0 => Some(false),
                _ => None,
            },
        }
    }

    /// The interval of its possible values.
    pub(super) fn range(&self, symbols: &Symbols) -> Range {
        match self {
            Size::Const(value) => Range::only(*value),
            Size::Formula(formula) => Range::of(formula, symbols),
            Size::Unknown => Range::ALL,
        }
    }

    /// The least value it can have; `None` if there is no bound.
    pub fn lower_bound(&self, symbols: &Symbols) -> Option<i64> {
        Some(self.range(symbols).low).filter(|low| *low != i64::MIN)
    }

    /// The greatest value it can have; `None` if there is no bound.
    pub fn upper_bound(&self, symbols: &Symbols) -> Option<i64> {
        Some(self.range(symbols).high).filter(|high| *high != i64::MAX)
    }

    /// Its text with the names of a symbol table.
    pub fn named<'a>(&'a self, symbols: &'a Symbols) -> impl fmt::Display + 'a {
        std::fmt::from_fn(move |f| self.write(f, &|f, symbol| symbols.write_name(f, symbol)))
    }

    /// Its text with given names; a symbol without one has its default name.
    pub fn with_names<'a>(&'a self, name: &'a dyn Fn(Symbol) -> Option<&'a str>) -> impl fmt::Display + 'a {
        std::fmt::from_fn(move |f| {
            self.write(f, &|f, symbol| match name(symbol) {
                Some(name) => f.write_str(name),
                None => write!(f, "{symbol}"),
            })
        })
    }

    pub(super) fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &dyn Fn(&mut fmt::Formatter<'_>, Symbol) -> fmt::Result,
    ) -> fmt::Result {
        match self {
            Size::Const(value) => write!(f, "{value}"),
            Size::Formula(formula) => formula.write(f, name),
            Size::Unknown => f.write_str("-1"),
        }
    }

    /// Whether its text is a sum.
    pub(super) fn is_sum(&self) -> bool {
        matches!(self, Size::Formula(formula) if formula.terms().len() > 1)
    }

    /// The terms of a size that is not unknown.
    fn terms(&self) -> Vec<Term> {
        match self {
            Size::Const(0) | Size::Unknown => Vec::new(),
            Size::Const(value) => vec![Term { coefficient: *value, powers: Powers::new() }],
            Size::Formula(formula) => formula.terms().to_vec(),
        }
    }

    /// The sum of terms; unknown on overflow of 64 bits.
    pub(super) fn from_terms(terms: Option<Vec<Term>>) -> Size {
        match terms.and_then(formula::sum) {
            Some(Sum::Constant(value)) => Size::Const(value),
            Some(Sum::Formula(formula)) => Size::Formula(Arc::new(formula)),
            None => Size::Unknown,
        }
    }
}

/// With default names, a letter and a number: `4*s0+1`, and −1 if unknown.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &|f, symbol| write!(f, "{symbol}"))
    }
}

impl From<i64> for Size {
    #[inline]
    fn from(value: i64) -> Size {
        Size::Const(value)
    }
}

impl From<Symbol> for Size {
    fn from(symbol: Symbol) -> Size {
        Size::Formula(Arc::new(Formula::symbol(symbol)))
    }
}

impl PartialEq<i64> for Size {
    fn eq(&self, other: &i64) -> bool {
        self.known() == Some(*other)
    }
}

fn checked(value: Option<i64>) -> Size {
    value.map_or(Size::Unknown, Size::Const)
}

fn add(a: &Size, b: &Size) -> Size {
    match (a, b) {
        (Size::Const(a), Size::Const(b)) => checked(a.checked_add(*b)),
        (Size::Unknown, _) | (_, Size::Unknown) => Size::Unknown,
        (size, Size::Const(0)) | (Size::Const(0), size) => size.clone(),
        (a, b) => Size::from_terms(Some([a.terms(), b.terms()].concat())),
    }
}

fn mul(a: &Size, b: &Size) -> Size {
    match (a, b) {
        (Size::Const(a), Size::Const(b)) => checked(a.checked_mul(*b)),
        // The product is 0 for any other factor.
        (Size::Const(0), _) | (_, Size::Const(0)) => Size::Const(0),
        (Size::Unknown, _) | (_, Size::Unknown) => Size::Unknown,
        (size, Size::Const(1)) | (Size::Const(1), size) => size.clone(),
        (a, b) => {
            let (left, right) = (a.terms(), b.terms());
            let products = left.iter().flat_map(|a| right.iter().map(|b| formula::multiply(a, b)));
            Size::from_terms(products.collect())
        }
    }
}

fn sub(a: &Size, b: &Size) -> Size {
    match (a, b) {
        (Size::Const(a), Size::Const(b)) => checked(a.checked_sub(*b)),
        (a, b) => add(a, &mul(&Size::Const(-1), b)),
    }
}

macro_rules! operator {
    ($($trait:ident, $method:ident, $function:ident;)*) => {$(
        impl $trait for Size {
            type Output = Size;
            #[inline]
            fn $method(self, other: Size) -> Size {
                $function(&self, &other)
            }
        }
        impl $trait<&Size> for &Size {
            type Output = Size;
            #[inline]
            fn $method(self, other: &Size) -> Size {
                $function(self, other)
            }
        }
    )*};
}
operator! {
    Add, add, add;
    Sub, sub, sub;
    Mul, mul, mul;
}

impl Neg for Size {
    type Output = Size;
    fn neg(self) -> Size {
        sub(&Size::Const(0), &self)
    }
}
