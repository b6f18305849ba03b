// @generated from spec.yaml by codegen/src/emit/library.rs.
// One operator's share: `opsmith expand NAME`.

/// The operators of this crate.
pub static LIBRARY: rt::library::Library = rt::library::Library {
    name: "golden",
    ops: &[
        &super::defs::PLUS_TENSOR,
        &super::defs::PLUS_SCALAR,
        &super::defs::GROWN,
        &super::defs::PRODUCT,
        &super::defs::LARGEST,
        &super::defs::SPREAD,
        &super::defs::FLIPPED,
        &super::defs::SUM_AND_GROWTH,
        &super::defs::ITEM,
    ],
    names: &[
        ("flipped", &super::defs::FLIPPED, rt::library::Form::Functional),
        ("grown", &super::defs::GROWN, rt::library::Form::Functional),
        ("grown.out", &super::defs::GROWN, rt::library::Form::Out),
        ("grown_", &super::defs::GROWN, rt::library::Form::Inplace),
        ("item", &super::defs::ITEM, rt::library::Form::Functional),
        ("largest", &super::defs::LARGEST, rt::library::Form::Functional),
        ("plus.Scalar", &super::defs::PLUS_SCALAR, rt::library::Form::Functional),
        ("plus.Tensor", &super::defs::PLUS_TENSOR, rt::library::Form::Functional),
        ("plus.out", &super::defs::PLUS_TENSOR, rt::library::Form::Out),
        ("plus_.Scalar", &super::defs::PLUS_SCALAR, rt::library::Form::Inplace),
        ("plus_.Tensor", &super::defs::PLUS_TENSOR, rt::library::Form::Inplace),
        ("product", &super::defs::PRODUCT, rt::library::Form::Functional),
        ("product.out", &super::defs::PRODUCT, rt::library::Form::Out),
        ("spread", &super::defs::SPREAD, rt::library::Form::Functional),
        ("sum_and_growth", &super::defs::SUM_AND_GROWTH, rt::library::Form::Functional),
    ],
    parents: &[],
    roles: None,
    operators: &[
        rt::library::OperatorRow {
            symbol: rt::library::Symbol::Add,
            operand: rt::library::OperandKind::Tensor,
            reversed: false,
            op: &super::defs::PLUS_TENSOR,
        },
    ],
    namespaces: &[],
    known_as: &[],
    unlike: &[],
};

rt::library::register!(& LIBRARY);

/// Calls an operator by name, e.g. `call("mm", &[(&a).into(), (&b).into()], &[])`.
///
/// A full name such as `add.Tensor` is that overload. A name without overload means the overload that
/// takes these arguments with the fewest conversions, the first declared of equals. Names in other
/// libraries (`torch.abs`, `aten::abs`, `abs_out`) are found as the spec says.
///
/// Arguments are given by position, keyword arguments by name; what is left out takes its
/// default. An in-place or out form is called by its own name, or by giving `out`.
///
/// # Errors
/// If there is no such operator (near names are listed), if no overload takes the arguments (each is
/// listed with the reason), if the arguments do not fit its
/// signature, and whatever the operator itself reports.
#[track_caller]
pub fn call(name: &str, args: &[rt::Value], kwargs: &[(&str, rt::Value)]) -> rt::Result<Vec<rt::Value>> {
    rt::boxed::call(&LIBRARY, name, args, kwargs)
}
