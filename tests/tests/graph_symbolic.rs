//! Graphs before sizes are known: errors at all sizes, conditions on sizes, and inputs of any rank.

use std::collections::BTreeMap;
use std::sync::Arc;

use opsmith::{DType, LIBRARY, Tensor, TensorOps};
use opsmith_graph::{Dim, Graph, GraphBuilder, Handle, InputSpec};
use opsmith_testing::Report;
use opsmith_testing::checks::open_inference;

fn input(name: &str, dims: &[Dim]) -> InputSpec {
    InputSpec::new(DType::F32, dims.to_vec()).named(name)
}

fn numbers(shape: &[i64]) -> Tensor {
    let numel: i64 = shape.iter().product();
    let values: Vec<f32> = (0..numel).map(|at| ((at * 37 + 11) % 23) as f32 / 11.0 - 1.0).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

#[test]
fn what_is_wrong_at_all_sizes_is_said_with_formulas() {
    let mut builder = GraphBuilder::new();
    let x = builder.input(input("x", &["batch".into(), 3.into()]));
    let w = builder.input(input("w", &[4.into(), 5.into()]));
    let first = builder.call("exp", [x.into()]);
    let wrong = builder.call("mm", [first.into(), w.into()]);
    let follows = builder.call("relu", [wrong.into()]);
    let other = builder.call("cat", [vec![x, w].into(), 1i64.into()]);
    let errors = builder.finish([follows, other]).unwrap_err();
    let text = errors.to_string();
    assert_eq!(errors.errors().len(), 2, "{text}");
    let first = &errors.errors()[0];
    assert_eq!(first.op(), Some("mm"));
    assert_eq!(first.operands()[0].formulas.as_deref(), Some("(batch, 3)"));
    assert!(text.contains("the left side is 3, the right side 4\n  self: float32 (batch, 3)\n"), "{text}");
    assert!(text.contains("called at tests/tests/graph_symbolic.rs:") || text.contains("graph_symbolic.rs:"));
    assert!(text.contains("its first input came from `exp` at "), "{text}");
    assert!(text.contains(", from input `x`"), "{text}");
}

#[test]
fn what_has_to_hold_is_said_with_the_calls_that_ask_for_it() {
    let graph = Graph::trace(
        |x: &[Tensor]| x[0].narrow(0, 0, 5)?.add(&x[0].narrow(0, 1, 5)?),
        [input("x", &["n".into(), 4.into()])],
    )
    .unwrap();
    let checked = graph.check().unwrap();
    let [first, second] = &checked.requirements[..] else { panic!("{checked}") };
    assert_eq!((first.condition.as_str(), second.condition.as_str()), ("n >= 5", "n >= 6"));
    assert_eq!(first.op, "narrow");
    assert!(first.site.to_string().contains("graph_symbolic.rs:"), "{checked}");
    // Declared sizes need no condition.
    let halves = Graph::trace(
        |x: &[Tensor]| x[0].reshape([x[0].size(0)? / 2, 8]),
        [input("x", &[Dim::multiple("n", 2), 4.into()])],
    )
    .unwrap();
    let checked = halves.check().unwrap();
    assert!(checked.requirements.is_empty(), "{checked}");
    let fixed = Graph::trace(|x: &[Tensor]| x[0].exp(), [&numbers(&[2])]).unwrap();
    assert_eq!(fixed.check().unwrap().to_string(), "nothing is asked of the sizes that are not known yet");
}

/// `softplus(x + bias) * scale` for `x` of any rank, and a product of matrices with an unknown size.
fn open() -> (GraphBuilder, Vec<Handle>) {
    let mut builder = GraphBuilder::new();
    let x = builder.input(InputSpec::of_any_rank(DType::F32).named("x"));
    let bias = builder.input(input("bias", &["width".into()]));
    let matrix = builder.input(input("matrix", &[(-1).into(), "width".into()]));
    let shifted = builder.call("add.Tensor", [x.into(), bias.into()]);
    let bent = builder.call("softplus", [shifted.into()]);
    let scaled = builder.call("mul.Tensor", [bent.into(), numbers(&[1]).into()]);
    let doubled = builder.call("cat", [vec![matrix, matrix].into(), 0i64.into()]);
    let shaped = builder.call("transpose.int", [doubled.into(), 0i64.into(), 1i64.into()]);
    let product = builder.call("mm", [doubled.into(), shaped.into()]);
    (builder, vec![scaled, product])
}

#[test]
fn inputs_of_any_rank_are_described_before_they_come() {
    let (mut builder, mut outputs) = open();
    // Of any rank it may be; for this it has to be a matrix.
    let matrix = builder.call("t", [outputs[1].into()]);
    outputs.push(builder.call("mm", [outputs[0].into(), matrix.into()]));
    let graph = builder.open(outputs).unwrap();
    let text = graph.describe();
    let parts = ["3 inputs, 8 calls", "(-2)", "(width)", "(2*s0, width)", "(2*s0, 2*s0)", "(-1, 2*s0)"];
    for part in
        parts.into_iter().chain(["symbol s0: dimension 0 of matrix", "needs a condition on sizes that"])
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    let (page, dot) = (graph.to_html(), graph.to_dot());
    for part in ["softplus", "(-2)", "(-1, 2*s0)"] {
        assert!(page.contains(part) && dot.contains(part), "{part}");
    }
    let asked = &graph.check().requirements;
    let of =
        |op: &str| asked.iter().find(|asked| asked.op == op).unwrap_or_else(|| panic!("{op} in {asked:?}"));
    assert_eq!(of("add.Tensor").reason, "sizes broadcast only if they are equal or 1");
    assert_eq!(of("mm").reason, "it checks `self.dim() == 2`");
    assert!(of("mm").site.to_string().contains("graph_symbolic.rs:"), "{}", graph.check());
}

#[test]
fn inputs_of_any_rank_run() {
    let (builder, outputs) = open();
    let graph = builder.open(outputs).unwrap();
    for shape in [&[3][..], &[2, 3], &[5, 3], &[4, 2, 3], &[2, 1, 2, 3], &[]] {
        let inputs = [numbers(shape), numbers(&[3]), numbers(&[7, 3])];
        let found = graph.run(&inputs).unwrap();
        let scaled = inputs[0].add(&inputs[1]).unwrap().softplus().unwrap().mul(&numbers(&[1])).unwrap();
        assert_eq!(found[0].shape(), scaled.shape());
        assert_eq!(found[0].to_vec::<f32>().unwrap(), scaled.to_vec::<f32>().unwrap());
        assert_eq!(found[1].shape(), [14, 14]);
    }
    // A graph is traced once for sizes that it serves.
    let graph_for =
        |rows: i64| graph.graph_for(&[numbers(&[rows, 3]), numbers(&[3]), numbers(&[7, 3])]).unwrap();
    assert!(Arc::ptr_eq(&graph_for(2), &graph_for(2)));
    // Sizes that do not fit are reported with the call.
    let text = graph.run(&[numbers(&[2, 4]), numbers(&[3]), numbers(&[7, 3])]).unwrap_err().to_string();
    assert!(text.contains("add.Tensor") && text.contains("graph_symbolic.rs"), "{text}");
    let text = graph.run(&[numbers(&[2]), numbers(&[3])]).unwrap_err().to_string();
    assert!(text.contains("3 inputs"), "{text}");
}

#[test]
fn one_graph_serves_a_rank_where_sizes_may_be_symbols() {
    let mut builder = GraphBuilder::new();
    let x = builder.input(InputSpec::of_any_rank(DType::F32));
    let y = builder.call("exp", [x.into()]);
    let z = builder.call("sum", [y.into()]);
    let graph = builder.open([y, z]).unwrap();
    let graph_for = |shape: &[i64]| graph.graph_for(&[numbers(shape)]).unwrap();
    assert!(Arc::ptr_eq(&graph_for(&[2, 3]), &graph_for(&[7, 5])));
    assert!(!Arc::ptr_eq(&graph_for(&[2, 3]), &graph_for(&[2, 3, 1])));
    assert_eq!(graph_for(&[2, 3]).symbols().len(), 2);
}

#[test]
fn unknown_ranks_are_refused_where_a_function_runs() {
    let error = Graph::trace(|x: &[Tensor]| x[0].exp(), [InputSpec::of_any_rank(DType::F32)]).unwrap_err();
    assert!(error.to_string().contains("the rank of input `input0` is unknown"), "{error}");
    let (builder, outputs) = open();
    let error = builder.finish(outputs).unwrap_err().to_string();
    assert!(error.contains("input `x`") && error.contains("GraphBuilder::open"), "{error}");
    let mut builder = GraphBuilder::new();
    let x = builder.input(input("x", &[(-2).into(), 3.into()]));
    let error = builder.open([x]).unwrap_err().to_string();
    assert!(error.contains("-2 stands alone"), "{error}");
}

#[test]
fn mistakes_of_any_rank_are_found() {
    let mut builder = GraphBuilder::new();
    let x = builder.input(InputSpec::of_any_rank(DType::F32).named("x"));
    let flat = builder.call("flatten.using_ints", [x.into()]);
    let summed = builder.call("sum", [x.into()]);
    let wrong = builder.call("mm", [summed.into(), x.into()]);
    let missing = builder.call("no_such_operator", [x.into()]);
    let errors = builder.open([flat, wrong, missing]).unwrap_err();
    let text = errors.to_string();
    assert_eq!(errors.errors().len(), 2, "{text}");
    assert!(
        text.contains("mm: ") && text.contains("mat2: float32 (-2)") && text.contains("no_such_operator")
    );
    assert!(text.contains("its first input came from `sum` at "), "{text}");
}

#[test]
fn what_is_said_of_any_rank_is_right_for_every_operator() {
    let (mut all, mut ranked, mut refused) = (Report::default(), 0, BTreeMap::new());
    let (mut narrow, mut vanishing) = (Vec::new(), Vec::new());
    for op in LIBRARY.ops {
        let found = open_inference(op);
        ranked += found.ranked;
        refused.extend(found.refused.map(|why| (op.name, why)));
        narrow.extend(found.narrow.then_some(op.name));
        vanishing.extend(found.vanishing.then_some(op.name));
        all.add(found.report);
    }
    all.assert_right();
    // Weights of cells with one gate are square, those of projections where there are as many projections as units: sizes that
    // are tried agree where all are equal.
    assert_eq!(narrow, ["rnn_tanh.input", "rnn_relu.input", "_projected_steps", "grid_sampler_2d_along"]);
    vanishing.sort_unstable();
    assert_eq!(vanishing, ["squeeze", "squeeze.dim", "squeeze.dims"]);
    // Operators whose number of results is undetermined, and compositions that accept none of the values tried for
    // unknown sizes: many operands of different ranks, or sizes that attributes give or that others must be multiples of.
    let split = ["split.Tensor", "split_with_sizes", "unsafe_split.Tensor", "unsafe_split_with_sizes"];
    let open = ["unbind.int", "repeat_interleave.self_Tensor"];
    let untried = [
        "affine_grid_generator",
        "conv1d",
        "conv2d",
        "conv3d",
        "ctc_loss.IntList",
        "deform_conv2d",
        "roi_align",
    ];
    let padded = ["conv1d.padding", "conv2d.padding", "conv3d.padding"];
    let recurrent = ["lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input", "_recurrent_sequence"];
    let parts = ["_recurrent_layers", "_recurrent_layer", "_recurrent_direction", "_projected_steps"];
    let mut expected = [&open[..], &split, &untried, &padded, &recurrent, &parts].concat();
    expected.sort_unstable();
    assert_eq!(refused.keys().copied().collect::<Vec<_>>(), expected, "{refused:#?}");
    let compared = all.compared;
    assert!(compared > 700 && ranked > 400, "{compared} results, {ranked} of known rank");
}

/// A function that fails unless a size is a multiple of a number says so, and how to declare it.
#[test]
fn sizes_that_have_to_be_multiples_are_named() {
    let spec = || [input("x", &["n".into(), 6.into()])];
    let reshape = |x: &[Tensor]| x[0].reshape([5, -1]);
    let error = Graph::trace(reshape, spec()).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("reshape") && error.contains("while the function was traced with n = 6"),
        "{error}"
    );
    assert!(error.contains("`Dim::multiple(\"n\", 5)`"), "{error}");
    let mut builder = GraphBuilder::new();
    let x = builder.input(spec()[0].clone());
    let reshaped = builder.call("reshape", [x.into(), vec![5i64, -1].into()]);
    let error = builder.finish([reshaped]).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("`Dim::multiple(\"n\", 5)`"), "{error}");
    // As it says, so it works.
    let graph = Graph::trace(reshape, [input("x", &[Dim::multiple("n", 5), 6.into()])]).unwrap();
    assert_eq!(graph.run(&[numbers(&[15, 6])]).unwrap()[0].shape(), [5, 18]);
    // Multiples of a multiple, at a point that is not the first, and the second of two symbols.
    let halves = |x: &[Tensor]| x[0].reshape([x[0].size(0)? / 4, 4, 6]);
    let error =
        Graph::trace(halves, [input("x", &[Dim::multiple("n", 2), 6.into()])]).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("`Dim::multiple(\"n\", 4)`"), "{error}");
    let second = |x: &[Tensor]| x[0].reshape([x[0].size(0)?, 3, -1]);
    let error = Graph::trace(second, [input("x", &["n".into(), "m".into()])]).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("`Dim::multiple(\"m\", 3)`"), "{error}");
    // Without a suitable multiple the error has no such help.
    let never = |x: &[Tensor]| x[0].reshape([0, 7]);
    let error = Graph::trace(never, spec()).map(|_| ()).unwrap_err().to_string();
    assert!(!error.contains("it works where"), "{error}");
    let huge = Graph::trace(|x: &[Tensor]| x[0].exp(), [input("x", &[Dim::multiple("n", i64::MAX)])]);
    assert!(huge.map(|_| ()).unwrap_err().to_string().contains("no tensor has a size `n`"));
}

