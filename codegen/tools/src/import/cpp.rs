//! C++ expressions in gradient formulas.
//!
//! In: the text of a formula. Out: a tree, or the reason why there is none. Covers the grammar only; the meaning of
//! names is in `translate`.

mod lexer;

use lexer::{Token, lex};

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Cpp {
    /// `a`, `ns::a`, `ns::a<T>`.
    Name(Name),
    /// An integer or float, without its suffix.
    Number(String),
    /// A text, with its escapes as written.
    Text(String),
    /// `f(x)`.
    Call(Name, Vec<Cpp>),
    /// `T{x}`.
    Construct(Name, Vec<Cpp>),
    /// `x.f(y)` or `x->f(y)`; without arguments if it is a field.
    Member { base: Box<Cpp>, arrow: bool, name: Name, arguments: Option<Vec<Cpp>> },
    /// `x[i]`.
    Index(Box<Cpp>, Box<Cpp>),
    /// `-x`, `!x`, `*x`.
    Unary(char, Box<Cpp>),
    /// `a + b`.
    Binary(&'static str, Box<Cpp>, Box<Cpp>),
    /// `c ? a : b`.
    Choice(Box<Cpp>, Box<Cpp>, Box<Cpp>),
    /// `{a, b}`.
    Braces(Vec<Cpp>),
}

/// A name with its namespaces and template arguments.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Name {
    /// The namespaces and the name itself.
    pub path: Vec<String>,
    /// The text between `<` and `>`.
    pub template: Option<String>,
}

