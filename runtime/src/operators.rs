//! Rust's operators between tensors and numbers: `(&a + &b)?`, `(&a * 2.0)?`, `(-&a)?`.
//!
//! Which operator of which library a symbol stands for is data (`operator:` in the spec); the first
//! linked library that declares it serves. Every result is a `Result`.

use std::sync::OnceLock;

use num_complex::Complex64;

use crate::arg::Arg;
use crate::call;
use crate::error::{Error, Result};
use crate::library::{OperandKind, Symbol, linked};
use crate::op::OpDef;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

type Row = (Symbol, OperandKind, bool, &'static OpDef);

fn find(symbol: Symbol, operand: OperandKind, reversed: bool) -> Result<&'static OpDef> {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        linked()
            .flat_map(|library| library.operators)
            .map(|row| (row.symbol, row.operand, row.reversed, row.op))
            .collect()
    });
    let found = rows.iter().find(|row| row.0 == symbol && row.1 == operand && row.2 == reversed);
    found.map(|row| row.3).ok_or_else(|| {
        Error::not_found(format!("no linked library declares the operator {symbol:?} for these operands"))
            .with_help("depend on a crate of operators, such as the stock library, and use something of it")
    })
}

#[track_caller]
fn call(op: &'static OpDef, operands: &[Arg<'_>]) -> Result<Tensor> {
    let mut args: smallvec::SmallVec<[Arg<'_>; 4]> = operands.into();
    for arg in &op.schema.args[operands.len()..] {
        args.push(match arg.default {
            Some(default) => default.as_arg(arg.ty),
            None => Arg::None,
        });
    }
    call::invoke_single(op, &args)
}

#[track_caller]
fn with_tensor(symbol: Symbol, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let op = find(symbol, OperandKind::Tensor, false)?;
    call(op, &[Arg::Tensor(a), Arg::Tensor(b)])
}

#[track_caller]
fn with_scalar(symbol: Symbol, tensor: &Tensor, scalar: Scalar, reversed: bool) -> Result<Tensor> {
    let op = find(symbol, OperandKind::Scalar, reversed)?;
    call(op, &[Arg::Tensor(tensor), Arg::Scalar(scalar)])
}

macro_rules! binary {
    ($($trait:ident $method:ident;)*) => {$(
        impl std::ops::$trait<&Tensor> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Result<Tensor> {
                with_tensor(Symbol::$trait, self, other)
            }
        }
        impl std::ops::$trait<Tensor> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: Tensor) -> Result<Tensor> {
                with_tensor(Symbol::$trait, self, &other)
            }
        }
        impl std::ops::$trait<&Tensor> for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Result<Tensor> {
                with_tensor(Symbol::$trait, &self, other)
            }
        }
        impl std::ops::$trait<Tensor> for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: Tensor) -> Result<Tensor> {
                with_tensor(Symbol::$trait, &self, &other)
            }
        }
        // One float and one integer type only, and complex numbers of one precision, so that a literal has one
        // meaning.
        binary!(@numbers $trait $method: f64 i64 Complex64 Scalar);
    )*};
    (@numbers $trait:ident $method:ident: $($number:ty)*) => {$(
        impl std::ops::$trait<$number> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: $number) -> Result<Tensor> {
                with_scalar(Symbol::$trait, self, other.into(), false)
            }
        }
        impl std::ops::$trait<$number> for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: $number) -> Result<Tensor> {
                with_scalar(Symbol::$trait, &self, other.into(), false)
            }
        }
        impl std::ops::$trait<&Tensor> for $number {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Result<Tensor> {
                with_scalar(Symbol::$trait, other, self.into(), true)
            }
        }
        impl std::ops::$trait<Tensor> for $number {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: Tensor) -> Result<Tensor> {
                with_scalar(Symbol::$trait, &other, self.into(), true)
            }
        }
    )*};
}

binary! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
    Rem rem;
    BitAnd bitand;
    BitOr bitor;
    BitXor bitxor;
}

macro_rules! unary {
    ($($trait:ident $method:ident;)*) => {$(
        impl std::ops::$trait for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self) -> Result<Tensor> {
                let op = find(Symbol::$trait, OperandKind::None, false)?;
                call(op, &[Arg::Tensor(self)])
            }
        }
        impl std::ops::$trait for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self) -> Result<Tensor> {
                std::ops::$trait::$method(&self)
            }
        }
    )*};
}

unary! {
    Neg neg;
    Not not;
}
