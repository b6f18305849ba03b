//! Lists of texts and dtypes, and lists of lists, on every path: typed and boxed calls, options and defaults, formulas,
//! kernels in Rust and in C++, custom kernels, constraints, samples.

use opsmith_golden::{self as golden, DigestOptions, DigestedOptions};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, DType, Lists, Result, Scalar, Tensor, Text, Value, autograd};

fn op(name: &str) -> &'static OpDef {
    golden::LIBRARY.find(name).unwrap_or_else(|| panic!("{name}")).0
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec().unwrap()
}

fn x() -> Tensor {
    Tensor::of(&[1.0f64])
}

const INT64: f64 = 8.0;
const FLOAT32: f64 = 11.0;

/// The digest of the arguments that the tests pass.
const EXPECTED: [f64; 15] = [
    2.0,
    3.0,
    FLOAT32 + INT64,
    3.0,
    (1.0 + 2.0) + 3.0 * 3.0,
    0.5 + 2.0 * 0.25,
    1.0,
    2.0 + 2.0 * 3.0,
    (1.0 + 2.5 + 1.0) + 2.0 * 4.0,
    FLOAT32 + 2.0 * INT64,
    -1.0,
    -1.0,
    -1.0,
    -1.0,
    -1.0,
];

#[test]
fn typed_calls_take_rows_as_they_are_written() -> Result<()> {
    let pairs = vec![vec![1, 2], vec![], vec![3]];
    let call = |options: &DigestOptions| {
        golden::digest_with(
            &x(),
            &["a", "bc"],
            &[DType::F32, DType::I64],
            pairs.clone(),
            [[0.5], [0.25]],
            [[true, false]],
            [["x", "y"], ["zz", "z"]],
            vec![vec![Scalar::Int(1), Scalar::Float(2.5), Scalar::Bool(true)], vec![Scalar::Int(4)]],
            [[DType::F32], [DType::I64]],
            options,
        )
    };
    assert_eq!(numbers(&call(&DigestOptions::new())?), EXPECTED);
    let options = DigestOptions::new()
        .words_q(&["one", "two"])
        .scalars_q(vec![Scalar::Int(3), Scalar::Float(0.5)])
        .pairs_q([[10], [20]])
        .names_q(vec![vec!["four"]])
        .numbers_q(vec![vec![Scalar::Float(1.5)], vec![Scalar::Int(1)]]);
    assert_eq!(numbers(&call(&options)?)[10..], [2.0, 3.5, 50.0, 4.0, 3.5]);
    Ok(())
}

/// The arguments of [`EXPECTED`] in Python's form: integers for numbers, names for dtypes.
fn boxed() -> Vec<Value> {
    vec![
        (&x()).into(),
        Value::Strs(vec!["a".into(), "bc".into()]),
        Value::Strs(vec!["float32".into(), "int64".into()]),
        vec![vec![1i64, 2], vec![], vec![3]].into(),
        vec![vec![0.5], vec![0.25]].into(),
        vec![vec![true, false]].into(),
        Lists::<Text>::from([["x", "y"], ["zz", "z"]]).into(),
        Lists::<Scalar>::from(vec![
            vec![Scalar::Int(1), Scalar::Float(2.5), Scalar::Bool(true)],
            vec![Scalar::Int(4)],
        ])
        .into(),
        Lists::<Text>::from([["float32"], ["int64"]]).into(),
    ]
}

fn by_name(name: &str, args: &[Value], named: &[(&str, Value)]) -> Result<Vec<f64>> {
    Ok(numbers(&golden::call(name, args, named)?[0].clone().into_tensor()?))
}

#[test]
fn calls_by_name_convert_what_a_caller_means() -> Result<()> {
    assert_eq!(by_name("digest", &boxed(), &[])?, EXPECTED);
    let mut args = boxed();
    args[4] = vec![vec![1i64], vec![2]].into();
    args[6] = Value::Ints(Vec::new());
    args[8] = vec![Vec::<i64>::new()].into();
    let found = by_name("digest", &args, &[("pairs_q", vec![vec![7i64]].into())])?;
    assert_eq!((found[5], found[7], found[9], found[12]), (5.0, 0.0, 0.0, 7.0));
    Ok(())
}

