// @generated from spec.yaml by codegen/src/emit/rules.rs.
// One operator's share: `opsmith expand NAME`.

pub static PLUS_TENSOR: rt::infer::expr::Rules = rt::infer::expr::Rules {
    shapes: &[
        rt::infer::expr::Expr::ShapeRule(
            "broadcast",
            &[rt::infer::expr::Expr::Arg(0), rt::infer::expr::Expr::Arg(1)],
        ),
    ],
    dtypes: &[
        rt::infer::expr::Expr::DTypeRule(
            "promote",
            &[
                rt::infer::expr::Expr::Arg(0),
                rt::infer::expr::Expr::Arg(1),
                rt::infer::expr::Expr::Arg(2),
            ],
        ),
    ],
    compute: Some(
        rt::infer::expr::Expr::DTypeRule(
            "promote",
            &[
                rt::infer::expr::Expr::Arg(0),
                rt::infer::expr::Expr::Arg(1),
                rt::infer::expr::Expr::Arg(2),
            ],
        ),
    ),
    ..rt::infer::expr::Rules::NONE
};

pub static GROWN: rt::infer::expr::Rules = rt::infer::expr::Rules {
    shapes: &[
        rt::infer::expr::Expr::ShapeRule("follow", &[rt::infer::expr::Expr::Arg(0)]),
    ],
    dtypes: &[
        rt::infer::expr::Expr::DTypeRule(
            "promote_float",
            &[rt::infer::expr::Expr::Arg(0)],
        ),
    ],
    compute: Some(
        rt::infer::expr::Expr::DTypeRule(
            "promote_float",
            &[rt::infer::expr::Expr::Arg(0)],
        ),
    ),
    ..rt::infer::expr::Rules::NONE
};

pub static PRODUCT: rt::infer::expr::Rules = rt::infer::expr::Rules {
    checks: &[
        rt::infer::expr::Check {
            condition: rt::infer::expr::Expr::Binary(
                rt::infer::expr::Operation::Eq,
                &[
                    rt::infer::expr::Expr::Query(
                        rt::infer::expr::Query::Dim,
                        &[rt::infer::expr::Expr::Arg(0)],
                    ),
                    rt::infer::expr::Expr::Int(2i64),
                ],
            ),
            text: "self.dim() == 2",
        },
        rt::infer::expr::Check {
            condition: rt::infer::expr::Expr::Binary(
                rt::infer::expr::Operation::Eq,
                &[
                    rt::infer::expr::Expr::Query(
                        rt::infer::expr::Query::Dim,
                        &[rt::infer::expr::Expr::Arg(1)],
                    ),
                    rt::infer::expr::Expr::Int(2i64),
                ],
            ),
            text: "mat2.dim() == 2",
        },
        rt::infer::expr::Check {
            condition: rt::infer::expr::Expr::Binary(
                rt::infer::expr::Operation::Eq,
                &[
                    rt::infer::expr::Expr::Query(
                        rt::infer::expr::Query::Size,
                        &[
                            rt::infer::expr::Expr::Arg(0),
                            rt::infer::expr::Expr::Int(1i64),
                        ],
                    ),
                    rt::infer::expr::Expr::Query(
                        rt::infer::expr::Query::Size,
                        &[
                            rt::infer::expr::Expr::Arg(1),
                            rt::infer::expr::Expr::Int(-2i64),
                        ],
                    ),
                ],
            ),
            text: "self.size(1) == mat2.size(-2)",
        },
    ],
    shapes: &[
        rt::infer::expr::Expr::List(
            &[
                rt::infer::expr::Expr::Query(
                    rt::infer::expr::Query::Size,
                    &[rt::infer::expr::Expr::Arg(0), rt::infer::expr::Expr::Int(0i64)],
                ),
                rt::infer::expr::Expr::Query(
                    rt::infer::expr::Query::Size,
                    &[rt::infer::expr::Expr::Arg(1), rt::infer::expr::Expr::Int(1i64)],
                ),
            ],
        ),
    ],
    dtypes: &[
        rt::infer::expr::Expr::DTypeRule(
            "same",
            &[rt::infer::expr::Expr::Arg(0), rt::infer::expr::Expr::Arg(1)],
        ),
    ],
    compute: Some(
        rt::infer::expr::Expr::DTypeRule(
            "same",
            &[rt::infer::expr::Expr::Arg(0), rt::infer::expr::Expr::Arg(1)],
        ),
    ),
    ..rt::infer::expr::Rules::NONE
};

pub static LARGEST: rt::infer::expr::Rules = rt::infer::expr::Rules {
    shapes: &[
        rt::infer::expr::Expr::ShapeRule("follow", &[rt::infer::expr::Expr::Arg(0)]),
        rt::infer::expr::Expr::ShapeRule("follow", &[rt::infer::expr::Expr::Arg(0)]),
    ],
    dtypes: &[
        rt::infer::expr::Expr::DTypeRule("follow", &[rt::infer::expr::Expr::Arg(0)]),
        rt::infer::expr::Expr::DType(rt::DType::I64),
    ],
    compute: Some(
        rt::infer::expr::Expr::DTypeRule("follow", &[rt::infer::expr::Expr::Arg(0)]),
    ),
    ..rt::infer::expr::Rules::NONE
};

pub static SPREAD: rt::infer::expr::Rules = rt::infer::expr::Rules {
    shapes: &[
        rt::infer::expr::Expr::ShapeRule("full", &[rt::infer::expr::Expr::Arg(2)]),
    ],
    dtypes: &[
        rt::infer::expr::Expr::DTypeRule("follow", &[rt::infer::expr::Expr::Arg(0)]),
    ],
    compute: Some(
        rt::infer::expr::Expr::DTypeRule("follow", &[rt::infer::expr::Expr::Arg(0)]),
    ),
    ..rt::infer::expr::Rules::NONE
};

pub static FLIPPED: rt::infer::expr::Rules = rt::infer::expr::Rules {
    checks: &[
        rt::infer::expr::Check {
            condition: rt::infer::expr::Expr::Binary(
                rt::infer::expr::Operation::Ge,
                &[
                    rt::infer::expr::Expr::Query(
                        rt::infer::expr::Query::Dim,
                        &[rt::infer::expr::Expr::Arg(0)],
                    ),
                    rt::infer::expr::Expr::Int(2i64),
                ],
            ),
            text: "self.dim() >= 2",
        },
    ],
    ..rt::infer::expr::Rules::NONE
};

pub static ITEM: rt::infer::expr::Rules = rt::infer::expr::Rules {
    checks: &[
        rt::infer::expr::Check {
            condition: rt::infer::expr::Expr::Binary(
                rt::infer::expr::Operation::Eq,
                &[
                    rt::infer::expr::Expr::Query(
                        rt::infer::expr::Query::Numel,
                        &[rt::infer::expr::Expr::Arg(0)],
                    ),
                    rt::infer::expr::Expr::Int(1i64),
                ],
            ),
            text: "self.numel() == 1",
        },
    ],
    ..rt::infer::expr::Rules::NONE
};
