//! The recursive descent parser of signatures.
//!
//! After a mistake it skips to the next comma or bracket and goes on, so one run reports the mistakes of every
//! argument. A type that cannot be parsed becomes a nameless class, which the checks ignore; a signature with any
//! mistake is not returned.

use std::ops::Range;

use super::lexer::{Token, TokenKind, lex};
use super::{Argument, BaseType, OpName, Return, Schema, check};
use crate::diagnostics::{Diagnostic, Diagnostics, Reported, Span, catalogue};

/// See [`Schema::parse`].
pub(super) fn parse(
    text: &str,
    locate: &dyn Fn(Range<usize>) -> Span,
    diagnostics: &mut Diagnostics,
) -> Option<Schema> {
    if text.len() > MAX_BYTES {
        diagnostics.push(catalogue::signature_too_long(locate(0..text.len()), text.len(), MAX_BYTES));
        return None;
    }
    let mut parser = Parser { text, tokens: lex(text), at: 0, locate, errors: Vec::new() };
    let schema = parser.schema();
    let mut errors = parser.errors;
    if let Some(schema) = &schema {
        check::arguments(schema, locate, &mut errors);
        // The remaining rules relate arguments to returned values: a mistake in either would be reported twice.
        if errors.is_empty() {
            check::aliasing(schema, locate, &mut errors);
        }
    }
    let clean = errors.is_empty();
    diagnostics.extend(errors);
    schema.filter(|_| clean)
}

/// The longest known signature has 900 bytes.
const MAX_BYTES: usize = 16 << 10;
/// Limit of reported mistakes per signature: computing each one's span takes time that grows with the signature.
const MAX_ERRORS: usize = 20;