/// A size that others determine is no symbol of its own: it is checked in each run, in variants and in loaded graphs, too.
#[test]
fn sums_of_sizes_are_sizes() {
    let attend = |x: &[Tensor]| {
        let cached = opsmith::cat(&[&x[1], &x[0]])?;
        cached.mul(&x[2])?.sum_dim(Some(&[0]))
    };
    // The sum comes before the sizes that determine it, and is negative at some of them.
    let specs = || {
        [
            input("new", &["new".into()]),
            input("old", &[Dim::sum([(2, "new")], -3)]),
            input("mask", &[Dim::sum([(3, "new")], -3)]),
        ]
    };
    assert_eq!(Dim::sum([(1, "past"), (-2, "new")], -3).to_string(), "past - 2*new - 3");
    let graph = Graph::trace(attend, specs()).unwrap().optimize(&opsmith_graph::Passes::all());
    let folder = std::env::temp_dir().join(format!("opsmith-sums-{}", std::process::id()));
    graph.save(&folder).unwrap();
    let loaded = Graph::load(&folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for graph in [&graph, &loaded] {
        for new in [2, 3, 9] {
            let inputs = [numbers(&[new]), numbers(&[2 * new - 3]), numbers(&[3 * new - 3])];
            let expected = attend(&inputs).unwrap().to_vec::<f32>().unwrap();
            assert_eq!(graph.run(&inputs).unwrap()[0].to_vec::<f32>().unwrap(), expected, "{new}");
        }
        let error = graph.run(&[numbers(&[4]), numbers(&[6]), numbers(&[9])]).unwrap_err().to_string();
        assert!(error.contains("input `old` is float32 of shape (6) on cpu"), "{error}");
        assert!(error.contains("the graph takes float32 of shape (2*new-3) on cpu"), "{error}");
    }
    // One element is another case for the function.
    let first = |x: &[Tensor]| if x[0].size(0)? == 1 { x[1].neg() } else { x[1].add(1.0) };
    let graph = Graph::trace(first, [input("a", &["n".into()]), input("b", &[Dim::sum([(1, "n")], 1)])]);
    let graph = graph.unwrap();
    assert_eq!(graph.variants().count(), 1);
    for size in [1, 5] {
        let inputs = [numbers(&[size]), numbers(&[size + 1])];
        let expected = first(&inputs).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(graph.run(&inputs).unwrap()[0].to_vec::<f32>().unwrap(), expected);
    }
    assert!(graph.run(&[numbers(&[1]), numbers(&[3])]).is_err());
    let unknown = Graph::trace(first, [input("a", &["n".into()]), input("b", &[Dim::sum([(1, "m")], 1)])]);
    let error = unknown.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("a size is a sum with `m`, which no dimension of an input is"), "{error}");
    assert!(error.contains("for input `b`"), "{error}");
    // The same in a graph of calls by name.
    let mut builder = GraphBuilder::new();
    let (a, b) = (builder.input(specs()[0].clone()), builder.input(specs()[1].clone()));
    let joined = builder.call("cat", [vec![a, b].into(), 0i64.into()]);
    let graph = builder.finish([joined]).unwrap();
    assert_eq!(graph.run(&[numbers(&[4]), numbers(&[5])]).unwrap()[0].shape(), [9]);
}

