//! Calls with odd arguments: each ends with a result or an error.
//!
//! Findings of the program `fuzz-calls`, by class, and a short run of it over every operator; the long run is `cargo
//! test -p opsmith-tests --test odd_calls -- --ignored --nocapture`, for `OPSMITH_FUZZ_SECONDS` seconds (60), from
//! the seed `OPSMITH_FUZZ_SEED` (the time, printed).

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use opsmith::autograd::Options;
use opsmith::runtime::parallel::{num_threads, set_num_threads};
use opsmith::{DType, ErrorKind, Tensor, TensorOps, Value, call};
use opsmith_graph::{Graph, InputSpec, Passes};
use opsmith_runtime::op::{ArgDef, ArgKind};
use opsmith_testing::fuzz;
use opsmith_testing::samples::samples;

#[path = "fuzz_support/outs.rs"]
mod outs;

fn fuzz(arguments: &[&str]) {
    let status = Command::new(env!("CARGO_BIN_EXE_fuzz-calls")).args(arguments).status().unwrap();
    assert!(status.success(), "fuzz-calls {}: {status}", arguments.join(" "));
}

#[test]
fn a_few_odd_calls_of_everything() {
    fuzz(&["--each", "4", "--seed", "1"]);
}

#[test]
#[ignore = "takes a minute; `.ci/run` calls it"]
fn odd_calls_of_everything() {
    let seconds = std::env::var("OPSMITH_FUZZ_SECONDS").unwrap_or_else(|_| "60".to_owned());
    match std::env::var("OPSMITH_FUZZ_SEED") {
        Ok(seed) => fuzz(&["--seconds", &seconds, "--seed", &seed]),
        Err(_) => fuzz(&["--seconds", &seconds]),
    }
}

#[test]
fn long_texts_are_read_once() {
    fuzz::watch::start(fuzz::MOST_SECONDS);
    let texts = fuzz::long_texts();
    let mut called = 0u64;
    for op in opsmith::LIBRARY.ops {
        let is_text = |def: &ArgDef| def.ty.kind == ArgKind::Str;
        for sample in samples(op, DType::F32) {
            for (place, text) in
                (0..sample.len()).flat_map(|place| texts.iter().map(move |text| (place, text)))
            {
                if is_text(&op.schema.args[place]) {
                    let mut arguments = sample.clone();
                    arguments[place] = Value::from(text.as_str());
                    fuzz::watch::begin(called);
                    let _ = call(op.name, &arguments, &[]);
                    fuzz::watch::end();
                    called += 1;
                }
            }
        }
    }
    assert!(called > 0);
}

/// A tensor with the given number of elements, all one in memory.
fn expanded(size: i64) -> Tensor {
    opsmith::expand(&Tensor::of(&[1f32]), [size]).unwrap()
}

#[test]
fn more_elements_than_memory_are_an_error() {
    for size in [1i64 << 40, 1 << 50, 1 << 58] {
        let x = expanded(size);
        let kind = |name: &str, error: opsmith::Error| {
            let known = [ErrorKind::Memory, ErrorKind::Value, ErrorKind::Shape];
            assert!(known.contains(&error.kind()), "{name} of {size}: {error}");
        };
        kind("to_vec", x.to_vec::<f32>().unwrap_err());
        kind("unbind", opsmith::unbind(&x).unwrap_err());
        kind("split", opsmith::split(&x, 1).unwrap_err());
        kind("chunk", opsmith::chunk(&x, size).unwrap_err());
        kind("nonzero", opsmith::nonzero(&x).unwrap_err());
        kind("contiguous", x.contiguous().unwrap_err());
        kind("add", x.add(&x).unwrap_err());
        kind("sum", x.sum().unwrap_err());
        kind("max", opsmith::max(&x).unwrap_err());
        kind("cumsum", opsmith::cumsum(&x, 0).unwrap_err());
        kind("sort", opsmith::sort(&x).unwrap_err());
        kind("zeros", opsmith::zeros([size]).unwrap_err());
        assert!(!format!("{x} {x:?}").is_empty());
    }
    // Many elements of one are not too many in themselves.
    assert_eq!(expanded(1 << 16).sum().unwrap().item().unwrap().to_f64(), 65536.0);
}

