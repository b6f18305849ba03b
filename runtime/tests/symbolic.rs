//! Symbolic sizes: results of formulas match results of the numbers behind them.

use opsmith_runtime::infer::symbolic::{Bindings, Origin, Shape, Size, Symbol, Symbols};
use proptest::prelude::*;

/// A computation over four symbols, with sizes and with numbers.
#[derive(Clone, Debug)]
enum Computation {
    Number(i64),
    Symbol(u32),
    Add(Box<Computation>, Box<Computation>),
    Sub(Box<Computation>, Box<Computation>),
    Mul(Box<Computation>, Box<Computation>),
    Quotient(Box<Computation>, Box<Computation>),
    Remainder(Box<Computation>, Box<Computation>),
    Greater(Box<Computation>, Box<Computation>),
    Smaller(Box<Computation>, Box<Computation>),
}

const SYMBOLS: usize = 4;

impl Computation {
    fn size(&self, symbols: &mut Symbols) -> Size {
        let mut both = |a: &Computation, b: &Computation| (a.size(&mut *symbols), b.size(&mut *symbols));
        match self {
            Computation::Number(value) => Size::Const(*value),
            Computation::Symbol(index) => Size::from(Symbol(*index)),
            Computation::Add(a, b) => {
                let (a, b) = both(a, b);
                a + b
            }
            Computation::Sub(a, b) => {
                let (a, b) = both(a, b);
                a - b
            }
            Computation::Mul(a, b) => {
                let (a, b) = both(a, b);
                a * b
            }
            Computation::Quotient(a, b) => {
                let (a, b) = both(a, b);
                symbols.quotient(&a, &b)
            }
            Computation::Remainder(a, b) => {
                let (a, b) = both(a, b);
                symbols.remainder(&a, &b)
            }
            Computation::Greater(a, b) => {
                let (a, b) = both(a, b);
                symbols.greater(&a, &b)
            }
            Computation::Smaller(a, b) => {
                let (a, b) = both(a, b);
                symbols.smaller(&a, &b)
            }
        }
    }

    /// `None` if the numbers have no result.
    fn number(&self, values: &[i64]) -> Option<i64> {
        let both = |a: &Computation, b: &Computation| Some((a.number(values)?, b.number(values)?));
        match self {
            Computation::Number(value) => Some(*value),
            Computation::Symbol(index) => Some(values[*index as usize]),
            Computation::Add(a, b) => both(a, b).and_then(|(a, b)| a.checked_add(b)),
            Computation::Sub(a, b) => both(a, b).and_then(|(a, b)| a.checked_sub(b)),
            Computation::Mul(a, b) => both(a, b).and_then(|(a, b)| a.checked_mul(b)),
            Computation::Quotient(a, b) => both(a, b).and_then(|(a, b)| a.checked_div(b)),
            Computation::Remainder(a, b) => both(a, b).and_then(|(a, b)| a.checked_rem(b)),
            Computation::Greater(a, b) => both(a, b).map(|(a, b)| a.max(b)),
            Computation::Smaller(a, b) => both(a, b).map(|(a, b)| a.min(b)),
        }
    }
}

fn computation() -> impl Strategy<Value = Computation> {
    let leaf = prop_oneof![
        (-6i64..7).prop_map(Computation::Number),
        (0..SYMBOLS as u32).prop_map(Computation::Symbol)
    ];
    leaf.prop_recursive(5, 24, 2, |inner| {
        let pair = (inner.clone(), inner).prop_map(|(a, b)| (Box::new(a), Box::new(b)));
        (0..7, pair).prop_map(|(which, (a, b))| match which {
            0 => Computation::Add(a, b),
            1 => Computation::Sub(a, b),
            2 => Computation::Mul(a, b),
            3 => Computation::Quotient(a, b),
            4 => Computation::Remainder(a, b),
            5 => Computation::Greater(a, b),
            _ => Computation::Smaller(a, b),
        })
    })
}