impl Name {
    /// The name without namespaces.
    pub fn last(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// The C++ text.
    pub fn text(&self) -> String {
        let template = self.template.as_ref().map_or_else(String::new, |text| format!("<{text}>"));
        format!("{}{template}", self.path.join("::"))
    }
}

/// Deeper than any formula; the parser recurses.
const MAX_DEPTH: usize = 48;

/// Parses one expression.
///
/// # Errors
/// The unsupported part of the text.
pub(super) fn parse(text: &str) -> Result<Cpp, String> {
    let tokens = lex(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let tree = parser.choice()?;
    match parser.peek() {
        None => Ok(tree),
        Some(token) => Err(format!("`{}` behind the expression", token.text())),
    }
}

/// Binary operators from loose to tight.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["+", "-"],
    &["*", "/", "%"],
];

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Some(Token::Symbol(found)) if *found == symbol)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), String> {
        if self.take(symbol) {
            return Ok(());
        }
        let found = self.peek().map_or("the end".to_owned(), |token| format!("`{}`", token.text()));
        Err(format!("{found} where `{symbol}` is expected"))
    }

    fn choice(&mut self) -> Result<Cpp, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} levels of nesting"));
        }
        let condition = self.binary(0)?;
        let found = match self.take("?") {
            false => condition,
            true => {
                let yes = self.choice()?;
                self.expect(":")?;
                let no = self.choice()?;
                Cpp::Choice(Box::new(condition), Box::new(yes), Box::new(no))
            }
        };
        self.depth -= 1;
        Ok(found)
    }

    fn binary(&mut self, level: usize) -> Result<Cpp, String> {
        let Some(symbols) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(symbol) = symbols.iter().find(|symbol| self.is(symbol)) {
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = Cpp::Binary(symbol, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Cpp, String> {
        for (symbol, sign) in [("-", '-'), ("!", '!'), ("*", '*')] {
            if self.take(symbol) {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(format!("more than {MAX_DEPTH} levels of nesting"));
                }
                let operand = self.unary()?;
                self.depth -= 1;
                return Ok(Cpp::Unary(sign, Box::new(operand)));
            }
        }
        if self.is("&") {
            return Err("an address is taken with `&`".to_owned());
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Result<Cpp, String> {
        let mut base = self.primary()?;
        loop {
            if self.is(".") || self.is("->") {
                let arrow = self.is("->");
                self.at += 1;
                let name = self.name()?;
                let arguments = if self.is("(") { Some(self.list("(", ")")?) } else { None };
                base = Cpp::Member { base: Box::new(base), arrow, name, arguments };
            } else if self.take("[") {
                let position = self.choice()?;
                self.expect("]")?;
                base = Cpp::Index(Box::new(base), Box::new(position));
            } else {
                return Ok(base);
            }
        }
    }

    fn primary(&mut self) -> Result<Cpp, String> {
        match self.peek() {
            Some(Token::Number(text)) => {
                self.at += 1;
                Ok(Cpp::Number(text.clone()))
            }
            Some(Token::Text(text)) => {
                self.at += 1;
                Ok(Cpp::Text(text.clone()))
            }
            Some(Token::Word(_)) => {
                let name = self.name()?;
                if self.is("(") {
                    return Ok(Cpp::Call(name, self.list("(", ")")?));
                }
                if self.is("{") {
                    return Ok(Cpp::Construct(name, self.list("{", "}")?));
                }
                Ok(Cpp::Name(name))
            }
            Some(Token::Symbol("(")) => {
                self.at += 1;
                let inner = self.choice()?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(Token::Symbol("{")) => Ok(Cpp::Braces(self.list("{", "}")?)),
            Some(Token::Symbol("[")) => Err("a lambda".to_owned()),
            Some(token) => Err(format!("`{}` where an expression is expected", token.text())),
            None => Err("the formula ends too early".to_owned()),
        }
    }

    fn list(&mut self, open: &str, close: &str) -> Result<Vec<Cpp>, String> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.take(close) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(self.choice()?);
        }
        Ok(items)
    }

    /// `ns::name<T>`
    fn name(&mut self) -> Result<Name, String> {
        let mut name = Name { path: Vec::new(), template: None };
        loop {
            match self.peek() {
                Some(Token::Word(word)) => name.path.push(word.clone()),
                _ => return Err("a name is missing".to_owned()),
            }
            self.at += 1;
            if let Some(template) = self.template() {
                name.template = Some(template);
            }
            if !self.take("::") {
                return Ok(name);
            }
        }
    }

    /// `<T, 3>`, if the text after it shows that it is not a comparison.
    fn template(&mut self) -> Option<String> {
        if !self.is("<") {
            return None;
        }
        let (start, mut open, mut text) = (self.at, 0usize, String::new());
        for (offset, token) in self.tokens[start..].iter().enumerate() {
            match token {
                Token::Symbol("<") => open += 1,
                Token::Symbol(">") => open -= 1,
                Token::Word(_) | Token::Number(_) | Token::Symbol("::" | ",") => {}
                _ => return None,
            }
            text.push_str(token.text());
            if open == 0 {
                let next = self.tokens.get(start + offset + 1);
                if !matches!(next, Some(Token::Symbol("(" | "{" | "::"))) {
                    return None;
                }
                self.at = start + offset + 1;
                return Some(text[1..text.len() - 1].to_owned());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_formulas_have_is_read() {
        for text in [
            "grad * -((-self * self + 1).rsqrt()).conj()",
            "a ? b.f() : c ? d : e",
            "at::where(x == y, std::get<0>(f(x)), {1, 2})",
            "n->sizes()[0] < 3 && *opt",
            "std::vector<Tensor>{a, b}",
            "std::array<bool, 2>{true, false}",
            "not_implemented(\"f: g\") /* no */",
            "1.5e-3 * M_PI",
            "a < b ? c : d > e",
        ] {
            assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, reason) in [
            ("[&]() { return 1; }()", "a lambda"),
            ("f(&x)", "an address is taken with `&`"),
            ("f(x", "the end where `,` is expected"),
            ("a b", "`b` behind the expression"),
            ("", "the formula ends too early"),
            ("a @ b", "`@` has no meaning in a formula"),
        ] {
            assert_eq!(parse(text), Err(reason.to_owned()), "{text}");
        }
        assert!(parse(&"(".repeat(10_000)).is_err());
        assert!(parse(&"-".repeat(10_000)).is_err());
    }
}