#[test]
fn rows_without_elements_are_not_gone_through() {
    let empty = opsmith::zeros([2, 0]).unwrap();
    let rows = opsmith::expand(&opsmith::zeros([1, 2, 0]).unwrap(), [1 << 40, 2, 0]).unwrap();
    let places = Tensor::of(&[1i64, 0, 1]);
    let index = Value::OptionalTensors(vec![None, Some(places.clone())]);
    assert_eq!(opsmith::index_select(&empty, 0, &places).unwrap().shape(), [3, 0]);
    let error = call("index.Tensor", &[(&rows).into(), index.clone()], &[]).unwrap_err();
    assert!(error.to_string().contains("has 2199023255552 places along its dimensions"), "{error}");
    let norm = [(&rows).into(), Value::None, Value::None, true.into(), 0.1.into(), 0.1.into()];
    assert!(call("_native_batch_norm_legit.no_stats", &norm, &[]).is_err());
    // A result with as many, whose kernel runs since the elements of an argument may be wrong.
    let repeats = Tensor::of(&[4_294_967_295i64, 0, 2]);
    let error = opsmith::repeat_by(&opsmith::ones([3, 7, 3]).unwrap(), &repeats).unwrap_err();
    assert!(error.to_string().contains("the result has 77309411310 places along its dimensions"), "{error}");
    let graph = Graph::trace(|x: &[Tensor]| x[0].exp(), [InputSpec::from(&rows)]).unwrap();
    assert!(graph.run(&[rows]).unwrap_err().to_string().contains("places along its dimensions"));
}

#[test]
fn windows_over_nothing_are_errors() {
    for shape in [vec![1, 2, 0], vec![1, 2, 3, 0], vec![2, 2, 3, 4, 0]] {
        let spatial = shape.len() - 2;
        let (input, ints) = (opsmith::zeros(&shape).unwrap(), |value: i64| Value::Ints(vec![value; spatial]));
        let weight = opsmith::ones([&[2, 2][..], &vec![2; spatial]].concat()).unwrap();
        for transposed in [false, true] {
            let given = [Value::from(&input), (&weight).into(), Value::None, ints(1), ints(1), ints(1)];
            let rest = [transposed.into(), ints(0), 1i64.into()];
            let error = call("convolution", &[&given[..], &rest].concat(), &[]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Shape, "{shape:?}: {error}");
        }
    }
    let none = opsmith::zeros([0, 2, 3]).unwrap();
    assert_eq!(opsmith::conv1d(&none, &opsmith::ones([4, 2, 2]).unwrap()).unwrap().shape(), [0, 4, 2]);
}

#[test]
fn views_beyond_any_memory_are_errors() {
    let gradient = opsmith::ones([2, 3]).unwrap();
    for (offset, storage_offset) in
        [(i64::MAX - 1, Value::None), (i64::MIN, Value::None), (i64::MIN, i64::MAX.into())]
    {
        for name in ["as_strided_backward", "as_strided_backward_backward"] {
            let ints = |values: &[i64]| Value::Ints(values.to_vec());
            let (input, strides) = match name {
                "as_strided_backward" => (ints(&[6]), ints(&[1])),
                _ => (ints(&[2, 3]), ints(&[3, 1])),
            };
            let (sizes, steps) = (ints(&[2, 3]), ints(&[1, 2]));
            let x = Value::from(&gradient);
            let arguments = [x, input, strides, offset.into(), sizes, steps, storage_offset.clone()];
            let error = call(name, &arguments, &[]).unwrap_err();
            assert!(error.to_string().contains("beyond any memory"), "{name} {offset}: {error}");
        }
    }
}

#[test]
fn numbers_of_pieces_are_bounded() {
    let x = Tensor::of(&[1f32, 2.0, 3.0]);
    assert_eq!(opsmith::chunk(&x, i64::MAX).unwrap().len(), 3);
    assert_eq!(opsmith::chunk(&x, 1_000_000_000_000_000_000).unwrap().len(), 3);
    let empty = opsmith::zeros([0]).unwrap();
    for result in [opsmith::chunk(&empty, i64::MAX), opsmith::chunk(&expanded(1 << 40), 1 << 30)] {
        assert!(result.unwrap_err().to_string().contains("list of"));
    }
}

