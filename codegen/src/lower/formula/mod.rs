//! The key `formula`: the computation of an operator as documents write it.
//!
//! In: a text with the names of the signature in braces, `y_i = exp({self}_i) / Σ_j exp({self}_j)`. Out: its tree, of which
//! documents make MathML. Nothing is computed with it: `notation` is the form of a call inside other formulas.

mod lexer;
mod parser;
mod signature;

use std::collections::BTreeSet;

use super::Context;
use crate::diagnostics::catalogue;
use crate::model::{Formula, FormulaLine, FormulaNode, formula_words};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};
use crate::spec::schema::Schema;
use lexer::{Mistake, MistakeKind, Token};
use parser::Parser;
use signature::Signature;

/// The most bytes of a formula.
const LONGEST: usize = 4000;

/// The formula of an entry; none if it has none, or one with a mistake.
pub(super) fn lower(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Option<Formula> {
    let text = raw.text(KeyName::Formula)?;
    if let Some(expression) = raw.entry(KeyName::Pointwise) {
        context.push(catalogue::formula_beside_expression(text.span(), expression.key.span));
        return None;
    }
    let signature = Signature::new(schema);
    let hidden = raw.texts(KeyName::Intermediate).len();
    match parse(text.as_str(), &signature, schema.returns.len().saturating_sub(hidden)) {
        Ok(formula) => Some(formula),
        Err(mistake) => {
            report(context, &text, &signature, schema, mistake);
            None
        }
    }
}

fn report(
    context: &mut Context<'_>,
    text: &Text,
    signature: &Signature<'_>,
    schema: &Schema,
    Mistake { range, kind }: Mistake,
) {
    let span = text.span_within(range, context.sources);
    context.push(match kind {
        MistakeKind::Malformed(why) => catalogue::formula_malformed(span, &why),
        MistakeKind::Unknown(name) => {
            catalogue::formula_argument(span, &schema.name.to_string(), &name, &signature.names())
        }
        MistakeKind::Bare(name) => catalogue::formula_without_braces(span, &name),
        MistakeKind::Undefined(word) => catalogue::formula_word(span, &word, formula_words()),
    });
}

/// The tree of a formula whose first `visible` results callers get.
fn parse(text: &str, signature: &Signature<'_>, visible: usize) -> Result<Formula, Mistake> {
    if text.len() > LONGEST {
        return Err(Mistake::malformed(0..text.len(), format!("it has more than {LONGEST} bytes")));
    }
    let mut parser = Parser::new(text, lexer::tokens(text)?, signature);
    let parsed = parser.lines()?;
    let nodes: Vec<&FormulaNode> = parsed.iter().map(|(node, _)| node).collect();
    if nodes.is_empty() {
        return Err(Mistake::malformed(0..text.len(), "it is empty"));
    }
    let defined = defined(&nodes);
    let is_known = |word: &str| parser::is_known(word) || defined.contains(word);
    for word in &parser.words {
        if let Token::Name(name) = &word.token
            && !is_known(name.trim_end_matches(|c: char| c.is_ascii_digit()))
            && !is_known(name)
        {
            return Err(Mistake { range: word.range.clone(), kind: MistakeKind::Undefined(name.clone()) });
        }
    }
    let missing = (0..visible).find(|index| !nodes.iter().any(|node| mentions(node, *index)));
    if let Some(index) = missing {
        let why = format!("the result `{}` is not in it", signature.shown(index));
        return Err(Mistake::malformed(0..text.len(), why));
    }
    let mut start = 0;
    let mut lines = Vec::new();
    for (node, end) in parsed {
        let kept = text[start..end].char_indices().filter(|(at, _)| !parser.marks.contains(&(start + at)));
        let line: String = kept.map(|(_, c)| c).collect();
        lines.push(FormulaLine { text: line.split_whitespace().collect::<Vec<_>>().join(" "), node });
        start = end;
    }
    Ok(Formula { lines })
}

/// The words that stand at the left of a line's first relation, as quantities or functions.
fn defined<'a>(lines: &[&'a FormulaNode]) -> BTreeSet<&'a str> {
    let mut words = BTreeSet::new();
    for line in lines {
        let items =
            if let FormulaNode::List(items) = line { &items[..] } else { std::slice::from_ref(*line) };
        for item in items {
            let first = if let FormulaNode::Row(parts) = item { parts.first() } else { Some(item) };
            if let Some(FormulaNode::Relation(left, _)) = first {
                collect(left, &mut words);
            }
        }
    }
    words
}

fn collect<'a>(node: &'a FormulaNode, words: &mut BTreeSet<&'a str>) {
    match node {
        FormulaNode::Name(name) => {
            words.insert(name);
        }
        FormulaNode::Script(base, _) | FormulaNode::Call(base, _) => collect(base, words),
        FormulaNode::Fence(_, items, _) | FormulaNode::List(items) => {
            items.iter().for_each(|item| collect(item, words));
        }
        _ => {}
    }
}

/// Whether a part mentions a result.
fn mentions(node: &FormulaNode, result: usize) -> bool {
    let any = |nodes: &[FormulaNode]| nodes.iter().any(|node| mentions(node, result));
    match node {
        FormulaNode::Result(index) => *index == result,
        FormulaNode::Script(base, _) => mentions(base, result),
        FormulaNode::Call(base, items) => mentions(base, result) || any(items),
        FormulaNode::Fence(_, items, _) | FormulaNode::Row(items) | FormulaNode::List(items) => any(items),
        FormulaNode::Root(inner) | FormulaNode::Negative(inner) | FormulaNode::Not(inner) => {
            mentions(inner, result)
        }
        FormulaNode::Over(_, _, body) => mentions(body, result),
        FormulaNode::Infix(left, _, right) | FormulaNode::Product(left, right) => {
            mentions(left, result) || mentions(right, result)
        }
        FormulaNode::Relation(first, rest) => {
            mentions(first, result) || rest.iter().any(|(_, operand)| mentions(operand, result))
        }
        FormulaNode::Cases(rows) => rows.iter().any(|(value, _)| mentions(value, result)),
        FormulaNode::Argument(_)
        | FormulaNode::Name(_)
        | FormulaNode::Number(_)
        | FormulaNode::Words(_)
        | FormulaNode::All
        | FormulaNode::Ellipsis => false,
    }
}

#[cfg(test)]
mod tests;
