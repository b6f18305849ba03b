//! Formulas of sizes, as SymPy writes them: `Mul(Integer(4), Symbol('s53', positive=True, integer=True))`.
//!
//! In: text. Out: a formula that can be evaluated when its symbols have values.

use std::collections::BTreeSet;
use std::fmt;

/// Maximal depth and length: formulas of real programs have some ten terms.
const DEPTH: usize = 64;
const LENGTH: usize = 1 << 16;

/// A formula over symbols.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Formula {
    Integer(i64),
    Symbol(String),
    Apply(Function, Vec<Formula>),
}

/// A function of integers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Function {
    Add,
    Mul,
    Pow,
    Min,
    Max,
    /// The quotient, rounded down.
    FloorDiv,
    /// The remainder, with the sign of the divisor.
    Mod,
}

/// Heads of formulas with the functions that they denote, and their numbers of operands.
const HEADS: [(&str, Function, usize, usize); 11] = [
    ("Add", Function::Add, 1, usize::MAX),
    ("Mul", Function::Mul, 1, usize::MAX),
    ("Pow", Function::Pow, 2, 2),
    ("Min", Function::Min, 1, usize::MAX),
    ("Max", Function::Max, 1, usize::MAX),
    ("FloorDiv", Function::FloorDiv, 2, 2),
    ("CleanDiv", Function::FloorDiv, 2, 2),
    ("IntTrueDiv", Function::FloorDiv, 2, 2),
    ("Mod", Function::Mod, 2, 2),
    ("PythonMod", Function::Mod, 2, 2),
    ("PowByNatural", Function::Pow, 2, 2),
];

impl Formula {
    /// Parses a formula.
    ///
    /// # Errors
    /// If it is none, or has a head that is unknown, as a sentence.
    pub fn parse(text: &str) -> Result<Formula, String> {
        if text.len() > LENGTH {
            return Err(format!("a formula has {} characters, at most {LENGTH} are read", text.len()));
        }
        let mut parser = Parser { rest: text };
        let found = parser.formula(0)?;
        if parser.rest.trim().is_empty() { Ok(found) } else { Err(parser.unexpected("the end")) }
    }

    /// The value, if all symbols have one and no step overflows or divides by zero.
    pub fn evaluate(&self, value: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        match self {
            Formula::Integer(number) => Some(*number),
            Formula::Symbol(name) => value(name),
            Formula::Apply(function, operands) => {
                let mut values = Vec::with_capacity(operands.len());
                for operand in operands {
                    values.push(operand.evaluate(value)?);
                }
                function.apply(&values)
            }
        }
    }

    /// The names of its symbols.
    pub fn symbols(&self) -> BTreeSet<&str> {
        match self {
            Formula::Integer(_) => BTreeSet::new(),
            Formula::Symbol(name) => BTreeSet::from([name.as_str()]),
            Formula::Apply(_, operands) => operands.iter().flat_map(Formula::symbols).collect(),
        }
    }
}

impl Function {
    fn apply(self, values: &[i64]) -> Option<i64> {
        match (self, values) {
            (Function::Add, values) => values.iter().try_fold(0i64, |sum, value| sum.checked_add(*value)),
            (Function::Mul, values) => {
                values.iter().try_fold(1i64, |product, value| product.checked_mul(*value))
            }
            (Function::Min, values) => values.iter().min().copied(),
            (Function::Max, values) => values.iter().max().copied(),
            (Function::Pow, [base, exponent]) => base.checked_pow(u32::try_from(*exponent).ok()?),
            (Function::FloorDiv, [a, b]) => floor_quotient(*a, *b),
            (Function::Mod, [a, b]) => floor_remainder(*a, *b),
            _ => None,
        }
    }
}

