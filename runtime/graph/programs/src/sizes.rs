//! Sizes of inputs: which of them are symbols, and which are sums of others.
//!
//! In: a formula for each size, over the symbols of a file. Out: a symbol for each size that others do not determine, and sums
//! of these for the rest. A symbol of the file that is no size itself is solved for: of `s0 + 1` and `2*s0 + 1`, the first is
//! a symbol `n`, and the second `2*n - 1`.

use std::collections::BTreeMap;

use opsmith_runtime::error::{Error, Result};

use crate::errors::unsupported;
use crate::expression::{Formula, Function};
use crate::model::Range;

/// A size of an input.
#[derive(Clone, PartialEq, Debug)]
pub enum ProgramSize {
    /// A number.
    Fixed(i64),
    /// A size that differs from run to run; equal names are equal sizes.
    Symbol {
        /// Its name, or the formula of a symbol: `2*s0`.
        name: String,
        /// A divisor of all its values.
        multiple_of: i64,
        /// Its least value.
        least: i64,
        /// Its greatest value; `None` if there is no bound.
        most: Option<i64>,
    },
    /// A size that others determine: a sum of multiples of symbols, and a number.
    Sum {
        /// Its formula in the file.
        name: String,
        /// The factors and the names of the symbols.
        terms: Vec<(i64, String)>,
        /// The number.
        plus: i64,
    },
}

/// The sizes of formulas, in their order.
///
/// # Errors
/// For each one, if a symbol has no bounds, or the formula is neither a symbol, nor a multiple of one, nor a sum of those of
/// other sizes.
pub(crate) fn sizes(formulas: &[&Formula], ranges: &BTreeMap<String, Range>) -> Vec<Result<ProgramSize>> {
    let solved = Solved::of(formulas);
    formulas.iter().map(|formula| solved.size(formula, ranges)).collect()
}

/// A sum of multiples of symbols, and a number.
#[derive(Clone, PartialEq, Debug)]
struct Linear {
    /// Factors other than 0, by name.
    terms: BTreeMap<String, i64>,
    plus: i64,
}

impl Linear {
    fn number(plus: i64) -> Linear {
        Linear { terms: BTreeMap::new(), plus }
    }

    fn symbol(name: &str) -> Linear {
        Linear { terms: BTreeMap::from([(name.to_owned(), 1)]), plus: 0 }
    }

    /// `None` if the formula is no such sum, or a number overflows.
    fn of(formula: &Formula) -> Option<Linear> {
        match formula {
            Formula::Integer(number) => Some(Linear::number(*number)),
            Formula::Symbol(name) => Some(Linear::symbol(name)),
            Formula::Apply(function, operands) => {
                let mut operands = operands.iter().map(Linear::of);
                let first = operands.next()??;
                operands.try_fold(first, |known, operand| known.combine(&operand?, *function))
            }
        }
    }

    fn combine(&self, other: &Linear, function: Function) -> Option<Linear> {
        match function {
            Function::Add => self.plus(other, 1),
            Function::Mul if self.terms.is_empty() => other.times(self.plus),
            Function::Mul if other.terms.is_empty() => self.times(other.plus),
            _ => None,
        }
    }

    fn times(&self, factor: i64) -> Option<Linear> {
        Linear::number(0).plus(self, factor)
    }

    /// The sum with a multiple of another one.
    fn plus(&self, other: &Linear, factor: i64) -> Option<Linear> {
        let mut sum = self.clone();
        sum.plus = sum.plus.checked_add(other.plus.checked_mul(factor)?)?;
        for (name, count) in &other.terms {
            let known = sum.terms.entry(name.clone()).or_insert(0);
            *known = known.checked_add(count.checked_mul(factor)?)?;
        }
        sum.terms.retain(|_, count| *count != 0);
        Some(sum)
    }

    /// The least or, with `most`, the greatest value; `None` if there is no bound, or it overflows.
    fn bound(&self, ranges: &BTreeMap<String, Range>, most: bool) -> Option<i64> {
        self.terms.iter().try_fold(self.plus, |sum, (name, factor)| {
            let range = ranges.get(name)?;
            let value = if (*factor > 0) == most { range.most? } else { range.least };
            sum.checked_add(factor.checked_mul(value)?)
        })
    }
}

