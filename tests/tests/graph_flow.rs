//! Functions as graphs: training, control flow, data-dependent sizes, guards, and rejected functions.

use opsmith::autograd::{self, Options, no_grad};
use opsmith::{DType, Result, Tensor, TensorOps};
use opsmith_graph::{Dim, Graph, InputSpec, NodeKind, Passes};
use opsmith_runtime::op::KernelCall;
use opsmith_runtime::{Backend, ErrorKind, Scratch};

fn numbers(shape: &[i64]) -> Tensor {
    let numel = shape.iter().product::<i64>();
    let values: Vec<f32> = (0..numel).map(|at| ((at * 37 + 11) % 23) as f32 / 11.0 - 1.0).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

/// One step of gradient descent for a network of two layers.
fn step(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let [x, target, w1, w2] = inputs else { panic!("four inputs") };
    let hidden = x.matmul(w1)?.relu()?;
    let error = (hidden.matmul(w2)? - target)?;
    let loss = (&error * &error)?.mean()?;
    let gradients = autograd::grad(&[&loss], &[w1, w2], &[None], Options::default())?;
    no_grad(|| {
        for (weight, gradient) in [w1, w2].into_iter().zip(gradients) {
            weight.sub_(&(gradient.expect("the loss depends on it") * 0.1)?)?;
        }
        Ok(())
    })?;
    Ok(vec![loss.detach()])
}

#[test]
fn a_training_step_is_one_graph() {
    let spec = |shape: [Dim; 2]| InputSpec::new(DType::F32, shape);
    let graph = Graph::trace(
        step,
        [
            spec(["batch".into(), 6.into()]).named("x"),
            spec(["batch".into(), 2.into()]).named("target"),
            spec([6.into(), 8.into()]).named("w1").requiring_grad(),
            spec([8.into(), 2.into()]).named("w2").requiring_grad(),
        ],
    )
    .unwrap();
    assert!(graph.guards().is_empty(), "{:?}", graph.guards());
    let start = || {
        let leaf = |shape: &[i64]| numbers(shape).requires_grad_(true).unwrap();
        (leaf(&[6, 8]), leaf(&[8, 2]))
    };
    let (eager, traced) = (start(), start());
    for batch in [4, 9, 1, 4] {
        let (x, target) = (numbers(&[batch, 6]), numbers(&[batch, 2]));
        let loss = step(&[x.clone(), target.clone(), eager.0.clone(), eager.1.clone()]).unwrap();
        let from_graph = graph.run(&[&x, &target, &traced.0, &traced.1]).unwrap();
        assert_eq!(values(&loss[0]), values(&from_graph[0]));
        assert_eq!(values(&eager.0), values(&traced.0));
        assert_eq!(values(&eager.1), values(&traced.1));
    }
}

#[test]
fn sizes_of_the_shape_become_formulas() {
    // Computations from shapes in Rust are recorded, too.
    let function = |x: &[Tensor]| {
        let (rows, columns) = (x[0].shape()[0], x[0].shape()[1]);
        let flat = x[0].reshape([rows * columns])?;
        let padded = opsmith::cat(&[flat.clone(), opsmith::zeros([2 * rows + 1])?])?;
        Ok([(padded.sum()? * (1.0 / rows as f64))?, padded])
    };
    let spec = InputSpec::new(DType::F32, ["rows".into(), "columns".into()]);
    let graph = Graph::trace(function, [spec]).unwrap();
    let shape: Vec<String> = graph.tensors()[graph.outputs()[1].0 as usize]
        .layout
        .sizes
        .iter()
        .map(|size| graph.text(size))
        .collect();
    assert_eq!(shape, ["rows*columns+2*rows+1"]);
    for shape in [[3, 4], [5, 1], [1, 1], [8, 2]] {
        let x = numbers(&shape);
        let (eager, found) = (function(std::slice::from_ref(&x)).unwrap(), graph.run(&[&x]).unwrap());
        for (eager, found) in eager.iter().zip(&found) {
            assert_eq!((values(eager), eager.shape()), (values(found), found.shape()));
        }
    }
}

#[test]
fn branches_on_sizes_are_guarded() {
    let function = |x: &[Tensor]| if x[0].shape()[0] > 10 { x[0].relu() } else { x[0].neg() };
    let graph = Graph::trace(function, [InputSpec::new(DType::F32, ["n".into()])]).unwrap();
    assert_eq!(graph.guards().len(), 1);
    let error = graph.run(&[numbers(&[40])]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Graph);
    let text = error.to_string();
    assert!(text.contains("`n` was specialised") && text.contains("graph_flow.rs"), "{text}");
    let fits = graph.symbols().infos()[0].example.unwrap();
    assert_eq!(values(&graph.run(&[numbers(&[fits])]).unwrap()[0]), values(&numbers(&[fits]).neg().unwrap()));
}

#[test]
fn every_node_knows_where_it_was_called() {
    let line = line!() + 1;
    let function = |x: &[Tensor]| (&x[0] + &x[0])?.relu();
    let graph = Graph::trace(function, [&numbers(&[3])]).unwrap();
    for node in graph.nodes() {
        let site = node.site.to_string();
        assert!(site.contains(&format!("graph_flow.rs:{line}:")), "{} at {site}", node.kind.name());
    }
    assert_eq!(graph.nodes().len(), 2);
}

#[test]
fn a_branch_is_chosen_when_the_graph_runs() {
    let function = |x: &[Tensor]| {
        let positive = x[0].sum()?.gt(0.0)?;
        opsmith_graph::cond(&positive, || &x[0] * 2.0, || x[0].neg())
    };
    let graph = Graph::trace(function, [InputSpec::new(DType::F32, ["n".into()])]).unwrap();
    assert!(graph.nodes().iter().any(|node| matches!(node.kind, NodeKind::Cond { .. })));
    for input in [[1.0f32, 2.0].as_slice(), &[-3.0, 1.0, 0.5]] {
        let x = Tensor::of(input);
        let eager = function(std::slice::from_ref(&x)).unwrap();
        assert_eq!(values(&graph.run(&[&x]).unwrap()[0]), values(&eager[0]));
    }
}

#[test]
fn a_loop_runs_as_often_as_its_condition_says() {
    // Halves until the sum is small; the second part of the state counts.
    let function = |x: &[Tensor]| {
        opsmith_graph::while_loop(
            &[x[0].clone(), Tensor::scalar(0i64, DType::I64)],
            |state| state[0].sum()?.gt(1.0),
            |state| Ok(vec![(&state[0] * 0.5)?, (&state[1] + 1)?]),
        )
    };
    let graph = Graph::trace(function, [InputSpec::new(DType::F32, ["n".into()])]).unwrap();
    for input in [[8.0f32, 8.0].as_slice(), &[0.25], &[3.0, 100.0, 7.0]] {
        let x = Tensor::of(input);
        let (eager, found) = (function(std::slice::from_ref(&x)).unwrap(), graph.run(&[&x]).unwrap());
        assert_eq!(values(&eager[0]), values(&found[0]));
        assert_eq!(eager[1].to_vec::<i64>().unwrap(), found[1].to_vec::<i64>().unwrap());
    }
}

#[test]
fn the_parts_of_a_loops_state_may_change_places() {
    let function = |x: &[Tensor]| {
        opsmith_graph::while_loop(
            &[x[0].clone(), x[1].clone(), Tensor::scalar(0i64, DType::I64)],
            |state| state[2].lt(3),
            |state| Ok(vec![state[1].clone(), state[0].clone(), (&state[2] + 1)?]),
        )
    };
    let (a, b) = (Tensor::of(&[1.0f32]), Tensor::of(&[2.0f32]));
    let graph = Graph::trace(function, [&a, &b]).unwrap();
    let found = graph.run(&[&a, &b]).unwrap();
    assert_eq!((values(&found[0]), values(&found[1])), (vec![2.0], vec![1.0]));
}

#[test]
fn a_scan_carries_a_state_and_stacks_results() {
    let function = |x: &[Tensor]| {
        let (state, sums) = opsmith_graph::scan(&[opsmith::zeros([3])?], &[x[0].clone()], |state, part| {
            let sum = (&state[0] + &part[0])?;
            Ok((vec![sum.clone()], vec![(&sum * 10.0)?]))
        })?;
        Ok([state[0].clone(), sums[0].clone()])
    };
    let graph = Graph::trace(function, [InputSpec::new(DType::F32, ["n".into(), 3.into()])]).unwrap();
    assert!(graph.guards().is_empty(), "{:?}", graph.guards());
    for rows in [1, 4, 7] {
        let x = numbers(&[rows, 3]);
        let (eager, found) = (function(std::slice::from_ref(&x)).unwrap(), graph.run(&[&x]).unwrap());
        for (eager, found) in eager.iter().zip(&found) {
            assert_eq!((values(eager), eager.shape()), (values(found), found.shape()));
        }
    }
}

#[test]
fn sizes_that_depend_on_elements_are_found_when_the_graph_runs() {
    let function = |x: &[Tensor]| {
        let positive = x[0].masked_select(&x[0].gt(0.0)?)?;
        let places = positive.gt(0.5)?.nonzero()?;
        Ok([(&positive * 2.0)?.sum()?, positive.relu()?, opsmith::to_dtype(&places, DType::F32)?])
    };
    let graph = Graph::trace(function, [InputSpec::new(DType::F32, ["n".into()])]).unwrap();
    let names: Vec<&str> = graph.symbols().infos().iter().map(|symbol| symbol.name.as_str()).collect();
    assert_eq!(names, ["n", "u0", "u1"]);
    for input in [[0.2f32, -1.0, 3.0].as_slice(), &[-1.0, -2.0], &[1.0, 2.0, 3.0, 4.0, -5.0]] {
        let x = Tensor::of(input);
        let (eager, found) = (function(std::slice::from_ref(&x)).unwrap(), graph.run(&[&x]).unwrap());
        for (eager, found) in eager.iter().zip(&found) {
            assert_eq!((values(eager), eager.shape()), (values(found), found.shape()));
        }
    }
}

#[test]
fn elements_cannot_be_read_while_a_function_is_traced() {
    let error = Graph::trace(
        |x: &[Tensor]| {
            x[0].to_vec::<f32>()?;
            Ok(x[0].clone())
        },
        [&numbers(&[3])],
    )
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Graph);
    assert!(error.to_string().contains("no elements"), "{error}");
    // A tensor that outlives the trace is refused as well.
    let kept = std::cell::RefCell::new(None);
    Graph::trace(
        |x: &[Tensor]| {
            *kept.borrow_mut() = Some(x[0].clone());
            x[0].relu()
        },
        [&numbers(&[3])],
    )
    .unwrap();
    let kept = kept.into_inner().unwrap();
    assert_eq!(kept.relu().unwrap_err().kind(), ErrorKind::Graph);
    assert!(kept.to_string().contains("when the graph runs"));
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let spec = InputSpec::new(DType::F32, ["n".into(), 3.into()]).named("x");
    let graph = Graph::trace(|x: &[Tensor]| x[0].relu(), [spec]).unwrap();
    let text = graph.run(&[numbers(&[2, 4])]).unwrap_err().to_string();
    assert!(text.contains("input `x` is float32 of shape (2, 4)") && text.contains("shape (n, 3)"), "{text}");
    assert!(graph.run::<Tensor>(&[]).is_err());
    let tracked = numbers(&[2, 3]).requires_grad_(true).unwrap();
    assert!(graph.run(&[&tracked]).unwrap_err().to_string().contains("requires a gradient"));
    assert!(no_grad(|| graph.run(&[&tracked])).is_ok());
}

