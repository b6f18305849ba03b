//! Pointwise expressions as algebra: read, differentiated, simplified, written as a gradient formula.
//!
//! In: the syntax tree of a pointwise expression and the derivatives that scalar functions declare.
//! Out: the text of a formula over tensors, which is then checked like one a person wrote. Nothing here
//! knows types.

mod read;
mod write;

pub(super) use write::Writer;

use read::Reader;

/// A pointwise expression.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Sym {
    /// A number as written.
    Number(f64),
    /// An attribute that is a literal of another kind, such as a text.
    Literal(String),
    /// An argument.
    Name(String),
    /// A scalar function.
    Call(String, Vec<Sym>),
    /// `-a` or `!a`.
    Prefix(char, Box<Sym>),
    /// Arithmetic, comparison or logic.
    Infix(&'static str, Box<Sym>, Box<Sym>),
    /// `if c { a } else { b }`.
    If(Box<Sym>, Box<Sym>, Box<Sym>),
}

/// What is known of scalar functions and names.
pub(super) trait Known {
    /// The derivative of a function by a parameter, with the parameters' names; `result` in it is the
    /// function's value. `None` if it declares none.
    fn derivative(&self, function: &str, parameter: usize) -> Option<(Sym, Vec<String>)>;
    /// Whether a name is a tensor; attributes are the same for all elements.
    fn is_tensor(&self, name: &str) -> bool;
}

/// Why an expression has no symbolic derivative.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Missing {
    /// A function declares no derivative.
    Derivative(String),
    /// Syntax that has no derivative.
    Syntax,
}

impl Sym {
    /// Reads a syntax tree; `None` if it holds something that has no algebra.
    pub fn read(tree: &syn::Expr) -> Option<Sym> {
        Reader::new().read(tree)
    }

    fn number(&self) -> Option<f64> {
        match self {
            Sym::Number(value) => Some(*value),
            _ => None,
        }
    }

    fn is(&self, value: f64) -> bool {
        self.number() == Some(value)
    }

    /// Replaces every occurrence of one expression by another.
    pub fn replace(&self, from: &Sym, to: &Sym) -> Sym {
        if self == from {
            return to.clone();
        }
        self.rebuild(|part| part.replace(from, to))
    }

    /// Replaces names by expressions.
    fn substitute(&self, names: &[String], values: &[Sym]) -> Sym {
        if let Sym::Name(name) = self
            && let Some(position) = names.iter().position(|known| known == name)
        {
            return values[position].clone();
        }
        self.rebuild(|part| part.substitute(names, values))
    }

    /// The same expression with its direct parts changed, simplified.
    fn rebuild(&self, mut change: impl FnMut(&Sym) -> Sym) -> Sym {
        match self {
            Sym::Number(_) | Sym::Literal(_) | Sym::Name(_) => self.clone(),
            Sym::Call(name, args) => call(name, args.iter().map(change).collect()),
            Sym::Prefix(symbol, operand) => prefix(*symbol, change(operand)),
            Sym::Infix(symbol, a, b) => {
                let (a, b) = (change(a), change(b));
                infix(symbol, a, b)
            }
            Sym::If(condition, yes, no) => {
                let (condition, yes, no) = (change(condition), change(yes), change(no));
                branch(condition, yes, no)
            }
        }
    }

    /// Whether the value differs from element to element.
    pub fn varies(&self, known: &dyn Known) -> bool {
        match self {
            Sym::Number(_) | Sym::Literal(_) => false,
            Sym::Name(name) => known.is_tensor(name),
            Sym::Call(_, args) => args.iter().any(|arg| arg.varies(known)),
            Sym::Prefix(_, operand) => operand.varies(known),
            Sym::Infix(_, a, b) => a.varies(known) || b.varies(known),
            Sym::If(condition, yes, no) => condition.varies(known) || yes.varies(known) || no.varies(known),
        }
    }

    /// The derivative by one argument.
    ///
    /// # Errors
    /// If a function on the way declares none.
    pub fn derive(&self, by: &str, known: &dyn Known) -> Result<Sym, Missing> {
        let zero = || Sym::Number(0.0);
        Ok(match self {
            Sym::Number(_) | Sym::Literal(_) => zero(),
            Sym::Name(name) => Sym::Number(if name == by { 1.0 } else { 0.0 }),
            Sym::Prefix('-', operand) => prefix('-', operand.derive(by, known)?),
            Sym::Prefix(..) => zero(),
            Sym::If(condition, yes, no) => {
                branch((**condition).clone(), yes.derive(by, known)?, no.derive(by, known)?)
            }
            Sym::Call(name, args) => {
                let mut total = zero();
                for (parameter, arg) in args.iter().enumerate() {
                    let inner = arg.derive(by, known)?;
                    if inner.is(0.0) {
                        continue;
                    }
                    let (outer, names) =
                        known.derivative(name, parameter).ok_or_else(|| Missing::Derivative(name.clone()))?;
                    let outer = outer.substitute(&names, args).replace(&Sym::Name("result".into()), self);
                    total = infix("+", total, infix("*", outer, inner));
                }
                total
            }
            Sym::Infix(symbol, a, b) => {
                let (da, db) = (a.derive(by, known)?, b.derive(by, known)?);
                let (a, b) = ((**a).clone(), (**b).clone());
                match *symbol {
                    "+" | "-" => infix(symbol, da, db),
                    "*" => infix("+", infix("*", da, b), infix("*", a, db)),
                    "/" => {
                        let first = infix("/", da, b.clone());
                        let second = infix("/", infix("*", self.clone(), db), b);
                        infix("-", first, second)
                    }
                    "%" if db.is(0.0) => da,
                    "%" => return Err(Missing::Syntax),
                    // Comparisons and logic are constant almost everywhere.
                    _ => zero(),
                }
            }
        })
    }
}