/// The quotient rounded down, as Python's `//`; `None` for a division by zero or an overflow.
pub(crate) fn floor_quotient(a: i64, b: i64) -> Option<i64> {
    let (quotient, remainder) = (a.checked_div(b)?, a.checked_rem(b)?);
    Some(if remainder != 0 && (remainder < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// The remainder with the sign of the divisor, as Python's `%`.
pub(crate) fn floor_remainder(a: i64, b: i64) -> Option<i64> {
    let remainder = a.checked_rem(b)?;
    Some(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder })
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |f: &mut fmt::Formatter<'_>, operands: &[Formula], between: &str| {
            operands.iter().enumerate().try_for_each(|(number, operand)| {
                let between = if number == 0 { "" } else { between };
                match operand {
                    Formula::Apply(Function::Add, _) if between != " + " => write!(f, "{between}({operand})"),
                    _ => write!(f, "{between}{operand}"),
                }
            })
        };
        match self {
            Formula::Integer(number) => write!(f, "{number}"),
            Formula::Symbol(name) => f.write_str(name),
            Formula::Apply(Function::Add, operands) => join(f, operands, " + "),
            Formula::Apply(Function::Mul, operands) => join(f, operands, "*"),
            Formula::Apply(Function::Pow, operands) => join(f, operands, "**"),
            Formula::Apply(Function::FloorDiv, operands) => join(f, operands, "//"),
            Formula::Apply(Function::Mod, operands) => join(f, operands, "%"),
            Formula::Apply(Function::Min | Function::Max, operands) => {
                f.write_str(if matches!(self, Formula::Apply(Function::Min, _)) { "min(" } else { "max(" })?;
                join(f, operands, ", ")?;
                f.write_str(")")
            }
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn formula(&mut self, depth: usize) -> Result<Formula, String> {
        if depth > DEPTH {
            return Err(format!("a formula is nested more than {DEPTH} levels deep"));
        }
        let head = self.word();
        self.expect('(')?;
        match head {
            "Integer" => {
                let end = self.rest.find(')').unwrap_or(self.rest.len());
                let number = self.rest[..end].trim().parse().map_err(|_| self.unexpected("an integer"))?;
                self.rest = &self.rest[end..];
                self.expect(')')?;
                Ok(Formula::Integer(number))
            }
            "Symbol" => {
                self.expect('\'')?;
                let end = self.rest.find('\'').ok_or_else(|| self.unexpected("a name"))?;
                let name = self.rest[..end].to_owned();
                // Assumptions of SymPy follow, such as `positive=True`: ranges say more.
                let close = self.rest.find(')').ok_or_else(|| self.unexpected("`)`"))?;
                self.rest = &self.rest[close..];
                self.expect(')')?;
                Ok(Formula::Symbol(name))
            }
            head => {
                let Some((_, function, least, most)) = HEADS.iter().find(|(known, ..)| *known == head) else {
                    return Err(format!("a formula has the unknown function `{head}`"));
                };
                let mut operands = vec![self.formula(depth + 1)?];
                while self.rest.trim_start().starts_with(',') {
                    self.expect(',')?;
                    operands.push(self.formula(depth + 1)?);
                }
                self.expect(')')?;
                if operands.len() < *least || operands.len() > *most {
                    return Err(format!("`{head}` in a formula has {} operands", operands.len()));
                }
                Ok(Formula::Apply(*function, operands))
            }
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        match self.rest.trim_start().strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.unexpected(&format!("`{wanted}`"))),
        }
    }

    fn unexpected(&self, wanted: &str) -> String {
        let found: String = self.rest.trim_start().chars().take(20).collect();
        format!("a formula has {found:?} where {wanted} was expected")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, s0: i64) -> Option<i64> {
        Formula::parse(text).unwrap().evaluate(&|name| (name == "s0").then_some(s0))
    }

    #[test]
    fn formulas_have_values() {
        let s0 = "Symbol('s0', positive=True, integer=True)";
        assert_eq!(at("Integer(-3)", 0), Some(-3));
        assert_eq!(at(&format!("Mul(Integer(4), Pow({s0}, Integer(2)))"), 3), Some(36));
        assert_eq!(at(&format!("Min(Integer(32), Add({s0}, Integer(1)))"), 3), Some(4));
        assert_eq!(at(&format!("FloorDiv(Mul(Integer(-1), {s0}), Integer(2))"), 3), Some(-2));
        assert_eq!(at(&format!("PythonMod(Mul(Integer(-1), {s0}), Integer(2))"), 3), Some(1));
        assert_eq!(at(&format!("FloorDiv({s0}, Integer(0))"), 3), None);
        assert_eq!(at(&format!("Mul({s0}, {s0})"), i64::MAX), None);
    }

    #[test]
    fn formulas_are_shown_as_python() {
        let text = "Mul(Integer(2), Add(Symbol('n', integer=True), Integer(1)))";
        assert_eq!(Formula::parse(text).unwrap().to_string(), "2*(n + 1)");
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| Formula::parse(text).unwrap_err();
        assert_eq!(error("Zeta(Integer(1))"), "a formula has the unknown function `Zeta`");
        assert_eq!(error("Mul(Integer(2)"), "a formula has \"\" where `)` was expected");
        assert_eq!(error("Integer(x)"), "a formula has \"x)\" where an integer was expected");
        assert!(error(&"Add(".repeat(5000)).contains("levels deep"));
        assert!(error("Mod(Integer(1))").contains("1 operands"));
    }
}
