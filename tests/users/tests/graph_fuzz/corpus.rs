//! Saved graphs to start from, a few of each thing that a graph can have.

use std::path::Path;

use opsmith::autograd::{self, Options, no_grad};
use opsmith::graph::{self, Graph, InputSpec, IntoTensors, Passes};
use opsmith::{DType, Result, Tensor, TensorOps};
use opsmith_example_custom_op as custom;
use serde_json::Value;

/// A saved graph.
pub struct Saved {
    pub name: &'static str,
    pub structure: Value,
    pub constants: Vec<u8>,
}

/// Saves every graph of the corpus, in a folder that is used for nothing else.
pub fn corpus(folder: &Path) -> Vec<Saved> {
    let mut saved = Vec::new();
    for (name, graph) in graphs() {
        graph.save(folder).unwrap_or_else(|error| panic!("{name}: {error}"));
        saved.push(Saved {
            name,
            structure: serde_json::from_slice(
                &std::fs::read(folder.join("graph.json")).expect("just written"),
            )
            .expect("what was saved is JSON"),
            constants: std::fs::read(folder.join("constants.safetensors")).expect("just written"),
        });
    }
    saved
}

fn graphs() -> Vec<(&'static str, Graph)> {
    let n = || InputSpec::new(DType::F32, ["n".into()]);
    let rows = || InputSpec::new(DType::F32, ["n".into(), 4.into()]);
    let fixed = || InputSpec::new(DType::F32, [3.into(), 4.into()]);
    vec![
        ("training", training()),
        ("variants", trace("variants", variants, vec![rows()])),
        ("optimised variants", trace("variants", variants, vec![rows()]).optimize(&Passes::all())),
        ("fixed", trace("fixed", layouts, vec![fixed()])),
        ("optimised fixed", trace("fixed", layouts, vec![fixed()]).optimize(&Passes::all().frozen())),
        ("symbolic layouts", trace("symbolic layouts", layouts, vec![rows()])),
        ("in place", trace("in place", in_place, vec![rows(), fixed()])),
        ("stages", trace("stages", stages, vec![n()])),
        ("branch", trace("branch", branch, vec![n()])),
        ("loop", trace("loop", repeated, vec![n()])),
        ("scan", trace("scan", scanned, vec![InputSpec::new(DType::F32, ["n".into(), 3.into()])])),
        ("quotients", trace("quotients", divided, vec![rows()])),
        ("guarded", trace("guarded", guarded, vec![n()])),
        (
            "image",
            trace(
                "image",
                image,
                vec![InputSpec::new(DType::F32, ["n".into(), 2.into(), 6.into(), 6.into()])],
            ),
        ),
        ("dtypes", trace("dtypes", dtypes, vec![n()])),
        (
            "decided by a constant",
            trace("decided", decided, vec![InputSpec::new(DType::F32, [2.into(), 6.into()])]),
        ),
        (
            "products",
            trace("products", products, vec![rows(), InputSpec::new(DType::F32, [4.into(), "m".into()])]),
        ),
        ("random", trace("random", random, vec![n()])),
        ("custom", trace("custom", own, vec![InputSpec::new(DType::F32, ["a".into(), "b".into()])])),
    ]
}