fn four() -> Symbols {
    let mut symbols = Symbols::new();
    for _ in 0..SYMBOLS {
        symbols.fresh();
    }
    symbols
}

fn bind(symbols: &Symbols, values: &[i64]) -> Bindings {
    let pairs: Vec<(Symbol, i64)> = symbols.all().zip(values.iter().copied()).collect();
    symbols.bind(&pairs).unwrap()
}

proptest! {
    #[test]
    fn formulas_compute_what_numbers_do(
        computation in computation(),
        // Symbols in a divisor are assumed not to be 0.
        values in prop::collection::vec(1i64..30, SYMBOLS),
    ) {
        let mut symbols = four();
        let size = computation.size(&mut symbols);
        let bindings = bind(&symbols, &values);
        if let (Some(number), false) = (computation.number(&values), size.is_unknown()) {
            prop_assert_eq!(size.bind(&bindings), Some(number), "{} at {:?}", size.named(&symbols), values);
            prop_assert!(size.lower_bound(&symbols).is_none_or(|low| low <= number));
            prop_assert!(size.upper_bound(&symbols).is_none_or(|high| number <= high));
        }
    }

    #[test]
    fn comparisons_are_never_wrong(
        (left, right) in (computation(), computation()),
        values in prop::collection::vec(1i64..30, SYMBOLS),
    ) {
        let mut symbols = four();
        let (a, b) = (left.size(&mut symbols), right.size(&mut symbols));
        if let (Some(x), Some(y)) = (left.number(&values), right.number(&values)) {
            prop_assert!(a.equals(&b, &symbols).is_none_or(|equal| equal == (x == y)));
            prop_assert!(a.is_less(&b, &symbols).is_none_or(|less| less == (x < y)));
        }
    }

    #[test]
    fn substitution_is_evaluation(
        (outer, inner) in (computation(), computation()),
        values in prop::collection::vec(1i64..9, SYMBOLS),
    ) {
        let mut symbols = four();
        let (outer_size, inner_size) = (outer.size(&mut symbols), inner.size(&mut symbols));
        let all = bind(&symbols, &values);
        let replaced = outer_size.substitute(|symbol| {
            if symbol == Symbol(0) { inner_size.clone() } else { Size::from(symbol) }
        });
        let direct = outer_size.evaluate(|symbol| {
            if symbol == Symbol(0) { inner_size.bind(&all) } else { all.get(symbol) }
        });
        if let (Some(replaced), Some(direct)) = (replaced.bind(&all), direct) {
            prop_assert_eq!(replaced, direct);
        }
    }

    #[test]
    fn equal_polynomials_are_equal_data(
        terms in prop::collection::vec((-5i64..6, prop::collection::vec(0u32..SYMBOLS as u32, 0..3)), 1..6),
        seed in any::<usize>(),
    ) {
        let product = |(coefficient, factors): &(i64, Vec<u32>)| {
            factors.iter().fold(Size::Const(*coefficient), |product, &symbol| product * Size::from(Symbol(symbol)))
        };
        let forward = terms.iter().map(product).fold(Size::Const(0), |sum, term| sum + term);
        let mut turned = terms.clone();
        turned.rotate_left(seed % terms.len());
        let other = turned.iter().map(product).fold(Size::Const(0), |sum, term| sum + term);
        prop_assert_eq!(forward, other);
    }

    #[test]
    fn products_divide_exactly(
        left in prop::collection::vec((-5i64..6, 0u32..SYMBOLS as u32), 1..4),
        right in prop::collection::vec((-5i64..6, 0u32..SYMBOLS as u32), 1..4),
    ) {
        let sum = |terms: &[(i64, u32)]| terms.iter().fold(Size::Const(3), |sum, &(coefficient, symbol)| {
            sum + Size::Const(coefficient) * Size::from(Symbol(symbol))
        });
        let (a, b) = (sum(&left), sum(&right));
        prop_assume!(b != Size::Const(0));
        prop_assert_eq!((&a * &b).div_exact(&b), Some(a));
    }

    #[test]
    fn linear_formulas_are_found(coefficients in prop::collection::vec(-9i64..10, 4), seed in 0i64..1000) {
        let points: Vec<[i64; 3]> = (0..6i64)
            .map(|row| [2 + (seed + 7 * row) % 31, 3 + (seed * row + row * row) % 29, 5 + (11 * row * row + seed) % 37])
            .collect();
        let value = |p: &[i64; 3]| coefficients[0] + (0..3).map(|at| coefficients[at + 1] * p[at]).sum::<i64>();
        let given: Vec<(&[i64], i64)> = points.iter().map(|p| (&p[..], value(p))).collect();
        if let Some(size) = Size::fit(&given) {
            for probe in [[2, 2, 2], [17, 5, 90], [1, 1, 40]] {
                prop_assert_eq!(size.evaluate(|symbol| probe.get(symbol.0 as usize).copied()), Some(value(&probe)));
            }
        }
    }
}