#[test]
fn elements_that_decide_a_shape_are_not_visited_without_end() {
    let x = expanded(1 << 40);
    for result in [opsmith::nonzero(&x).err(), opsmith::unique(&x).err()] {
        let message = result.expect("an error").to_string();
        assert!(message.contains("again and again"), "{message}");
    }
}

#[test]
fn a_tensor_of_any_dtype_has_no_elements_for_a_kernel() {
    let grad = opsmith::ones([1, 1, 2, 2]).unwrap();
    for dtype in opsmith_runtime::DTypeSet::ALL.iter() {
        let x = opsmith::to_dtype(&opsmith::ones([1, 1, 4, 4]).unwrap(), dtype).unwrap();
        let ints = |values: &[i64]| Value::Ints(values.to_vec());
        let arguments = [
            (&grad).into(),
            (&x).into(),
            ints(&[2, 2]),
            ints(&[2, 2]),
            ints(&[0, 0]),
            false.into(),
            true.into(),
            Value::None,
        ];
        let result = call("avg_pool2d_backward", &arguments, &[]).unwrap();
        assert!(matches!(&result[..], [Value::Tensor(out)] if out.dtype() == DType::F32));
        let padded = opsmith::ones([1, 1, 6, 6]).unwrap();
        for name in ["replication_pad2d_backward", "reflection_pad2d_backward"] {
            call(name, &[(&padded).into(), (&x).into(), ints(&[1, 1, 1, 1])], &[]).unwrap();
        }
        call("_adaptive_avg_pool2d_backward", &[(&grad).into(), (&x).into()], &[]).unwrap();
    }
}

#[test]
fn strides_that_lead_nowhere_are_numbers_that_can_be_added() {
    let x = Tensor::of(&[1f32, 2.0, 3.0]);
    assert!(opsmith::as_strided(&x, [1, 1], [i64::MAX, 1]).is_err());
    let one = opsmith::as_strided(&x, [1, 2], [1 << 58, 1]).unwrap();
    assert_eq!(one.exp().unwrap().shape(), [1, 2]);
    let step = call("slice.Tensor", &[(&x).into(), 0.into(), Value::None, Value::None, i64::MAX.into()], &[]);
    let Value::Tensor(first) = &step.unwrap()[0] else { panic!("one tensor") };
    let (windows, _) = (first.unfold(0, 1, i64::MAX).unwrap(), first.unsqueeze(0).unwrap());
    assert_eq!(windows.add(&windows.t().unwrap()).unwrap().to_vec::<f32>().unwrap(), [2.0]);
}

#[test]
fn extreme_numbers_are_errors() {
    let x = opsmith::ones([1, 2, 3, 3]).unwrap();
    for extreme in [i64::MAX, i64::MIN, 1 << 62, 1 << 40, -1] {
        for at in 1..5 {
            let mut arguments = vec![Value::from(&x)];
            for number in 1..5 {
                let value = if number == at { extreme } else { i64::from(number != 3) };
                arguments.push(Value::Ints(vec![value, 1]));
            }
            // Kernel size, dilation, padding and stride.
            let _ = call("im2col", &arguments, &[]);
        }
        for name in ["avg_pool2d", "max_pool2d_with_indices"] {
            for at in 1..4 {
                let mut arguments = vec![Value::from(&x), Value::Ints(vec![2, 2])];
                arguments.extend([Value::Ints(vec![1, 1]), Value::Ints(vec![0, 0])]);
                arguments[at] = Value::Ints(vec![extreme, 1]);
                let _ = call(name, &arguments, &[]);
            }
        }
    }
    let wide = opsmith::expand(&opsmith::ones([1, 1]).unwrap(), [1 << 58, 1]).unwrap();
    assert!(call("_pdist_forward", &[(&wide).into()], &[]).is_err());
    let (rows, columns) = (wide.unsqueeze(1).unwrap(), wide.t().unwrap().unsqueeze(-1).unwrap());
    assert!(opsmith::matmul(&rows, &columns).is_err());
}

