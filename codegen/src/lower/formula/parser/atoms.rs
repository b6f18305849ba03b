//! The parts of a formula below its signs: marks, names, parts between signs, cases.
//!
//! In: the parser at such a part. Out: its tree. Must not know the strength of signs.

use super::super::lexer::{Mistake, MistakeKind, Token};
use super::super::signature::Named;
use super::{Node, Parsed, Parser, is_known};
use crate::model::{FENCES, FormulaScripts};
use crate::spec::braces;

impl<'a> Parser<'a> {
    pub(super) fn scripts(&mut self) -> Result<FormulaScripts, Mistake> {
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

    /// The text between the next brace and the first that closes, and the position of that one.
    fn braced(&self) -> Option<(&'a str, usize)> {
        let start = self.tokens[self.at].range.end;
        let inside = braces::inside(&self.text[start..])?;
        Some((inside, start + inside.len()))
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

    pub(super) fn atom(&mut self) -> Parsed {
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
    pub(super) fn between(&mut self, open: char) -> Result<(Vec<Node>, char), Mistake> {
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
