//! Conditions on the sizes of inputs, as the exporter writes them in Python: `L['ids'].size()[1] <= 64`.
//!
//! In: text, and the sizes of inputs, or inputs that are numbers. Out: whether the condition holds; `None` where the text says more than sizes of
//! inputs by name. Such a condition is listed by `Program::check`, never taken to hold in silence.

use std::cmp::Ordering;

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
    Real(f64),
}

impl Found {
    fn truth(self) -> Option<bool> {
        match self {
            Found::Truth(truth) => Some(truth),
            Found::Number(_) | Found::Real(_) => None,
        }
    }

    fn real(self) -> Option<f64> {
        match self {
            Found::Number(number) => Some(number as f64),
            Found::Real(number) => Some(number),
            Found::Truth(_) => None,
        }
    }

    /// An operation on integers, or on floats if one is.
    fn with(
        self,
        other: Found,
        integers: fn(i64, i64) -> Option<i64>,
        reals: fn(f64, f64) -> f64,
    ) -> Option<Found> {
        match (self, other) {
            (Found::Number(a), Found::Number(b)) => integers(a, b).map(Found::Number),
            _ => Some(Found::Real(reals(self.real()?, other.real()?))),
        }
    }

    fn order(self, other: Found) -> Option<Ordering> {
        match (self, other) {
            (Found::Number(a), Found::Number(b)) => Some(a.cmp(&b)),
            _ => self.real()?.partial_cmp(&other.real()?),
        }
    }

    /// An integer of a rounded float.
    fn rounded(self, round: fn(f64) -> f64) -> Option<Found> {
        match self {
            Found::Real(number) => {
                let number = round(number);
                (number.abs() < 9e15).then_some(Found::Number(number as i64))
            }
            Found::Number(_) => Some(self),
            Found::Truth(_) => None,
        }
    }
}

/// The power of two numbers, an integer of integers if the exponent is not negative, as in Python.
fn power(base: Found, exponent: Found) -> Option<Found> {
    match (base, exponent) {
        (Found::Number(base), Found::Number(exponent)) if exponent >= 0 => {
            base.checked_pow(u32::try_from(exponent).ok()?).map(Found::Number)
        }
        _ => Some(Found::Real(base.real()?.powf(exponent.real()?))),
    }
}

/// The functions of one number by their names.
fn function(name: &str) -> Option<fn(Found) -> Option<Found>> {
    Some(match name {
        "torch.sym_float" | "float" => |number| number.real().map(Found::Real),
        "math.trunc" | "torch.sym_int" | "int" => |number| number.rounded(f64::trunc),
        "math.floor" => |number| number.rounded(f64::floor),
        "math.ceil" => |number| number.rounded(f64::ceil),
        "math.sqrt" | "torch.sym_sqrt" | "torch._sym_sqrt" => {
            |number| number.real().map(|number| Found::Real(number.sqrt()))
        }
        _ => return None,
    })
}