#[test]
fn gradients_of_convolutions_of_any_rank_are_results_or_errors() {
    for rank in 0..8usize {
        for other in 0..8usize {
            let ones = |rank: usize| Value::from(opsmith::ones(vec![1; rank]).unwrap());
            for (stride, groups) in [(1, 1), (i64::MAX, 1), (1, 0), (1, i64::MIN)] {
                let ints = |value: i64| Value::Ints(vec![value; rank.saturating_sub(2)]);
                let arguments = [
                    ones(rank.min(other)),
                    ones(rank),
                    ones(other),
                    Value::None,
                    ints(stride),
                    ints(0),
                    ints(1),
                    (groups == 0).into(),
                    ints(0),
                    groups.into(),
                    Value::Bools(vec![true; 3]),
                ];
                let result = call("convolution_backward", &arguments, &[]);
                let fits = rank == other && (3..=5).contains(&rank) && (stride, groups) == (1, 1);
                assert_eq!(result.is_ok(), fits, "{rank} and {other}: {:?}", result.err());
            }
        }
    }
}

#[test]
fn a_hook_that_runs_backward_through_its_own_graph_is_an_error() {
    let x = Tensor::of(&[2f32]).requires_grad_(true).unwrap();
    let y = x.mul(&x).unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let (again, count) = (y.clone(), runs.clone());
    x.register_hook(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        let options = Options { retain_graph: true, create_graph: false };
        // A hook that drops errors must not try again at every depth.
        let _ = again.backward_with(None, options);
        again.backward_with(None, options)?;
        Ok(None)
    })
    .unwrap();
    let error = y.backward_with(None, Options { retain_graph: true, create_graph: false }).unwrap_err();
    assert!(error.to_string().contains("backward runs inside of backward"), "{error}");
    assert!(runs.load(Ordering::Relaxed) < 100);
    // Nothing stays behind: another graph has its gradients.
    let z = Tensor::of(&[3f32]).requires_grad_(true).unwrap();
    z.mul(&z).unwrap().backward().unwrap();
    assert_eq!(z.grad().unwrap().to_vec::<f32>().unwrap(), [6.0]);
}

#[test]
fn a_hook_may_run_backward_through_another_graph() {
    let x = Tensor::of(&[2f32]).requires_grad_(true).unwrap();
    let y = x.mul(&x).unwrap();
    y.register_hook(|_| {
        let inner = Tensor::of(&[5f32]).requires_grad_(true)?;
        opsmith::autograd::enable_grad(|| inner.mul(&inner)?.backward())?;
        Ok(inner.grad())
    })
    .unwrap();
    y.backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [40.0]);
}

/// The calls of everything that divides `a` by `b` and rounds.
fn divisions(a: &Tensor, b: &Tensor, number: i64) -> Vec<(String, opsmith::Result<Vec<Value>>)> {
    let mode = |mode: &str| [("rounding_mode", Value::from(mode))];
    let mut results = Vec::new();
    for name in ["floor_divide", "remainder.Tensor", "fmod.Tensor"] {
        results.push((name.to_owned(), call(name, &[a.into(), b.into()], &[])));
    }
    for name in ["floor_divide.Scalar", "remainder.Scalar", "fmod.Scalar"] {
        results.push((name.to_owned(), call(name, &[a.into(), number.into()], &[])));
    }
    results.push((
        "remainder.Scalar_Tensor".to_owned(),
        call("remainder.Scalar_Tensor", &[number.into(), b.into()], &[]),
    ));
    for rounding in ["floor", "trunc"] {
        results.push((
            format!("div {rounding}"),
            call("div.Tensor_mode", &[a.into(), b.into()], &mode(rounding)),
        ));
        results.push((
            format!("div {rounding} number"),
            call("div.Scalar_mode", &[a.into(), number.into()], &mode(rounding)),
        ));
        let copy = a.add(&opsmith::zeros_like(a).unwrap()).unwrap();
        results.push((
            format!("div_ {rounding}"),
            call("div_.Tensor_mode", &[copy.into(), b.into()], &mode(rounding)),
        ));
    }
    for name in ["remainder_.Tensor", "fmod_.Tensor"] {
        let copy = a.add(&opsmith::zeros_like(a).unwrap()).unwrap();
        results.push((name.to_owned(), call(name, &[copy.into(), b.into()], &[])));
    }
    let out = opsmith::zeros_like(a).unwrap();
    results.push(("fmod out".to_owned(), call("fmod.Tensor", &[a.into(), b.into()], &[("out", out.into())])));
    results
}

