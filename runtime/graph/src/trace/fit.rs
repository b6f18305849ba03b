//! Formulas of numbers that vary with the sizes of a trace.
//!
//! In: sample points, and a number for each. Out: the formula over symbols that gives these numbers. Sizes that a
//! function divides get formulas of quotients, which are derived symbols; fitting them takes more points than other
//! formulas, to distinguish quotients. The fitting itself is the runtime's ([`Samples`]).

use std::cell::{Cell, RefCell};

use opsmith_runtime::infer::symbolic::{Size, Symbol, Symbols};
use opsmith_runtime::internals::Samples;
use smallvec::SmallVec;

use super::sample_points::Point;

pub(crate) struct FormulaFinder {
    samples: Samples,
    /// The number of input symbols, if quotients of them are tried.
    divided: Option<usize>,
    /// All symbols; those of new quotients come last.
    symbols: RefCell<Symbols>,
    /// Whether some numbers had no formula.
    unfitted: Cell<bool>,
}

impl FormulaFinder {
    /// Fits formulas over the `free` symbols. With `divided`, quotients of the first `divided` symbols are tried.
    pub fn new(points: &[Point], free: &[usize], symbols: &Symbols, divided: Option<usize>) -> FormulaFinder {
        let column =
            |&symbol: &usize| (Symbol(symbol as u32), points.iter().map(|point| point[symbol]).collect());
        FormulaFinder {
            samples: Samples::new(free.iter().map(column).collect()),
            divided,
            symbols: RefCell::new(symbols.clone()),
            unfitted: Cell::new(false),
        }
    }

    /// Whether some numbers had no formula, so that more points may help.
    pub fn has_unfitted(&self) -> bool {
        self.unfitted.get()
    }

    /// The symbols used by formulas, those of quotients last.
    pub fn into_symbols(self) -> Symbols {
        self.symbols.into_inner()
    }

    /// The formula that gives a number at each point.
    pub fn fit(&self, numbers: impl Iterator<Item = i64>) -> Option<Size> {
        let numbers: SmallVec<[i64; 8]> = numbers.collect();
        let first = *numbers.first()?;
        if numbers.iter().all(|number| *number == first) {
            return Some(Size::Const(first));
        }
        let FormulaFinder { samples, symbols, .. } = self;
        let with_known = || samples.polynomial_of_derived(&numbers, &symbols.borrow());
        let product = || samples.product_of_derived(&numbers, &symbols.borrow());
        let divided = || samples.quotient(&numbers, self.divided?, &mut symbols.borrow_mut());
        let found = samples.polynomial(&numbers).or_else(with_known).or_else(product).or_else(divided);
        self.unfitted.set(self.unfitted.get() || found.is_none());
        found
    }
}
