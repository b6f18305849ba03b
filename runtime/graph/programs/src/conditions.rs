//! Conditions on the sizes of inputs, as the exporter writes them in Python: `L['ids'].size()[1] <= 64`.
//!
//! In: text, and the sizes of inputs, or inputs that are numbers. Out: whether the condition holds; `None` where the text says more than sizes of
//! inputs by name. Such a condition is listed by `Program::check`, never taken to hold in silence.

use crate::expression::{floor_quotient, floor_remainder};

/// Maximal depth of parentheses.
const DEPTH: usize = 64;

/// A size by the name of an input and a dimension; without, the number that the input is.
type Sizes<'a> = &'a dyn Fn(&str, Option<usize>) -> Option<i64>;

/// Whether a condition holds for these sizes.
pub(crate) fn holds(text: &str, size: Sizes<'_>) -> Option<bool> {
    let mut parser = Parser { rest: text, size, depth: 0 };
    let found = parser.either()?;
    match found {
        Found::Truth(truth) if parser.rest.trim().is_empty() => Some(truth),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Found {
    Truth(bool),
    Number(i64),
}

impl Found {
    fn number(self) -> Option<i64> {
        match self {
            Found::Number(number) => Some(number),
            Found::Truth(_) => None,
        }
    }

    fn truth(self) -> Option<bool> {
        match self {
            Found::Truth(truth) => Some(truth),
            Found::Number(_) => None,
        }
    }
}

type Comparison = fn(i64, i64) -> bool;

/// One of two numbers.
type Select = fn(i64, i64) -> i64;

struct Parser<'a> {
    rest: &'a str,
    size: Sizes<'a>,
    depth: usize,
}

impl Parser<'_> {
    /// Takes a token if it comes next.
    fn take(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn either(&mut self) -> Option<Found> {
        let mut found = self.both()?;
        while self.take("or ") {
            let other = self.both()?;
            found = Found::Truth(found.truth()? | other.truth()?);
        }
        Some(found)
    }

    fn both(&mut self) -> Option<Found> {
        let mut found = self.opposite()?;
        while self.take("and ") {
            let other = self.opposite()?;
            found = Found::Truth(found.truth()? & other.truth()?);
        }
        Some(found)
    }

    fn opposite(&mut self) -> Option<Found> {
        let mut odd = false;
        while self.take("not ") {
            odd = !odd;
        }
        let found = self.comparison()?;
        if odd { Some(Found::Truth(!found.truth()?)) } else { Some(found) }
    }

    /// A sum, or a chain of comparisons, `1 < a <= b`.
    fn comparison(&mut self) -> Option<Found> {
        /// Longer tokens first.
        const COMPARISONS: [(&str, Comparison); 6] = [
            ("<=", |a, b| a <= b),
            (">=", |a, b| a >= b),
            ("==", |a, b| a == b),
            ("!=", |a, b| a != b),
            ("<", |a, b| a < b),
            (">", |a, b| a > b),
        ];
        let first = self.sum()?;
        let (mut left, mut chain) = (first, None);
        while let Some((_, compare)) = COMPARISONS.iter().find(|(token, _)| self.take(token)) {
            let right = self.sum()?;
            chain = Some(chain.unwrap_or(true) & compare(left.number()?, right.number()?));
            left = right;
        }
        Some(chain.map_or(first, Found::Truth))
    }

    fn sum(&mut self) -> Option<Found> {
        let mut found = self.product()?;
        loop {
            let step: fn(i64, i64) -> Option<i64> = match () {
                () if self.take("+") => i64::checked_add,
                () if self.take("-") => i64::checked_sub,
                () => return Some(found),
            };
            let other = self.product()?;
            found = Found::Number(step(found.number()?, other.number()?)?);
        }
    }

    fn product(&mut self) -> Option<Found> {
        let mut found = self.factor()?;
        loop {
            let step: fn(i64, i64) -> Option<i64> = match () {
                () if self.take("//") => floor_quotient,
                () if self.take("**") => |a, b| a.checked_pow(u32::try_from(b).ok()?),
                () if self.take("*") => i64::checked_mul,
                () if self.take("%") => floor_remainder,
                () => return Some(found),
            };
            let other = self.factor()?;
            found = Found::Number(step(found.number()?, other.number()?)?);
        }
    }

    /// The head of a function that is the least or the greatest of numbers, with its parenthesis.
    fn extremum(&mut self) -> Option<Select> {
        const EXTREMA: [(&str, Select); 6] = [
            ("torch.sym_max(", i64::max),
            ("torch.sym_min(", i64::min),
            ("max(", i64::max),
            ("min(", i64::min),
            ("Max(", i64::max),
            ("Min(", i64::min),
        ];
        EXTREMA.iter().find(|(head, _)| self.take(head)).map(|(_, select)| *select)
    }

    /// A number, a size of an input, or an expression in parentheses.
    fn factor(&mut self) -> Option<Found> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let found = if self.take("-") {
            Found::Number(self.factor()?.number()?.checked_neg()?)
        } else if self.take("(") {
            let found = self.either()?;
            self.take(")").then_some(found)?
        } else if let Some(select) = self.extremum() {
            let mut number = self.sum()?.number()?;
            while self.take(",") {
                number = select(number, self.sum()?.number()?);
            }
            self.take(")").then_some(Found::Number(number))?
        } else if self.take("L['") {
            let name = self.path()?;
            let dim = match self.take(".size()[") {
                true => {
                    let dim = usize::try_from(self.digits()?).ok()?;
                    self.take("]").then_some(Some(dim))?
                }
                false => None,
            };
            Found::Number((self.size)(&name, dim)?)
        } else {
            Found::Number(self.digits()?)
        };
        self.depth -= 1;
        Some(found)
    }

    /// The name of an input behind `L['`: that of the argument, with the places in its lists and dictionaries, as the exporter
    /// joins them: `L['batch']['ids'][0]` is `batch_ids_0`.
    fn path(&mut self) -> Option<String> {
        let (first, rest) = self.rest.split_once("']")?;
        self.rest = rest;
        let mut name = first.to_owned();
        loop {
            let part = match () {
                () if self.take("['") => {
                    let (key, rest) = self.rest.split_once("']")?;
                    self.rest = rest;
                    key.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
                }
                () if self.take("[") => {
                    let place = self.digits()?;
                    self.take("]").then(|| place.to_string())?
                }
                () => return Some(name),
            };
            name = format!("{name}_{part}");
        }
    }

    fn digits(&mut self) -> Option<i64> {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..end].parse().ok()?;
        self.rest = &rest[end..];
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<bool> {
        holds(text, &|name, dim| match (name, dim) {
            ("ids", Some(dim)) => [2, 16].get(dim).copied(),
            ("batch_mask_0", Some(0)) => Some(3),
            ("args_1", None) => Some(5),
            _ => None,
        })
    }

    #[test]
    fn conditions_of_sizes_are_evaluated() {
        assert_eq!(at("L['ids'].size()[1] <= 64"), Some(true));
        assert_eq!(at("L['ids'].size()[1] == L['ids'].size()[0]"), Some(false));
        assert_eq!(at("(L['ids'].size()[1] % 8) == 0 and not L['ids'].size()[0] != 2"), Some(true));
        assert_eq!(at("2 <= L['ids'].size()[0] < 2 or 7 // 2 == 3"), Some(true));
        assert_eq!(at("-1 + 2*3 == 5"), Some(true));
        assert_eq!(at("2**3 == 8"), Some(true));
        let past = "L['ids'].size()[1] == (20 + ((-1)*torch.sym_max(0, 20 + ((-1)*L['ids'].size()[1]))))";
        assert_eq!(at(past), Some(true));
        assert_eq!(at("L['batch']['mask'][0].size()[0]*L['args'][1] != 15"), Some(false));
        assert_eq!(at("Min(3, L['ids'].size()[0], 7) == 2"), Some(true));
    }

    #[test]
    fn what_is_not_understood_is_undecided() {
        for text in [
            "",
            "L['x'].size()[0] == 1",
            "L['ids'][0].size()[0] == 1",
            "f(1) == 1",
            "1",
            "1 == 1 1",
            "1 % 0 == 0",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
        assert_eq!(at(&"(".repeat(100_000)), None);
    }
}
