//! Symbols between operands: plain arithmetic, elements, or operators of tensors that declare the
//! symbol.

use std::ops::Range;

use syn::{BinOp, UnOp};

use super::coerce::Fit;
use super::{Checker, Mode};
use crate::expr::{Expr, ExprKind};
use crate::model::{Kind, OpId, Operator, Symbol, Ty};

fn symbol_of(op: &BinOp) -> Option<Symbol> {
    Some(match op {
        BinOp::Add(_) => Symbol::Add,
        BinOp::Sub(_) => Symbol::Sub,
        BinOp::Mul(_) => Symbol::Mul,
        BinOp::Div(_) => Symbol::Div,
        BinOp::Rem(_) => Symbol::Rem,
        BinOp::BitAnd(_) => Symbol::BitAnd,
        BinOp::BitOr(_) => Symbol::BitOr,
        BinOp::BitXor(_) => Symbol::BitXor,
        BinOp::Eq(_) => Symbol::Eq,
        BinOp::Ne(_) => Symbol::Ne,
        BinOp::Lt(_) => Symbol::Lt,
        BinOp::Le(_) => Symbol::Le,
        BinOp::Gt(_) => Symbol::Gt,
        BinOp::Ge(_) => Symbol::Ge,
        _ => return None,
    })
}

