//! The key `formula` as MathML.
//!
//! In: a parsed formula of an operator. Out: [`Math`]. Parentheses are those that the order of signs needs.

use opsmith_codegen::model::{Formula, FormulaNode as Node, FormulaScripts, Op, RangeOperator, Strength};

use super::expression::Writer;
use super::mathml::{
    Level, Math, beside, between, call, cases, chain, commas, difference_of, equation_lines, factors, infix,
    not, number, operator_sign, over, power, quotient, root, scripts, separated, subscript, sum_of, words,
};
use super::names::{function, name, upright};

/// A gap between statements of one line.
const GAP: &str = "<mspace width=\"1em\"/>";

/// The formula of an operator; several lines are aligned at their first relations.
pub(super) fn formula(writer: &Writer<'_>, formula: &Formula) -> Math {
    let writer = FormulaWriter { writer, op: writer.op };
    match &formula.lines[..] {
        [line] => writer.line(&line.node),
        lines => equation_lines(lines.iter().map(|line| writer.statement(&line.node)).collect()),
    }
}

struct FormulaWriter<'a> {
    writer: &'a Writer<'a>,
    op: &'a Op,
}

impl FormulaWriter<'_> {
    fn line(&self, node: &Node) -> Math {
        match node {
            Node::List(items) => self.statements(self.math(&items[0]), &items[1..]),
            _ => self.math(node),
        }
    }

    /// Statements of one line: there is a gap before those with a relation or words, and none between the items of a list.
    fn statements(&self, first: Math, rest: &[Node]) -> Math {
        rest.iter().fold(first, |before, item| {
            let is_statement = matches!(item, Node::Relation(..) | Node::Row(_) | Node::Words(_));
            separated(vec![before, self.math(item)], if is_statement { GAP } else { "" })
        })
    }

    /// A line as the left side of its first relation, the sign, and the rest.
    fn statement(&self, node: &Node) -> (Math, &'static str, Math) {
        match node {
            Node::List(items) => {
                let (left, sign, right) = self.statement(&items[0]);
                (left, sign, self.statements(right, &items[1..]))
            }
            Node::Row(parts) => {
                let (left, sign, right) = self.statement(&parts[0]);
                (left, sign, beside([vec![right], self.parts(&parts[1..], true)].concat()))
            }
            Node::Relation(first, rest) => {
                let (sign, second) = &rest[0];
                let right = chain(
                    self.operand(second),
                    rest[1..]
                        .iter()
                        .map(|(sign, operand)| (shown(sign.text), self.operand(operand)))
                        .collect(),
                );
                (self.operand(first), shown(sign.text), right)
            }
            // The generator refuses lines that begin with another part.
            _ => (upright("?"), "=", self.math(node)),
        }
    }

    /// An operand of a relation. Cases and words extend to the end of the line, and need no parentheses.
    fn operand(&self, node: &Node) -> Math {
        let math = self.math(node);
        if matches!(node, Node::Cases(_) | Node::Row(_)) { math } else { math.at_least(Level::Infix) }
    }

    /// Parts of a row; words have spaces around them.
    fn parts(&self, parts: &[Node], follows: bool) -> Vec<Math> {
        let spaced = |(index, part): (usize, &Node)| match part {
            Node::Words(text) => {
                let before = if index > 0 || follows { " " } else { "" };
                let behind = if index + 1 < parts.len() { " " } else { "" };
                Math::atom(words(&format!("{before}{text}{behind}")))
            }
            _ => self.math(part),
        };
        parts.iter().enumerate().map(spaced).collect()
    }

    fn each(&self, nodes: &[Node]) -> Vec<Math> {
        nodes.iter().map(|node| self.math(node)).collect()
    }

    fn math(&self, node: &Node) -> Math {
        match node {
            Node::Argument(index) => name(&self.op.args[*index].name),
            Node::Result(index) => self.writer.result(*index),
            Node::Name(text) => named(text),
            Node::Number(text) => number(text.parse().unwrap_or(f64::NAN)),
            Node::Words(text) => Math::atom(words(text)),
            Node::All => Math::atom(words(":")),
            Node::Ellipsis => upright("…"),
            Node::Script(base, marks) => self.script(base, marks),
            Node::Call(base, arguments) => call(self.math(base), self.each(arguments)),
            Node::Fence(open, items, close) => {
                between(&open.to_string(), commas(self.each(items)), &close.to_string())
            }
            Node::Root(inner) => root(self.math(inner)),
            Node::Cases(rows) => {
                let row = |(value, condition): &(Node, Option<Node>)| {
                    (self.math(value), condition.as_ref().map(|condition| self.math(condition)))
                };
                cases(rows.iter().map(row).collect())
            }
            Node::Over(operator, marks, body) => self.over(operator, marks, body),
            Node::Negative(inner) => self.writer.negative(self.math(inner)),
            Node::Not(inner) => not(self.math(inner)),
            Node::Product(left, right) => factors(self.math(left), self.math(right), None),
            Node::Infix(left, sign, right) => {
                let (left, right) = (self.math(left), self.math(right));
                match (sign.strength, sign.text) {
                    (Strength::Or, text) => infix(left, text, right, Level::Or),
                    (Strength::And, text) => infix(left, text, right, Level::And),
                    (Strength::Relation, text) => infix(left, text, right, Level::Compare),
                    (Strength::Remainder, text) => infix(left, text, right, Level::Infix),
                    (Strength::Sum, "+") => sum_of(left, right),
                    (Strength::Sum, _) => difference_of(left, right),
                    (Strength::Product, "/") => quotient(left, right),
                    (Strength::Product, text) => factors(left, right, Some(text)),
                }
            }
            Node::Relation(first, rest) => chain(
                self.operand(first),
                rest.iter().map(|(sign, operand)| (shown(sign.text), self.operand(operand))).collect(),
            ),
            Node::Row(parts) => beside(self.parts(parts, false)),
            Node::List(items) => commas(self.each(items)),
        }
    }

    fn script(&self, base: &Node, marks: &FormulaScripts) -> Math {
        let base = self.base(base);
        match (&marks.below, &marks.above) {
            (Some(below), Some(above)) => scripts(base, self.math(below), self.mark(above)),
            (Some(below), None) => subscript(base, self.math(below)),
            (None, Some(above)) => power(base, self.mark(above)),
            (None, None) => base,
        }
    }

    /// A part that has marks: one with a subscript of its own stands between parentheses, `(y_0)_i`, and the number of a word
    /// on its line, `mat1_i`.
    fn base(&self, node: &Node) -> Math {
        let math = self.math(node);
        match node {
            _ if !math.xml.starts_with("<msub>") => math,
            Node::Argument(index) if self.op.args[*index].name.ends_with(|c: char| c.is_ascii_digit()) => {
                upright(&self.op.args[*index].name)
            }
            _ => between("(", math, ")"),
        }
    }

    /// An exponent. Marks of transposition are upright.
    fn mark(&self, node: &Node) -> Math {
        match node {
            Node::Name(text) if text == "∗" => Math::atom(operator_sign(text)),
            Node::Name(text) if matches!(&**text, "T" | "H") => upright(text),
            _ => self.math(node),
        }
    }

    fn over(&self, operator: &RangeOperator, marks: &FormulaScripts, body: &Node) -> Math {
        let sign = match operator.is_word {
            true => format!(
                "<mo form=\"prefix\" movablelimits=\"false\" lspace=\"0\" rspace=\"0\">{}</mo>",
                operator.shown
            ),
            false => format!("<mo form=\"prefix\">{}</mo>", operator.shown),
        };
        let limit = |mark: &Option<Box<Node>>| mark.as_ref().map(|mark| self.math(mark));
        let sign = over(sign, limit(&marks.below), limit(&marks.above));
        match body {
            Node::Fence('(', items, ')') => {
                Math::new(format!("{sign}{}", between("(", commas(self.each(items)), ")").xml), Level::Power)
            }
            _ => {
                let body = self.math(body).unsigned(Level::Product);
                Math::new(format!("{sign}<mspace width=\"0.17em\"/>{}", body.xml), Level::Prefix)
            }
        }
    }
}

/// A sign as browsers know it, with spaces around.
fn shown(sign: &'static str) -> &'static str {
    if sign == "~" { "∼" } else { sign }
}

/// A name that the formula gives, or a function's. A letter is slanted, a word upright.
fn named(text: &str) -> Math {
    match text {
        "∞" => Math::atom("<mn>∞</mn>".to_owned()),
        _ if text.chars().filter(|c| c.is_alphabetic()).count() > 1 => function(text),
        _ => name(text),
    }
}
