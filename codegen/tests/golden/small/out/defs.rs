// @generated from spec.yaml by codegen/src/emit/defs.rs.
// One operator's share: `opsmith expand NAME`.

pub static PLUS_TENSOR: OpDef = OpDef {
    doc: "Adds `alpha * other` to `self`.\n\nA second paragraph.",
    forms: Forms { inplace: Some("plus_.Tensor"), out: Some("plus.out"), elementwise: true, updates: false },
    infer: Some(inference::plus_tensor_infer),
    rules: Some(&rules::PLUS_TENSOR),
    uniform: UniformCall::Same,
    element_types: &[Dispatch, Dispatch, NotTensor],
    kernels: rt::__kernels_of_entry!(kernel_tables::PLUS_TENSOR),
    flops: Flops::Element(2u32),
    grad: Some(&gradients::PLUS_TENSOR),
    samples: &[
        Sample::new(
            "self: spread(2, 3), other: tensor([1, 2, 3]), alpha: 2",
            &[("self", spread(&[2, 3])), ("other", numbers(&[3], &[1.0, 2.0, 3.0])), ("alpha", Int(2))],
        ),
    ],
    ..OpDef::declared(
        "plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        &[
            ArgDef::required("self", ArgKind::Tensor),
            ArgDef::required("other", ArgKind::Tensor),
            ArgDef::required("alpha", ArgKind::Scalar).with_default(DefaultValue::Int(1)).keyword_only(),
        ],
        &[ReturnDef::new(ArgKind::Tensor.required())],
        "spec.yaml:8",
        &library::LIBRARY,
    )
};

pub static PLUS_SCALAR: OpDef = OpDef {
    doc: "Adds `alpha * other` to each element; one function with `plus.Tensor`, but for the out form.",
    forms: Forms { inplace: Some("plus_.Scalar"), out: None, elementwise: true, updates: false },
    infer: Some(inference::plus_scalar_infer),
    rules: Some(&rules::PLUS_SCALAR),
    uniform: UniformCall::Same,
    element_types: &[Dispatch, NotTensor, NotTensor],
    kernels: rt::__kernels_of_entry!(kernel_tables::PLUS_SCALAR),
    flops: Flops::Element(1u32),
    grad: Some(&gradients::PLUS_SCALAR),
    ..OpDef::declared(
        "plus.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor",
        &[
            ArgDef::required("self", ArgKind::Tensor),
            ArgDef::required("other", ArgKind::Scalar),
            ArgDef::required("alpha", ArgKind::Scalar).with_default(DefaultValue::Int(1)).keyword_only(),
        ],
        &[ReturnDef::new(ArgKind::Tensor.required())],
        "spec.yaml:24",
        &library::LIBRARY,
    )
};

pub static GROWN: OpDef = OpDef {
    doc: "Grows each element; integers become floats.",
    forms: Forms { inplace: Some("grown_"), out: Some("grown.out"), elementwise: true, updates: false },
    infer: Some(inference::grown_infer),
    rules: Some(&rules::GROWN),
    uniform: UniformCall::SameIfInexact,
    element_types: &[Dispatch, NotTensor],
    kernels: rt::__kernels_of_entry!(kernel_tables::GROWN),
    flops: Flops::Element(2u32),
    grad: Some(&gradients::GROWN),
    ..OpDef::declared(
        "grown(Tensor self, bool twice=False) -> Tensor",
        &[
            ArgDef::required("self", ArgKind::Tensor),
            ArgDef::required("twice", ArgKind::Bool).with_default(DefaultValue::Bool(false)),
        ],
        &[ReturnDef::new(ArgKind::Tensor.required())],
        "spec.yaml:31",
        &library::LIBRARY,
    )
};

