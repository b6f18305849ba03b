//! Rust's operators between tensors and numbers: `(&a + &b)?`, `(&a * 2.0)?`, `(-&a)?`.
//!
//! The operator that a symbol calls is data (`operator:` in the spec). Every result is a `Result`, and a `Result`
//! beside a tensor is an operand too, so that a formula needs one `?`: `(&a * &b + &c)?`.

use std::sync::OnceLock;

use num_complex::Complex64;

use crate::arg::Arg;
use crate::call;
use crate::error::{Error, Result};
use crate::library::{Library, OperandKind, Operation, OperatorRow, linked};
use crate::op::OpDef;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// The operator of a symbol between operands, or the libraries with conflicting ones.
struct Meaning {
    symbol: Operation,
    operand: OperandKind,
    reversed: bool,
    op: &'static OpDef,
    /// Another library that defines the symbol, where neither library builds on the other.
    rival: Option<&'static str>,
}

/// The meanings of symbols in some libraries. If two libraries define one, the one that the other builds on wins, so
/// that a symbol means the same in all libraries built on it.
fn meanings(libraries: impl Iterator<Item = &'static Library>) -> Vec<Meaning> {
    let mut found: Vec<Meaning> = Vec::new();
    for row in libraries.flat_map(|library| library.operators) {
        let OperatorRow { symbol, operand, reversed, op } = *row;
        let same = |known: &&mut Meaning| {
            known.symbol == symbol && known.operand == operand && known.reversed == reversed
        };
        let Some(known) = found.iter_mut().find(same) else {
            found.push(Meaning { symbol, operand, reversed, op, rival: None });
            continue;
        };
        if known.op.library.builds_on(op.library) {
            known.op = op;
        } else if !op.library.builds_on(known.op.library) {
            known.rival = Some(op.library.name);
        }
    }
    found
}

fn find(symbol: Operation, operand: OperandKind, reversed: bool) -> Result<&'static OpDef> {
    static MEANINGS: OnceLock<Vec<Meaning>> = OnceLock::new();
    let found = MEANINGS
        .get_or_init(|| meanings(linked()))
        .iter()
        .find(|known| known.symbol == symbol && known.operand == operand && known.reversed == reversed);
    match found {
        Some(Meaning { op, rival: None, .. }) => Ok(op),
        Some(Meaning { op, rival: Some(rival), .. }) => Err(ambiguous(symbol, op.library.name, rival)),
        None => Err(Error::not_found(format!(
            "no linked library declares the operator {symbol:?} for these operands"
        ))
        .with_help("depend on a crate of operators, such as the stock library, and use something of it")),
    }
}