#[test]
fn outputs_stay_as_they_are_when_the_graph_runs_again() {
    let graph = Graph::trace(|x: &[Tensor]| x[0].neg(), [&numbers(&[3])]).unwrap();
    let first = graph.run(&[Tensor::of(&[1.0f32, 2.0, 3.0])]).unwrap();
    let second = graph.run(&[Tensor::of(&[4.0f32, 5.0, 6.0])]).unwrap();
    assert_eq!(values(&first[0]), [-1.0, -2.0, -3.0]);
    assert_eq!(values(&second[0]), [-4.0, -5.0, -6.0]);
}

#[test]
fn a_graph_runs_in_many_threads_at_a_time() {
    let graph =
        Graph::trace(|x: &[Tensor]| (&x[0] * 3.0)?.relu(), [InputSpec::new(DType::F32, ["n".into()])])
            .unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let graph = &graph;
            scope.spawn(move || {
                for run in 0..50 {
                    let x = numbers(&[1 + (thread + run) % 5]);
                    let expected = (&x * 3.0).unwrap().relu().unwrap();
                    assert_eq!(values(&graph.run(&[&x]).unwrap()[0]), values(&expected));
                }
            });
        }
    });
}

#[test]
fn a_stale_saved_tensor_is_noticed_while_tracing() {
    let function = |x: &[Tensor]| -> Result<Vec<Tensor>> {
        let y = x[0].exp()?;
        y.add_(&y.detach())?;
        let loss = y.sum()?;
        let found = autograd::grad(&[&loss], &[&x[0]], &[None], Options::default())?;
        Ok(found.into_iter().flatten().collect())
    };
    let x = numbers(&[3]).requires_grad_(true).unwrap();
    let eager = function(std::slice::from_ref(&x)).map(|_| ()).unwrap_err().to_string();
    let traced = Graph::trace(function, [&x]).map(|_| ()).unwrap_err().to_string();
    assert_eq!(eager, traced);
}

