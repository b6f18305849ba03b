//! The key `notation`: the formula that documents write for a call.
//!
//! In: a text with arguments in braces, `{self}^T`. Out: its parts.

use super::Context;
use crate::diagnostics::catalogue;
use crate::model::NotationPart;
use crate::spec::braces;
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};
use crate::spec::schema::Schema;

/// The parts of an entry's notation; none if it has none, or one with a mistake.
pub(super) fn lower(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Vec<NotationPart> {
    let Some(text) = raw.text(KeyName::Notation) else { return Vec::new() };
    match parts(&text, schema) {
        Ok(parts) => parts,
        Err(Mistake::Malformed(why)) => {
            context.push(catalogue::notation_malformed(text.span(), text.as_str(), why));
            Vec::new()
        }
        Err(Mistake::Unknown(name)) => {
            let known: Vec<&str> = schema.args.iter().map(|arg| arg.name.as_str()).collect();
            context.push(catalogue::notation_argument(text.span(), &schema.name.to_string(), &name, &known));
            Vec::new()
        }
    }
}

enum Mistake {
    /// The text is no notation, with the reason.
    Malformed(&'static str),
    /// No argument has this name.
    Unknown(String),
}

fn parts(text: &Text, schema: &Schema) -> Result<Vec<NotationPart>, Mistake> {
    let mut parts = Vec::new();
    let mut rest = text.as_str().trim();
    while let Some(first) = rest.chars().next() {
        let behind = &rest[first.len_utf8()..];
        let argument = ["{", "_{", "^{"].into_iter().find_map(|opening| rest.strip_prefix(opening));
        if let Some(inner) = argument {
            let name = braces::inside(inner).ok_or(Mistake::Malformed("a brace is not closed"))?;
            let index = schema.args.iter().position(|arg| arg.name == name.trim());
            let index = index.ok_or_else(|| Mistake::Unknown(name.trim().to_owned()))?;
            if first != '{' && parts.is_empty() {
                return Err(Mistake::Malformed("nothing stands before its first mark"));
            }
            parts.push(match first {
                '_' => NotationPart::Subscript(index),
                '^' => NotationPart::Exponent(index),
                _ => NotationPart::Argument(index),
            });
            rest = &inner[name.len() + 1..];
        } else if first == '^' {
            let length = behind.find([' ', '{', '^', '_']).unwrap_or(behind.len());
            if length == 0 || parts.is_empty() {
                return Err(Mistake::Malformed("`^` stands between a part and its exponent"));
            }
            parts.push(NotationPart::Superscript(behind[..length].to_owned()));
            rest = &behind[length..];
        } else if first.is_whitespace() {
            rest = behind;
        } else {
            let ends = |c: char| c.is_whitespace() || "{^_".contains(c);
            let length = behind.find(ends).map_or(rest.len(), |length| first.len_utf8() + length);
            parts.push(NotationPart::Symbol(rest[..length].to_owned()));
            rest = &rest[length..];
        }
    }
    match parts.iter().any(|part| matches!(part, NotationPart::Argument(_))) {
        true => Ok(parts),
        false => Err(Mistake::Malformed("it has no argument")),
    }
}