fn trace<R: IntoTensors>(
    name: &str,
    function: impl Fn(&[Tensor]) -> Result<R>,
    specs: Vec<InputSpec>,
) -> Graph {
    Graph::trace(function, specs).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn training() -> Graph {
    let step = |inputs: &[Tensor]| -> Result<Vec<Tensor>> {
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
    };
    let specs = vec![
        InputSpec::new(DType::F32, ["n".into(), 6.into()]),
        InputSpec::new(DType::F32, ["n".into(), 2.into()]),
        InputSpec::new(DType::F32, [6.into(), 3.into()]).requiring_grad(),
        InputSpec::new(DType::F32, [3.into(), 2.into()]).requiring_grad(),
    ];
    trace("training", step, specs)
}

fn variants(x: &[Tensor]) -> Result<(Tensor, Tensor)> {
    let scale = Tensor::of(&[1.0f32, 0.25, f32::INFINITY, 4.0]).exp()?;
    let wide = x[0].exp()?.mul(&scale)?.transpose(0, 1)?;
    Ok((wide.sin()?.reshape([-1])?, x[0].sum_dim(Some(&[1]))?))
}

fn layouts(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let turned = x[0].transpose(0, 1)?;
    let part = turned.narrow(0, 1, 2)?;
    let joined = opsmith::cat(&[part.clone(), turned.clone()])?;
    let wide = x[0].select(1, 0)?.unsqueeze(1)?.expand([x[0].shape()[0], 3])?;
    let halves = [x[0].narrow(1, 0, 2)?, x[0].narrow(1, 2, 2)?];
    Ok(vec![part, joined.relu()?, (&wide * 2.0)?, (&halves[0] + &halves[1])?, x[0].flip([1])?])
}

fn in_place(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let own = (&x[0] * 2.0)?;
    own.narrow(1, 1, 2)?.add_(&x[0].narrow(1, 0, 2)?)?;
    own.exp_()?;
    x[1].mul_(&x[1].sin()?)?;
    let counter = Tensor::of(&[1.0f32]);
    Ok(vec![own.transpose(0, 1)?, (&x[1] + &counter)?])
}

fn stages(x: &[Tensor]) -> Result<[Tensor; 3]> {
    let positive = x[0].masked_select(&x[0].gt(0.0)?)?;
    let places = positive.gt(0.5)?.nonzero()?;
    Ok([(&positive * 2.0)?.sum()?, positive.relu()?, opsmith::to_dtype(&places, DType::F32)?])
}

fn branch(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let positive = x[0].sum()?.gt(0.0)?;
    graph::cond(&positive, || &x[0] * 2.0, || x[0].neg())
}

fn repeated(x: &[Tensor]) -> Result<Vec<Tensor>> {
    graph::while_loop(
        &[x[0].clone(), Tensor::scalar(0i64, DType::I64)],
        |state| state[1].lt(3),
        |state| Ok(vec![(&state[0] * 0.5)?, (&state[1] + 1)?]),
    )
}

fn scanned(x: &[Tensor]) -> Result<[Tensor; 2]> {
    let (state, sums) = graph::scan(&[opsmith::zeros([3])?], &[x[0].clone()], |state, part| {
        let sum = (&state[0] + &part[0])?;
        Ok((vec![sum.clone()], vec![(&sum * 10.0)?]))
    })?;
    Ok([state[0].clone(), sums[0].clone()])
}

fn divided(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let n = x[0].shape()[0];
    let (first, second) = (x[0].narrow(0, 0, n / 2)?, x[0].narrow(0, n - n / 2, n / 2)?);
    let padded = opsmith::cat(&[x[0].clone(), opsmith::zeros([(8 - n % 8) % 8, 4])?])?;
    Ok(vec![(first * second)?, padded.reshape([(n + 7) / 8, 8, 4])?.sum_dim(Some(&[1]))?])
}

fn guarded(x: &[Tensor]) -> Result<Tensor> {
    if x[0].shape()[0] > 10 { x[0].relu() } else { x[0].neg() }
}

fn image(x: &[Tensor]) -> Result<Tensor> {
    let weight = opsmith::ones([3, 2, 3, 3])?;
    let found =
        opsmith::convolution(&x[0], &weight, None, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)?.relu()?;
    let pooled = opsmith::max_pool2d(&found, [2, 2])?;
    pooled.reshape([pooled.shape()[0], 27])?.softmax(1)
}

fn dtypes(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let table = Tensor::from_slice(&[1.0f64, 2.0, 3.0, 4.0], &[4])?;
    let index = Tensor::of(&[3i64, 0, 2]);
    let mask = x[0].gt(0.0)?;
    let chosen = table.index_select(0, &index)?;
    let half = opsmith::to_dtype(&x[0], DType::F16)?;
    let whole = opsmith::to_dtype(&x[0], DType::C64)?;
    Ok(vec![chosen, opsmith::where_(&mask, &x[0], &x[0].neg()?)?, half, whole.conj()?, mask.logical_not()?])
}

fn decided(x: &[Tensor]) -> Result<Tensor> {
    x[0].reshape_by(&Tensor::of(&[3i64, 4]))?.exp()
}

fn products(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let product = x[0].matmul(&x[1])?;
    let (rows, columns) = (product.shape()[0], product.shape()[1]);
    let flat = product.reshape([rows * columns])?;
    let padded = opsmith::cat(&[flat, opsmith::zeros([2 * rows + 1])?])?;
    Ok(vec![(padded.sum()? * (1.0 / rows as f64))?, padded.cumsum(0)?])
}

fn random(x: &[Tensor]) -> Result<Tensor> {
    &opsmith::rand([x[0].shape()[0]])? + &x[0]
}

fn own(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let turned = custom::transpose_copy(&x[0], [1, 0])?;
    Ok(vec![custom::laplacian(&x[0])?, custom::gaussian(&turned)?, custom::heat_step(&x[0])?])
}
