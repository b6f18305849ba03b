//! Calls of operators as formulas: by the notation of the entry, by the part that it plays, by its own expression, or as a
//! function.

use opsmith_codegen::model::expr::{Expr, ExprKind, Variable};
use opsmith_codegen::model::{Arg, Default, Kind, Model, NotationPart, Op, Role};

use super::expression::Writer;
use super::mathml::{
    Level, Math, between, call, cases, conjugate, infix, number, operator_sign, power, subscript, words,
};
use super::names::{function, name, upright};

/// The most parts that the expression of an operator has where it is written in place of a call.
const INLINE: usize = 16;
/// The same, where the call is a whole formula.
const WHOLE: usize = 120;

/// Whether the notation of an operator is a product, so that products of elements need another sign.
pub(super) fn is_product(op: &Op) -> bool {
    matches!(op.facts.notation[..], [NotationPart::Argument(_), NotationPart::Argument(_)])
}

/// Whether a notation has an argument.
pub(super) fn mentions(parts: &[NotationPart], index: usize) -> bool {
    parts.iter().any(|part| match part {
        NotationPart::Argument(at) | NotationPart::Subscript(at) | NotationPart::Exponent(at) => *at == index,
        NotationPart::Superscript(_) | NotationPart::Symbol(_) => false,
    })
}

impl Writer<'_> {
    /// The call of an operator.
    pub fn operator(&self, op: &Op, args: &[Expr]) -> Math {
        self.by_notation(op, args)
            .or_else(|| self.by_role(op, args))
            .or_else(|| self.by_expression(op, args))
            .unwrap_or_else(|| self.by_name(op, args))
    }

    fn by_notation(&self, op: &Op, args: &[Expr]) -> Option<Math> {
        let parts = &op.facts.notation;
        let rest = (0..args.len()).filter(|index| !mentions(parts, *index));
        let expressible =
            !parts.is_empty() && rest.into_iter().all(|index| is_default(&op.args[index], &args[index]));
        expressible.then(|| self.notation(parts, &self.each(args)))
    }

    /// The parts of a notation. Arguments in a fence need no parentheses; in a product, or below a mark, they do.
    pub fn notation(&self, parts: &[NotationPart], args: &[Math]) -> Math {
        if let [
            NotationPart::Symbol(open),
            NotationPart::Argument(inner),
            NotationPart::Symbol(close),
            marks @ ..,
        ] = parts
            && is_fence(open)
        {
            let inner = args.get(*inner).cloned().unwrap_or_else(|| upright("?"));
            let fenced = between(open, inner, close);
            return marks.iter().fold(fenced, |base, mark| self.marked(base, mark, args));
        }
        let mut items: Vec<Math> = Vec::new();
        let mut level = Level::Atom;
        for part in parts {
            match part {
                NotationPart::Argument(index) => {
                    items.push(args.get(*index).cloned().unwrap_or_else(|| upright("?")));
                }
                NotationPart::Symbol(text) => {
                    level = Level::Prefix;
                    let is_word = text.chars().all(char::is_alphabetic) && text.chars().count() > 1;
                    items.push(if is_word { upright(text) } else { Math::atom(operator_sign(text)) });
                }
                mark => {
                    let base = items.pop().unwrap_or_else(|| upright("?"));
                    items.push(self.marked(base, mark, args));
                }
            }
        }
        if items.len() == 1 {
            return items.remove(0);
        }
        if !matches!(parts.first(), Some(NotationPart::Symbol(_))) {
            level = Level::Product;
        }
        let silent = parts.iter().all(|part| !matches!(part, NotationPart::Symbol(_)));
        let gap = if silent {
            format!("{}<mspace width=\"0.17em\"/>", operator_sign("\u{2062}"))
        } else {
            String::new()
        };
        let items: Vec<String> = items
            .into_iter()
            .map(|item| match item.level {
                Level::Prefix => between("(", item, ")"),
                _ => item.unsigned(Level::Product),
            })
            .map(|item| item.xml)
            .collect();
        let space = if level == Level::Prefix { "<mspace width=\"0.17em\"/>" } else { "" };
        Math::new(items.join(if silent { &gap } else { space }), level)
    }

    fn marked(&self, base: Math, mark: &NotationPart, args: &[Math]) -> Math {
        let argument = |index: &usize| args.get(*index).cloned().unwrap_or_else(|| upright("?"));
        match mark {
            NotationPart::Subscript(index) => subscript(base, argument(index)),
            NotationPart::Exponent(index) => power(base, argument(index)),
            NotationPart::Superscript(text) => match text.parse::<f64>() {
                Ok(value) => power(base, number(value)),
                Err(_) => power(base, upright(text)),
            },
            NotationPart::Argument(_) | NotationPart::Symbol(_) => base,
        }
    }

    /// Selection as cases, conjugation as a line.
    fn by_role(&self, op: &Op, args: &[Expr]) -> Option<Math> {
        match (op.role?, args) {
            (Role::Select, [condition, yes, no]) => {
                let mut rows = vec![(self.math(yes), Some(self.math(condition)))];
                rows.push((self.math(no), None));
                Some(cases(rows))
            }
            (Role::Conjugate, [tensor]) => Some(conjugate(self.math(tensor))),
            (Role::Accumulate | Role::SumTo | Role::Cast | Role::Select | Role::Conjugate, _) => None,
        }
    }

    /// The expression of one element, with arguments in their places, if it is short and has no branches but at its head.
    fn by_expression(&self, op: &Op, args: &[Expr]) -> Option<Math> {
        let body = op.body.pointwise.as_ref()?;
        size_of_plain(head_of(body), INLINE)?;
        let bound = self.each(args);
        Some(self.inside(op, &bound).math(body))
    }

    /// The writer of the expression of a called operator.
    pub fn inside<'b>(&self, op: &'b Op, bound: &'b [Math]) -> Writer<'b>
    where
        Self: 'b,
    {
        Writer { model: self.model, op, bound: Some(bound), product: self.product }
    }

    /// A function of the operator's base name; arguments at the end that have their defaults are left out.
    fn by_name(&self, op: &Op, args: &[Expr]) -> Math {
        let needed = args.iter().zip(&op.args).rposition(|(value, arg)| !is_default(arg, value));
        let given = args.iter().zip(&op.args).take(needed.map_or(0, |last| last + 1));
        let given = given.filter(|(value, arg)| !(arg.keyword_only && is_default(arg, value)));
        let given = given.map(|(value, arg)| match (arg.keyword_only, value.ty.kind == Kind::Bool) {
            (true, _) | (false, true) => infix(name(&arg.name), "=", self.math(value), Level::Compare),
            (false, false) => self.math(value),
        });
        let given: Vec<Math> = given.collect();
        match given.is_empty() {
            true => Math::atom(format!("{}{}", function(&op.base).xml, words("()"))),
            false => call(function(&op.base), given),
        }
    }
}

