// @generated from spec.yaml by codegen/src/emit/defs.rs.
// One operator's share: `opsmith expand NAME`.

/// `plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:8.
pub static PLUS_TENSOR: OpDef = OpDef {
    doc: "Adds `alpha * other` to `self`.\n\nA second paragraph.",
    forms: Forms { inplace: Some("plus_.Tensor"), out: Some("plus.out"), elementwise: true },
    infer: Some(super::inference::plus_tensor_infer),
    rules: Some(&super::rules::PLUS_TENSOR),
    uniform: UniformCall::Same,
    element_types: &[Dispatch, Dispatch, NotTensor],
    kernels: rt::__kernels_of_entry!(super::kernel_tables::PLUS_TENSOR),
    grad: Some(&super::gradients::PLUS_TENSOR),
    ..OpDef::new(
        "plus.Tensor",
        Schema {
            text: "plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
            args: &[
                ArgDef::required("self", ArgKind::Tensor),
                ArgDef::required("other", ArgKind::Tensor),
                ArgDef {
                    default: Some(DefaultValue::Int(1)),
                    keyword_only: true,
                    ..ArgDef::required("alpha", ArgKind::Scalar)
                },
            ],
            returns: &[ReturnDef::new(ArgKind::Tensor.required())],
        },
        "spec.yaml:8",
        &super::library::LIBRARY,
    )
};

/// `plus.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:22.
pub static PLUS_SCALAR: OpDef = OpDef {
    doc: "Adds `alpha * other` to each element; one function with `plus.Tensor`, but for the out form.",
    forms: Forms { inplace: Some("plus_.Scalar"), out: None, elementwise: true },
    infer: Some(super::inference::plus_scalar_infer),
    rules: Some(&super::rules::PLUS_SCALAR),
    uniform: UniformCall::Same,
    element_types: &[Dispatch, NotTensor, NotTensor],
    kernels: rt::__kernels_of_entry!(super::kernel_tables::PLUS_SCALAR),
    grad: Some(&super::gradients::PLUS_SCALAR),
    ..OpDef::new(
        "plus.Scalar",
        Schema {
            text: "plus.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor",
            args: &[
                ArgDef::required("self", ArgKind::Tensor),
                ArgDef::required("other", ArgKind::Scalar),
                ArgDef {
                    default: Some(DefaultValue::Int(1)),
                    keyword_only: true,
                    ..ArgDef::required("alpha", ArgKind::Scalar)
                },
            ],
            returns: &[ReturnDef::new(ArgKind::Tensor.required())],
        },
        "spec.yaml:22",
        &super::library::LIBRARY,
    )
};

/// `grown(Tensor self, bool twice=False) -> Tensor`, declared at spec.yaml:29.
pub static GROWN: OpDef = OpDef {
    doc: "Grows each element; integers become floats.",
    forms: Forms { inplace: Some("grown_"), out: Some("grown.out"), elementwise: true },
    infer: Some(super::inference::grown_infer),
    rules: Some(&super::rules::GROWN),
    uniform: UniformCall::SameIfInexact,
    element_types: &[Dispatch, NotTensor],
    kernels: rt::__kernels_of_entry!(super::kernel_tables::GROWN),
    grad: Some(&super::gradients::GROWN),
    ..OpDef::new(
        "grown",
        Schema {
            text: "grown(Tensor self, bool twice=False) -> Tensor",
            args: &[
                ArgDef::required("self", ArgKind::Tensor),
                ArgDef {
                    default: Some(DefaultValue::Bool(false)),
                    ..ArgDef::required("twice", ArgKind::Bool)
                },
            ],
            returns: &[ReturnDef::new(ArgKind::Tensor.required())],
        },
        "spec.yaml:29",
        &super::library::LIBRARY,
    )
};

/// `product(Tensor self, Tensor mat2) -> Tensor`, declared at spec.yaml:37.
pub static PRODUCT: OpDef = OpDef {
    doc: "The matrix product.",
    forms: Forms { inplace: None, out: Some("product.out"), elementwise: false },
    infer: Some(super::inference::product_infer),
    rules: Some(&super::rules::PRODUCT),
    element_types: &[Dispatch, Dispatch],
    contiguous: bits(&[1]),
    kernels: rt::__kernels_of_entry!(super::kernel_tables::PRODUCT),
    grad: Some(&super::gradients::PRODUCT),
    ..OpDef::new(
        "product",
        Schema {
            text: "product(Tensor self, Tensor mat2) -> Tensor",
            args: &[ArgDef::required("self", ArgKind::Tensor), ArgDef::required("mat2", ArgKind::Tensor)],
            returns: &[ReturnDef::new(ArgKind::Tensor.required())],
        },
        "spec.yaml:37",
        &super::library::LIBRARY,
    )
};

/// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:50.
pub static LARGEST: OpDef = OpDef {
    doc: "A kernel in C++.",
    infer: Some(super::inference::largest_infer),
    rules: Some(&super::rules::LARGEST),
    element_types: &[Dispatch, NotTensor],
    kernels: rt::__kernels_of_entry!(super::kernel_tables::LARGEST),
    grad: Some(&super::gradients::LARGEST),
    ..OpDef::new(
        "largest",
        Schema {
            text: "largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)",
            args: &[
                ArgDef::required("self", ArgKind::Tensor),
                ArgDef { default: Some(DefaultValue::None), ..ArgDef::optional("dim", ArgKind::Int) },
            ],
            returns: &[
                ReturnDef::named("values", ArgKind::Tensor.required()),
                ReturnDef::named("indices", ArgKind::Tensor.required()),
            ],
        },
        "spec.yaml:50",
        &super::library::LIBRARY,
    )
};

/// `spread(Tensor self, Tensor index, int[] size) -> Tensor`, declared at spec.yaml:60.
pub static SPREAD: OpDef = OpDef {
    doc: "Puts values at indices.",
    infer: Some(super::inference::spread_infer),
    rules: Some(&super::rules::SPREAD),
    element_types: &[Dispatch, Fixed { kernel: DType::I64, accepted: DTypeSet(256u16) }, NotTensor],
    kernels: rt::__kernels_of_entry!(super::kernel_tables::SPREAD),
    grad: Some(&super::gradients::SPREAD),
    ..OpDef::new(
        "spread",
        Schema {
            text: "spread(Tensor self, Tensor index, int[] size) -> Tensor",
            args: &[
                ArgDef::required("self", ArgKind::Tensor),
                ArgDef::required("index", ArgKind::Tensor),
                ArgDef::required("size", ArgKind::Ints(None)),
            ],
            returns: &[ReturnDef::new(ArgKind::Tensor.required())],
        },
        "spec.yaml:60",
        &super::library::LIBRARY,
    )
};

/// `flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)`, declared at spec.yaml:69.
pub static FLIPPED: OpDef = OpDef {
    doc: "Swaps two dimensions.",
    rules: Some(&super::rules::FLIPPED),
    element_types: &[Dispatch, NotTensor, NotTensor],
    view: Some(super::inference::flipped_view),
    grad: Some(&super::gradients::FLIPPED),
    ..OpDef::new(
        "flipped",
        Schema {
            text: "flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
            args: &[
                ArgDef::required("self", ArgKind::Tensor),
                ArgDef::required("dim0", ArgKind::Int),
                ArgDef::required("dim1", ArgKind::Int),
            ],
            returns: &[ReturnDef::new(ArgKind::Tensor.required())],
        },
        "spec.yaml:69",
        &super::library::LIBRARY,
    )
};

/// `sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)`, declared at spec.yaml:76.
pub static SUM_AND_GROWTH: OpDef = OpDef {
    doc: "Two results, built from others.",
    element_types: &[Dispatch, Dispatch],
    composite: Some(super::inference::sum_and_growth_composite),
    ..OpDef::new(
        "sum_and_growth",
        Schema {
            text: "sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)",
            args: &[ArgDef::required("self", ArgKind::Tensor), ArgDef::required("other", ArgKind::Tensor)],
            returns: &[
                ReturnDef::new(ArgKind::Tensor.required()),
                ReturnDef::new(ArgKind::Tensor.required()),
            ],
        },
        "spec.yaml:76",
        &super::library::LIBRARY,
    )
};

/// `item(Tensor self) -> Scalar`, declared at spec.yaml:80.
pub static ITEM: OpDef = OpDef {
    doc: "The only element.",
    rules: Some(&super::rules::ITEM),
    element_types: &[Dispatch],
    host: Some(super::inference::item_host),
    ..OpDef::new(
        "item",
        Schema {
            text: "item(Tensor self) -> Scalar",
            args: &[ArgDef::required("self", ArgKind::Tensor)],
            returns: &[ReturnDef::new(ArgKind::Scalar.required())],
        },
        "spec.yaml:80",
        &super::library::LIBRARY,
    )
};
