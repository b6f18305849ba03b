//! The check of precision: silent for random compositions of stock operators, however ill-conditioned, and a failure
//! for each that loses digits in one dtype.

use std::cell::RefCell;

use opsmith::{DType, Result, Tensor, Value};
use opsmith_runtime::Arg;
use opsmith_runtime::op::{ArgDef, ArgKind, OpDef, Outputs, ReturnDef, Schema};
use opsmith_testing::checks::{Call, precision};
use opsmith_tests::gradcheck::weights;

/// A step of a composition: an operator and the earlier values that it takes.
#[derive(Clone, Copy, Debug)]
enum Step {
    Unary(&'static str, usize),
    Binary(&'static str, usize, usize),
    /// A step that loses digits in one dtype, by way of another.
    Through(DType, DType, usize),
}

thread_local! {
    static PROGRAM: RefCell<Vec<Step>> = const { RefCell::new(Vec::new()) };
}

static COMPOSITION: OpDef = OpDef {
    composite: Some(interpret),
    ..OpDef::new(
        "composition",
        Schema {
            text: "composition(Tensor a, Tensor b, Tensor c) -> Tensor",
            args: &[
                ArgDef::new("a", ArgKind::Tensor.required()),
                ArgDef::new("b", ArgKind::Tensor.required()),
                ArgDef::new("c", ArgKind::Tensor.required()),
            ],
            returns: &[ReturnDef { name: None, ty: ArgKind::Tensor.required() }],
        },
        "precision.rs:1",
        &opsmith::LIBRARY,
    )
};

fn interpret(args: &[Arg<'_>]) -> Result<Outputs> {
    let mut values: Vec<Tensor> = Vec::new();
    args.iter().for_each(|arg| arg.for_each_tensor(|tensor| values.push(tensor.clone())));
    for step in PROGRAM.with_borrow(Clone::clone) {
        let call = |name: &str, args: &[usize]| -> Result<Tensor> {
            let args: Vec<Value> = args.iter().map(|&at| Value::Tensor(values[at].clone())).collect();
            opsmith::call(name, &args, &[])?.swap_remove(0).into_tensor()
        };
        let next = match step {
            Step::Unary(name, a) => call(name, &[a])?,
            Step::Binary(name, a, b) => call(name, &[a, b])?,
            Step::Through(of, other, a) if values[a].dtype() == of => {
                opsmith::to_dtype(&opsmith::to_dtype(&values[a], other)?, of)?
            }
            Step::Through(_, _, a) => values[a].clone(),
        };
        values.push(next);
    }
    Ok(Outputs::from_iter(values.pop()))
}

const UNARY: [&str; 14] = [
    "exp",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "atan",
    "square",
    "neg",
    "abs",
    "relu",
    "sqrt",
    "log1p",
    "reciprocal",
    "softplus",
];
const BINARY: [&str; 7] =
    ["add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "maximum", "atan2", "hypot"];

/// Numbers that follow no pattern.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

fn random_program(numbers: &mut Numbers) -> Vec<Step> {
    let length = 2 + numbers.below(6);
    (0..length)
        .map(|step| match numbers.below(2) {
            0 => Step::Unary(UNARY[numbers.below(UNARY.len())], numbers.below(step + 3)),
            // The last value takes part, so that programs are deep.
            _ => Step::Binary(BINARY[numbers.below(BINARY.len())], step + 2, numbers.below(step + 3)),
        })
        .collect()
}

fn check(program: &[Step], seed: usize) -> std::result::Result<(), String> {
    PROGRAM.set(program.to_vec());
    let args = (0..3).map(|at| Value::Tensor(weights(&[2, 3], seed * 3 + at))).collect();
    precision(&Call { op: &COMPOSITION, args })
}

#[test]
fn random_compositions_raise_no_alarm() {
    let mut numbers = Numbers(11);
    let mut alarms = Vec::new();
    for seed in 0..400 {
        let program = random_program(&mut numbers);
        if let Err(why) = check(&program, seed) {
            alarms.push(format!("{program:?}: {why}"));
        }
    }
    assert!(alarms.is_empty(), "{} alarms:\n{}", alarms.len(), alarms.join("\n"));
}

#[test]
fn digits_lost_in_one_dtype_raise_an_alarm() {
    let lossy = [(DType::F32, DType::BF16), (DType::F32, DType::F16)];
    for (of, other) in lossy {
        let mut noticed = 0;
        for seed in 0..20 {
            // A well-conditioned function of values that lost their last digits on the way.
            let program = [
                Step::Binary("mul.Tensor", 0, 1),
                Step::Through(of, other, 3),
                Step::Unary("exp", 4),
                Step::Binary("mul.Tensor", 5, 5),
            ];
            noticed += usize::from(check(&program, seed).is_err_and(|why| why.starts_with(of.name())));
        }
        assert_eq!(noticed, 20, "{of} through {other}");
    }
}