/// The operator whose expression stands for a call that is a whole formula: its gradient's own name would explain nothing.
pub(super) fn whole<'a>(model: &'a Model, expr: &'a Expr) -> Option<(&'a Op, &'a [Expr], &'a Expr)> {
    let ExprKind::Op(id, args) = &expr.kind else { return None };
    let op = model.ops.get(id.0)?;
    let body = op.body.pointwise.as_ref().filter(|_| op.facts.notation.is_empty() && op.role.is_none())?;
    let mut parts = 0;
    body.walk(&mut |_| parts += 1);
    (parts <= WHOLE).then_some((op, args.as_slice(), body))
}

/// The branches of an expression that is a choice, or the expression itself.
fn head_of(body: &Expr) -> Vec<&Expr> {
    match &body.kind {
        ExprKind::Convert(inner) => head_of(inner),
        ExprKind::If(condition, yes, no) => [vec![&**condition], head_of(yes), head_of(no)].concat(),
        _ => vec![body],
    }
}

/// The number of parts of expressions without branches and bindings; `None` if one has them.
fn size_of_plain(parts: Vec<&Expr>, most: usize) -> Option<usize> {
    let (mut count, mut is_plain) = (0, true);
    for part in parts {
        part.walk(&mut |part| {
            count += 1;
            is_plain &= !matches!(
                part.kind,
                ExprKind::If(..) | ExprKind::Block(..) | ExprKind::Native(..) | ExprKind::Op(..)
            );
        });
    }
    (is_plain && count <= most).then_some(count)
}

fn is_fence(text: &str) -> bool {
    matches!(text, "|" | "‖" | "⟨" | "⌊" | "⌈" | "(" | "[")
}

/// Whether an argument is given as its default.
fn is_default(arg: &Arg, value: &Expr) -> bool {
    let Some(default) = &arg.default else { return false };
    match (&value.kind, default) {
        (ExprKind::Convert(inner), _) => is_default(arg, inner),
        (ExprKind::None, Default::None) => true,
        (ExprKind::Bool(value), Default::Bool(default)) => value == default,
        (ExprKind::Int(value), Default::Int(default)) => value == default,
        (ExprKind::Int(value), Default::Float(default)) => *value as f64 == *default,
        (ExprKind::Float(value), Default::Float(default)) => value.to_bits() == default.to_bits(),
        (ExprKind::Float(value), Default::Int(default)) => *value == *default as f64,
        (ExprKind::Str(value), Default::Str(default)) => value == default,
        (ExprKind::DType(value), Default::DType(default)) => value == default,
        (ExprKind::MemoryFormat(value), Default::MemoryFormat(default)) => value == default,
        (ExprKind::List(values), Default::List(defaults)) => {
            let item = |default: &Default| Arg { default: Some(default.clone()), ..arg.clone() };
            values.len() == defaults.len()
                && values.iter().zip(defaults).all(|(value, default)| is_default(&item(default), value))
        }
        (ExprKind::Variable(Variable::Arg(_)), _) => false,
        _ => false,
    }
}
