//! Symbols between operands: plain arithmetic, elements, or operators of tensors that declare the
//! symbol.

use std::ops::Range;

use opsmith_core::ArgKind;
use syn::{BinOp, UnOp};

use super::call::Given;
use super::overload::cost;
use super::{Checker, Mode, draft};
use crate::diagnostics::catalogue;
use crate::model::expr::{Expr, ExprKind};
use crate::model::{Kind, OpId, Operation, Operator, Ty};

fn symbol_of(op: &BinOp) -> Option<Operation> {
    Some(match op {
        BinOp::Add(_) => Operation::Add,
        BinOp::Sub(_) => Operation::Sub,
        BinOp::Mul(_) => Operation::Mul,
        BinOp::Div(_) => Operation::Div,
        BinOp::Rem(_) => Operation::Rem,
        BinOp::BitAnd(_) => Operation::BitAnd,
        BinOp::BitOr(_) => Operation::BitOr,
        BinOp::BitXor(_) => Operation::BitXor,
        BinOp::Eq(_) => Operation::Eq,
        BinOp::Ne(_) => Operation::Ne,
        BinOp::Lt(_) => Operation::Lt,
        BinOp::Le(_) => Operation::Le,
        BinOp::Gt(_) => Operation::Gt,
        BinOp::Ge(_) => Operation::Ge,
        _ => return None,
    })
}