#[test]
fn formulas_are_written_as_people_write_them() {
    let mut symbols = Symbols::new();
    let batch = Size::from(symbols.named("batch", 1, Some(64)).unwrap());
    let length = Size::from(symbols.fresh());
    let one = Size::Const(1);
    for (size, plain, named) in [
        (&batch * &Size::Const(4) + one.clone(), "4*s0+1", "4*batch+1"),
        (&(&batch * &length) - &one, "s0*s1-1", "batch*s1-1"),
        (-(&batch * &batch), "-s0^2", "-batch^2"),
        (&Size::Const(3) - &length, "-s1+3", "-s1+3"),
        (symbols.quotient(&(&length - &one), &Size::Const(2)) + one.clone(), "s2+1", "trunc((s1-1)/2)+1"),
        (Size::Unknown + one.clone(), "-1", "-1"),
    ] {
        assert_eq!(size.to_string(), plain);
        assert_eq!(size.named(&symbols).to_string(), named);
    }
    let shape = Shape::from_iter([batch, Size::Const(3), Size::Unknown]);
    assert_eq!(shape.named(&symbols).to_string(), "(batch, 3, -1)");
    assert_eq!(Shape::UnknownRank.to_string(), "(-2)");
}

#[test]
fn bounds_decide_comparisons() {
    let mut symbols = Symbols::new();
    let small = Size::from(symbols.named("small", 2, Some(9)).unwrap());
    let any = Size::from(symbols.fresh());
    let found = Size::from(symbols.of_run(&small * &any));
    assert_eq!(small.is_less(&Size::Const(10), &symbols), Some(true));
    assert_eq!(small.equals(&Size::Const(1), &symbols), Some(false));
    assert_eq!(small.equals(&any, &symbols), None);
    assert_eq!(any.is_less(&Size::Const(0), &symbols), Some(false));
    // A data-dependent size is bounded by a formula.
    assert_eq!((&small * &any).is_less(&found, &symbols), Some(false));
    assert_eq!(Size::Unknown.equals(&Size::Unknown, &symbols), None);
    assert_eq!(symbols.greater(&small, &Size::Const(1)), small);
}