#[test]
fn inputs_are_let_go_when_a_run_ends() {
    let function = |x: &[Tensor]| opsmith::cat(&[x[0].clone(), x[0].relu()?]);
    let graph = Graph::trace(function, [InputSpec::new(DType::F32, ["n".into()])]).unwrap();
    for _ in 0..3 {
        let x = numbers(&[4]);
        assert_eq!(
            values(&graph.run(&[&x]).unwrap()[0]),
            values(&function(std::slice::from_ref(&x)).unwrap())
        );
        assert_eq!(x.storage().references(), 1);
    }
}

/// A run looks for memory once, and so does each repetition of a loop: the error has the step all the same.
#[test]
fn a_kernel_without_memory_to_work_in_ends_a_run_with_its_step() {
    fn wanting(_: &KernelCall<'_>) -> Result<()> {
        drop(Scratch::filled(1u8, 1 << 50));
        Ok(())
    }
    let (op, _) = opsmith::LIBRARY.get("digamma").unwrap();
    let x = numbers(&[3]);
    let plain = Graph::trace(|x: &[Tensor]| x[0].exp()?.digamma()?.sin(), [&x]).unwrap();
    let looped = |x: &[Tensor]| {
        let start = [x[0].clone(), Tensor::scalar(0i64, DType::I64)];
        let body = |state: &[Tensor]| Ok(vec![state[0].exp()?.digamma()?, (&state[1] + 1)?]);
        opsmith_graph::while_loop(&start, |state| state[1].lt(3), body)
    };
    let looped = Graph::trace(looped, [&x]).unwrap();
    let mut threads = Graph::trace(|x: &[Tensor]| Ok([x[0].digamma()?, x[0].cos()?]), [&x]).unwrap();
    threads.set_threads(2);
    let before = [&plain, &looped, &threads].map(|graph| graph.run(&[&x]).unwrap());
    let right = op.kernels.replace(Backend::Cpu, DType::F32, Some(wanting)).unwrap();
    let graphs = [plain, looped, threads];
    for graph in &graphs {
        // A plan has the kernel that it was made with.
        let fresh = graph.optimize(&Passes::none());
        let error = fresh.run(&[&x]).unwrap_err();
        assert_eq!(error.message(), "there is no memory for 1125899906842624 bytes to work in");
        let text = error.to_string();
        assert!(text.contains("digamma") && text.contains("called at tests/tests/graph_flow.rs"), "{text}");
    }
    // SAFETY: it is the kernel that was replaced.
    unsafe { op.kernels.restore(Backend::Cpu, DType::F32, right) };
    for (graph, before) in graphs.iter().zip(&before) {
        assert_eq!(values(&graph.run(&[&x]).unwrap()[0]), values(&before[0]));
    }
}