impl Checker<'_> {
    pub(super) fn binary(&mut self, binary: &syn::ExprBinary, range: Range<usize>) -> Option<Expr> {
        let place = self.places.of(&binary.op);
        if let BinOp::And(_) | BinOp::Or(_) = binary.op {
            let bool = Ty::new(Kind::Bool);
            let left = self.expr_as(&binary.left, &bool);
            let right = self.expr_as(&binary.right, &bool);
            let and = matches!(binary.op, BinOp::And(_));
            let kind = ExprKind::Logical(and, Box::new(left?), Box::new(right?));
            return Some(Expr { kind, ty: bool, range });
        }
        let left = self.expr(&binary.left);
        let right = self.expr(&binary.right);
        let (left, right) = (draft::settled(left?), draft::settled(right?));
        let Some(symbol) = symbol_of(&binary.op) else {
            return self.refuse(catalogue::operator_without_meaning(self.at(&place)));
        };
        let with_none = left.ty.kind == Kind::None || right.ty.kind == Kind::None;
        if !with_none && (left.ty.kind == Kind::Tensor || right.ty.kind == Kind::Tensor) {
            return self.tensor_operator(symbol, vec![left, right], place, range);
        }
        // A Rust function among numbers returns an integer.
        let int = Ty::new(Kind::Int);
        let left = if right.ty.is_number() { self.native_as(left, &int) } else { left };
        let right = if left.ty.is_number() { self.native_as(right, &int) } else { right };
        let (left, right) = self.common_operands(symbol, left, right, place)?;
        let whole = left.ty.kind == Kind::Int && matches!(symbol, Operation::Div | Operation::Rem);
        if whole && matches!(right.kind, ExprKind::Int(0)) {
            return self.refuse(catalogue::division_by_zero(self.at(&right.range)));
        }
        let ty = if symbol.is_comparison() { Ty::new(Kind::Bool) } else { left.ty.clone() };
        // Division of two integers occurs for sizes only, where it is integer division.
        Some(Expr { kind: ExprKind::Binary(symbol, Box::new(left), Box::new(right)), ty, range })
    }

    /// Both operands in the type of plain arithmetic.
    fn common_operands(
        &mut self,
        symbol: Operation,
        left: Expr,
        right: Expr,
        place: Range<usize>,
    ) -> Option<(Expr, Expr)> {
        let equality = matches!(symbol, Operation::Eq | Operation::Ne);
        if equality && is_comparable(&left.ty) && same_kind(&left.ty, &right.ty) {
            return Some((left, right));
        }
        let is_count = |ty: &Ty| matches!(ty.kind, Kind::Int | Kind::Float);
        let mixed = symbol.is_comparison()
            && (left.ty.kind == Kind::Bool && is_count(&right.ty)
                || right.ty.kind == Kind::Bool && is_count(&left.ty));
        if let (Some(a), Some(b), false) = (rank(&left.ty), rank(&right.ty), mixed) {
            let ty = if a >= b { left.ty.clone() } else { right.ty.clone() };
            let ty = if self.promotes(&left, &right, symbol) { Ty::new(Kind::Element) } else { ty };
            if has_symbol(&ty.kind, symbol) {
                return Some((self.as_operand(left, &ty)?, self.as_operand(right, &ty)?));
            }
        }
        let hint = match (&left.ty, &right.ty) {
            (a, b) if a.kind == Kind::None || b.kind == Kind::None => {
                Some("whether a value is absent is asked with `is_none()`")
            }
            (a, b) if a.optional || b.optional => {
                Some("a value that may be absent is tested with `is_some()` and taken with `unwrap()`")
            }
            _ if mixed => {
                Some("a truth value is compared with a truth value, or taken as it is: `flag`, `!flag`")
            }
            (a, b) if a.kind == Kind::Bool && b.kind == Kind::Bool => {
                Some("truth values are combined with `&&`, `||`, `&`, `|`, `^`, `==` and `!=`")
            }
            _ => None,
        };
        let types = [left.ty.to_string(), right.ty.to_string()];
        self.refuse(catalogue::operands(self.at(&place), symbol.spelling(), &types, hint))
    }

    /// Whether a real element is combined with a possibly complex one, where the result may be complex: then both are
    /// computed as elements. These have no order.
    fn promotes(&self, a: &Expr, b: &Expr, symbol: Operation) -> bool {
        let ordered = symbol.is_comparison() && !matches!(symbol, Operation::Eq | Operation::Ne);
        let mixed = matches!(
            (&a.ty.kind, &b.ty.kind),
            (Kind::RealElement, Kind::Scalar) | (Kind::Scalar, Kind::RealElement)
        );
        mixed && self.wants_elements && !ordered
    }

    /// An operand in the type of the arithmetic; a `bool` among elements is 0 or 1.
    fn as_operand(&mut self, operand: Expr, ty: &Ty) -> Option<Expr> {
        let from_mask = operand.ty.kind == Kind::Bool && matches!(ty.kind, Kind::Element | Kind::RealElement);
        if from_mask {
            let range = operand.range.clone();
            return Some(Expr { kind: ExprKind::Convert(Box::new(operand)), ty: ty.clone(), range });
        }
        self.coerce_or_report(operand, ty)
    }

    pub(super) fn unary(&mut self, unary: &syn::ExprUnary, range: Range<usize>) -> Option<Expr> {
        let place = self.places.of(&unary.op);
        let symbol = match unary.op {
            UnOp::Neg(_) => Operation::Neg,
            UnOp::Not(_) => Operation::Not,
            _ => return self.refuse(catalogue::operator_without_meaning(self.at(&place))),
        };
        let operand = draft::settled(self.expr(&unary.expr)?);
        if operand.ty.is_tensor() {
            return self.tensor_operator(symbol, vec![operand], place, range);
        }
        // A negative literal is a literal.
        match (symbol, &operand.kind) {
            (Operation::Neg, ExprKind::Int(value)) => {
                return Some(Expr { kind: ExprKind::Int(value.wrapping_neg()), ty: operand.ty, range });
            }
            (Operation::Neg, ExprKind::Float(value)) => {
                return Some(Expr { kind: ExprKind::Float(-value), ty: operand.ty, range });
            }
            _ => {}
        }
        let fits = match symbol {
            Operation::Not => matches!(operand.ty.kind, Kind::Bool | Kind::Element),
            _ => matches!(
                operand.ty.kind,
                Kind::Int | Kind::Float | Kind::Scalar | Kind::Element | Kind::RealElement
            ),
        };
        if !fits || operand.ty.optional {
            let sign = if symbol == Operation::Neg { "-" } else { "!" };
            let hint =
                operand.ty.optional.then_some("test it with `is_some()` and take it with `unwrap()` first");
            let types = [operand.ty.to_string()];
            return self.refuse(catalogue::operands(self.at(&operand.range), sign, &types, hint));
        }
        let ty = operand.ty.clone();
        Some(Expr { kind: ExprKind::Unary(symbol, Box::new(operand)), ty, range })
    }

    /// The call for a symbol between tensors, of the operator that declares it.
    fn tensor_operator(
        &mut self,
        symbol: Operation,
        mut operands: Vec<Expr>,
        place: Range<usize>,
        range: Range<usize>,
    ) -> Option<Expr> {
        if matches!(self.scope.mode, Mode::Shape | Mode::Operations | Mode::DType | Mode::Check) {
            return self.refuse(catalogue::tensors_in_inference(self.at(&place)));
        }
        // A comparison is equivalent to the mirrored one with swapped operands.
        if !operands.first().is_some_and(|first| first.ty.kind == Kind::Tensor)
            && let Some(mirrored) = mirrored(symbol)
        {
            operands.reverse();
            return self.tensor_operator(mirrored, operands, place, range);
        }
        let mut best: Option<(usize, OpId, bool)> = None;
        for reversed in [false, true] {
            for &id in self.scope.ops.of_symbol(Operator { symbol, reversed }) {
                let mut ordered: Vec<&Expr> = operands.iter().collect();
                if reversed {
                    ordered.reverse();
                }
                let args = &self.scope.ops.op(id).args;
                let fits = ordered.iter().zip(args).map(|(operand, arg)| self.fit(operand, &arg.ty));
                let Some(cost) = fits.map(cost).sum::<Option<usize>>() else { continue };
                let cost = cost * 2 + usize::from(reversed);
                if best.is_none_or(|(least, first, _)| cost < least || cost == least && id < first) {
                    best = Some((cost, id, reversed));
                }
            }
        }
        let Some((_, id, reversed)) = best else {
            let types: Vec<String> = operands.iter().map(|operand| operand.ty.to_string()).collect();
            return self.refuse(catalogue::symbol_undeclared(self.at(&place), symbol.spelling(), &types));
        };
        if reversed {
            operands.reverse();
        }
        self.op_call(id, Given { positional: operands, named: Vec::new() }, range)
    }
}

