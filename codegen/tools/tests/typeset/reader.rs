//! A reader of formulas: from presentation MathML to a number, by the signs that a person sees.
//!
//! Groups that nothing shows (`mrow`) mean nothing. A sign without a place among the usual ones ends the test.

use roxmltree::{Document, Node};

/// The value of the right side of an equation, with values of names.
pub fn value(math: &str, names: &[(&str, f64)]) -> f64 {
    let document = Document::parse(math).expect("a formula is well-formed");
    let tokens = tokens(document.root_element(), names);
    let equals = tokens.iter().position(|token| matches!(token, Token::Sign(sign) if sign == "="));
    let right = &tokens[equals.expect("an equation") + 1..];
    let mut parser = Parser { tokens: right, at: 0 };
    let value = parser.comparison();
    assert_eq!(parser.at, right.len(), "signs are left: {right:?}");
    value
}

#[derive(Clone, Debug)]
enum Token {
    Value(f64),
    Sign(String),
    Function(String),
    /// Values between parentheses.
    Group(Vec<f64>),
}

fn elements<'a, 'i>(node: Node<'a, 'i>) -> Vec<Node<'a, 'i>> {
    node.children().filter(|child| child.is_element()).collect()
}

fn inner(node: Node<'_, '_>, names: &[(&str, f64)]) -> f64 {
    let tokens = tokens(node, names);
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let value = parser.comparison();
    assert_eq!(parser.at, tokens.len(), "signs are left: {tokens:?}");
    value
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(|part| part.is_text()).filter_map(|part| part.text()).collect()
}

/// The signs inside an element, in order.
fn tokens(node: Node<'_, '_>, names: &[(&str, f64)]) -> Vec<Token> {
    match node.tag_name().name() {
        "math" | "mrow" | "mtd" => {
            let parts = elements(node);
            let is_open = parts.first().is_some_and(|part| part.attribute("form") == Some("prefix"));
            if is_open {
                vec![fenced(&parts, names)]
            } else {
                parts.into_iter().flat_map(|part| tokens(part, names)).collect()
            }
        }
        "mn" => vec![Token::Value(text(node).parse().expect("a number"))],
        "mi" | "msub" => {
            let name = text(node);
            match names.iter().find(|(known, _)| *known == name) {
                Some((_, value)) => vec![Token::Value(*value)],
                None if name == "e" => vec![Token::Value(std::f64::consts::E)],
                None => vec![Token::Function(name)],
            }
        }
        "mo" => vec![Token::Sign(text(node))],
        "mspace" | "mtext" => Vec::new(),
        "mfrac" => {
            let parts = elements(node);
            vec![Token::Value(inner(parts[0], names) / inner(parts[1], names))]
        }
        "msqrt" => vec![Token::Value(inner(elements(node)[0], names).sqrt())],
        "msup" => {
            let parts = elements(node);
            let base = tokens(parts[0], names);
            // An exponent belongs to one sign before it.
            assert_eq!(base.len(), 1, "a power of several signs: {base:?}");
            let mut parser = Parser { tokens: &base, at: 0 };
            vec![Token::Value(parser.atom().powf(inner(parts[1], names)))]
        }
        other => panic!("<{other}> is not read"),
    }
}

/// Parts between two signs, or the rows behind a brace.
fn fenced(parts: &[Node<'_, '_>], names: &[(&str, f64)]) -> Token {
    let open = text(parts[0]);
    if open == "{" {
        for row in elements(parts[1]) {
            let cells = elements(row);
            if text(cells[1]).starts_with("otherwise") || inner(cells[1], names) == 1.0 {
                return Token::Value(inner(cells[0], names));
            }
        }
        panic!("no row holds");
    }
    let content: Vec<Token> =
        parts[1..parts.len() - 1].iter().flat_map(|part| tokens(*part, names)).collect();
    let is_comma = |token: &Token| matches!(token, Token::Sign(sign) if sign == ",");
    let values = content.split(is_comma).map(|tokens| {
        let mut parser = Parser { tokens, at: 0 };
        let value = parser.comparison();
        assert_eq!(parser.at, tokens.len(), "signs are left: {tokens:?}");
        value
    });
    let values: Vec<f64> = values.collect();
    match open.as_str() {
        "(" => Token::Group(values),
        "|" => Token::Value(values[0].abs()),
        "⌊" => Token::Value(values[0].floor()),
        other => panic!("the sign {other} is not read"),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Parser<'_> {
    fn sign(&mut self, wanted: &[&str]) -> Option<String> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) if wanted.contains(&sign.as_str()) => {
                self.at += 1;
                Some(sign.clone())
            }
            _ => None,
        }
    }

    fn comparison(&mut self) -> f64 {
        let left = self.sum();
        match self.sign(&["<", "≥"]).as_deref() {
            Some("<") => f64::from(u8::from(left < self.sum())),
            Some(_) => f64::from(u8::from(left >= self.sum())),
            None => left,
        }
    }

    fn sum(&mut self) -> f64 {
        let is_negative = self.sign(&["−"]).is_some();
        let first = self.product();
        let mut value = if is_negative { -first } else { first };
        while let Some(sign) = self.sign(&["+", "−"]) {
            let next = self.product();
            value = if sign == "+" { value + next } else { value - next };
        }
        value
    }

    fn product(&mut self) -> f64 {
        let mut value = self.atom();
        while self.sign(&["⋅", "\u{2062}", "×"]).is_some() {
            value *= self.atom();
        }
        value
    }

    fn atom(&mut self) -> f64 {
        let token = self
            .tokens
            .get(self.at)
            .cloned()
            .unwrap_or_else(|| panic!("a value is missing: {:?}", self.tokens));
        self.at += 1;
        match token {
            Token::Value(value) => value,
            Token::Group(values) => {
                assert_eq!(values.len(), 1, "a tuple is no number");
                values[0]
            }
            Token::Function(name) => {
                assert!(self.sign(&["\u{2061}"]).is_some(), "{name} is called");
                let Some(Token::Group(values)) = self.tokens.get(self.at).cloned() else {
                    panic!("{name} has arguments")
                };
                self.at += 1;
                match (name.as_str(), &values[..]) {
                    ("ln", [x]) => x.ln(),
                    _ => panic!("{name} is not read"),
                }
            }
            Token::Sign(sign) => panic!("{sign} stands where a value should: {:?}", self.tokens),
        }
    }
}
