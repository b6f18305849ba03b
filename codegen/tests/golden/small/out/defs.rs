// @generated from spec.yaml by codegen/src/emit/defs.rs.
// One operator's share: `opsmith expand NAME`.

/// `plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:8.
pub static PLUS_TENSOR: rt::op::OpDef = rt::op::OpDef {
    name: "plus.Tensor",
    schema: rt::op::Schema {
        text: "plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        args: &[
            rt::op::ArgDef::new(
                "self",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
            rt::op::ArgDef::new(
                "other",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
            rt::op::ArgDef {
                default: Some(rt::op::DefaultValue::Int(1i64)),
                keyword_only: true,
                ..rt::op::ArgDef::new(
                    "alpha",
                    rt::op::ArgType {
                        kind: rt::op::ArgKind::Scalar,
                        optional: false,
                    },
                )
            },
        ],
        returns: &[
            rt::op::ReturnDef {
                name: None,
                ty: rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            },
        ],
    },
    doc: "Adds `alpha * other` to `self`.\n\nA second paragraph.",
    location: "spec.yaml:8",
    forms: rt::op::Forms {
        inplace: Some("plus_.Tensor"),
        out: Some("plus.out"),
        elementwise: true,
    },
    infer: Some(super::inference::plus_tensor_infer),
    uniform: rt::op::Uniform::Same,
    element_types: &[
        rt::op::ElementType::Dispatch,
        rt::op::ElementType::Dispatch,
        rt::op::ElementType::NotTensor,
    ],
    contiguous: 0,
    kernels: Some(&super::kernel_tables::PLUS_TENSOR),
    view: None,
    composite: None,
    host: None,
    grad: Some(&super::gradients::PLUS_TENSOR),
    samples: &[],
    tolerances: &[],
    facts: rt::facts::Facts::NONE,
    library: &super::library::LIBRARY,
};

/// `grown(Tensor self, bool twice=False) -> Tensor`, declared at spec.yaml:22.
pub static GROWN: rt::op::OpDef = rt::op::OpDef {
    name: "grown",
    schema: rt::op::Schema {
        text: "grown(Tensor self, bool twice=False) -> Tensor",
        args: &[
            rt::op::ArgDef::new(
                "self",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
            rt::op::ArgDef {
                default: Some(rt::op::DefaultValue::Bool(false)),
                ..rt::op::ArgDef::new(
                    "twice",
                    rt::op::ArgType {
                        kind: rt::op::ArgKind::Bool,
                        optional: false,
                    },
                )
            },
        ],
        returns: &[
            rt::op::ReturnDef {
                name: None,
                ty: rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            },
        ],
    },
    doc: "Grows each element; integers become floats.",
    location: "spec.yaml:22",
    forms: rt::op::Forms {
        inplace: None,
        out: None,
        elementwise: true,
    },
    infer: Some(super::inference::grown_infer),
    uniform: rt::op::Uniform::SameIfInexact,
    element_types: &[rt::op::ElementType::Dispatch, rt::op::ElementType::NotTensor],
    contiguous: 0,
    kernels: Some(&super::kernel_tables::GROWN),
    view: None,
    composite: None,
    host: None,
    grad: Some(&super::gradients::GROWN),
    samples: &[],
    tolerances: &[],
    facts: rt::facts::Facts::NONE,
    library: &super::library::LIBRARY,
};

/// `product(Tensor self, Tensor mat2) -> Tensor`, declared at spec.yaml:30.
pub static PRODUCT: rt::op::OpDef = rt::op::OpDef {
    name: "product",
    schema: rt::op::Schema {
        text: "product(Tensor self, Tensor mat2) -> Tensor",
        args: &[
            rt::op::ArgDef::new(
                "self",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
            rt::op::ArgDef::new(
                "mat2",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
        ],
        returns: &[
            rt::op::ReturnDef {
                name: None,
                ty: rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            },
        ],
    },
    doc: "The matrix product.",
    location: "spec.yaml:30",
    forms: rt::op::Forms {
        inplace: None,
        out: Some("product.out"),
        elementwise: false,
    },
    infer: Some(super::inference::product_infer),
    uniform: rt::op::Uniform::No,
    element_types: &[rt::op::ElementType::Dispatch, rt::op::ElementType::Dispatch],
    contiguous: 2,
    kernels: Some(&super::kernel_tables::PRODUCT),
    view: None,
    composite: None,
    host: None,
    grad: Some(&super::gradients::PRODUCT),
    samples: &[],
    tolerances: &[],
    facts: rt::facts::Facts::NONE,
    library: &super::library::LIBRARY,
};

/// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:43.
pub static LARGEST: rt::op::OpDef = rt::op::OpDef {
    name: "largest",
    schema: rt::op::Schema {
        text: "largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)",
        args: &[
            rt::op::ArgDef::new(
                "self",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
            rt::op::ArgDef {
                default: Some(rt::op::DefaultValue::None),
                ..rt::op::ArgDef::new(
                    "dim",
                    rt::op::ArgType {
                        kind: rt::op::ArgKind::Int,
                        optional: true,
                    },
                )
            },
        ],
        returns: &[
            rt::op::ReturnDef {
                name: Some("values"),
                ty: rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            },
            rt::op::ReturnDef {
                name: Some("indices"),
                ty: rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            },
        ],
    },
    doc: "A kernel in C++.",
    location: "spec.yaml:43",
    forms: rt::op::Forms {
        inplace: None,
        out: None,
        elementwise: false,
    },
    infer: Some(super::inference::largest_infer),
    uniform: rt::op::Uniform::No,
    element_types: &[rt::op::ElementType::Dispatch, rt::op::ElementType::NotTensor],
    contiguous: 0,
    kernels: Some(&super::kernel_tables::LARGEST),
    view: None,
    composite: None,
    host: None,
    grad: Some(&super::gradients::LARGEST),
    samples: &[],
    tolerances: &[],
    facts: rt::facts::Facts::NONE,
    library: &super::library::LIBRARY,
};

/// `spread(Tensor self, Tensor index, int[] size) -> Tensor`, declared at spec.yaml:53.
pub static SPREAD: rt::op::OpDef = rt::op::OpDef {
    name: "spread",
    schema: rt::op::Schema {
        text: "spread(Tensor self, Tensor index, int[] size) -> Tensor",
        args: &[
            rt::op::ArgDef::new(
                "self",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
            rt::op::ArgDef::new(
                "index",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
            rt::op::ArgDef::new(
                "size",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Ints(None),
                    optional: false,
                },
            ),
        ],
        returns: &[
            rt::op::ReturnDef {
                name: None,
                ty: rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            },
        ],
    },
    doc: "Puts values at indices.",
    location: "spec.yaml:53",
    forms: rt::op::Forms {
        inplace: None,
        out: None,
        elementwise: false,
    },
    infer: Some(super::inference::spread_infer),
    uniform: rt::op::Uniform::No,
    element_types: &[
        rt::op::ElementType::Dispatch,
        rt::op::ElementType::Fixed {
            kernel: rt::DType::I64,
            accepted: rt::DTypeSet(256u16),
        },
        rt::op::ElementType::NotTensor,
    ],
    contiguous: 0,
    kernels: Some(&super::kernel_tables::SPREAD),
    view: None,
    composite: None,
    host: None,
    grad: Some(&super::gradients::SPREAD),
    samples: &[],
    tolerances: &[],
    facts: rt::facts::Facts::NONE,
    library: &super::library::LIBRARY,
};

/// `flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)`, declared at spec.yaml:62.
pub static FLIPPED: rt::op::OpDef = rt::op::OpDef {
    name: "flipped",
    schema: rt::op::Schema {
        text: "flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
        args: &[
            rt::op::ArgDef::new(
                "self",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
            rt::op::ArgDef::new(
                "dim0",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Int,
                    optional: false,
                },
            ),
            rt::op::ArgDef::new(
                "dim1",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Int,
                    optional: false,
                },
            ),
        ],
        returns: &[
            rt::op::ReturnDef {
                name: None,
                ty: rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            },
        ],
    },
    doc: "Swaps two dimensions.",
    location: "spec.yaml:62",
    forms: rt::op::Forms {
        inplace: None,
        out: None,
        elementwise: false,
    },
    infer: None,
    uniform: rt::op::Uniform::No,
    element_types: &[
        rt::op::ElementType::Dispatch,
        rt::op::ElementType::NotTensor,
        rt::op::ElementType::NotTensor,
    ],
    contiguous: 0,
    kernels: None,
    view: Some(super::inference::flipped_view),
    composite: None,
    host: None,
    grad: Some(&super::gradients::FLIPPED),
    samples: &[],
    tolerances: &[],
    facts: rt::facts::Facts::NONE,
    library: &super::library::LIBRARY,
};

/// `sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)`, declared at spec.yaml:69.
pub static SUM_AND_GROWTH: rt::op::OpDef = rt::op::OpDef {
    name: "sum_and_growth",
    schema: rt::op::Schema {
        text: "sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)",
        args: &[
            rt::op::ArgDef::new(
                "self",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
            rt::op::ArgDef::new(
                "other",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
        ],
        returns: &[
            rt::op::ReturnDef {
                name: None,
                ty: rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            },
            rt::op::ReturnDef {
                name: None,
                ty: rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            },
        ],
    },
    doc: "Two results, built from others.",
    location: "spec.yaml:69",
    forms: rt::op::Forms {
        inplace: None,
        out: None,
        elementwise: false,
    },
    infer: None,
    uniform: rt::op::Uniform::No,
    element_types: &[rt::op::ElementType::Dispatch, rt::op::ElementType::Dispatch],
    contiguous: 0,
    kernels: None,
    view: None,
    composite: Some(super::inference::sum_and_growth_composite),
    host: None,
    grad: None,
    samples: &[],
    tolerances: &[],
    facts: rt::facts::Facts::NONE,
    library: &super::library::LIBRARY,
};

/// `item(Tensor self) -> Scalar`, declared at spec.yaml:73.
pub static ITEM: rt::op::OpDef = rt::op::OpDef {
    name: "item",
    schema: rt::op::Schema {
        text: "item(Tensor self) -> Scalar",
        args: &[
            rt::op::ArgDef::new(
                "self",
                rt::op::ArgType {
                    kind: rt::op::ArgKind::Tensor,
                    optional: false,
                },
            ),
        ],
        returns: &[
            rt::op::ReturnDef {
                name: None,
                ty: rt::op::ArgType {
                    kind: rt::op::ArgKind::Scalar,
                    optional: false,
                },
            },
        ],
    },
    doc: "The only element.",
    location: "spec.yaml:73",
    forms: rt::op::Forms {
        inplace: None,
        out: None,
        elementwise: false,
    },
    infer: None,
    uniform: rt::op::Uniform::No,
    element_types: &[rt::op::ElementType::Dispatch],
    contiguous: 0,
    kernels: None,
    view: None,
    composite: None,
    host: Some(super::inference::item_host),
    grad: None,
    samples: &[],
    tolerances: &[],
    facts: rt::facts::Facts::NONE,
    library: &super::library::LIBRARY,
};
