//! Polynomials over symbols with integer coefficients, in one normal form.
//!
//! In: terms. Out: terms without zeros or repetitions, the highest degree first, so that equal polynomials are equal
//! data. All arithmetic is exact; overflow of 64 bits gives `None`.

use std::cmp::Ordering;
use std::fmt;

use smallvec::SmallVec;

use super::symbols::Symbol;

/// A product of powers of symbols, by ascending symbol; empty for 1.
pub type Powers = SmallVec<[(Symbol, u32); 2]>;

/// A coefficient and its monomial.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Term {
    /// The coefficient.
    pub coefficient: i64,
    /// Symbols with their exponents.
    pub powers: Powers,
}

/// A polynomial that is not constant.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Formula {
    terms: Vec<Term>,
}

/// The sum of terms.
pub(super) enum Sum {
    Constant(i64),
    Formula(Formula),
}

impl Formula {
    /// The symbol itself.
    pub(super) fn symbol(symbol: Symbol) -> Formula {
        Formula { terms: vec![Term { coefficient: 1, powers: SmallVec::from_slice(&[(symbol, 1)]) }] }
    }

    /// The terms, the highest degree first.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The symbols, each once, in order.
    pub fn symbols(&self) -> Vec<Symbol> {
        let mut found: Vec<Symbol> =
            self.terms.iter().flat_map(|term| term.powers.iter().map(|power| power.0)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Its value for these values of symbols.
    pub(super) fn value(&self, value_of: impl Fn(Symbol) -> Option<i64>) -> Option<i64> {
        self.terms.iter().try_fold(0i64, |sum, term| {
            let product = term.powers.iter().try_fold(term.coefficient, |product, &(symbol, power)| {
                product.checked_mul(value_of(symbol)?.checked_pow(power)?)
            });
            sum.checked_add(product?)
        })
    }

    pub(super) fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &dyn Fn(&mut fmt::Formatter<'_>, Symbol) -> fmt::Result,
    ) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let (sign, size) = (term.coefficient < 0, term.coefficient.unsigned_abs());
            f.write_str(if sign {
                "-"
            } else if index > 0 {
                "+"
            } else {
                ""
            })?;
            let silent = size == 1 && !term.powers.is_empty();
            if !silent {
                write!(f, "{size}")?;
            }
            for (index, &(symbol, power)) in term.powers.iter().enumerate() {
                f.write_str(if index > 0 || !silent { "*" } else { "" })?;
                name(f, symbol)?;
                if power > 1 {
                    write!(f, "^{power}")?;
                }
            }
        }
        Ok(())
    }
}

/// Normalises terms; `None` if a coefficient overflows 64 bits.
pub(super) fn sum(mut terms: Vec<Term>) -> Option<Sum> {
    terms.sort_by(|a, b| order(&b.powers, &a.powers));
    let mut merged: Vec<Term> = Vec::with_capacity(terms.len());
    for term in terms {
        match merged.last_mut() {
            Some(last) if last.powers == term.powers => {
                last.coefficient = last.coefficient.checked_add(term.coefficient)?;
            }
            _ => merged.push(term),
        }
    }
    merged.retain(|term| term.coefficient != 0);
    Some(match merged.as_slice() {
        [] => Sum::Constant(0),
        [only] if only.powers.is_empty() => Sum::Constant(only.coefficient),
        _ => Sum::Formula(Formula { terms: merged }),
    })
}

/// The product of two terms.
pub(super) fn multiply(a: &Term, b: &Term) -> Option<Term> {
    let coefficient = a.coefficient.checked_mul(b.coefficient)?;
    let mut powers = a.powers.clone();
    for &(symbol, power) in &b.powers {
        match powers.binary_search_by_key(&symbol, |known| known.0) {
            Ok(at) => powers[at].1 = powers[at].1.checked_add(power)?,
            Err(at) => powers.insert(at, (symbol, power)),
        }
    }
    Some(Term { coefficient, powers })
}

/// The quotient of two polynomials, if the second divides the first.
pub(super) fn divide(dividend: &[Term], divisor: &[Term]) -> Option<Vec<Term>> {
    let lead = divisor.first()?;
    let mut rest = dividend.to_vec();
    let mut quotient = Vec::new();
    // The leading term of the remainder gets smaller in the order of terms, so the loop ends.
    while let Some(first) = rest.first() {
        let step = divide_term(first, lead)?;
        let minus = Term { coefficient: step.coefficient.checked_neg()?, powers: step.powers.clone() };
        for term in divisor {
            rest.push(multiply(term, &minus)?);
        }
        rest = match sum(rest)? {
            Sum::Constant(0) => Vec::new(),
            Sum::Constant(number) => vec![Term { coefficient: number, powers: Powers::new() }],
            Sum::Formula(formula) => formula.terms,
        };
        quotient.push(step);
    }
    Some(quotient)
}

fn divide_term(a: &Term, b: &Term) -> Option<Term> {
    if a.coefficient.checked_rem(b.coefficient)? != 0 {
        return None;
    }
    let mut powers = a.powers.clone();
    for &(symbol, power) in &b.powers {
        let at = powers.binary_search_by_key(&symbol, |known| known.0).ok()?;
        powers[at].1 = powers[at].1.checked_sub(power)?;
    }
    powers.retain(|power| power.1 > 0);
    Some(Term { coefficient: a.coefficient / b.coefficient, powers })
}

/// By degree, then by the powers of the first symbols.
fn order(a: &Powers, b: &Powers) -> Ordering {
    let degree = |powers: &Powers| powers.iter().map(|power| u64::from(power.1)).sum::<u64>();
    degree(a).cmp(&degree(b)).then_with(|| {
        let differing = a.iter().zip(b).find(|(a, b)| a != b);
        differing.map_or(Ordering::Equal, |(a, b)| b.0.cmp(&a.0).then(a.1.cmp(&b.1)))
    })
}
