//! Special points and sizes of an operator, from its samples.
//!
//! In: an operator, the constants in its expressions, and the sizes at which kernels change their path. Out: calls.
//! There are no lists by operator: thresholds are its own constants with their neighbours, and the rest are the edge
//! cases of floating-point and integer arithmetic.

use std::collections::{HashMap, HashSet};

use opsmith::{DType, Tensor, Value};
use opsmith_runtime::Complex64;
use opsmith_runtime::op::{ArgDef, ArgKind, OpDef};
use opsmith_runtime::sample::SampleValue;

use super::given::{Given, GivenTensor, Values, values};
use super::line::{Grow, Line, grown, invoke};
use crate::samples::{exact_dtype, samples};

/// The constants in the expressions of each operator, by its full name.
pub type Constants = HashMap<String, Vec<f64>>;

/// Edge cases of floating-point functions.
const POINTS: [f64; 17] = [
    0.0,
    f64::NAN,
    -0.0,
    1.0,
    f64::INFINITY,
    -1.0,
    f64::NEG_INFINITY,
    0.5,
    -2.5,
    2.0,
    f64::MAX,
    -3.0,
    5e-324,
    f64::MIN,
    -5e-324,
    f64::MIN_POSITIVE,
    1e-5,
];

/// Fewer of them, for combinations of three or more.
const FEW_POINTS: [f64; 6] = [0.0, f64::NAN, 1.0, f64::INFINITY, -0.5, 2.0];

/// Edge cases of integer functions. The smallest integer is excluded: its division by -1 ends the recording program.
const WHOLE: [i64; 9] = [0, 1, -1, i64::MAX, 2, -7, 3, -i64::MAX, 63];

/// Patterns of elements in tensors: equal ones, NaN among numbers, infinities.
const PATTERNS: [&[f64]; 2] = [
    &[1.0, 0.0, 1.0, -0.0, -1.0, 0.0, 1.0, 1.0, -1.0],
    &[2.0, f64::NAN, 1.0, -3.0, f64::NAN, 0.5, 2.0, 0.0, 1.0, -1.0, 4.0],
];

/// Sizes for patterns: below and above a kernel's block.
const PATTERN_SIZES: [i64; 5] = [1, 5, 17, 130, 600];

/// Maximal number of elements of a tensor in a call; its results together may have twice as many.
const MOST_ELEMENTS: i64 = 20_000;

