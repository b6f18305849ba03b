//! The grammar of formulas: from the weakest sign to the strongest, by recursive descent.
//!
//! In: the tokens of a formula and the names of a signature. Out: a tree. Must not know other operators.

use super::lexer::{Mistake, MistakeKind, Placed, Token};
use super::signature::{Named, Signature};
use crate::model::{
    FENCES, FORMULA_WORDS, FormulaNode as Node, FormulaScripts, RANGE_OPERATORS, RangeOperator, SIGNS, Sign,
    Strength,
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
    /// Bytes that only mark a name of the signature.
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

    fn scripts(&mut self) -> Result<FormulaScripts, Mistake> {
        let mut scripts = FormulaScripts::default();
        loop {
            let mark = self.tokens[self.at].range.clone();
            let (place, name) = match self.next() {
                Token::Sign('_') => (&mut scripts.below, "subscript"),
                Token::Sign('^') => (&mut scripts.above, "exponent"),
                _ => return Ok(scripts),
            };
            if place.is_some() {
                return Err(Mistake::malformed(mark, format!("a part has one {name}")));
            }
            self.at += 1;
            *place = Some(Box::new(self.script(name)?));
        }
    }

    /// A name or number behind a mark, or a group between braces.
    fn script(&mut self, name: &str) -> Parsed {
        let placed = self.tokens[self.at].clone();
        match placed.token {
            Token::Number(number) => {
                self.at += 1;
                Ok(Node::Number(number))
            }
            Token::Name(_) => self.name(),
            Token::Sign('∗') => {
                self.at += 1;
                Ok(Node::Name("∗".to_owned()))
            }
            Token::Sign('{') => match self.braced() {
                Some((inner, end)) if self.signature.find(inner.trim()).is_some() => self.of_signature(end),
                Some((inner, _)) if inner.trim().is_empty() => Err(Mistake::malformed(
                    placed.range.start..placed.range.end + inner.len() + 1,
                    format!("the {name} is empty"),
                )),
                _ => {
                    let (mut items, _) = self.between('{')?;
                    Ok(if items.len() == 1 { items.remove(0) } else { Node::List(items) })
                }
            },
            _ => Err(self.unexpected()),
        }
    }

    /// The text between the next brace and the first that closes, and the place of that one.
    fn braced(&self) -> Option<(&'a str, usize)> {
        let start = self.tokens[self.at].range.end;
        let length = self.text[start..].find('}')?;
        Some((&self.text[start..start + length], start + length))
    }

    /// A name of the signature between braces, the second of which is at `end`.
    fn of_signature(&mut self, end: usize) -> Parsed {
        let start = self.tokens[self.at].range.clone();
        let name = self.text[start.end..end].trim();
        let found = self.signature.find(name);
        while self.tokens[self.at].range.start <= end && *self.next() != Token::End {
            self.at += 1;
        }
        match found {
            Some(Named::Argument(index)) => Ok(Node::Argument(index)),
            Some(Named::Result(index)) => Ok(Node::Result(index)),
            None => Err(Mistake { range: start.start..end + 1, kind: MistakeKind::Unknown(name.to_owned()) }),
        }
    }

    fn atom(&mut self) -> Parsed {
        let placed = self.tokens[self.at].clone();
        let simple = match &placed.token {
            Token::Number(number) => Node::Number(number.clone()),
            Token::Sign(':') => Node::All,
            Token::Sign('…') => Node::Ellipsis,
            Token::Sign(c @ ('∞' | '∅')) => Node::Name(c.to_string()),
            Token::Name(name) if name == "cases" && self.tokens[self.at + 1].token == Token::Sign('(') => {
                return self.cases();
            }
            Token::Name(_) if self.begins_factor() => return self.name(),
            Token::Sign('√') => {
                self.at += 1;
                return self.nested(|parser| Ok(Node::Root(Box::new(parser.atom()?))));
            }
            Token::Sign('{') => {
                let Some((_, end)) = self.braced() else {
                    return Err(Mistake::malformed(placed.range, "a brace is not closed"));
                };
                self.marks.extend([placed.range.start, end]);
                return self.of_signature(end);
            }
            // Where an operand stands, a sign that opens and closes opens.
            Token::Sign(c) if FENCES.iter().any(|(open, _)| open == c) => return self.fence(*c),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(simple)
    }

    /// A name without braces: a result without a name in the signature, or one of the formula's own.
    fn name(&mut self) -> Parsed {
        let placed = self.tokens[self.at].clone();
        let Token::Name(name) = &placed.token else { return Err(self.unexpected()) };
        self.at += 1;
        if self.signature.find(name).is_some() && !is_known(name) {
            return Err(Mistake { range: placed.range, kind: MistakeKind::Bare(name.clone()) });
        }
        if name == "y" && self.signature.has_one_result() {
            return Ok(Node::Result(0));
        }
        if let (true, Token::Sign('_'), Token::Number(number)) =
            (name == "y", self.next(), &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].token)
        {
            let index = number.parse().ok().filter(|index| self.signature.has_result(*index));
            let why = format!("there is no result y_{number}");
            let index = index.ok_or_else(|| Mistake::malformed(placed.range.clone(), why))?;
            self.at += 2;
            return Ok(Node::Result(index));
        }
        if name.chars().count() > 1 {
            self.words.push(placed.clone());
        }
        Ok(Node::Name(name.clone()))
    }

    /// Parentheses, or a part between other signs.
    fn fence(&mut self, open: char) -> Parsed {
        let (mut items, close) = self.between(open)?;
        let groups = open == '(' && close == ')' && items.len() == 1;
        Ok(if groups { items.remove(0) } else { Node::Fence(open, items, close) })
    }

    /// Items between an opening sign and its closing one, which is returned. Of an interval, either end may be open.
    fn between(&mut self, open: char) -> Result<(Vec<Node>, char), Mistake> {
        let range = self.tokens[self.at].range.clone();
        self.at += 1;
        let close = FENCES.iter().find(|(known, _)| *known == open).map_or('}', |(_, close)| *close);
        // `||a| − b|` opens twice.
        if open != close && self.accept(close) {
            let range = range.start..self.tokens[self.at - 1].range.end;
            return Err(Mistake::malformed(range, format!("nothing stands between `{open}` and `{close}`")));
        }
        self.open.push(open);
        let inner = self.nested(Parser::list)?;
        self.open.pop();
        let items = if let Node::List(items) = inner { items } else { vec![inner] };
        let other = match close {
            ')' => Some(']'),
            ']' => Some(')'),
            _ => None,
        };
        let other = other.filter(|other| items.len() == 2 && self.is_sign(*other));
        if other.is_some() || self.is_sign(close) {
            self.at += 1;
            return Ok((items, other.unwrap_or(close)));
        }
        match self.next() {
            Token::End | Token::Break => Err(Mistake::malformed(range, format!("`{open}` is not closed"))),
            _ => Err(self.unexpected()),
        }
    }

    /// `cases(value if condition; value otherwise)`
    fn cases(&mut self) -> Parsed {
        let range = self.tokens[self.at].range.clone();
        self.at += 2;
        self.open.push('(');
        let mut rows = Vec::new();
        loop {
            let value = self.nested(Parser::row)?;
            if self.is_word("if") {
                self.at += 1;
                rows.push((value, Some(self.nested(Parser::list)?)));
            } else if self.is_word("otherwise") {
                self.at += 1;
                rows.push((value, None));
            } else {
                let why = "each of the `cases` is `value if condition` or, the last, `value otherwise`";
                return Err(Mistake::malformed(range, why));
            }
            let goes_on = rows.last().is_some_and(|(_, condition)| condition.is_some()) && self.accept(';');
            if !goes_on {
                break;
            }
        }
        self.open.pop();
        match self.accept(')') {
            true => Ok(Node::Cases(rows)),
            false => Err(Mistake::malformed(
                range,
                "the parentheses of `cases` are not closed behind its last value",
            )),
        }
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
    FORMULA_WORDS.contains(&word) || RANGE_OPERATORS.iter().any(|operator| operator.text == word)
}