#[cold]
fn ambiguous(symbol: Operation, one: &str, other: &str) -> Error {
    Error::not_found(format!(
        "the operator {symbol:?} has two meanings in this program, of the libraries `{one}` and `{other}`"
    ))
    .with_help("call a function of the library that is meant, or let one of them build on the other")
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
fn with_tensor(symbol: Operation, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let op = find(symbol, OperandKind::Tensor, false)?;
    call(op, &[Arg::Tensor(a), Arg::Tensor(b)])
}

#[track_caller]
fn with_scalar(symbol: Operation, tensor: &Tensor, scalar: Scalar, reversed: bool) -> Result<Tensor> {
    let op = find(symbol, OperandKind::Scalar, reversed)?;
    call(op, &[Arg::Tensor(tensor), Arg::Scalar(scalar)])
}

macro_rules! binary {
    ($($trait:ident $method:ident;)*) => {$(
        impl std::ops::$trait<&Tensor> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Result<Tensor> {
                with_tensor(Operation::$trait, self, other)
            }
        }
        impl std::ops::$trait<Tensor> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: Tensor) -> Result<Tensor> {
                with_tensor(Operation::$trait, self, &other)
            }
        }
        impl std::ops::$trait<&Tensor> for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Result<Tensor> {
                with_tensor(Operation::$trait, &self, other)
            }
        }
        impl std::ops::$trait<Tensor> for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: Tensor) -> Result<Tensor> {
                with_tensor(Operation::$trait, &self, &other)
            }
        }
        binary!(@results $trait $method: &Tensor, Tensor);
        // One float and one integer type only, and complex numbers of one precision, so that a literal has one
        // meaning.
        binary!(@numbers $trait $method: f64 i64 Complex64 Scalar);
    )*};
    (@results $trait:ident $method:ident: $($tensor:ty),*) => {$(
        impl std::ops::$trait<$tensor> for Result<Tensor> {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: $tensor) -> Result<Tensor> {
                with_tensor(Operation::$trait, &self?, std::borrow::Borrow::borrow(&other))
            }
        }
        impl std::ops::$trait<Result<Tensor>> for $tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: Result<Tensor>) -> Result<Tensor> {
                with_tensor(Operation::$trait, std::borrow::Borrow::borrow(&self), &other?)
            }
        }
    )*};
    (@numbers $trait:ident $method:ident: $($number:ty)*) => {$(
        impl std::ops::$trait<$number> for &Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: $number) -> Result<Tensor> {
                with_scalar(Operation::$trait, self, other.into(), false)
            }
        }
        impl std::ops::$trait<$number> for Tensor {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: $number) -> Result<Tensor> {
                with_scalar(Operation::$trait, &self, other.into(), false)
            }
        }
        impl std::ops::$trait<&Tensor> for $number {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Result<Tensor> {
                with_scalar(Operation::$trait, other, self.into(), true)
            }
        }
        impl std::ops::$trait<Tensor> for $number {
            type Output = Result<Tensor>;
            #[track_caller]
            fn $method(self, other: Tensor) -> Result<Tensor> {
                with_scalar(Operation::$trait, &other, self.into(), true)
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
                let op = find(Operation::$trait, OperandKind::None, false)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Schema;

    const fn definition(library: &'static Library) -> OpDef {
        OpDef::new("plus", Schema { text: "", args: &[], returns: &[] }, "tests.yaml:1", library)
    }

    const fn plus(op: &'static OpDef) -> [OperatorRow; 1] {
        [OperatorRow { symbol: Operation::Add, operand: OperandKind::Tensor, reversed: false, op }]
    }

    static STOCK: Library = Library { name: "stock", operators: &plus(&STOCK_PLUS), ..Library::EMPTY };
    static STOCK_PLUS: OpDef = definition(&STOCK);
    static USER: Library =
        Library { name: "user", operators: &plus(&USER_PLUS), parents: &[&STOCK], ..Library::EMPTY };
    static USER_PLUS: OpDef = definition(&USER);
    static OTHER: Library = Library { name: "other", operators: &plus(&OTHER_PLUS), ..Library::EMPTY };
    static OTHER_PLUS: OpDef = definition(&OTHER);

    /// The operator for `+`, and the library that gives it another meaning, in either order of linking.
    fn serving(libraries: [&'static Library; 2]) -> (&'static str, bool) {
        let [one, two] = libraries;
        let meaning = |libraries: [&'static Library; 2]| {
            let found = meanings(libraries.into_iter()).remove(0);
            (found.op.library.name, found.rival.is_some())
        };
        let (forth, back) = (meaning([one, two]), meaning([two, one]));
        assert_eq!(forth.1, back.1);
        assert!(forth.1 || forth.0 == back.0, "the order of linking decides");
        forth
    }

    #[test]
    fn a_library_that_others_build_on_gives_symbols_their_meaning() {
        assert_eq!(serving([&STOCK, &USER]), ("stock", false));
        assert!(serving([&STOCK, &OTHER]).1);
    }

    #[test]
    fn two_meanings_are_an_error_with_both_libraries() {
        assert_eq!(
            ambiguous(Operation::Add, "stock", "other").to_string(),
            "the operator Add has two meanings in this program, of the libraries `stock` and `other`\n  \
             help: call a function of the library that is meant, or let one of them build on the other"
        );
    }
}
