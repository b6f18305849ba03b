//! Random generators in traced functions: a graph draws the numbers of eager mode, run after run.

use opsmith::{Generator, Result, Tensor, TensorOps, autograd};
use opsmith_graph::{Graph, InputSpec, Passes, while_loop};
use opsmith_runtime::random::{GeneratorState, default_generator};

fn input() -> Tensor {
    opsmith::ones([3, 4]).unwrap()
}

fn draw(generator: &Generator) -> Result<Tensor> {
    opsmith::rand_generator([3, 4], Some(generator))
}

fn numbers(outputs: &[Tensor]) -> Vec<Vec<f32>> {
    outputs.iter().map(|output| output.to_vec().unwrap()).collect()
}

/// Three runs of a graph, as traced, optimised and with two threads, against three calls of its function; `before`
/// goes before the three of each.
fn check(before: impl Fn(), function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>) {
    let inputs = [input()];
    let three = |run: &dyn Fn() -> Result<Vec<Tensor>>| {
        before();
        [(); 3].map(|()| numbers(&run().unwrap()))
    };
    let eager = three(&|| function(&inputs));
    let traced = Graph::trace(&function, [&inputs[0]]).unwrap();
    let mut threads = traced.clone();
    threads.set_threads(2);
    for graph in [traced.optimize(&Passes::all()), traced, threads] {
        assert_eq!(three(&|| graph.run(&inputs)), eager);
    }
}

#[test]
fn one_that_the_function_makes_starts_anew_in_each_run() {
    check(
        || (),
        |x| {
            let (first, second) = (Generator::new(1), Generator::new(1));
            let ends = [draw(&first)?, draw(&first)?.mul(&x[0])?, draw(&second)?, draw(&first.clone())?];
            Ok(ends.into())
        },
    );
}

#[test]
fn one_from_outside_goes_on_from_run_to_run() {
    let outside = Generator::new(5);
    let before = || outside.manual_seed(5);
    check(before, |x| {
        let inside = Generator::new(5);
        Ok(vec![draw(&outside)?.add(&x[0])?, draw(&inside)?, draw(&outside)?])
    });
}

#[test]
fn one_that_is_seeded_again_goes_on_from_there() {
    check(
        || (),
        |_| {
            let generator = Generator::new(1);
            let ahead = generator.permutation(5)[0];
            let first = draw(&generator)?;
            generator.manual_seed(2);
            let second = draw(&generator)?;
            generator.set_state(GeneratorState { seed: 1, offset: 9 });
            Ok(vec![first, second, draw(&generator)?, draw(&generator)?.mul(&Tensor::of(&[ahead as f32]))?])
        },
    );
}

#[test]
fn loops_draw_on_and_sizes_that_a_run_tells_do_not_start_it_anew() {
    check(
        || (),
        |x| {
            let generator = Generator::new(3);
            let state = [Tensor::of(&[0.0f32]).sin()?, x[0].sin()?];
            let ends = while_loop(
                &state,
                |state| state[0].sum()?.lt(3),
                |state| Ok(vec![(&state[0] + 1.0)?, state[1].add(&draw(&generator)?)?]),
            )?;
            Ok(vec![ends[1].clone(), draw(&generator)?])
        },
    );
    check(
        || (),
        |x| {
            let generator = Generator::new(3);
            let first = draw(&generator)?;
            let found = x[0].masked_select(&first.gt(0.5)?)?;
            Ok(vec![first, draw(&generator)?.mul(&found.sum()?)?])
        },
    );
}

#[test]
fn symbolic_sizes_and_threads_at_the_same_time() {
    let function = |x: &[Tensor]| {
        let generator = Generator::new(8);
        draw(&generator)?.sum()?.add(&draw(&generator)?.sum()?)?.mul(&x[0])
    };
    let spec = InputSpec::new(opsmith::DType::F32, ["n".into(), 4.into()]);
    let graph = Graph::trace(|x: &[Tensor]| function(x), [spec]).unwrap();
    std::thread::scope(|scope| {
        for rows in 1..5 {
            let graph = &graph;
            scope.spawn(move || {
                let x = opsmith::ones([rows % 2 + 2, 4]).unwrap();
                let eager = numbers(&[function(std::slice::from_ref(&x)).unwrap()]);
                for _ in 0..50 {
                    assert_eq!(numbers(&graph.run(&[&x]).unwrap()), eager);
                }
            });
        }
    });
}

#[test]
fn what_a_graph_would_not_repeat_is_an_error() {
    let refused = |function: &dyn Fn(&[Tensor]) -> Result<Tensor>| {
        let error = Graph::trace(|x: &[Tensor]| function(x), [&input()]).unwrap_err();
        assert!(error.help().is_some());
        error.message().to_owned()
    };
    let drawn_before = refused(&|x| {
        let generator = Generator::new(1);
        let first = draw(&generator)?;
        generator.permutation(3);
        first.add(&x[0])
    });
    assert!(
        drawn_before.contains("looks at a random generator that operators drew from before"),
        "{drawn_before}"
    );
    let outside = Generator::new(1);
    let seeded = refused(&|x| {
        outside.manual_seed(1);
        draw(&outside)?.add(&x[0])
    });
    assert!(seeded.contains("seeds a random generator from outside"), "{seeded}");
    let looked = refused(&|x| &x[0] + default_generator().state().offset as f64);
    assert!(looked.contains("looks at a random generator from outside"), "{looked}");
    let in_loop = refused(&|x| {
        let state = [Tensor::of(&[0.0f32]).sin()?, x[0].sin()?];
        let ends = while_loop(
            &state,
            |state| state[0].sum()?.lt(3),
            |state| Ok(vec![(&state[0] + 1.0)?, state[1].add(&draw(&Generator::new(1))?)?]),
        )?;
        Ok(ends[1].clone())
    });
    assert!(in_loop.contains("makes a random generator inside of a branch or loop"), "{in_loop}");
}

/// Eager mode draws the same numbers again for the second run of a checkpointed function, which a graph cannot.
#[test]
fn a_checkpoint_is_traced_if_it_draws_nothing() {
    let gradient = |draws: bool| {
        move |x: &[Tensor]| {
            let part = move |x: &[Tensor]| {
                let noise = if draws { opsmith::rand([3, 4])? } else { opsmith::ones([3, 4])? };
                Ok(vec![x[0].exp()?.mul(&noise)?.sin()?])
            };
            let end = autograd::checkpoint(&[&x[0]], part)?[0].sum()?;
            let found = autograd::grad(&[&end], &[&x[0]], &[None], autograd::Options::default())?;
            Ok(found.into_iter().flatten().collect::<Vec<_>>())
        }
    };
    let x = input().requires_grad_(true).unwrap();
    let graph = Graph::trace(gradient(false), [&x]).unwrap();
    let eager = gradient(false)(std::slice::from_ref(&x)).unwrap();
    assert_eq!(numbers(&graph.run(&[&x]).unwrap()), numbers(&eager));
    let error = Graph::trace(gradient(true), [&x]).unwrap_err().to_string();
    assert!(error.contains("a checkpointed function draws random numbers"), "{error}");
}