/// The symbols of a file in terms of sizes.
struct Solved<'a> {
    /// For a symbol, the least factor whose multiple is known, and that multiple over `bases`.
    known: BTreeMap<String, (i64, Linear)>,
    /// The formulas that are symbols of the program.
    bases: Vec<&'a Formula>,
}

impl<'a> Solved<'a> {
    fn of(formulas: &[&'a Formula]) -> Solved<'a> {
        let mut solved = Solved { known: BTreeMap::new(), bases: Vec::new() };
        for formula in formulas {
            if let Formula::Symbol(name) = formula
                && !solved.known.contains_key(name)
            {
                solved.add(formula, name, 1, Linear::symbol(name));
            }
        }
        // The rest, those with the least factor first; one that is solved may solve others.
        while let Some((formula, name, factor, rest)) =
            formulas.iter().filter_map(|formula| solved.next(formula)).min_by_key(|(_, _, factor, _)| *factor)
        {
            let of_base = Linear::symbol(&formula.to_string());
            let Some(multiple) = of_base.plus(&rest, -1) else { break };
            solved.add(formula, &name, factor, multiple);
        }
        solved
    }

    fn add(&mut self, formula: &'a Formula, symbol: &str, factor: i64, multiple: Linear) {
        self.known.insert(symbol.to_owned(), (factor, multiple));
        self.bases.push(formula);
    }

    /// A formula with one symbol that is not known, its factor, and the rest, if it can become a base.
    fn next(&self, formula: &'a Formula) -> Option<(&'a Formula, String, i64, Linear)> {
        let linear = Linear::of(formula)?;
        let mut open = linear.terms.iter().filter(|(name, _)| !self.known.contains_key(*name));
        let (Some((name, factor)), None) = (open.next(), open.next()) else { return None };
        let mut others = linear.clone();
        others.terms.remove(name);
        let rest = self.over_bases(&others)?;
        // A multiple is checked when a program runs; another remainder could not be.
        let is_checked = *factor == 1 || *factor > 1 && rest.terms.is_empty() && rest.plus % factor == 0;
        is_checked.then(|| (formula, name.clone(), *factor, rest))
    }

    /// A sum over the program's symbols; `None` if they do not determine it.
    fn over_bases(&self, linear: &Linear) -> Option<Linear> {
        linear.terms.iter().try_fold(Linear::number(linear.plus), |sum, (name, count)| {
            let (factor, multiple) = self.known.get(name)?;
            if count % factor == 0 { sum.plus(multiple, count / factor) } else { None }
        })
    }

    fn size(&self, formula: &Formula, ranges: &BTreeMap<String, Range>) -> Result<ProgramSize> {
        if let Formula::Integer(number) = formula {
            return match number {
                0.. => Ok(ProgramSize::Fixed(*number)),
                _ => Err(Error::shape(format!("a size is {number}"))),
            };
        }
        if let Some(symbol) = formula.symbols().into_iter().find(|symbol| !ranges.contains_key(*symbol)) {
            return Err(Error::graph(format!("the symbol `{symbol}` has no bounds"))
                .with_help("the program is damaged: each symbol has a row in `range_constraints`"));
        }
        let linear = Linear::of(formula);
        let sum = linear.as_ref().and_then(|linear| self.over_bases(linear));
        let (Some(linear), Some(Linear { terms, plus })) = (linear, sum) else {
            return Err(unsupported(format!("a size {formula} of an input")).with_help(
                "export the program with sizes that are symbols, multiples of one, or sums of those of other inputs",
            ));
        };
        let name = formula.to_string();
        if !self.bases.contains(&formula) {
            let terms = terms.into_iter().map(|(name, factor)| (factor, name)).collect();
            return Ok(ProgramSize::Sum { name, terms, plus });
        }
        let beyond =
            || Error::graph(format!("the size {formula} has no value within the bounds of its symbols"));
        let is_bounded = linear.terms.keys().all(|name| ranges[name].most.is_some());
        let most = if is_bounded { Some(linear.bound(ranges, true).ok_or_else(beyond)?) } else { None };
        // Without an upper bound of one that is subtracted, there is no lower one.
        let is_difference = linear.terms.values().any(|factor| *factor < 0);
        let least = match linear.bound(ranges, false) {
            Some(least) => least.max(0),
            None if is_difference => 0,
            None => return Err(beyond()),
        };
        let multiple_of = match linear.terms.values().collect::<Vec<_>>()[..] {
            [factor] => *factor,
            _ => 1,
        };
        Ok(ProgramSize::Symbol { name, multiple_of, least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of formulas of symbols from 2 to 50, as texts.
    fn of(formulas: &[&str]) -> Vec<String> {
        let symbol = |name: &str| format!("Symbol('{name}', integer=True)");
        let formulas: Vec<Formula> = formulas
            .iter()
            .map(|text| {
                let text = text.replace("@a", &symbol("A")).replace("@b", &symbol("B"));
                Formula::parse(&text).unwrap()
            })
            .collect();
        let range = || Range { least: 2, most: Some(50) };
        let ranges = BTreeMap::from([("A".to_owned(), range()), ("B".to_owned(), range())]);
        let found = sizes(&formulas.iter().collect::<Vec<_>>(), &ranges).into_iter();
        found
            .map(|size| match size {
                Ok(ProgramSize::Symbol { name, multiple_of, least, most }) => {
                    format!("{name}: {multiple_of}, {least} to {}", most.unwrap())
                }
                Ok(ProgramSize::Sum { name, terms, plus }) => format!("{name} = {terms:?} + {plus}"),
                Ok(ProgramSize::Fixed(size)) => size.to_string(),
                Err(error) => error.message().to_owned(),
            })
            .collect()
    }

    #[test]
    fn sums_of_sizes_are_no_symbols_of_their_own() {
        let (plus, twice) = ("Add(@a, Integer(1))", "Mul(Integer(2), @a)");
        assert_eq!(of(&["Integer(3)", "@a", "@a"]), ["3", "A: 1, 2 to 50", "A: 1, 2 to 50"]);
        assert_eq!(of(&["Add(@a, @b)", "@b", "@a"])[0], r#"A + B = [(1, "A"), (1, "B")] + 0"#);
        assert_eq!(of(&[plus, "@a"])[0], r#"A + 1 = [(1, "A")] + 1"#);
        assert_eq!(of(&[twice]), ["2*A: 2, 4 to 100"]);
        assert_eq!(of(&[twice, "@a"])[0], r#"2*A = [(2, "A")] + 0"#);
    }

    #[test]
    fn symbols_that_are_no_size_are_solved_for() {
        let (plus, odd) = ("Add(@a, Integer(1))", "Add(Mul(Integer(2), @a), Integer(1))");
        assert_eq!(of(&[odd, plus]), [r#"2*A + 1 = [(2, "A + 1")] + -1"#, "A + 1: 1, 3 to 51"]);
        assert_eq!(
            of(&["Mul(Integer(4), @a)", "Mul(Integer(2), @a)", odd]),
            [r#"4*A = [(2, "2*A")] + 0"#, "2*A: 2, 4 to 100", r#"2*A + 1 = [(1, "2*A")] + 1"#]
        );
        // The length of a mask is the only place of the cached tokens' number.
        assert_eq!(of(&["@a", "Add(@a, @b)", "@b"])[1], r#"A + B = [(1, "A"), (1, "B")] + 0"#);
        assert_eq!(of(&["@a", "Add(@a, @b)"]), ["A: 1, 2 to 50", "A + B: 1, 4 to 100"]);
        assert_eq!(of(&["@a", "Add(@b, Mul(Integer(-1), @a))"])[1], "B + -1*A: 1, 0 to 48");
    }

    #[test]
    fn sizes_that_nothing_determines_are_refused() {
        let odd = "Add(Mul(Integer(2), @a), Integer(1))";
        assert_eq!(of(&[odd]), ["a size 2*A + 1 of an input is not supported"]);
        assert_eq!(of(&["Mul(@a, @b)", "@a", "@b"])[0], "a size A*B of an input is not supported");
        assert_eq!(of(&["FloorDiv(@a, Integer(2))"]), ["a size A//2 of an input is not supported"]);
        assert_eq!(of(&["Add(@a, @b)"]), ["a size A + B of an input is not supported"]);
    }
}