pub static PRODUCT: OpDef = OpDef {
    doc: "The matrix product.",
    forms: Forms { inplace: None, out: Some("product.out"), elementwise: false, updates: false },
    infer: Some(inference::product_infer),
    rules: Some(&rules::PRODUCT),
    element_types: &[Dispatch, Dispatch],
    contiguous: bits(&[1]),
    kernels: rt::__kernels_of_entry!(kernel_tables::PRODUCT),
    grad: Some(&gradients::PRODUCT),
    ..OpDef::declared(
        "product(Tensor self, Tensor mat2) -> Tensor",
        &[ArgDef::required("self", ArgKind::Tensor), ArgDef::required("mat2", ArgKind::Tensor)],
        &[ReturnDef::new(ArgKind::Tensor.required())],
        "spec.yaml:39",
        &library::LIBRARY,
    )
};

pub static LARGEST: OpDef = OpDef {
    doc: "A kernel in C++.",
    infer: Some(inference::largest_infer),
    rules: Some(&rules::LARGEST),
    element_types: &[Dispatch, NotTensor],
    kernels: rt::__kernels_of_entry!(kernel_tables::LARGEST),
    grad: Some(&gradients::LARGEST),
    ..OpDef::declared(
        "largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)",
        &[
            ArgDef::required("self", ArgKind::Tensor),
            ArgDef::optional("dim", ArgKind::Int).with_default(DefaultValue::None),
        ],
        &[
            ReturnDef::named("values", ArgKind::Tensor.required()),
            ReturnDef::named("indices", ArgKind::Tensor.required()),
        ],
        "spec.yaml:52",
        &library::LIBRARY,
    )
};

pub static SPREAD: OpDef = OpDef {
    doc: "Puts values at indices.",
    infer: Some(inference::spread_infer),
    rules: Some(&rules::SPREAD),
    element_types: &[Dispatch, Fixed { kernel: DType::I64, accepted: DTypeSet::of(DType::I64) }, NotTensor],
    kernels: rt::__kernels_of_entry!(kernel_tables::SPREAD),
    grad: Some(&gradients::SPREAD),
    ..OpDef::declared(
        "spread(Tensor self, Tensor index, int[] size) -> Tensor",
        &[
            ArgDef::required("self", ArgKind::Tensor),
            ArgDef::required("index", ArgKind::Tensor),
            ArgDef::required("size", ArgKind::Ints(None)),
        ],
        &[ReturnDef::new(ArgKind::Tensor.required())],
        "spec.yaml:65",
        &library::LIBRARY,
    )
};

pub static FLIPPED: OpDef = OpDef {
    doc: "Swaps two dimensions.",
    rules: Some(&rules::FLIPPED),
    element_types: &[Dispatch, NotTensor, NotTensor],
    view: Some(ViewFn::One(inference::flipped_view)),
    grad: Some(&gradients::FLIPPED),
    ..OpDef::declared(
        "flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
        &[
            ArgDef::required("self", ArgKind::Tensor),
            ArgDef::required("dim0", ArgKind::Int),
            ArgDef::required("dim1", ArgKind::Int),
        ],
        &[ReturnDef::new(ArgKind::Tensor.required())],
        "spec.yaml:74",
        &library::LIBRARY,
    )
};

pub static SUM_AND_GROWTH: OpDef = OpDef {
    doc: "Two results, built from others.",
    element_types: &[Dispatch, Dispatch],
    composite: Some(inference::sum_and_growth_composite),
    ..OpDef::declared(
        "sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)",
        &[ArgDef::required("self", ArgKind::Tensor), ArgDef::required("other", ArgKind::Tensor)],
        &[ReturnDef::new(ArgKind::Tensor.required()), ReturnDef::new(ArgKind::Tensor.required())],
        "spec.yaml:81",
        &library::LIBRARY,
    )
};

pub static ITEM: OpDef = OpDef {
    doc: "The only element.",
    rules: Some(&rules::ITEM),
    element_types: &[Dispatch],
    host: Some(inference::item_host),
    ..OpDef::declared(
        "item(Tensor self) -> Scalar",
        &[ArgDef::required("self", ArgKind::Tensor)],
        &[ReturnDef::new(ArgKind::Scalar.required())],
        "spec.yaml:85",
        &library::LIBRARY,
    )
};