/// Whether the order of two numbers is the one of a comparison.
type Comparison = fn(Ordering) -> bool;

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
            ("<=", Ordering::is_le),
            (">=", Ordering::is_ge),
            ("==", Ordering::is_eq),
            ("!=", Ordering::is_ne),
            ("<", Ordering::is_lt),
            (">", Ordering::is_gt),
        ];
        let first = self.sum()?;
        let (mut left, mut chain) = (first, None);
        while let Some((_, compare)) = COMPARISONS.iter().find(|(token, _)| self.take(token)) {
            let right = self.sum()?;
            chain = Some(chain.unwrap_or(true) & compare(left.order(right)?));
            left = right;
        }
        Some(chain.map_or(first, Found::Truth))
    }

    fn sum(&mut self) -> Option<Found> {
        let mut found = self.product()?;
        loop {
            found = match () {
                () if self.take("+") => found.with(self.product()?, i64::checked_add, |a, b| a + b)?,
                () if self.take("-") => found.with(self.product()?, i64::checked_sub, |a, b| a - b)?,
                () => return Some(found),
            };
        }
    }

    fn product(&mut self) -> Option<Found> {
        let mut found = self.power()?;
        loop {
            found = match () {
                () if self.take("//") => found.with(self.power()?, floor_quotient, |a, b| (a / b).floor())?,
                () if self.take("/") => Found::Real(found.real()? / self.power()?.real()?),
                () if self.take("*") => found.with(self.power()?, i64::checked_mul, |a, b| a * b)?,
                () if self.take("%") => {
                    found.with(self.power()?, floor_remainder, |a, b| a - b * (a / b).floor())?
                }
                () => return Some(found),
            };
        }
    }

    /// A power, or the negative of one.
    fn power(&mut self) -> Option<Found> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let found = if self.take("-") {
            Found::Number(0).with(self.power()?, i64::checked_sub, |_, b| -b)?
        } else {
            let base = self.factor()?;
            if self.take("**") { power(base, self.power()?)? } else { base }
        };
        self.depth -= 1;
        Some(found)
    }

    /// The head of a function that is the least or the greatest of numbers, with its parenthesis: the order in which another
    /// number replaces one.
    fn extremum(&mut self) -> Option<Ordering> {
        const EXTREMA: [(&str, Ordering); 6] = [
            ("torch.sym_max(", Ordering::Greater),
            ("torch.sym_min(", Ordering::Less),
            ("max(", Ordering::Greater),
            ("min(", Ordering::Less),
            ("Max(", Ordering::Greater),
            ("Min(", Ordering::Less),
        ];
        EXTREMA.iter().find(|(head, _)| self.take(head)).map(|(_, order)| *order)
    }

    /// The head of a function of one number, with its parenthesis.
    fn function(&mut self) -> Option<fn(Found) -> Option<Found>> {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_')?;
        let found = function(&rest[..end])?;
        self.rest = &rest[end..];
        self.take("(").then_some(found)
    }

    /// A number, a size of an input, a function, or an expression in parentheses.
    fn factor(&mut self) -> Option<Found> {
        if self.take("(") {
            let found = self.either()?;
            return self.take(")").then_some(found);
        }
        if let Some(order) = self.extremum() {
            let mut found = self.sum()?;
            while self.take(",") {
                let other = self.sum()?;
                found = if other.order(found)? == order { other } else { found };
            }
            return self.take(")").then_some(found);
        }
        if self.take("L['") {
            let name = self.path()?;
            let dim = match self.take(".size()[") {
                true => {
                    let dim = usize::try_from(self.digits()?).ok()?;
                    self.take("]").then_some(Some(dim))?
                }
                false => None,
            };
            return (self.size)(&name, dim).map(Found::Number);
        }
        if let Some(function) = self.function() {
            let found = function(self.sum()?)?;
            return self.take(")").then_some(found);
        }
        self.literal()
    }

    /// A number with or without a point.
    fn literal(&mut self) -> Option<Found> {
        let rest = self.rest.trim_start();
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let whole = digits(rest);
        let Some(part) = rest[whole..].strip_prefix('.') else { return self.digits().map(Found::Number) };
        let mut end = whole + 1 + digits(part);
        if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['-', '+']));
            end += 1 + sign + digits(&exponent[sign..]);
        }
        let number = rest[..end].parse().ok()?;
        self.rest = &rest[end..];
        Some(Found::Real(number))
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
        assert_eq!(at("-2**2 == -4 and 2**-1 == 0.5 and 2**3**2 == 512"), Some(true));
        assert_eq!(at("math.trunc(0.75 * torch.sym_float(L['ids'].size()[1])) == 12"), Some(true));
        assert_eq!(at("L['ids'].size()[1]**0.5 > 4.0e0"), Some(false));
        assert_eq!(at("math.ceil(7 / 2) == 4 and math.floor(-2.5) == -3 and math.sqrt(16) == 4"), Some(true));
        assert_eq!(at("torch.sym_max(0.5, L['ids'].size()[0], 1) == 2"), Some(true));
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