impl Checker<'_> {
    pub(super) fn binary(&mut self, binary: &syn::ExprBinary, range: Range<usize>) -> Option<Expr> {
        let left = self.expr(&binary.left);
        let right = self.expr(&binary.right);
        let (left, right) = (left?, right?);
        let place = self.places.of(&binary.op);
        if let BinOp::And(_) | BinOp::Or(_) = binary.op {
            let bool = Ty::new(Kind::Bool);
            let left = self.coerce_or_report(left, &bool);
            let right = self.coerce_or_report(right, &bool);
            let and = matches!(binary.op, BinOp::And(_));
            return Some(Expr {
                kind: ExprKind::Logical(and, Box::new(left?), Box::new(right?)),
                ty: bool,
                range,
            });
        }
        let Some(symbol) = symbol_of(&binary.op) else {
            self.report("E0302", "this operator has no meaning in a spec", place, "not supported here");
            return None;
        };
        if left.ty.kind == Kind::Tensor || right.ty.kind == Kind::Tensor {
            return self.tensor_operator(symbol, vec![left, right], place, range);
        }
        // A Rust function between numbers gives an integer.
        let int = Ty::new(Kind::Int);
        let left = if right.ty.is_number() { self.native_as(left, &int) } else { left };
        let right = if left.ty.is_number() { self.native_as(right, &int) } else { right };
        let operands = self.common_operands(symbol, left, right, place)?;
        let ty = if symbol.is_comparison() { Ty::new(Kind::Bool) } else { operands.0.ty.clone() };
        // Dividing two integers exactly is only meant for sizes, where it is integer division.
        Some(Expr { kind: ExprKind::Binary(symbol, Box::new(operands.0), Box::new(operands.1)), ty, range })
    }

    /// Both operands as the type plain arithmetic happens in.
    fn common_operands(
        &mut self,
        symbol: Symbol,
        left: Expr,
        right: Expr,
        place: Range<usize>,
    ) -> Option<(Expr, Expr)> {
        let rank = |ty: &Ty| match (&ty.kind, ty.optional) {
            (_, true) => None,
            (Kind::Bool, _) => Some(0),
            (Kind::Int, _) => Some(1),
            (Kind::Float, _) => Some(2),
            (Kind::Scalar, _) => Some(3),
            (Kind::RealElement, _) => Some(4),
            (Kind::Element, _) => Some(5),
            _ => None,
        };
        let equality = matches!(symbol, Symbol::Eq | Symbol::Ne);
        if equality && (left.ty == right.ty) && !left.ty.holds_tensors() {
            return Some((left, right));
        }
        match (rank(&left.ty), rank(&right.ty)) {
            (Some(0), Some(0)) if matches!(symbol, Symbol::BitAnd | Symbol::BitOr | Symbol::BitXor) => {
                Some((left, right))
            }
            (Some(a), Some(b)) if a + b > 0 => {
                let ty = if a >= b { left.ty.clone() } else { right.ty.clone() };
                Some((self.coerce_or_report(left, &ty)?, self.coerce_or_report(right, &ty)?))
            }
            (Some(0), Some(0)) if equality => Some((left, right)),
            _ => {
                let label = format!("`{}` and `{}`", left.ty, right.ty);
                self.report(
                    "E0313",
                    format!("`{}` does not go between these", symbol.spelling()),
                    place,
                    label,
                );
                None
            }
        }
    }

    pub(super) fn unary(&mut self, unary: &syn::ExprUnary, range: Range<usize>) -> Option<Expr> {
        let operand = self.expr(&unary.expr)?;
        let place = self.places.of(&unary.op);
        let symbol = match unary.op {
            UnOp::Neg(_) => Symbol::Neg,
            UnOp::Not(_) => Symbol::Not,
            _ => {
                self.report("E0302", "this operator has no meaning in a spec", place, "not supported here");
                return None;
            }
        };
        if operand.ty.is_tensor() {
            return self.tensor_operator(symbol, vec![operand], place, range);
        }
        // A negative literal is a literal.
        match (symbol, &operand.kind) {
            (Symbol::Neg, ExprKind::Int(value)) => {
                return Some(Expr { kind: ExprKind::Int(value.wrapping_neg()), ty: operand.ty, range });
            }
            (Symbol::Neg, ExprKind::Float(value)) => {
                return Some(Expr { kind: ExprKind::Float(-value), ty: operand.ty, range });
            }
            _ => {}
        }
        let fits = match symbol {
            Symbol::Not => operand.ty == Ty::new(Kind::Bool) || operand.ty.kind == Kind::Element,
            _ => matches!(
                operand.ty.kind,
                Kind::Int | Kind::Float | Kind::Scalar | Kind::Element | Kind::RealElement
            ),
        };
        if !fits || operand.ty.optional {
            let label = format!("`{}`", operand.ty);
            self.report(
                "E0313",
                format!("`{}` does not go before this", symbol.spelling()),
                operand.range,
                label,
            );
            return None;
        }
        let ty = operand.ty.clone();
        Some(Expr { kind: ExprKind::Unary(symbol, Box::new(operand)), ty, range })
    }

    /// The call that a symbol stands for between tensors: some operator declares it.
    fn tensor_operator(
        &mut self,
        symbol: Symbol,
        operands: Vec<Expr>,
        place: Range<usize>,
        range: Range<usize>,
    ) -> Option<Expr> {
        if self.scope.mode == Mode::Shape || self.scope.mode == Mode::DType {
            self.report(
                "E0314",
                "inference cannot compute with tensors",
                place,
                "only their sizes and dtypes are known here",
            );
            return None;
        }
        let mut best: Option<(usize, OpId, bool)> = None;
        for (index, op) in self.scope.ops.ops().iter().enumerate() {
            for reversed in [false, true] {
                if !op.operators.contains(&Operator { symbol, reversed }) {
                    continue;
                }
                let mut ordered: Vec<&Expr> = operands.iter().collect();
                if reversed {
                    ordered.reverse();
                }
                let fits = ordered.iter().zip(&op.args).map(|(operand, arg)| self.fit(operand, &arg.ty));
                let Some(cost) = fits.map(cost).sum::<Option<usize>>() else { continue };
                let cost = cost * 2 + usize::from(reversed);
                if best.is_none_or(|(least, _, _)| cost < least) {
                    best = Some((cost, OpId(index), reversed));
                }
            }
        }
        let Some((_, id, reversed)) = best else {
            let types: Vec<String> = operands.iter().map(|operand| format!("`{}`", operand.ty)).collect();
            let spelling = symbol.spelling();
            self.report(
                "E0315",
                format!("no operator declares `{spelling}` for these operands"),
                place,
                types.join(" and "),
            )
            .help(format!(
                "add `operator: \"{spelling}\"` to the operator it should call, or call one by name"
            ));
            return None;
        };
        let mut operands = operands;
        if reversed {
            operands.reverse();
        }
        self.op_call(id, operands, Vec::new(), range)
    }
}

/// The cost of a conversion when choosing between overloads; `None` if there is none.
pub(super) fn cost(fit: Fit) -> Option<usize> {
    match fit {
        Fit::Exact => Some(0),
        Fit::Converted => Some(1),
        Fit::Never => None,
    }
}