/// The rest of the signature and the mistakes so far.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    locate: &'a dyn Fn(Range<usize>) -> Span,
    errors: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    fn schema(&mut self) -> Option<Schema> {
        if self.peek() == TokenKind::End {
            self.report(0..self.text.len(), catalogue::signature_empty);
            return None;
        }
        let (name, name_range) = self.op_name()?;
        let (args, closed) = self.arguments();
        let mut returns = Vec::new();
        let mut returns_start = self.range().start;
        // An unclosed argument list may have consumed the arrow.
        if closed || self.peek() == TokenKind::Arrow {
            if let Some(start) = self.arrow() {
                returns_start = start;
                returns = self.returns();
            }
            if self.peek() != TokenKind::End {
                let rest = self.range().start..self.text.trim_end().len();
                self.report(rest, catalogue::signature_trailing);
            }
        }
        let returns_range = returns_start..self.previous_end().max(returns_start);
        Some(Schema { name, args, returns, name_range, returns_range })
    }

    /// `[namespace::]name[.overload]`, up to the opening parenthesis.
    fn op_name(&mut self) -> Option<(OpName, Range<usize>)> {
        let start = self.range().start;
        let mut words = Vec::new();
        let mut well_formed = true;
        // A name, then `.overload`; after a namespace the name is the next word.
        let mut namespace = None;
        let mut overload = "";
        while !matches!(self.peek(), TokenKind::Char('(') | TokenKind::Arrow | TokenKind::End) {
            words.push((self.peek(), self.range()));
            self.bump();
        }
        let end = self.previous_end().max(start);
        let mut rest = words.as_slice();
        if let [(TokenKind::Ident, space), (TokenKind::PathSep, _), tail @ ..] = rest {
            namespace = Some(&self.text[space.clone()]);
            rest = tail;
        }
        let mut name = "";
        if let [(TokenKind::Ident, word), tail @ ..] = rest {
            name = &self.text[word.clone()];
            rest = tail;
        } else {
            well_formed = false;
        }
        if let [(TokenKind::Char('.'), _), (TokenKind::Ident, word)] = rest {
            overload = &self.text[word.clone()];
        } else {
            well_formed &= rest.is_empty();
        }
        // Blanks inside the name would be dropped silently.
        well_formed &= !self.text[start..end].contains(char::is_whitespace);
        if words.is_empty() {
            self.report(start..start, catalogue::signature_without_name);
        } else if !well_formed {
            let spelling = self.text[start..end].to_owned();
            self.report(start..end, |span| catalogue::op_name_malformed(span, &spelling));
        }
        if self.peek() != TokenKind::Char('(') {
            self.report(end..end, catalogue::signature_without_arguments);
            return None;
        }
        Some((OpName::new(namespace, name, overload), start..end))
    }

    /// `(arguments)`, from the opening parenthesis on; returns whether the closing one was found.
    fn arguments(&mut self) -> (Vec<Argument>, bool) {
        let mut args = Vec::new();
        let mut star: Option<Range<usize>> = None;
        let closed = self.list(|parser| {
            if parser.peek() == TokenKind::Char('*') {
                parser.star(&mut star)
            } else {
                let arg = parser.argument(star.is_some())?;
                args.push(arg);
                Ok(())
            }
        });
        (args, closed)
    }

    /// A parenthesized list, from the opening parenthesis on. An item that fails is skipped. Returns whether the
    /// closing parenthesis was found.
    fn list(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Reported>) -> bool {
        let open = self.range();
        self.bump();
        if self.eat(TokenKind::Char(')')) {
            return true;
        }
        loop {
            let mut read = item(self);
            if read.is_ok() && !self.at_item_end() {
                read = Err(self.unexpected("`,` or `)`"));
            }
            if read.is_err() {
                self.skip_item();
            }
            match self.peek() {
                TokenKind::Char(',') => self.bump(),
                TokenKind::Char(')') => {
                    self.bump();
                    return true;
                }
                _ => {
                    // A mistake in the last item, such as an open quote, may have consumed it.
                    if read.is_ok() {
                        self.report(open, catalogue::parenthesis_not_closed);
                    }
                    return false;
                }
            }
        }
    }

    /// `*`, after which arguments are keyword-only.
    fn star(&mut self, star: &mut Option<Range<usize>>) -> Result<(), Reported> {
        let range = self.range();
        self.bump();
        if let Some(first) = star {
            let first = (self.locate)(first.clone());
            return Err(self.report(range, |span| catalogue::second_star(span, first)));
        }
        *star = Some(range.clone());
        match self.peek() {
            TokenKind::Char(')') => Err(self.report(range, catalogue::star_without_arguments)),
            _ => Ok(()),
        }
    }

    /// `type name[=default]`
    fn argument(&mut self, kwarg_only: bool) -> Result<Argument, Reported> {
        let first = self.range();
        match self.peek() {
            TokenKind::Ident => self.half_argument(&first)?,
            TokenKind::Char(',' | ')') => return Err(self.report(first, catalogue::argument_empty)),
            _ => return Err(self.unexpected("an argument")),
        }
        let (ty, alias) = self.ty()?;
        let type_range = first.start..self.previous_end();
        if self.at_item_end() || self.peek() == TokenKind::Char('=') {
            let written = self.text[type_range.clone()].to_owned();
            return Err(self.report(type_range, |span| catalogue::argument_without_name(span, &written)));
        }
        if self.peek() != TokenKind::Ident {
            return Err(self.unexpected("the argument's name"));
        }
        let name_range = self.range();
        let name = self.text[name_range.clone()].to_owned();
        self.bump();
        let mut default = None;
        if self.eat(TokenKind::Char('=')) {
            // Out arguments have no default at all; that mistake is reported once.
            let is_out = kwarg_only && alias.as_ref().is_some_and(|alias| alias.mutable);
            default = Some(self.default(&ty, &name, !is_out)?);
        }
        let range = first.start..self.previous_end();
        Ok(Argument { name, ty, alias, default, kwarg_only, range, type_range, name_range })
    }

    /// Reports an argument that is one word, or has a colon after its name.
    fn half_argument(&mut self, first: &Range<usize>) -> Result<(), Reported> {
        let word = &self.text[first.clone()];
        let next = self.tokens[self.at + 1].clone();
        match next.kind {
            TokenKind::Char(',' | ')' | '=') | TokenKind::Arrow | TokenKind::End => {
                let message = match BaseType::from_name(word) {
                    Some(_) => catalogue::argument_without_name,
                    None => catalogue::argument_without_type,
                };
                Err(self.report(first.clone(), |span| message(span, word)))
            }
            TokenKind::Char(':') => {
                let end = self.tokens[self.item_end_index()].range.start;
                let written = self.text[next.range.end..end].trim();
                let first_word = written.split(|letter: char| !letter.is_ascii_alphanumeric()).next();
                let is_type = first_word.is_some_and(|word| BaseType::from_name(word).is_some());
                let ty = if is_type { written } else { "Tensor" };
                let range = first.start..next.range.end;
                Err(self.report(range, |span| catalogue::argument_type_after_name(span, word, ty)))
            }
            _ => Ok(()),
        }
    }

    /// `->`; returns the start of the text after it.
    fn arrow(&mut self) -> Option<usize> {
        if self.peek() != TokenKind::Arrow {
            let gap = self.previous_end();
            let range = if self.peek() == TokenKind::End { gap..gap } else { self.range() };
            self.report(range, catalogue::arrow_missing);
            while !matches!(self.peek(), TokenKind::Arrow | TokenKind::End) {
                self.bump();
            }
        }
        self.eat(TokenKind::Arrow).then(|| self.range().start)
    }

    /// One returned value, or a parenthesized list of any number.
    fn returns(&mut self) -> Vec<Return> {
        let mut returns = Vec::new();
        let start = self.range().start;
        match self.peek() {
            TokenKind::End => {
                let end = self.previous_end();
                self.report(end..end, catalogue::returns_missing);
            }
            TokenKind::Char('(') => {
                self.list(|parser| {
                    let value = parser.returned_value()?;
                    returns.push(value);
                    Ok(())
                });
            }
            _ => match self.returned_value() {
                Ok(value) => returns.push(value),
                Err(Reported) => self.skip_to_end(),
            },
        }
        if self.peek() == TokenKind::Char(',') {
            let all = start..self.text.trim_end().len();
            let written = self.text[all.clone()].to_owned();
            self.report(all, |span| catalogue::returns_without_parentheses(span, &written));
            self.skip_to_end();
        }
        returns
    }

    /// `type [name]`
    fn returned_value(&mut self) -> Result<Return, Reported> {
        let start = self.range().start;
        match self.peek() {
            TokenKind::Ident => {}
            TokenKind::Char(',' | ')') => {
                let range = self.range();
                return Err(self.report(range, catalogue::return_empty));
            }
            _ => return Err(self.unexpected("the type of a returned value")),
        }
        let (ty, alias) = self.ty()?;
        let mut name = None;
        if self.peek() == TokenKind::Ident {
            name = Some(self.word().to_owned());
            self.bump();
        }
        let range = start..self.previous_end();
        if self.peek() == TokenKind::Char('=') {
            let end = self.tokens[self.item_end_index()].range.start;
            let default = self.range().start..self.text[..end].trim_end().len();
            return Err(self.report(default, catalogue::return_with_default));
        }
        Ok(Return { name, ty, alias, range })
    }

    pub(super) fn at_item_end(&self) -> bool {
        matches!(self.peek(), TokenKind::Char(',' | ')') | TokenKind::Arrow | TokenKind::End)
    }

    fn skip_item(&mut self) {
        self.at = self.item_end_index();
    }

    fn skip_to_end(&mut self) {
        self.at = self.tokens.len() - 1;
    }

    /// The next comma or closing parenthesis at this level, the arrow, or the end.
    fn item_end_index(&self) -> usize {
        let mut depth = 0usize;
        for (index, token) in self.tokens.iter().enumerate().skip(self.at) {
            match token.kind {
                TokenKind::Char('(' | '[') => depth += 1,
                TokenKind::Char(')' | ']') if depth > 0 => depth -= 1,
                TokenKind::Char(',' | ')') | TokenKind::Arrow if depth == 0 => return index,
                _ => {}
            }
        }
        self.tokens.len() - 1
    }

    /// Reports the next token as unexpected.
    pub(super) fn unexpected(&mut self, expected: &str) -> Reported {
        let range = self.range();
        let found = self.text[range.clone()].to_owned();
        self.report(range, |span| catalogue::unexpected_token(span, expected, &found))
    }

    pub(super) fn report(
        &mut self,
        range: Range<usize>,
        message: impl FnOnce(Span) -> Diagnostic,
    ) -> Reported {
        if self.errors.len() < MAX_ERRORS {
            let diagnostic = message((self.locate)(range));
            self.errors.push(diagnostic);
        }
        Reported
    }

    pub(super) fn peek(&self) -> TokenKind {
        self.tokens[self.at].kind
    }

    pub(super) fn peek_second(&self) -> TokenKind {
        self.tokens.get(self.at + 1).map_or(TokenKind::End, |token| token.kind)
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.tokens[self.at].range.clone()
    }

    pub(super) fn word(&self) -> &'a str {
        &self.text[self.range()]
    }

    pub(super) fn bump(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    pub(super) fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.peek() == kind;
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn previous_end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |index| self.tokens[index].range.end)
    }
}
