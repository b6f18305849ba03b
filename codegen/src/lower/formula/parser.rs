//! The grammar of formulas: from the weakest sign to the strongest, by recursive descent.
//!
//! In: the tokens of a formula and the names of a signature. Out: a tree. Must not know other operators.

mod atoms;

use super::lexer::{Mistake, Placed, Token};
use super::signature::Signature;
use crate::model::{
    FENCES, FormulaNode as Node, FormulaScripts, RANGE_OPERATORS, RangeOperator, SIGNS, Sign, Strength,
    formula_words,
};

/// The deepest nesting of a formula.
const DEEPEST: usize = 40;

/// Reads one formula.
pub(super) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Placed>,
    at: usize,
    signature: &'a Signature<'a>,
    /// The signs that are open.
    open: Vec<char>,
    depth: usize,
    /// Bytes that only mark a name of the signature or words.
    pub marks: Vec<usize>,
    /// Words that a line must define.
    pub words: Vec<Placed>,
}

type Parsed = Result<Node, Mistake>;

impl<'a> Parser<'a> {
    pub fn new(text: &'a str, tokens: Vec<Placed>, signature: &'a Signature<'a>) -> Parser<'a> {
        Parser {
            text,
            tokens,
            at: 0,
            signature,
            open: Vec::new(),
            depth: 0,
            marks: Vec::new(),
            words: Vec::new(),
        }
    }

    /// The lines, each with its end in the text.
    pub fn lines(&mut self) -> Result<Vec<(Node, usize)>, Mistake> {
        let mut lines = Vec::new();
        loop {
            while *self.next() == Token::Break {
                self.at += 1;
            }
            if *self.next() == Token::End {
                return Ok(lines);
            }
            let start = self.tokens[self.at].range.start;
            let node = self.list()?;
            let end = self.tokens[self.at - 1].range.end;
            let placed = &self.tokens[self.at];
            match &placed.token {
                Token::Break | Token::End if !begins_with_relation(&node) => {
                    return Err(Mistake::malformed(
                        start..end,
                        "a line states a relation, such as `y_i = …`",
                    ));
                }
                Token::Break | Token::End => lines.push((node, placed.range.start)),
                Token::Sign(c) if FENCES.iter().any(|(_, close)| close == c) => {
                    return Err(Mistake::malformed(placed.range.clone(), format!("`{c}` closes nothing")));
                }
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn next(&self) -> &Token {
        &self.tokens[self.at].token
    }

    fn is_sign(&self, c: char) -> bool {
        *self.next() == Token::Sign(c)
    }

    fn accept(&mut self, c: char) -> bool {
        let is_there = self.is_sign(c);
        self.at += usize::from(is_there);
        is_there
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.next(), Token::Name(name) if name == word)
    }

    /// The token that stands where an operand should.
    fn unexpected(&self) -> Mistake {
        let placed = &self.tokens[self.at];
        let shown = |placed: &Placed| self.text[placed.range.clone()].to_owned();
        let why = match (&placed.token, self.at.checked_sub(1).map(|at| &self.tokens[at])) {
            (Token::Break | Token::End, Some(before)) => {
                let why = format!("nothing follows `{}`", shown(before));
                return Mistake::malformed(before.range.clone(), why);
            }
            (_, Some(before)) => format!("`{}` cannot follow `{}`", shown(placed), shown(before)),
            (_, None) => format!("it cannot begin with `{}`", shown(placed)),
        };
        Mistake::malformed(placed.range.clone(), why)
    }

    /// Rows between commas.
    fn list(&mut self) -> Parsed {
        let first = self.row()?;
        if !self.is_sign(',') {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.accept(',') {
            items.push(self.row()?);
        }
        Ok(Node::List(items))
    }

    /// Parts with words before, between and behind them.
    fn row(&mut self) -> Parsed {
        let mut parts = Vec::new();
        loop {
            if let Token::Words(words) = self.next() {
                parts.push(Node::Words(words.clone()));
                let quotes = &self.tokens[self.at].range;
                self.marks.extend([quotes.start, quotes.end - 1]);
                self.at += 1;
            } else if parts.is_empty() || self.begins_operand() {
                parts.push(self.joined(Strength::Or)?);
            } else {
                break;
            }
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node::Row(parts) })
    }

    /// Whether the next token begins an operand of a sign.
    fn begins_operand(&self) -> bool {
        self.begins_factor() || self.is_sign('−') || self.is_sign('¬')
    }

    fn begins_factor(&self) -> bool {
        match self.next() {
            Token::Name(name) => {
                !matches!(&**name, "if" | "otherwise") && !SIGNS.iter().any(|sign| sign.text == name)
            }
            Token::Number(_) => true,
            Token::Sign(c) => {
                let opens = FENCES
                    .iter()
                    .any(|(open, close)| open == c && (open != close || self.open.last() != Some(open)));
                let is_operator = || RANGE_OPERATORS.iter().any(|operator| operator.text.chars().eq([*c]));
                opens || matches!(c, '{' | '√' | ':' | '…' | '∞' | '∅') || is_operator()
            }
            Token::Words(_) | Token::Break | Token::End => false,
        }
    }

    /// The next sign, if it has this strength.
    fn sign(&self, strength: Strength) -> Option<&'static Sign> {
        let is_next = |text: &str| match self.next() {
            Token::Sign(c) => text.chars().eq([*c]),
            Token::Name(name) => text == name,
            _ => false,
        };
        SIGNS.iter().find(|sign| sign.strength == strength && is_next(sign.text))
    }

    /// Operands of signs of a strength, from left to right.
    fn joined(&mut self, strength: Strength) -> Parsed {
        let operand = |parser: &mut Parser<'a>| match strength {
            Strength::Or => parser.joined(Strength::And),
            Strength::And => parser.not(),
            Strength::Relation | Strength::Remainder => parser.joined(Strength::Sum),
            Strength::Sum | Strength::Product => parser.product(),
        };
        let mut left = operand(self)?;
        while let Some(sign) = self.sign(strength) {
            self.at += 1;
            left = Node::Infix(Box::new(left), sign, Box::new(operand(self)?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Parsed {
        if !self.accept('¬') {
            return self.relation();
        }
        self.nested(|parser| Ok(Node::Not(Box::new(parser.not()?))))
    }

    fn relation(&mut self) -> Parsed {
        let first = self.joined(Strength::Remainder)?;
        let mut rest = Vec::new();
        while let Some(sign) = self.sign(Strength::Relation) {
            self.at += 1;
            // Words behind a sign are its operand, with all that follows them.
            let begins_with_words = matches!(self.next(), Token::Words(_));
            let operand = if begins_with_words { self.row()? } else { self.joined(Strength::Remainder)? };
            rest.push((sign, operand));
        }
        Ok(if rest.is_empty() { first } else { Node::Relation(Box::new(first), rest) })
    }

    /// A part of a formula inside another; not too deep.
    fn nested(&mut self, parse: impl FnOnce(&mut Parser<'a>) -> Parsed) -> Parsed {
        if self.depth == DEEPEST {
            let range = self.tokens[self.at].range.clone();
            return Err(Mistake::malformed(range, "it is nested too deeply"));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn product(&mut self) -> Parsed {
        self.nested(|parser| {
            if parser.accept('−') {
                return Ok(Node::Negative(Box::new(parser.product()?)));
            }
            let mut left = parser.factor()?;
            loop {
                left = if let Some(sign) = parser.sign(Strength::Product) {
                    parser.at += 1;
                    Node::Infix(Box::new(left), sign, Box::new(parser.factor()?))
                } else if parser.begins_factor() {
                    Node::Product(Box::new(left), Box::new(parser.factor()?))
                } else {
                    return Ok(left);
                };
            }
        })
    }

    fn factor(&mut self) -> Parsed {
        if let Some(operator) = self.range_operator() {
            self.at += 1;
            let scripts = self.scripts()?;
            let body = match self.is_call() && operator.is_word {
                true => Node::Fence('(', self.between('(')?.0, ')'),
                false => self.product()?,
            };
            return Ok(Node::Over(operator, scripts, Box::new(body)));
        }
        let atom = self.atom()?;
        let scripts = self.scripts()?;
        let is_function = matches!(atom, Node::Name(_));
        let base = match scripts == FormulaScripts::default() {
            true => atom,
            false => Node::Script(Box::new(atom), scripts),
        };
        if !(is_function && self.is_call()) {
            return Ok(base);
        }
        let arguments = self.between('(')?.0;
        let call = Node::Call(Box::new(base), arguments);
        let scripts = self.scripts()?;
        Ok(match scripts == FormulaScripts::default() {
            true => call,
            false => Node::Script(Box::new(call), scripts),
        })
    }

    /// Whether parentheses stand close to the token before, which is a function then.
    fn is_call(&self) -> bool {
        self.is_sign('(') && self.tokens[self.at].is_close
    }

    fn range_operator(&self) -> Option<&'static RangeOperator> {
        let text = match self.next() {
            Token::Name(name) => name.clone(),
            Token::Sign(c) => c.to_string(),
            _ => return None,
        };
        let operator = RANGE_OPERATORS.iter().find(|operator| operator.text == text)?;
        let behind = &self.tokens[self.at + 1];
        let is_function = operator.is_word && behind.token == Token::Sign('(') && behind.is_close;
        (!is_function).then_some(operator)
    }
}

/// Whether documents can align a line at its first relation.
fn begins_with_relation(node: &Node) -> bool {
    match node {
        Node::List(items) | Node::Row(items) => items.first().is_some_and(begins_with_relation),
        Node::Relation(..) => true,
        _ => false,
    }
}

/// Whether a word has a meaning in every formula.
pub(super) fn is_known(word: &str) -> bool {
    formula_words().any(|known| known == word) || RANGE_OPERATORS.iter().any(|operator| operator.text == word)
}