/// The example of a size that elements decide is one that there can be.
#[test]
fn examples_of_sizes_are_within_their_bounds() {
    let twice = |x: &[Tensor]| {
        let (first, second) = (x[0].nonzero()?, x[0].gt(0.0)?.nonzero()?);
        Ok([opsmith::to_dtype(&first, DType::F32)?, opsmith::to_dtype(&second, DType::F32)?])
    };
    for shape in [&[2, 3][..], &[6], &[3], &[2], &[1], &[40]] {
        let x = numbers(shape);
        let graph = Graph::trace(twice, [&x]).unwrap();
        let most: i64 = shape.iter().product();
        for symbol in graph.symbols().infos() {
            assert_eq!(symbol.most, most);
            assert!(symbol.example.unwrap() <= most, "{shape:?}: {symbol:?}");
        }
        assert!(graph.guards().is_empty(), "{shape:?}: {:?}", graph.guards());
        assert!(!graph.describe().contains("traced with 9") || most >= 9, "{}", graph.describe());
        for x in [x.clone(), opsmith::zeros(shape).unwrap(), opsmith::ones(shape).unwrap()] {
            let (found, right) = (graph.run(&[&x]).unwrap(), twice(std::slice::from_ref(&x)).unwrap());
            for (found, right) in found.iter().zip(&right) {
                assert_eq!(found.shape(), right.shape());
                assert_eq!(found.to_vec::<f32>().unwrap(), right.to_vec::<f32>().unwrap());
            }
        }
    }
    // Selections by one mask are equal, and stay so.
    let tied = |x: &[Tensor]| {
        let mask = x[0].gt(0.0)?;
        x[0].masked_select(&mask)?.add(&x[0].exp()?.masked_select(&mask)?)
    };
    let x = numbers(&[5]);
    let graph = Graph::trace(tied, [&x]).unwrap();
    assert!(
        graph.symbols().infos().iter().all(|symbol| symbol.example.unwrap() <= 5),
        "{}",
        graph.describe()
    );
    assert_eq!(
        graph.run(&[&x]).unwrap()[0].to_vec::<f32>().unwrap(),
        tied(std::slice::from_ref(&x)).unwrap().to_vec::<f32>().unwrap()
    );
}