/// The comparison of `b` and `a` that is equivalent to one of `a` and `b`.
fn mirrored(symbol: Operation) -> Option<Operation> {
    Some(match symbol {
        Operation::Lt => Operation::Gt,
        Operation::Le => Operation::Ge,
        Operation::Gt => Operation::Lt,
        Operation::Ge => Operation::Le,
        Operation::Eq | Operation::Ne => symbol,
        _ => return None,
    })
}

/// The rank of a number type: arithmetic happens in the higher of two.
fn rank(ty: &Ty) -> Option<u8> {
    let rank = match ty.kind {
        Kind::Bool => 0,
        Kind::Int => 1,
        Kind::Float => 2,
        Kind::Scalar => 3,
        Kind::RealElement => 4,
        Kind::Element => 5,
        _ => return None,
    };
    (!ty.optional).then_some(rank)
}

/// Whether a symbol is defined between two values of a type. Whether it is defined for every dtype of the elements is
/// checked with the operator's `dtypes`.
fn has_symbol(kind: &Kind, symbol: Operation) -> bool {
    let bits = matches!(symbol, Operation::BitAnd | Operation::BitOr | Operation::BitXor);
    match kind {
        Kind::Bool => bits || matches!(symbol, Operation::Eq | Operation::Ne),
        Kind::Float => !bits,
        Kind::Scalar => !bits && symbol != Operation::Rem,
        _ => true,
    }
}

/// Whether two values of a type, or two optional ones, can be compared for equality.
fn is_comparable(ty: &Ty) -> bool {
    match ty.kind {
        Kind::Lists(_) | Kind::Scalar | Kind::Element | Kind::RealElement => !ty.optional,
        _ => ty.kind.argument().is_some_and(ArgKind::is_comparable),
    }
}

/// Whether two types are equal apart from the declared lengths of lists.
fn same_kind(a: &Ty, b: &Ty) -> bool {
    let kinds = match (&a.kind, &b.kind) {
        (Kind::Ints(_), Kind::Ints(_)) | (Kind::Bools(_), Kind::Bools(_)) => true,
        (a, b) => a == b,
    };
    kinds && a.optional == b.optional
}