/// The first few sizes, and those on both sides of a kernel's thresholds.
pub fn sizes_around(blocks: &[usize]) -> Vec<i64> {
    let mut sizes: Vec<i64> = (1..=9).collect();
    for block in blocks.iter().map(|&block| block as i64).filter(|block| *block <= 4096) {
        sizes.extend([block, block + 1]);
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The calls of an operator at special points and sizes.
pub fn derive(op: &'static OpDef, constants: &[f64], sizes: &[i64]) -> Vec<Line> {
    if op.host.is_some() {
        return Vec::new();
    }
    // Random elements cannot be compared.
    if !op.facts.deterministic {
        return Vec::new();
    }
    let real = if exact_dtype(op) == Some(DType::F32) { DType::F32 } else { DType::F64 };
    let mut lines = Vec::new();
    for (number, args) in sampled(op, real).iter().enumerate() {
        lines.push(plain(op, args, real));
        if op.forms.elementwise {
            lines.extend(pointwise(op, args, constants));
            if number == 0 {
                lines.extend(attributes(op, args, constants));
                lines.extend(grow(op, args, real, &[17, 129, 1025]));
            }
        } else {
            // A composition has no path of its own: the operators it calls are tested.
            let has_path = op.kernels.is_some();
            let sizes = if has_path { sizes } else { &[1, 5, 17, 129][..] };
            lines.extend(grow(op, args, real, sizes));
            if has_path || number == 0 {
                for dtype in [DType::C128, DType::I64, DType::F32] {
                    lines.extend(grow(op, args, dtype, &[5, 33, 130]));
                }
                lines.extend(patterns(op, args, Some(constants), real));
            }
            if has_path {
                lines.extend(patterns(op, args, None, DType::F32));
            }
            for args in variants(op, args) {
                lines.push(plain(op, &args, real));
                lines.extend(patterns_of(&args, &PATTERNS).map(|args| plain(op, &args, real)));
                if has_path {
                    lines.extend(grow(op, &args, real, &[8, 9, 130]));
                    lines.push(plain(op, &args, DType::I64));
                }
            }
        }
    }
    lines.iter_mut().filter(|line| line.dtype == DType::F64).for_each(|line| line.dtype = real);
    lines.retain(|line| line.calls().iter().any(|(_, args)| runs(op, args, line.dtype)));
    let mut seen = HashSet::new();
    lines.retain(|line| seen.insert(line.to_json().to_string()));
    lines
}

/// A call at the sample's own sizes.
fn plain(op: &OpDef, args: &[(String, Given)], dtype: DType) -> Line {
    Line { op: op.name.to_owned(), dtype, args: args.to_vec(), grow: None, calm: false, outcomes: Vec::new() }
}

/// The same call with one attribute changed: flags, numbers at which kernels take another path, axes, steps; or with
/// one list of indices, all set to the first, or with its ends swapped.
fn variants(op: &'static OpDef, args: &[(String, Given)]) -> Vec<Vec<(String, Given)>> {
    let floats = [0.0, 0.5, 1.0, 2.0, 3.0, -1.0, f64::INFINITY, f64::NEG_INFINITY].map(Given::Float);
    let ints = [0, 1, 2, 3, -1, -2].map(Given::Int);
    let mut variants = Vec::new();
    for def in op.schema.args {
        let given = args.iter().find(|(name, _)| name == def.name).map(|(_, given)| given);
        let mut choices = match def.ty.kind {
            ArgKind::Bool => vec![Given::Bool(false), Given::Bool(true)],
            ArgKind::Int => ints.to_vec(),
            ArgKind::Float => floats.to_vec(),
            ArgKind::Scalar => [&floats[..], &ints[..3]].concat(),
            ArgKind::Ints(_) => match given {
                Some(Given::List(items)) => {
                    ints.iter().map(|item| Given::List(vec![item.clone(); items.len()])).collect()
                }
                _ => ints.iter().map(|item| Given::List(vec![item.clone()])).collect(),
            },
            _ => Vec::new(),
        };
        if def.ty.optional {
            choices.push(Given::None);
        }
        if let Some(Given::Tensor(tensor)) = given
            && let Values::Places(places) = &tensor.values
        {
            let other = |places: Vec<i64>| {
                Given::Tensor(GivenTensor { values: Values::Places(places), ..tensor.clone() })
            };
            choices.push(other(vec![places[0]; places.len()]));
            choices.push(other(places.iter().rev().copied().collect()));
        }
        choices.retain(|choice| Some(choice) != given);
        for choice in choices {
            let mut args = args.to_vec();
            args.retain(|(name, _)| name != def.name);
            args.push((def.name.to_owned(), choice));
            variants.push(args);
        }
    }
    variants.retain(|args| [DType::F64, DType::I64].into_iter().any(|dtype| runs(op, args, dtype)));
    variants
}

/// The samples of the spec, or generated ones.
fn sampled(op: &'static OpDef, real: DType) -> Vec<Vec<(String, Given)>> {
    if op.samples.is_empty() {
        let argument = |(index, (def, value)): (usize, (&ArgDef, &Value))| {
            Some((def.name.to_owned(), Given::of_value(value, index)?))
        };
        let sample = |args: &Vec<Value>| op.schema.args.iter().zip(args).enumerate().map(argument).collect();
        return samples(op, real).iter().filter_map(sample).collect();
    }
    let argument = |(name, value): &(&str, SampleValue)| {
        let index =
            op.schema.args.iter().position(|arg| arg.name == *name).expect("an argument of the operator");
        ((*name).to_owned(), Given::of_sample(value, index))
    };
    op.samples.iter().map(|sample| sample.args.iter().map(argument).collect()).collect()
}

fn runs(op: &'static OpDef, args: &[(String, Given)], dtype: DType) -> bool {
    let small = |outs: Vec<Tensor>| outs.iter().map(Tensor::numel).sum::<i64>() <= 2 * MOST_ELEMENTS;
    let call = || values(op, args, dtype).and_then(|args| invoke(op, &args)).is_ok_and(small);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).unwrap_or(false)
}

fn tensors(args: &mut [(String, Given)], visit: &mut dyn FnMut(&mut GivenTensor)) {
    args.iter_mut().for_each(|(_, given)| given.for_each_tensor(visit));
}

/// The points of an operator: the general ones, its own constants and their neighbours.
fn points(args: &[(String, Given)], constants: &[f64]) -> Vec<f64> {
    let mut own = constants.to_vec();
    for (_, given) in args {
        match *given {
            Given::Float(value) => own.push(value),
            Given::Int(value) => own.push(value as f64),
            _ => {}
        }
    }
    let mut points = POINTS.to_vec();
    for value in own.into_iter().filter(|value| value.is_finite()) {
        points.extend([value, value.next_down(), value.next_up(), -value]);
    }
    let mut seen = Vec::new();
    points.retain(|point| {
        let fresh = !seen.contains(&point.to_bits());
        seen.push(point.to_bits());
        fresh
    });
    points
}

/// Every combination of points, an axis for each tensor.
fn pointwise(op: &'static OpDef, args: &[(String, Given)], constants: &[f64]) -> Vec<Line> {
    let mut count = 0;
    tensors(&mut args.to_vec(), &mut |_| count += 1);
    let points = points(args, constants);
    let real: Vec<f64> = match count {
        0 | 1 => points,
        2 => points.into_iter().take(20).collect(),
        _ => FEW_POINTS.to_vec(),
    };
    let complex: Vec<Complex64> =
        complex_points(if count < 2 { &[0.0, 1.0, -1.0, 2.0, -0.5] } else { &[0.0, 1.0, -2.0] });
    let real: Vec<Complex64> = real.into_iter().map(|re| Complex64::new(re, 0.0)).collect();
    let none_zero: Vec<i64> = WHOLE.iter().copied().filter(|value| *value != 0).collect();
    let choices = [
        (DType::F64, Values::Cycle(real)),
        (DType::C128, Values::Cycle(complex)),
        (DType::I64, Values::Whole(WHOLE.to_vec())),
        (DType::I64, Values::Whole(none_zero)),
        (DType::Bool, Values::Whole(vec![0, 1])),
    ];
    choices
        .into_iter()
        .map(|(dtype, values)| {
            let mut args = args.to_vec();
            let mut axis = 0;
            let mut grid = Vec::new();
            tensors(&mut args, &mut |tensor| {
                if tensor.values != Values::Mask {
                    tensor.values = values.clone();
                }
                let size = match &tensor.values {
                    Values::Cycle(values) => values.len(),
                    Values::Whole(values) => values.len(),
                    // Three `bool`s cover both values.
                    _ => 3,
                };
                tensor.shape = vec![1; count];
                tensor.shape[axis] = size as i64;
                grid.push(size as i64);
                axis += 1;
            });
            // Gradients are those of single elements, not sums over broadcast dimensions.
            tensors(&mut args, &mut |tensor| tensor.grid = (count > 1).then(|| grid.clone()));
            Line { op: op.name.to_owned(), dtype, args, grow: None, calm: false, outcomes: Vec::new() }
        })
        .collect()
}

fn complex_points(parts: &[f64]) -> Vec<Complex64> {
    parts.iter().flat_map(|&re| parts.iter().map(move |&im| Complex64::new(re, im))).collect()
}

/// Special numbers for each number argument, one at a time, complex ones too.
fn attributes(op: &'static OpDef, args: &[(String, Given)], constants: &[f64]) -> Vec<Line> {
    let mut lines = Vec::new();
    for def in op.schema.args {
        if !matches!(def.ty.kind, ArgKind::Scalar | ArgKind::Float) {
            continue;
        }
        let mut choices: Vec<Given> = [0.0, 0.5, -1.0, 3.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]
            .into_iter()
            .map(Given::Float)
            .collect();
        choices.extend(constants.iter().copied().map(Given::Float));
        if def.ty.kind == ArgKind::Scalar {
            choices.extend([
                Given::Int(2),
                Given::Int(-1),
                Given::Int(0),
                Given::Complex(0.5, -1.5),
                Given::Bool(true),
            ]);
        }
        for choice in choices {
            let mut args: Vec<(String, Given)> = args.to_vec();
            args.retain(|(name, _)| name != def.name);
            let dtype = match choice {
                Given::Complex(..) => DType::C128,
                Given::Float(_) => DType::F64,
                _ => DType::I64,
            };
            args.push((def.name.to_owned(), choice));
            let mut of_choice = pointwise(op, &args, &[]);
            of_choice.retain(|line| line.dtype == dtype);
            lines.extend(of_choice);
        }
    }
    lines
}

/// A call at other sizes, one size of the sample at a time, and all together.
fn grow(op: &'static OpDef, args: &[(String, Given)], dtype: DType, sizes: &[i64]) -> Vec<Line> {
    let mut known = Vec::new();
    tensors(&mut args.to_vec(), &mut |tensor| known.extend(&tensor.shape));
    known.sort_unstable();
    known.dedup();
    known.retain(|size| *size > 1);
    let mut lines = Vec::new();
    for size in known.iter().copied().chain([0]) {
        for attributes in [false, true] {
            let candidate = |to: Vec<i64>| Grow { size, attributes, to };
            let accepted = |to: &i64| {
                let args = grown(args, &candidate(Vec::new()), *to);
                elements(&args) <= MOST_ELEMENTS && runs(op, &args, dtype)
            };
            let sizes: &[i64] = if size == 0 { &[5, 33] } else { sizes };
            let mut to: Vec<i64> = sizes.iter().copied().filter(accepted).collect();
            // Few accepted sizes are a coincidence.
            if to.is_empty() || to.len() * 2 < sizes.len() {
                continue;
            }
            // Blocks larger than a dimension are those of planes and their products.
            if op.kernels.is_some() && dtype == DType::F64 && size != 0 && sizes.len() > 6 {
                to.extend(largest(accepted).filter(|size| !sizes.contains(size)));
            }
            lines.push(Line { grow: Some(candidate(to)), ..plain(op, args, dtype) });
            break;
        }
    }
    lines
}

/// The largest accepted size, if all smaller ones are accepted.
fn largest(accepted: impl Fn(&i64) -> bool) -> Option<i64> {
    let (mut low, mut high) = (1, MOST_ELEMENTS);
    while low < high {
        let middle = (low + high + 1) / 2;
        if accepted(&middle) { low = middle } else { high = middle - 1 }
    }
    accepted(&low).then_some(low)
}

fn elements(args: &[(String, Given)]) -> i64 {
    let mut most = 0;
    tensors(&mut args.to_vec(), &mut |tensor| most = most.max(tensor.shape.iter().product()));
    most
}

/// Patterns substituted for the numbers of a sample, at several sizes.
fn patterns(
    op: &'static OpDef,
    args: &[(String, Given)],
    constants: Option<&[f64]>,
    dtype: DType,
) -> Vec<Line> {
    let mut own = points(args, constants.unwrap_or(&[]));
    own.retain(|point| !point.is_finite() || point.abs() <= 1e4);
    let (own, sizes) = match constants {
        Some(_) if op.kernels.is_some() => (&[&own[..]][..], &PATTERN_SIZES[..]),
        Some(_) => (&[&own[..]][..], &PATTERN_SIZES[1..3]),
        None => (&[][..], &PATTERN_SIZES[1..3]),
    };
    let patterns = [&PATTERNS[..], own].concat();
    patterns_of(args, &patterns).flat_map(|args| grow(op, &args, dtype, sizes)).collect()
}

/// The call with each pattern substituted for its numbers.
fn patterns_of(args: &[(String, Given)], patterns: &[&[f64]]) -> impl Iterator<Item = Vec<(String, Given)>> {
    patterns.iter().map(|pattern| {
        let mut args = args.to_vec();
        let mut position = 0;
        tensors(&mut args, &mut |tensor| {
            if matches!(tensor.values, Values::Between(..) | Values::Cycle(_)) {
                // Tensors of one call begin at different offsets of the pattern.
                let shift = position % pattern.len();
                let values = pattern[shift..].iter().chain(&pattern[..shift]);
                tensor.values = Values::Cycle(values.map(|re| Complex64::new(*re, 0.0)).collect());
            }
            position += 1;
        });
        args
    })
}
