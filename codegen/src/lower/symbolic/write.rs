//! A derivative as the text of a gradient formula over tensors.

use std::fmt;

use super::{Known, Sym};

/// How a gradient formula is written.
pub(in crate::lower) struct Writer<'a> {
    pub known: &'a dyn Known,
    /// The gradient of the output: `grad`, unless an argument has that name.
    pub grad: &'static str,
    /// The operator that chooses element by element: `select(condition, yes, no)`.
    pub select: Option<String>,
    /// The operator that conjugates, for operators with complex dtypes.
    pub conjugate: Option<String>,
}

impl Writer<'_> {
    /// The formula `grad` times a derivative; `None` if it needs an operator that does not exist.
    pub fn gradient(&self, derivative: &Sym) -> Option<String> {
        if let Sym::If(condition, yes, no) = derivative {
            let (yes, no) = (self.gradient(yes)?, self.gradient(no)?);
            return self.choice(condition, &yes, &no);
        }
        let grad = self.grad;
        Some(match derivative {
            value if value.is(0.0) => "0".to_owned(),
            value if value.is(1.0) => grad.to_owned(),
            value if value.is(-1.0) => format!("-{grad}"),
            Sym::Prefix('-', inner) => match self.gradient(inner)?.as_str() {
                inner if inner == grad => format!("-{grad}"),
                inner => format!("-({inner})"),
            },
            Sym::Infix("/", a, b) if a.is(1.0) => format!("{grad} / {}", self.conjugated(b)?),
            value => format!("{grad} * {}", self.conjugated(value)?),
        })
    }

    fn choice(&self, condition: &Sym, yes: &str, no: &str) -> Option<String> {
        let condition_text = self.write(condition)?;
        Some(if condition.varies(self.known) {
            // Both sides as tensors where neither is one.
            let select = self.select.as_ref()?;
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

    fn conjugated(&self, value: &Sym) -> Option<String> {
        let text = self.operand(value)?;
        Some(match &self.conjugate {
            Some(conjugate) if value.varies(self.known) => format!("{text}.{conjugate}()"),
            Some(_) if !matches!(value, Sym::Number(_)) => format!("{text}.conj()"),
            _ => text,
        })
    }

    /// An operand of `*` or `/`: in parentheses unless it is a name or a call.
    fn operand(&self, value: &Sym) -> Option<String> {
        let text = self.write(value)?;
        let simple = match value {
            Sym::Name(_) | Sym::Call(..) | Sym::Literal(_) => true,
            Sym::Number(value) => *value >= 0.0,
            _ => false,
        };
        Some(if simple { text } else { format!("({text})") })
    }

    fn write(&self, value: &Sym) -> Option<String> {
        Some(match value {
            Sym::Number(value) => Number(*value).to_string(),
            Sym::Literal(text) => text.clone(),
            Sym::Name(name) => name.clone(),
            Sym::Call(name, args) => {
                let args: Vec<String> = args.iter().map(|arg| self.write(arg)).collect::<Option<_>>()?;
                format!("{name}({})", args.join(", "))
            }
            Sym::Prefix(symbol, operand) => format!("{symbol}{}", self.operand(operand)?),
            Sym::Infix(symbol, a, b) => {
                // Logic between tensors is bitwise on masks.
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

/// A number as an expression writes it: an integer where it is one.
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
