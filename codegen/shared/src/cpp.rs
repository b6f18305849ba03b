//! Definitions of functions in sources of C, C++ and CUDA.
//!
//! In: a source and a name. Out: the line of the definition. The text is split into tokens and not compiled, so that a name made
//! by pasting has no place: it is never guessed.

pub mod pieces;
mod tokens;

use tokens::{Placed, Token, tokens};

/// The line, from 1, that defines a function outside of classes: that of its name before a body. Declarations and calls are no
/// definitions. Without one, the line of the name among the arguments of a macro outside of bodies, which makes the function;
/// one with a body before others.
///
/// In `int f(int x);\nint f(int x) {}`, `f` is defined in line 2; in `KERNEL(f) {}` in line 1.
pub fn definition(text: &str, function: &str) -> Option<usize> {
    let tokens = tokens(text);
    let start = Search { tokens: &tokens, function }.run()?;
    Some(text[..start].matches('\n').count() + 1)
}

/// The braces around a place.
#[derive(Clone, Default)]
struct Scope {
    /// Whether each is that of a namespace or of `extern "C"`, and the parentheses and brackets around it.
    open: Vec<(bool, usize)>,
    /// The parentheses and brackets inside the innermost one.
    depth: usize,
    /// The first token of the declaration.
    declaration: usize,
}

impl Scope {
    /// Whether declarations there are no part of a class, a body or another declaration.
    fn is_outside(&self) -> bool {
        self.depth == 0 && self.open.iter().all(|(is_namespace, _)| *is_namespace)
    }
}

struct Search<'a> {
    tokens: &'a [Placed<'a>],
    function: &'a str,
}

