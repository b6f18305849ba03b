//! Types and alias annotations.

use std::ops::Range;

use super::lexer::TokenKind;
use super::parser::Parser;
use super::{Alias, AliasAfter, BaseType, Type};
use crate::diagnostics::{Reported, catalogue};

impl Parser<'_> {
    /// A base type with its annotation and any number of `?`, `[]` and `[n]`.
    ///
    /// An unknown type is reported and becomes a class without a name, so that the rest of the argument is still
    /// parsed.
    pub(super) fn ty(&mut self) -> Result<(Type, Option<Alias>), Reported> {
        let name_range = self.range();
        let name = self.word();
        if name == "const" {
            return Err(self.report(name_range, |span| catalogue::unexpected_token(span, "a type", name)));
        }
        let mut ty = if name == "__torch__" {
            self.class_path()
        } else {
            self.bump();
            match BaseType::from_name(name) {
                Some(base) => Type::Base(base),
                None => {
                    let reported = self.report(name_range.clone(), |span| {
                        catalogue::unknown_type(span, name, BaseType::NAMES)
                    });
                    let bracket = self.peek() == TokenKind::Char('[') && !self.list_follows();
                    // `Option<Tensor>`, `List[int]`
                    if bracket || self.peek() == TokenKind::Char('<') {
                        return Err(reported);
                    }
                    Type::Class(String::new())
                }
            }
        };
        let mut alias = None;
        if self.peek() == TokenKind::Char('(') {
            let open = self.range();
            alias = Some(self.alias()?);
            if !matches!(ty, Type::Base(BaseType::Tensor) | Type::Class(_)) {
                let range = open.start..self.previous_end();
                return Err(self.report(range, |span| catalogue::alias_on_other_type(span, name)));
            }
        }
        loop {
            let range = self.range();
            if self.eat(TokenKind::Char('?')) {
                if ty.is_optional() {
                    return Err(self.report(range, catalogue::optional_twice));
                }
                ty = Type::Optional(Box::new(ty));
            } else if self.eat(TokenKind::Char('[')) {
                ty = Type::List(Box::new(ty), self.list_length(range)?);
            } else {
                return Ok((ty, alias));
            }
        }
    }

    /// Whether `[]` or `[n]` is next.
    fn list_follows(&self) -> bool {
        matches!(self.peek_second(), TokenKind::Char(']') | TokenKind::Number)
    }

    /// `__torch__.torch.classes.a.B`
    fn class_path(&mut self) -> Type {
        let start = self.range().start;
        self.bump();
        while self.peek() == TokenKind::Char('.') {
            self.bump();
            self.eat(TokenKind::Ident);
        }
        Type::Class(self.text[start..self.previous_end()].to_owned())
    }

    /// The part after `[`: an optional length, and `]`.
    fn list_length(&mut self, open: Range<usize>) -> Result<Option<u32>, Reported> {
        if self.eat(TokenKind::Char(']')) {
            return Ok(None);
        }
        let range = self.range();
        let length = self.word().parse().ok().filter(|&length| length > 0);
        let written = self.text[range.clone()].to_owned();
        let closed = self.peek() == TokenKind::Number && {
            self.bump();
            self.eat(TokenKind::Char(']'))
        };
        match length {
            Some(length) if closed => Ok(Some(length)),
            _ => {
                let range = open.start..range.end;
                Err(self.report(range, |span| catalogue::list_length_malformed(span, &written)))
            }
        }
    }

    /// `(a)`, `(a!)`, `(a|b)`, `(a -> *)`, from the parenthesis on.
    fn alias(&mut self) -> Result<Alias, Reported> {
        let start = self.range().start;
        self.bump();
        let alias = self.alias_sets().map(|sets| {
            let mutable = self.eat(TokenKind::Char('!'));
            let after = self.eat(TokenKind::Arrow).then(|| match self.eat(TokenKind::Char('*')) {
                true => Some(AliasAfter::Wildcard),
                false => self.alias_sets().map(AliasAfter::Sets),
            });
            (sets, mutable, after)
        });
        // An arrow with nothing after it is `Some(None)`.
        if let Some((sets, mutable, None | Some(Some(_)))) = &alias
            && self.eat(TokenKind::Char(')'))
        {
            let after = alias.as_ref().and_then(|(_, _, after)| after.clone().flatten());
            return Ok(Alias { sets: sets.clone(), mutable: *mutable, after });
        }
        while !matches!(self.peek(), TokenKind::Char(')' | ',') | TokenKind::End) {
            self.bump();
        }
        self.eat(TokenKind::Char(')'));
        let range = start..self.previous_end();
        Err(self.report(range, catalogue::alias_malformed))
    }

    /// `a` or `a|b`: single small letters.
    fn alias_sets(&mut self) -> Option<Vec<char>> {
        let mut sets = Vec::new();
        loop {
            let mut letters = self.word().chars();
            let letter = letters.next().filter(char::is_ascii_lowercase)?;
            if letters.next().is_some() {
                return None;
            }
            sets.push(letter);
            self.bump();
            if !self.eat(TokenKind::Char('|')) {
                return Some(sets);
            }
        }
    }
}
