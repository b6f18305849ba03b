// @generated from spec.yaml by codegen/src/emit/rules.rs.
// One operator's share: `opsmith expand NAME`.

pub static PLUS_TENSOR: Rules = Rules::of(
    &[ShapeRule::Broadcast.of(&[Arg(0), Arg(1)])],
    &[DTypeRule::Promote.of(&[Arg(0), Arg(1), Arg(2)])],
);

pub static PLUS_SCALAR: Rules = Rules::of(
    &[ShapeRule::Broadcast.of(&[Arg(0)])],
    &[DTypeRule::Promote.of(&[Arg(0), Arg(1), Arg(2)])],
);

pub static GROWN: Rules = Rules::of(
    &[ShapeRule::Follow.of(&[Arg(0)])],
    &[DTypeRule::PromoteFloat.of(&[Arg(0)])],
);

pub static PRODUCT: Rules = Rules {
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
        &[DTypeRule::Same.of(&[Arg(0), Arg(1)])],
    )
};

pub static LARGEST: Rules = Rules::of(
    &[ShapeRule::Follow.of(&[Arg(0)]), ShapeRule::Follow.of(&[Arg(0)])],
    &[DTypeRule::Follow.of(&[Arg(0)]), Expr::DType(DType::I64)],
);

pub static SPREAD: Rules = Rules::of(&[ShapeRule::Full.of(&[Arg(2)])], &[DTypeRule::Follow.of(&[Arg(0)])]);

pub static FLIPPED: Rules = Rules {
    checks: &[
        RuleCheck {
            condition: Expr::Binary(Operation::Ge, &[Expr::Query(Query::Dim, &[Arg(0)]), Expr::Int(2)]),
            text: "self.dim() >= 2",
        },
    ],
    ..Rules::NONE
};

pub static ITEM: Rules = Rules {
    checks: &[
        RuleCheck {
            condition: Expr::Binary(Operation::Eq, &[Expr::Query(Query::Numel, &[Arg(0)]), Expr::Int(1)]),
            text: "self.numel() == 1",
        },
    ],
    ..Rules::NONE
};