impl Search<'_> {
    /// The first byte of the name in its definition.
    fn run(&self) -> Option<usize> {
        let mut scope = Scope::default();
        // Each branch of a condition begins in the scope of the first.
        let mut branches: Vec<Scope> = Vec::new();
        let (mut with_body, mut without) = (None, None);
        for at in 0..self.tokens.len() {
            match self.tokens[at].token {
                Token::If => branches.push(scope.clone()),
                Token::Else => scope = branches.last().cloned().unwrap_or(scope),
                Token::EndIf => _ = branches.pop(),
                Token::Sign('{') => {
                    scope.open.push((self.is_namespace(scope.declaration, at), scope.depth));
                    (scope.depth, scope.declaration) = (0, at + 1);
                }
                Token::Sign('}') => {
                    scope.depth = scope.open.pop().map_or(0, |(_, depth)| depth);
                    scope.declaration = at + 1;
                }
                Token::Sign('(' | '[') => scope.depth += 1,
                Token::Sign(')' | ']') => scope.depth = scope.depth.saturating_sub(1),
                Token::Sign(';') => scope.declaration = at + 1,
                Token::Word(word) if scope.is_outside() && self.is_sign(at + 1, '(') => {
                    if self.is_function(word) && self.is_definition(at) {
                        return Some(self.tokens[at].start);
                    }
                    if let Some((name, has_body)) = self.made(scope.declaration, at) {
                        let place = if has_body { &mut with_body } else { &mut without };
                        place.get_or_insert(self.tokens[name].start);
                    }
                }
                Token::Word(_) | Token::Sign(_) | Token::Literal => {}
            }
        }
        with_body.or(without)
    }

    fn token(&self, at: usize) -> Option<Token<'_>> {
        self.tokens.get(at).map(|placed| placed.token)
    }

    fn is_sign(&self, at: usize, sign: char) -> bool {
        self.token(at) == Some(Token::Sign(sign))
    }

    /// Whether a word is the name; escaped line breaks inside do not count.
    fn is_function(&self, word: &str) -> bool {
        word == self.function || word.contains('\\') && word.replace(['\\', '\r', '\n'], "") == self.function
    }

    /// Whether a brace is that of a namespace or of `extern "C"`, whose declaration begins at a token.
    fn is_namespace(&self, declaration: usize, brace: usize) -> bool {
        let words = &self.tokens[declaration..brace];
        let is_extern = matches!(
            words,
            [.., Placed { token: Token::Word("extern"), .. }, Placed { token: Token::Literal, .. }]
        );
        // `inline namespace a::b`, but not a function with such a word in its parameters.
        let is_call = words.iter().any(|placed| placed.token == Token::Sign('('));
        is_extern || !is_call && words.iter().any(|placed| placed.token == Token::Word("namespace"))
    }

    /// The token behind a bracket and all inside it.
    fn behind(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for at in open..self.tokens.len() {
            match self.tokens[at].token {
                Token::Sign('(' | '[' | '{') => depth += 1,
                Token::Sign(')' | ']' | '}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Whether a name with parentheses is a function outside of classes with a body.
    fn is_definition(&self, name: usize) -> bool {
        let of_class = name >= 2 && self.is_sign(name - 1, ':') && self.is_sign(name - 2, ':');
        // After these, a name is called.
        let is_called = name >= 1
            && matches!(self.tokens[name - 1].token, Token::Sign('=' | '(' | ',' | '.' | ':' | '!' | '{'));
        !of_class && !is_called && self.behind(name + 1).is_some_and(|at| self.is_body(at, true))
    }

    /// Whether a body follows, possibly behind qualifiers, of which some may be macros, and a type of results.
    fn is_body(&self, mut at: usize, macros: bool) -> bool {
        let mut in_type = false;
        while let Some(token) = self.token(at) {
            at = match token {
                Token::Sign('{') => return true,
                Token::Sign('(' | '[') => match self.behind(at) {
                    Some(behind) => behind,
                    None => return false,
                },
                Token::Sign('-') if self.is_sign(at + 1, '>') => {
                    in_type = true;
                    at + 2
                }
                Token::Sign('&') | Token::If | Token::Else | Token::EndIf => at + 1,
                Token::Sign('*' | ':' | '<' | '>' | ',') if in_type => at + 1,
                Token::Word(word) if in_type || is_qualifier(word) || macros && is_macro(word) => at + 1,
                _ => return false,
            };
        }
        false
    }

    /// The name among the arguments of a macro whose name is at `at`, and whether a body follows.
    fn made(&self, declaration: usize, at: usize) -> Option<(usize, bool)> {
        let behind = self.behind(at + 1)?;
        let name = (at + 2..behind - 1).find(|&inside| self.is_whole_argument(at + 1, inside))?;
        let before = &self.tokens[declaration..at];
        let is_value = before.iter().any(|placed| placed.token == Token::Sign('='));
        if is_value || matches!(self.tokens[at].token, Token::Word("static_assert" | "asm")) {
            return None;
        }
        // Capitals are another macro here.
        let has_body = self.is_body(behind, false);
        // A function may have a parameter of that name.
        let is_specifier = |placed: &Placed<'_>| {
            matches!(placed.token, Token::Literal | Token::Word("extern" | "static" | "inline"))
        };
        let is_first = before.iter().all(is_specifier);
        // Another macro, without a semicolon.
        let follows = before.last().is_some_and(|placed| placed.token == Token::Sign(')'));
        (has_body || is_first || follows).then_some((name, has_body))
    }

    /// Whether the token is the name, alone between the commas of a call.
    fn is_whole_argument(&self, open: usize, at: usize) -> bool {
        let is_name = matches!(self.tokens[at].token, Token::Word(word) if self.is_function(word));
        let begins = at == open + 1 || self.is_sign(at - 1, ',');
        is_name && begins && (self.is_sign(at + 1, ',') || self.is_sign(at + 1, ')'))
    }
}

/// Whether a word may stand between the parameters of a function and its body.
fn is_qualifier(word: &str) -> bool {
    matches!(word, "const" | "volatile" | "noexcept" | "override" | "final" | "try" | "throw" | "requires")
        || word.starts_with("__")
}

/// Whether a word is written as macros are.
fn is_macro(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests;
