//! A derivative as the text of a gradient formula over tensors.

use std::fmt;

use super::{Known, Partial, Slope, Sym};

/// Operators and names for writing a gradient formula.
pub(in crate::lower) struct Writer<'a> {
    pub known: &'a dyn Known,
    /// The gradient of the output: `grad`, unless an argument has that name.
    pub grad: &'static str,
    /// The element-wise selection operator: `select(condition, yes, no)`.
    pub select: Option<String>,
    /// The conjugation operator.
    pub conjugate: Option<String>,
}

/// An operator that a formula needs but no entry provides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::lower) enum Lacking {
    Select,
    Conjugate,
}

/// A factor of a gradient and whether it is conjugated.
#[derive(Clone, Copy)]
enum Factor {
    AsItIs,
    Conjugated,
}

impl Writer<'_> {
    /// The formula for `grad` and a slope.
    ///
    /// # Errors
    /// If it needs an operator that does not exist.
    pub fn gradient(&self, slope: &Slope) -> Result<String, Lacking> {
        match slope {
            Slope::Plain(slope) => self.product(slope, Factor::AsItIs),
            Slope::Holomorphic(slope) => self.product(slope, Factor::Conjugated),
            Slope::Both(partial) => self.both(partial),
        }
    }

    /// `grad * conj(by) + conj(grad) * by_conjugate`
    fn both(&self, partial: &Partial) -> Result<String, Lacking> {
        let Partial { by, by_conjugate } = partial;
        if let Sym::If(condition, ..) = by_conjugate.first_choice().or(by.first_choice()).unwrap_or(by) {
            let known = |holds: bool| partial.map(|part| part.clone().assuming(condition, holds));
            let (yes, no) = (self.both(&known(true))?, self.both(&known(false))?);
            return self.choice(condition, &yes, &no);
        }
        if by_conjugate.is(0.0) {
            return self.product(by, Factor::Conjugated);
        }
        let first = if by.is(0.0) { None } else { Some(self.product(by, Factor::Conjugated)?) };
        let grad = self.conjugate_of(self.grad)?;
        let (minus, positive) = match by_conjugate {
            Sym::Prefix('-', inner) => (true, &**inner),
            Sym::Number(value) if *value < 0.0 => (true, &Sym::Number(-value)),
            other => (false, other),
        };
        let second = match positive {
            one if one.is(1.0) => grad,
            other => format!("{grad} * {}", self.operand(other)?),
        };
        Ok(match (first, minus) {
            (Some(first), true) => format!("{first} - {second}"),
            (Some(first), false) => format!("{first} + {second}"),
            (None, true) => format!("-({second})"),
            (None, false) => second,
        })
    }

    fn product(&self, slope: &Sym, factor: Factor) -> Result<String, Lacking> {
        if let Sym::If(condition, yes, no) = slope {
            let (yes, no) = (self.product(yes, factor)?, self.product(no, factor)?);
            return self.choice(condition, &yes, &no);
        }
        let grad = self.grad;
        Ok(match slope {
            value if value.is(0.0) => "0".to_owned(),
            value if value.is(1.0) => grad.to_owned(),
            value if value.is(-1.0) => format!("-{grad}"),
            Sym::Prefix('-', inner) => match self.product(inner, factor)?.as_str() {
                inner if inner == grad => format!("-{grad}"),
                inner => format!("-({inner})"),
            },
            Sym::Infix("/", a, b) if a.is(1.0) || matches!(&**a, Sym::Literal(one) if one == "1.0") => {
                format!("{grad} / {}", self.factor(b, factor)?)
            }
            value => format!("{grad} * {}", self.factor(value, factor)?),
        })
    }

    fn choice(&self, condition: &Sym, yes: &str, no: &str) -> Result<String, Lacking> {
        let condition_text = self.write(condition)?;
        Ok(if condition.varies(self.known) {
            // Both branches become tensors if neither is one.
            let select = self.select.as_ref().ok_or(Lacking::Select)?;
            match (yes, no) {
                ("0", "0") => "0".to_owned(),
                _ => format!("{select}({condition_text}, {yes}, {no})"),
            }
        } else {
            let tensor =
                |text: &str| if text == "0" { format!("{} * 0", self.grad) } else { text.to_owned() };
            format!("if {condition_text} {{ {} }} else {{ {} }}", tensor(yes), tensor(no))
        })
    }

    fn factor(&self, value: &Sym, factor: Factor) -> Result<String, Lacking> {
        match factor {
            Factor::AsItIs => self.operand(value),
            Factor::Conjugated if value.is_real(self.known) => self.operand(value),
            Factor::Conjugated => self.conjugated(value),
        }
    }

    fn conjugated(&self, value: &Sym) -> Result<String, Lacking> {
        let text = self.operand(value)?;
        match value.varies(self.known) {
            true => self.conjugate_of(&text),
            false => Ok(format!("{text}.conj()")),
        }
    }

    fn conjugate_of(&self, tensor: &str) -> Result<String, Lacking> {
        let conjugate = self.conjugate.as_ref().ok_or(Lacking::Conjugate)?;
        Ok(format!("{tensor}.{conjugate}()"))
    }

    /// An operand of `*` or `/`: in parentheses unless it is a name or a call.
    fn operand(&self, value: &Sym) -> Result<String, Lacking> {
        let text = self.write(value)?;
        let simple = match value {
            Sym::Name(_) | Sym::Call(..) | Sym::Conj(_) | Sym::Literal(_) => true,
            Sym::Number(value) => *value >= 0.0,
            _ => false,
        };
        Ok(if simple { text } else { format!("({text})") })
    }

    fn write(&self, value: &Sym) -> Result<String, Lacking> {
        Ok(match value {
            Sym::Number(value) => Number(*value).to_string(),
            Sym::Literal(text) => text.clone(),
            Sym::Name(name) => name.clone(),
            Sym::Call(name, args) => {
                let args: Vec<String> = args.iter().map(|arg| self.write(arg)).collect::<Result<_, _>>()?;
                // On numbers a scalar function is called, on tensors an operator.
                let operator =
                    if value.varies(self.known) { self.known.operator(name) } else { name.clone() };
                format!("{operator}({})", args.join(", "))
            }
            Sym::Conj(operand) => self.conjugated(operand)?,
            Sym::Prefix(symbol, operand) => format!("{symbol}{}", self.operand(operand)?),
            Sym::Infix(symbol, a, b) => {
                // Logic on tensors is bitwise on masks.
                let symbol = match *symbol {
                    "&&" if value.varies(self.known) => "&",
                    "||" if value.varies(self.known) => "|",
                    other => other,
                };
                format!("{} {symbol} {}", self.operand(a)?, self.operand(b)?)
            }
            Sym::If(condition, yes, no) => {
                let (yes, no) = (self.write(yes)?, self.write(no)?);
                self.choice(condition, &yes, &no)?
            }
        })
    }
}

/// A number as literal: an integer if possible.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == self.0.trunc() && self.0.abs() < 1e15 {
            write!(f, "{}", self.0 as i64)
        } else {
            write!(f, "{:?}", self.0)
        }
    }
}
