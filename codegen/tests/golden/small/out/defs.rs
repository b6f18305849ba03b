// @generated from spec.yaml by codegen/src/emit/defs.rs.
// One operator's share: `opsmith expand NAME`.

/// `plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:8.
pub static PLUS_TENSOR: rt::op::OpDef = rt::op::OpDef {
    doc: "Adds `alpha * other` to `self`.\n\nA second paragraph.",
    forms: rt::op::Forms {
        inplace: Some("plus_.Tensor"),
        out: Some("plus.out"),
        elementwise: true,
    },
    infer: Some(super::inference::plus_tensor_infer),
    rules: Some(&super::rules::PLUS_TENSOR),
    uniform: rt::op::Uniform::Same,
    element_types: &[
        rt::op::ElementType::Dispatch,
        rt::op::ElementType::Dispatch,
        rt::op::ElementType::NotTensor,
    ],
    kernels: rt::op::Kernels::of(&super::kernel_tables::PLUS_TENSOR),
    grad: Some(&super::gradients::PLUS_TENSOR),
    ..rt::op::OpDef::new(
        "plus.Tensor",
        rt::op::Schema {
            text: "plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
            args: &[
                rt::op::ArgDef::new("self", rt::op::ArgKind::Tensor.required()),
                rt::op::ArgDef::new("other", rt::op::ArgKind::Tensor.required()),
                rt::op::ArgDef {
                    default: Some(rt::op::DefaultValue::Int(1i64)),
                    keyword_only: true,
                    ..rt::op::ArgDef::new("alpha", rt::op::ArgKind::Scalar.required())
                },
            ],
            returns: &[
                rt::op::ReturnDef {
                    name: None,
                    ty: rt::op::ArgKind::Tensor.required(),
                },
            ],
        },
        "spec.yaml:8",
        &super::library::LIBRARY,
    )
};

/// `grown(Tensor self, bool twice=False) -> Tensor`, declared at spec.yaml:22.
pub static GROWN: rt::op::OpDef = rt::op::OpDef {
    doc: "Grows each element; integers become floats.",
    forms: rt::op::Forms {
        inplace: None,
        out: None,
        elementwise: true,
    },
    infer: Some(super::inference::grown_infer),
    rules: Some(&super::rules::GROWN),
    uniform: rt::op::Uniform::SameIfInexact,
    element_types: &[rt::op::ElementType::Dispatch, rt::op::ElementType::NotTensor],
    kernels: rt::op::Kernels::of(&super::kernel_tables::GROWN),
    grad: Some(&super::gradients::GROWN),
    ..rt::op::OpDef::new(
        "grown",
        rt::op::Schema {
            text: "grown(Tensor self, bool twice=False) -> Tensor",
            args: &[
                rt::op::ArgDef::new("self", rt::op::ArgKind::Tensor.required()),
                rt::op::ArgDef {
                    default: Some(rt::op::DefaultValue::Bool(false)),
                    ..rt::op::ArgDef::new("twice", rt::op::ArgKind::Bool.required())
                },
            ],
            returns: &[
                rt::op::ReturnDef {
                    name: None,
                    ty: rt::op::ArgKind::Tensor.required(),
                },
            ],
        },
        "spec.yaml:22",
        &super::library::LIBRARY,
    )
};

/// `product(Tensor self, Tensor mat2) -> Tensor`, declared at spec.yaml:30.
pub static PRODUCT: rt::op::OpDef = rt::op::OpDef {
    doc: "The matrix product.",
    forms: rt::op::Forms {
        inplace: None,
        out: Some("product.out"),
        elementwise: false,
    },
    infer: Some(super::inference::product_infer),
    rules: Some(&super::rules::PRODUCT),
    element_types: &[rt::op::ElementType::Dispatch, rt::op::ElementType::Dispatch],
    contiguous: 2,
    kernels: rt::op::Kernels::of(&super::kernel_tables::PRODUCT),
    grad: Some(&super::gradients::PRODUCT),
    ..rt::op::OpDef::new(
        "product",
        rt::op::Schema {
            text: "product(Tensor self, Tensor mat2) -> Tensor",
            args: &[
                rt::op::ArgDef::new("self", rt::op::ArgKind::Tensor.required()),
                rt::op::ArgDef::new("mat2", rt::op::ArgKind::Tensor.required()),
            ],
            returns: &[
                rt::op::ReturnDef {
                    name: None,
                    ty: rt::op::ArgKind::Tensor.required(),
                },
            ],
        },
        "spec.yaml:30",
        &super::library::LIBRARY,
    )
};

/// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:43.
pub static LARGEST: rt::op::OpDef = rt::op::OpDef {
    doc: "A kernel in C++.",
    infer: Some(super::inference::largest_infer),
    rules: Some(&super::rules::LARGEST),
    element_types: &[rt::op::ElementType::Dispatch, rt::op::ElementType::NotTensor],
    kernels: rt::op::Kernels::of(&super::kernel_tables::LARGEST),
    grad: Some(&super::gradients::LARGEST),
    ..rt::op::OpDef::new(
        "largest",
        rt::op::Schema {
            text: "largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)",
            args: &[
                rt::op::ArgDef::new("self", rt::op::ArgKind::Tensor.required()),
                rt::op::ArgDef {
                    default: Some(rt::op::DefaultValue::None),
                    ..rt::op::ArgDef::new("dim", rt::op::ArgKind::Int.optional())
                },
            ],
            returns: &[
                rt::op::ReturnDef {
                    name: Some("values"),
                    ty: rt::op::ArgKind::Tensor.required(),
                },
                rt::op::ReturnDef {
                    name: Some("indices"),
                    ty: rt::op::ArgKind::Tensor.required(),
                },
            ],
        },
        "spec.yaml:43",
        &super::library::LIBRARY,
    )
};

/// `spread(Tensor self, Tensor index, int[] size) -> Tensor`, declared at spec.yaml:53.
pub static SPREAD: rt::op::OpDef = rt::op::OpDef {
    doc: "Puts values at indices.",
    infer: Some(super::inference::spread_infer),
    rules: Some(&super::rules::SPREAD),
    element_types: &[
        rt::op::ElementType::Dispatch,
        rt::op::ElementType::Fixed {
            kernel: rt::DType::I64,
            accepted: rt::DTypeSet(256u16),
        },
        rt::op::ElementType::NotTensor,
    ],
    kernels: rt::op::Kernels::of(&super::kernel_tables::SPREAD),
    grad: Some(&super::gradients::SPREAD),
    ..rt::op::OpDef::new(
        "spread",
        rt::op::Schema {
            text: "spread(Tensor self, Tensor index, int[] size) -> Tensor",
            args: &[
                rt::op::ArgDef::new("self", rt::op::ArgKind::Tensor.required()),
                rt::op::ArgDef::new("index", rt::op::ArgKind::Tensor.required()),
                rt::op::ArgDef::new("size", rt::op::ArgKind::Ints(None).required()),
            ],
            returns: &[
                rt::op::ReturnDef {
                    name: None,
                    ty: rt::op::ArgKind::Tensor.required(),
                },
            ],
        },
        "spec.yaml:53",
        &super::library::LIBRARY,
    )
};

/// `flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)`, declared at spec.yaml:62.
pub static FLIPPED: rt::op::OpDef = rt::op::OpDef {
    doc: "Swaps two dimensions.",
    rules: Some(&super::rules::FLIPPED),
    element_types: &[
        rt::op::ElementType::Dispatch,
        rt::op::ElementType::NotTensor,
        rt::op::ElementType::NotTensor,
    ],
    view: Some(super::inference::flipped_view),
    grad: Some(&super::gradients::FLIPPED),
    ..rt::op::OpDef::new(
        "flipped",
        rt::op::Schema {
            text: "flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
            args: &[
                rt::op::ArgDef::new("self", rt::op::ArgKind::Tensor.required()),
                rt::op::ArgDef::new("dim0", rt::op::ArgKind::Int.required()),
                rt::op::ArgDef::new("dim1", rt::op::ArgKind::Int.required()),
            ],
            returns: &[
                rt::op::ReturnDef {
                    name: None,
                    ty: rt::op::ArgKind::Tensor.required(),
                },
            ],
        },
        "spec.yaml:62",
        &super::library::LIBRARY,
    )
};

/// `sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)`, declared at spec.yaml:69.
pub static SUM_AND_GROWTH: rt::op::OpDef = rt::op::OpDef {
    doc: "Two results, built from others.",
    element_types: &[rt::op::ElementType::Dispatch, rt::op::ElementType::Dispatch],
    composite: Some(super::inference::sum_and_growth_composite),
    ..rt::op::OpDef::new(
        "sum_and_growth",
        rt::op::Schema {
            text: "sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)",
            args: &[
                rt::op::ArgDef::new("self", rt::op::ArgKind::Tensor.required()),
                rt::op::ArgDef::new("other", rt::op::ArgKind::Tensor.required()),
            ],
            returns: &[
                rt::op::ReturnDef {
                    name: None,
                    ty: rt::op::ArgKind::Tensor.required(),
                },
                rt::op::ReturnDef {
                    name: None,
                    ty: rt::op::ArgKind::Tensor.required(),
                },
            ],
        },
        "spec.yaml:69",
        &super::library::LIBRARY,
    )
};

/// `item(Tensor self) -> Scalar`, declared at spec.yaml:73.
pub static ITEM: rt::op::OpDef = rt::op::OpDef {
    doc: "The only element.",
    rules: Some(&super::rules::ITEM),
    element_types: &[rt::op::ElementType::Dispatch],
    host: Some(super::inference::item_host),
    ..rt::op::OpDef::new(
        "item",
        rt::op::Schema {
            text: "item(Tensor self) -> Scalar",
            args: &[rt::op::ArgDef::new("self", rt::op::ArgKind::Tensor.required())],
            returns: &[
                rt::op::ReturnDef {
                    name: None,
                    ty: rt::op::ArgKind::Scalar.required(),
                },
            ],
        },
        "spec.yaml:73",
        &super::library::LIBRARY,
    )
};