#[test]
fn integers_are_not_divided_by_zero() {
    let integers = DType::ALL.into_iter().filter(|dtype| dtype.is_int() && !dtype.is_stored());
    for dtype in integers {
        let of = |values: &[i64]| opsmith::to_dtype(&Tensor::of(values), dtype).unwrap();
        for (a, b) in [
            (of(&[7, 6, 5, 4, 3]), of(&[2, 3, 0, 1, 1])),
            // Strided and broadcast.
            (of(&[7, 6, 5]).unsqueeze(1).unwrap().expand([3, 2]).unwrap(), of(&[0, 1])),
            (of(&[7]), of(&[0])),
            (of(&[0]), of(&[0])),
        ] {
            for (name, result) in divisions(&a, &b, 0) {
                if name.contains("_")
                    && a.layout().has_internal_overlap()
                    && name != "floor_divide"
                    && result.is_err()
                {
                    continue;
                }
                // A number that is divided is not the divisor.
                let error = result.map(|_| ()).unwrap_err();
                assert_eq!(error.message(), "integer division by zero", "{dtype} {name}: {error}");
                assert!(error.op().is_some() && !error.operands().is_empty(), "{error}");
            }
        }
        for (name, result) in divisions(&of(&[7, 6]), &of(&[2, 3]), 2) {
            assert!(result.is_ok(), "{dtype} {name}: {:?}", result.err());
        }
        // Without elements nothing is divided.
        for (name, result) in divisions(&of(&[]), &of(&[]), 0) {
            assert!(result.is_ok(), "{dtype} {name}: {:?}", result.err());
        }
    }
    let (least, minus) = (Tensor::of(&[i64::MIN, i64::MIN]), Tensor::of(&[-1i64, -1]));
    for (name, result) in divisions(&least, &minus, -1) {
        assert!(result.is_ok(), "{name}: {:?}", result.err());
    }
    let floats = Tensor::of(&[1f32, -1.0, 0.0]);
    for (name, result) in divisions(&floats, &Tensor::of(&[0f32, 0.0, 0.0]), 0) {
        assert!(result.is_ok(), "{name}: {:?}", result.err());
    }
    // An error before does not make one after.
    assert!(least.remainder(&opsmith::zeros_like(&least).unwrap()).is_err());
    assert!(least.add(&minus).is_ok());
}

/// Zeros among the elements of any thread, one after the other and transposed; the flag of a thread that helped is not seen by others.
#[test]
fn a_zero_among_many_divisors_is_found_in_any_thread() {
    let threads = num_threads();
    for count in [1, 2, 5] {
        set_num_threads(count).unwrap();
        let ones = opsmith::ones([300, 401]).unwrap().to_dtype(DType::I32).unwrap();
        for row in [0, 150, 299] {
            let zero = ones.clone().contiguous().unwrap().mul(1).unwrap();
            zero.select(0, row).unwrap().fill_(0).unwrap();
            for (a, b) in [(&ones, zero.clone()), (&ones.t().unwrap(), zero.t().unwrap())] {
                let error = a.remainder(&b).unwrap_err();
                assert_eq!(error.message(), "integer division by zero", "{count} {row}");
                assert!(b.remainder(a).is_ok() && a.remainder(a).is_ok());
            }
        }
    }
    set_num_threads(threads).unwrap();
}

#[test]
fn graphs_divide_integers_as_calls_do() {
    let spec = || InputSpec::new(DType::I64, [3.into()]);
    let (a, b) = (Tensor::of(&[7i64, 8, 9]), Tensor::of(&[2i64, 0, 3]));
    let graph = Graph::trace(|x: &[Tensor]| x[0].remainder(&x[1]), [spec(), spec()]).unwrap();
    for graph in [graph.optimize(&Passes::all()), graph] {
        let error = graph.run(&[a.clone(), b.clone()]).unwrap_err();
        assert!(error.to_string().contains("integer division by zero"), "{error}");
        assert!(graph.run(&[a.clone(), Tensor::of(&[2i64, 1, 3])]).is_ok());
    }
    // Constants are divided when the graph is optimised, or when it runs.
    let constant = Graph::trace(|x: &[Tensor]| x[0].add(&a.remainder(&b)?), [spec()]);
    let result = constant.and_then(|graph| graph.optimize(&Passes::all()).run(std::slice::from_ref(&a)));
    let error = result.unwrap_err();
    assert!(error.to_string().contains("integer division by zero"), "{error}");
}