fn call(name: &str, args: Vec<Sym>) -> Sym {
    // A choice among arguments is a choice among results.
    if let Some(position) = args.iter().position(|arg| matches!(arg, Sym::If(..))) {
        let mut args = args;
        let Sym::If(condition, yes, no) = args[position].clone() else { unreachable!("just found") };
        args[position] = *yes;
        let first = call(name, args.clone());
        args[position] = *no;
        return branch(*condition, first, call(name, args));
    }
    Sym::Call(name.to_owned(), args)
}

fn prefix(symbol: char, operand: Sym) -> Sym {
    match (symbol, operand) {
        ('-', Sym::Number(value)) => Sym::Number(if value == 0.0 { 0.0 } else { -value }),
        ('-', Sym::Prefix('-', inner)) => *inner,
        (_, Sym::If(condition, yes, no)) => branch(*condition, prefix(symbol, *yes), prefix(symbol, *no)),
        (_, operand) => Sym::Prefix(symbol, Box::new(operand)),
    }
}

fn branch(condition: Sym, yes: Sym, no: Sym) -> Sym {
    if yes == no { yes } else { Sym::If(Box::new(condition), Box::new(yes), Box::new(no)) }
}

fn infix(symbol: &'static str, a: Sym, b: Sym) -> Sym {
    let arithmetic = matches!(symbol, "+" | "-" | "*" | "/");
    if arithmetic {
        if let (Some(x), Some(y)) = (a.number(), b.number()) {
            match symbol {
                "+" => return Sym::Number(x + y),
                "-" => return Sym::Number(x - y),
                "*" => return Sym::Number(x * y),
                _ if y != 0.0 => return Sym::Number(x / y),
                _ => {}
            }
        }
        match symbol {
            "+" if a.is(0.0) => return b,
            "+" | "-" if b.is(0.0) => return a,
            "-" if a.is(0.0) => return prefix('-', b),
            "+" if a == b => return infix("*", Sym::Number(2.0), a),
            "-" if a == b => return Sym::Number(0.0),
            "*" if a.is(0.0) || b.is(0.0) => return Sym::Number(0.0),
            "*" if a.is(1.0) => return b,
            "*" | "/" if b.is(1.0) => return a,
            "/" if a.is(0.0) => return Sym::Number(0.0),
            "*" if a.is(-1.0) => return prefix('-', b),
            "*" if b.is(-1.0) => return prefix('-', a),
            _ => {}
        }
        // A choice moves outward, so that a formula chooses between gradients at last.
        if let Sym::If(condition, yes, no) = a {
            return branch(*condition, infix(symbol, *yes, b.clone()), infix(symbol, *no, b));
        }
        if let Sym::If(condition, yes, no) = b {
            return branch(*condition, infix(symbol, a.clone(), *yes), infix(symbol, a, *no));
        }
    }
    Sym::Infix(symbol, Box::new(a), Box::new(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Table;

    impl Known for Table {
        fn derivative(&self, function: &str, _: usize) -> Option<(Sym, Vec<String>)> {
            let text = match function {
                "e" => "result",
                "t" => "1 - result * result",
                "l" => "1 / x",
                _ => return None,
            };
            Some((read(text), vec!["x".into()]))
        }

        fn is_tensor(&self, name: &str) -> bool {
            matches!(name, "a" | "b" | "result")
        }
    }

    fn read(text: &str) -> Sym {
        Sym::read(&syn::parse_str(text).unwrap()).unwrap()
    }

    fn formula(text: &str, by: &str) -> String {
        let body = read(text);
        let derivative = body.derive(by, &Table).unwrap().replace(&body, &Sym::Name("result".into()));
        Writer { known: &Table, grad: "grad", select: Some("select".into()), conjugate: None }
            .gradient(&derivative)
            .unwrap()
    }

    #[test]
    fn derivatives_are_simplified() {
        let cases = [
            ("a + k * b", "a", "grad"),
            ("a + k * b", "b", "grad * k"),
            ("a - b", "b", "-grad"),
            ("a * b", "a", "grad * b"),
            ("a / b", "a", "grad / b"),
            ("a / b", "b", "-(grad * (result / b))"),
            ("e(a)", "a", "grad * result"),
            ("t(a)", "a", "grad * (1 - (result * result))"),
            ("l(a)", "a", "grad / a"),
            ("e(a * k)", "a", "grad * (result * k)"),
            ("if a > 0 { a } else { 0 }", "a", "select(a > 0, grad, 0)"),
            ("if a > 0 { a } else { k * a }", "a", "select(a > 0, grad, grad * k)"),
            ("if m == \"x\" { e(a) } else { a }", "a", "if m == \"x\" { grad * e(a) } else { grad }"),
            ("{ let s = e(a); s * s }", "a", "grad * (2 * result)"),
        ];
        for (text, by, expected) in cases {
            assert_eq!(formula(text, by), expected, "{text} by {by}");
        }
    }

    #[test]
    fn a_function_without_derivative_is_named() {
        let missing = read("a * step(a)").derive("a", &Table);
        assert_eq!(missing, Err(Missing::Derivative("step".into())));
    }
}
