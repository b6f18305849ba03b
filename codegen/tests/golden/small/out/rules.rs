// @generated from spec.yaml by codegen/src/emit/rules.rs.
// One operator's share: `opsmith expand NAME`.

pub static PLUS_TENSOR: Rules<'static> = Rules {
    shapes: &[Expr::ShapeRule(ShapeRule::Broadcast, &[Expr::Arg(0), Expr::Arg(1)])],
    dtypes: &[Expr::DTypeRule(DTypeRule::Promote, &[Expr::Arg(0), Expr::Arg(1), Expr::Arg(2)])],
    compute: Some(Expr::DTypeRule(DTypeRule::Promote, &[Expr::Arg(0), Expr::Arg(1), Expr::Arg(2)])),
    ..Rules::NONE
};

pub static PLUS_SCALAR: Rules<'static> = Rules {
    shapes: &[Expr::ShapeRule(ShapeRule::Broadcast, &[Expr::Arg(0)])],
    dtypes: &[Expr::DTypeRule(DTypeRule::Promote, &[Expr::Arg(0), Expr::Arg(1), Expr::Arg(2)])],
    compute: Some(Expr::DTypeRule(DTypeRule::Promote, &[Expr::Arg(0), Expr::Arg(1), Expr::Arg(2)])),
    ..Rules::NONE
};

pub static GROWN: Rules<'static> = Rules {
    shapes: &[Expr::ShapeRule(ShapeRule::Follow, &[Expr::Arg(0)])],
    dtypes: &[Expr::DTypeRule(DTypeRule::PromoteFloat, &[Expr::Arg(0)])],
    compute: Some(Expr::DTypeRule(DTypeRule::PromoteFloat, &[Expr::Arg(0)])),
    ..Rules::NONE
};

pub static PRODUCT: Rules<'static> = Rules {
    checks: &[
        RuleCheck {
            condition: Expr::Binary(Operation::Eq, &[Expr::Query(Query::Dim, &[Expr::Arg(0)]), Expr::Int(2)]),
            text: "self.dim() == 2",
        },
        RuleCheck {
            condition: Expr::Binary(Operation::Eq, &[Expr::Query(Query::Dim, &[Expr::Arg(1)]), Expr::Int(2)]),
            text: "mat2.dim() == 2",
        },
        RuleCheck {
            condition: Expr::Binary(
                Operation::Eq,
                &[
                    Expr::Query(Query::Size, &[Expr::Arg(0), Expr::Int(1)]),
                    Expr::Query(Query::Size, &[Expr::Arg(1), Expr::Int(-2)]),
                ],
            ),
            text: "self.size(1) == mat2.size(-2)",
        },
    ],
    shapes: &[
        Expr::List(&[
            Expr::Query(Query::Size, &[Expr::Arg(0), Expr::Int(0)]),
            Expr::Query(Query::Size, &[Expr::Arg(1), Expr::Int(1)]),
        ]),
    ],
    dtypes: &[Expr::DTypeRule(DTypeRule::Same, &[Expr::Arg(0), Expr::Arg(1)])],
    compute: Some(Expr::DTypeRule(DTypeRule::Same, &[Expr::Arg(0), Expr::Arg(1)])),
    ..Rules::NONE
};

pub static LARGEST: Rules<'static> = Rules {
    shapes: &[
        Expr::ShapeRule(ShapeRule::Follow, &[Expr::Arg(0)]),
        Expr::ShapeRule(ShapeRule::Follow, &[Expr::Arg(0)]),
    ],
    dtypes: &[Expr::DTypeRule(DTypeRule::Follow, &[Expr::Arg(0)]), Expr::DType(DType::I64)],
    compute: Some(Expr::DTypeRule(DTypeRule::Follow, &[Expr::Arg(0)])),
    ..Rules::NONE
};

pub static SPREAD: Rules<'static> = Rules {
    shapes: &[Expr::ShapeRule(ShapeRule::Full, &[Expr::Arg(2)])],
    dtypes: &[Expr::DTypeRule(DTypeRule::Follow, &[Expr::Arg(0)])],
    compute: Some(Expr::DTypeRule(DTypeRule::Follow, &[Expr::Arg(0)])),
    ..Rules::NONE
};

pub static FLIPPED: Rules<'static> = Rules {
    checks: &[
        RuleCheck {
            condition: Expr::Binary(Operation::Ge, &[Expr::Query(Query::Dim, &[Expr::Arg(0)]), Expr::Int(2)]),
            text: "self.dim() >= 2",
        },
    ],
    ..Rules::NONE
};

pub static ITEM: Rules<'static> = Rules {
    checks: &[
        RuleCheck {
            condition: Expr::Binary(
                Operation::Eq,
                &[Expr::Query(Query::Numel, &[Expr::Arg(0)]), Expr::Int(1)],
            ),
            text: "self.numel() == 1",
        },
    ],
    ..Rules::NONE
};
