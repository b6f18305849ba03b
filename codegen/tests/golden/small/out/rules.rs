// @generated from spec.yaml by codegen/src/emit/rules.rs.
// One operator's share: `opsmith expand NAME`.

pub static PLUS_TENSOR: Rules<'static> = Rules::of(
    &[Expr::ShapeRule(ShapeRule::Broadcast, &[Arg(0), Arg(1)])],
    &[Expr::DTypeRule(DTypeRule::Promote, &[Arg(0), Arg(1), Arg(2)])],
);

pub static PLUS_SCALAR: Rules<'static> = Rules::of(
    &[Expr::ShapeRule(ShapeRule::Broadcast, &[Arg(0)])],
    &[Expr::DTypeRule(DTypeRule::Promote, &[Arg(0), Arg(1), Arg(2)])],
);

pub static GROWN: Rules<'static> = Rules::of(
    &[Expr::ShapeRule(ShapeRule::Follow, &[Arg(0)])],
    &[Expr::DTypeRule(DTypeRule::PromoteFloat, &[Arg(0)])],
);

pub static PRODUCT: Rules<'static> = Rules {
    checks: &[
        RuleCheck {
            condition: Expr::Binary(Operation::Eq, &[Expr::Query(Query::Dim, &[Arg(0)]), Expr::Int(2)]),
            text: "self.dim() == 2",
        },
        RuleCheck {
            condition: Expr::Binary(Operation::Eq, &[Expr::Query(Query::Dim, &[Arg(1)]), Expr::Int(2)]),
            text: "mat2.dim() == 2",
        },
        RuleCheck {
            condition: Expr::Binary(
                Operation::Eq,
                &[
                    Expr::Query(Query::Size, &[Arg(0), Expr::Int(1)]),
                    Expr::Query(Query::Size, &[Arg(1), Expr::Int(-2)]),
                ],
            ),
            text: "self.size(1) == mat2.size(-2)",
        },
    ],
    ..Rules::of(
        &[
            Expr::List(&[
                Expr::Query(Query::Size, &[Arg(0), Expr::Int(0)]),
                Expr::Query(Query::Size, &[Arg(1), Expr::Int(1)]),
            ]),
        ],
        &[Expr::DTypeRule(DTypeRule::Same, &[Arg(0), Arg(1)])],
    )
};

pub static LARGEST: Rules<'static> = Rules::of(
    &[Expr::ShapeRule(ShapeRule::Follow, &[Arg(0)]), Expr::ShapeRule(ShapeRule::Follow, &[Arg(0)])],
    &[Expr::DTypeRule(DTypeRule::Follow, &[Arg(0)]), Expr::DType(DType::I64)],
);

pub static SPREAD: Rules<'static> = Rules::of(
    &[Expr::ShapeRule(ShapeRule::Full, &[Arg(2)])],
    &[Expr::DTypeRule(DTypeRule::Follow, &[Arg(0)])],
);

pub static FLIPPED: Rules<'static> = Rules {
    checks: &[
        RuleCheck {
            condition: Expr::Binary(Operation::Ge, &[Expr::Query(Query::Dim, &[Arg(0)]), Expr::Int(2)]),
            text: "self.dim() >= 2",
        },
    ],
    ..Rules::NONE
};

pub static ITEM: Rules<'static> = Rules {
    checks: &[
        RuleCheck {
            condition: Expr::Binary(Operation::Eq, &[Expr::Query(Query::Numel, &[Arg(0)]), Expr::Int(1)]),
            text: "self.numel() == 1",
        },
    ],
    ..Rules::NONE
};