#[test]
fn what_does_not_fit_is_named() {
    let message = |position: usize, value: Value| {
        let mut args = boxed();
        args[position] = value;
        by_name("digest", &args, &[]).unwrap_err().to_string()
    };
    let texts = message(3, Lists::<Text>::from([["a"]]).into());
    assert!(
        texts.contains("`pairs` must be a list of lists of ints, got a list of lists of strs"),
        "{texts}"
    );
    let flat = message(5, Value::Bools(vec![true]));
    assert!(flat.contains("`flags` must be a list of lists of bools, got a list of bools"), "{flat}");
    let words = message(1, vec![1i64].into());
    assert!(words.contains("`words` must be a list of strs, got a list of ints"), "{words}");
    let dtype = message(2, Value::Strs(vec!["float33".into()]));
    assert!(dtype.contains("`dtypes` must be a list of dtypes"), "{dtype}");
}

#[test]
fn constraints_hold_for_each_item_of_each_row() {
    let message = |position: usize, value: Value| {
        let mut args = boxed();
        args[position] = value;
        by_name("digest", &args, &[]).unwrap_err().to_string()
    };
    let item = message(3, vec![vec![1i64], vec![2, 100]].into());
    assert!(item.contains("`pairs[1][1]` must be at least 0 and at most 99, got 100"), "{item}");
    let length = message(3, Value::Ints(Vec::new()));
    assert!(length.contains("`pairs` must be a list of lists of ints of at least 1 item, got 0"), "{length}");
    let word = message(1, Value::Strs(vec!["a".into(), "b".into()]));
    assert!(word.contains(r#"`words[1]` must be "a" or "bc", got "b""#), "{word}");
    let name = message(6, Lists::<Text>::from([["x"], ["q"]]).into());
    assert!(name.contains(r#"`names[1][0]` must be "x", "y", "zz" or "z", got "q""#), "{name}");
}

#[test]
fn defaults_arrive_in_every_way_to_call() -> Result<()> {
    assert_eq!(numbers(&golden::digested(&x())?), EXPECTED);
    assert_eq!(numbers(&golden::digested_with(&x(), DigestedOptions::new())?), EXPECTED);
    assert_eq!(by_name("digested", &[(&x()).into()], &[])?, EXPECTED);
    let other = DigestedOptions::new().words(&["a"]).kinds([[DType::I64]]).dtypes([DType::F32]);
    let found = numbers(&golden::digested_with(&x(), &other)?);
    assert_eq!((found[0], found[2], found[9]), (1.0, FLOAT32, INT64));
    // A composition that omits all of them.
    assert_eq!(numbers(&golden::digested_again(&x())?), EXPECTED);
    Ok(())
}

#[test]
fn formulas_pass_index_and_write_lists() -> Result<()> {
    let x = x().requires_grad_(true)?;
    golden::digested_gradient(&x, [[4, 5]])?.backward()?;
    // The formula reads `pairs[0][1] + pairs.len()`, 5 + 1, and passes literal lists on.
    assert_eq!(numbers(&x.grad().unwrap()), [6.0 * (4.0 + 2.0 * 0.5)]);
    Ok(())
}

#[test]
fn kernels_in_cpp_see_the_same() -> Result<()> {
    assert_eq!(by_name("digest_in_c", &boxed(), &[])?, EXPECTED);
    let given = [
        ("words_q", Value::Strs(vec!["one".into(), "two".into()])),
        ("scalars_q", Value::Scalars(vec![Scalar::Int(3), Scalar::Float(0.5)])),
        ("pairs_q", vec![vec![10i64], vec![20]].into()),
        ("names_q", Lists::<Text>::from([["four"]]).into()),
        ("numbers_q", vec![vec![1.5], vec![1.0]].into()),
    ];
    assert_eq!(by_name("digest_in_c", &boxed(), &given)?[10..], [2.0, 3.5, 50.0, 4.0, 3.5]);
    Ok(())
}

#[test]
fn custom_kernels_read_them_as_attributes() -> Result<()> {
    let out = golden::custom_lists(&Tensor::of(&[0.0f32; 4]), [[1, 2], [3, 4]], [[0.5, 0.25]])?;
    assert_eq!(out.to_vec::<f32>()?, [2.0, 4.0, 0.25, 3.0]);
    Ok(())
}

#[test]
fn samples_give_them() -> Result<()> {
    let op = op("digest");
    let values = op.samples[0].values(op, DType::F64)?;
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    let out = autograd::no_grad(|| opsmith_runtime::call::invoke_single(op, &args))?;
    assert_eq!(numbers(&out), EXPECTED);
    Ok(())
}
