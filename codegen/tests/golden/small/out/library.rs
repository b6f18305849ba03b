// @generated from spec.yaml by codegen/src/emit/library.rs.
// One operator's share: `opsmith expand NAME`.

/// The operators of this crate.
pub static LIBRARY: Library = Library {
    name: "golden",
    ops: rt::definitions!(PLUS_TENSOR PLUS_SCALAR GROWN PRODUCT LARGEST SPREAD FLIPPED SUM_AND_GROWTH ITEM),
    names: &[
        ("flipped", &defs::FLIPPED, Form::Functional),
        ("grown", &defs::GROWN, Form::Functional),
        ("grown.out", &defs::GROWN, Form::Out),
        ("grown_", &defs::GROWN, Form::Inplace),
        ("item", &defs::ITEM, Form::Functional),
        ("largest", &defs::LARGEST, Form::Functional),
        ("plus.Scalar", &defs::PLUS_SCALAR, Form::Functional),
        ("plus.Tensor", &defs::PLUS_TENSOR, Form::Functional),
        ("plus.out", &defs::PLUS_TENSOR, Form::Out),
        ("plus_.Scalar", &defs::PLUS_SCALAR, Form::Inplace),
        ("plus_.Tensor", &defs::PLUS_TENSOR, Form::Inplace),
        ("product", &defs::PRODUCT, Form::Functional),
        ("product.out", &defs::PRODUCT, Form::Out),
        ("spread", &defs::SPREAD, Form::Functional),
        ("sum_and_growth", &defs::SUM_AND_GROWTH, Form::Functional),
    ],
    parents: &[],
    roles: None,
    operators: &[OperatorRow::new(Operation::Add, OperandKind::Tensor, false, &defs::PLUS_TENSOR)],
    namespaces: &[],
    known_as: &[],
    unlike: &[],
    fingerprint: "7ffd0e2386b50341",
};

rt::library::register!(& LIBRARY);

/// Sentences about the operators of this crate and of the libraries that it builds on, for documents in other
/// languages. A program that does not name them does not contain them.
pub static DOCUMENTATION: Documentation = Documentation {
    library: &LIBRARY,
    words: &[
        &words::PLUS_TENSOR,
        &words::PLUS_SCALAR,
        &words::GROWN,
        &words::PRODUCT,
        &words::LARGEST,
        &words::SPREAD,
        &words::FLIPPED,
        &words::SUM_AND_GROWTH,
        &words::ITEM,
    ],
    parents: &[],
};

/// Calls an operator by name, e.g. `call("mm", &[(&a).into(), (&b).into()], &[])`.
///
/// A full name such as `add.Tensor` is that overload. A name without overload means the overload that
/// takes these arguments with the fewest conversions, the first declared of equals. Names in other
/// libraries (`torch.abs`, `aten::abs`, `abs_out`) are found as the spec says.
///
/// Arguments are given by position, keyword arguments by name; an argument left out takes its
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