#[test]
fn values_outside_their_bounds_are_refused() {
    let mut symbols = Symbols::new();
    let batch = symbols.named("batch", 1, Some(64)).unwrap();
    let error = symbols.bind(&[(batch, 65)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the size `batch` is 65\n  help: it is declared to be at least 1 and at most 64"
    );
    let error = symbols.named("batch", 0, None).unwrap_err();
    assert!(error.to_string().contains("there is a symbol `batch` already"), "{error}");
    assert!(symbols.named("other", 4, Some(3)).is_err());
    assert!(symbols.bind(&[(Symbol(7), 1)]).is_err());
}

#[test]
fn derived_symbols_get_their_values_from_others() {
    let mut symbols = Symbols::new();
    let input = symbols.fresh();
    let size = Size::from(input);
    let half = symbols.quotient(&(&size - &Size::Const(1)), &Size::Const(2));
    assert_eq!(
        symbols.quotient(&(&size - &Size::Const(1)), &Size::Const(2)),
        half,
        "one symbol for one quotient"
    );
    assert!(matches!(symbols.origin(half.as_symbol().unwrap()), Origin::Derived(_)));
    let bindings = symbols.bind(&[(input, 8)]).unwrap();
    assert_eq!((half + Size::Const(1)).bind(&bindings), Some(4));
    let found = symbols.of_run(size);
    let mut bindings = symbols.bind(&[(input, 8)]).unwrap();
    assert!(symbols.set(&mut bindings, found, 9).is_err(), "the bound is 8 once the input is known");
    symbols.set(&mut bindings, found, 5).unwrap();
    assert_eq!(Size::from(found).bind(&bindings), Some(5));
}

#[test]
fn formulas_are_fitted_to_points() {
    let values: [[i64; 2]; 8] = [[2, 3], [5, 7], [11, 4], [6, 13], [3, 9], [8, 8], [13, 2], [7, 5]];
    type Function = fn(i64, i64) -> i64;
    let cases: [(Function, Option<&str>); 8] = [
        (|_, _| 6, Some("6")),
        (|a, _| a, Some("s0")),
        (|a, b| 4 * a - b + 1, Some("4*s0-s1+1")),
        (|a, b| a * b, Some("s0*s1")),
        (|a, b| 3 * a * a * b, Some("3*s0^2*s1")),
        (|a, b| a * b + b - 2, Some("s0*s1+s1-2")),
        (|a, _| a / 2, None),
        (|a, b| a.max(b), None),
    ];
    for (number, (function, wanted)) in cases.into_iter().enumerate() {
        let points: Vec<(&[i64], i64)> = values.iter().map(|v| (&v[..], function(v[0], v[1]))).collect();
        let found = Size::fit(&points).map(|size| size.to_string());
        assert_eq!(found.as_deref(), wanted, "case {number}");
    }
    // Points that do not determine the formula.
    assert_eq!(Size::fit(&[(&[2], 4)]), None);
    assert_eq!(Size::fit(&[(&[2], 4), (&[3], 6)]), None);
    assert_eq!(Size::fit(&[(&[2, 2], 4), (&[3, 3], 6), (&[4, 4], 8), (&[5, 5], 10)]), None);
    assert_eq!(Size::fit(&[(&[2], 4), (&[3], 6), (&[5], 10)]).unwrap().to_string(), "2*s0");
    assert_eq!(Size::fit(&[(&[], 5)]), Some(Size::Const(5)));
    assert_eq!(Size::fit(&[]), None);
    assert_eq!(Size::fit(&[(&[1], 1), (&[1, 2], 1)]), None);
    assert_eq!(Size::fit(&[(&[i64::MAX], 1), (&[i64::MAX - 1], 2), (&[3], 7)]), None);
}

#[test]
fn shapes_of_unknown_sizes_keep_what_is_known() {
    let mut symbols = Symbols::new();
    let batch = symbols.fresh();
    let shape = Shape::from_iter([Size::from(batch), Size::Const(3), Size::Const(5)]);
    assert_eq!(shape.numel().to_string(), "15*s0");
    assert_eq!(
        shape.contiguous_strides().unwrap().as_slice(),
        [Size::Const(15), Size::Const(5), Size::Const(1)]
    );
    let bindings = symbols.bind(&[(batch, 2)]).unwrap();
    assert_eq!(shape.bind(&bindings).unwrap().as_slice(), [2, 3, 5]);
    assert_eq!(Shape::UnknownRank.numel(), Size::Unknown);
    assert_eq!(Shape::from_iter([Size::Unknown, Size::Const(0)]).numel(), Size::Const(0));
}