/// Dimensions of size 1 vanish: results for unknown sizes are conditional on sizes other than 1; a run uses the actual
/// sizes.
#[test]
fn dimensions_that_may_vanish_are_not_taken_to_stay() {
    for (name, args) in [
        ("squeeze", vec![]),
        ("squeeze.dim", vec![0i64.into()]),
        ("squeeze.dims", vec![vec![0i64, 1].into()]),
    ] {
        let graph = |dims: &[Dim]| {
            let mut builder = GraphBuilder::new();
            let x = builder.input(InputSpec::new(DType::F32, dims.to_vec()).named("x"));
            let squeezed = builder.call(name, std::iter::once(x.into()).chain(args.clone()));
            let more = builder.call("add", [squeezed.into(), 1i64.into()]);
            builder.open([squeezed, more]).unwrap()
        };
        let open = graph(&[Dim::Unknown, 3.into()]);
        let asked = &open.check().requirements;
        let asks = asked.iter().any(|asked| asked.condition.ends_with(" != 1") && asked.op == name);
        assert!(asks || open.outputs()[0].shape.rank().is_none(), "{name}: {asked:?}");
        for rows in [1, 2] {
            let x = numbers(&[rows, 3]);
            let expected: &[i64] = if rows == 1 { &[3] } else { &[2, 3] };
            assert_eq!(open.run(std::slice::from_ref(&x)).unwrap()[1].shape(), expected, "{name}");
        }
        // Nothing is asked where no size decides.
        let fixed = graph(&[2.into(), 1.into(), Dim::Unknown]);
        let asks = fixed.check().requirements.iter().any(|asked| asked.condition.ends_with(" != 1"));
        assert_eq!(asks, name == "squeeze", "{name}");
        let symbol = graph(&["n".into(), 3.into()]);
        assert_eq!(symbol.outputs()[0].shape.rank(), Some(2));
        let asked = &symbol.check().requirements;
        assert!(asked.iter().any(|asked| asked.condition == "n != 1"), "{name}: {asked:?}");
    }
}
