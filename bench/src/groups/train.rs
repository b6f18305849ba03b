//! `train`: whole training steps, their time and memory.
//!
//! A line `train.….memory` has the bytes held between forward and backward beyond parameters and inputs (`held_bytes`),
//! those saved by the graph (`saved_bytes`), and the peak of live bytes during the step beyond those before it
//! (`peak_bytes`). Cases `graph.train.…` are the same steps as graphs, with all passes and without fusion.

use opsmith::autograd::{self, Options};
use opsmith::runtime::allocator::{live_bytes, peak_bytes};
use opsmith::{Generator, LayerNormOptions, LinearOptions, Result, SubOptions, Tensor, TensorOps};
use opsmith_graph::{Graph, Pass, Passes};
use serde_json::json;

use super::normal;
use crate::harness::{Harness, Work};

pub fn run(harness: &mut Harness) -> Result<()> {
    if !harness.wants("train.") && !harness.wants("graph.train.") {
        return Ok(());
    }
    perceptron(harness)?;
    block(harness)
}

/// A parameter with a uniform distribution, as in PyTorch's layers.
fn parameter(shape: &[i64], inputs: i64, generator: &Generator) -> Result<Tensor> {
    let bound = 1.0 / (inputs as f64).sqrt();
    let drawn = opsmith::rand_generator(shape, Some(generator))?;
    ((drawn * (2.0 * bound))? - bound)?.detach().requires_grad_(true)
}

fn perceptron(harness: &mut Harness) -> Result<()> {
    let generator = Generator::new(0);
    let parameters = [
        parameter(&[512, 784], 784, &generator)?,
        parameter(&[512], 784, &generator)?,
        parameter(&[10, 512], 512, &generator)?,
        parameter(&[10], 512, &generator)?,
    ];
    let [w1, b1, w2, b2] = &parameters;
    let x = normal(&[128, 784])?;
    let classes: Vec<i64> = (0..128).map(|row| row * 7 % 10).collect();
    let y = Tensor::from_slice(&classes, &[128])?;
    let forward = || linear(&linear(&x, [w1, b1])?.relu()?, [w2, b2]);
    let loss = || forward()?.cross_entropy(&y);
    let update = || {
        autograd::no_grad(|| {
            for parameter in &parameters {
                if let Some(gradient) = parameter.grad() {
                    parameter.sub_with_(&gradient, SubOptions::new().alpha(0.01))?;
                }
                parameter.zero_grad();
            }
            Ok::<_, opsmith::Error>(())
        })
    };
    harness.case("train.mlp784_512_10_b128_sgd", Work::default(), || {
        loss()?.backward()?;
        update()
    });
    memory(harness, "train.mlp784_512_10_b128_sgd.memory", loss, update)?;
    autograd::no_grad(|| harness.case("train.mlp_forward_only", Work::default(), forward));
    let step = |inputs: &[Tensor]| {
        let [x, y, weights @ ..] = inputs else { unreachable!("two inputs and the parameters") };
        let leaves = leaves(weights)?;
        let hidden = linear(x, [&leaves[0], &leaves[1]])?.relu()?;
        let loss = linear(&hidden, [&leaves[2], &leaves[3]])?.cross_entropy(y)?;
        for (weight, gradient) in weights.iter().zip(gradients(&loss, &leaves)?) {
            weight.sub_with_(&gradient, SubOptions::new().alpha(0.01))?;
        }
        Ok(loss.detach())
    };
    let inputs: Vec<Tensor> = [&x, &y].into_iter().chain(&parameters).map(Tensor::detach).collect();
    as_graphs(harness, "mlp784_512_10_b128_sgd", Work::default(), step, &inputs)
}

/// Copies of parameters' handles that gradients are computed for.
fn leaves(parameters: &[Tensor]) -> Result<Vec<Tensor>> {
    parameters.iter().map(|parameter| parameter.detach().requires_grad_(true)).collect()
}

fn gradients(loss: &Tensor, leaves: &[Tensor]) -> Result<Vec<Tensor>> {
    let leaves: Vec<&Tensor> = leaves.iter().collect();
    let found = autograd::grad(&[loss], &leaves, &[None], Options::default())?;
    Ok(found.into_iter().flatten().collect())
}

/// A step as a graph, with all passes and without fusion.
fn as_graphs<R: opsmith_graph::IntoTensors>(
    harness: &mut Harness,
    name: &str,
    work: Work,
    step: impl Fn(&[Tensor]) -> Result<R>,
    inputs: &[Tensor],
) -> Result<()> {
    if !harness.wants("graph.train.") {
        return Ok(());
    }
    let graph = Graph::trace(step, inputs)?;
    let mut outputs = Vec::new();
    for (kind, passes) in [("unfused", Passes::all().without(Pass::Fusion)), ("fused", Passes::all())] {
        let graph = graph.optimize(&passes);
        harness.case(&format!("graph.train.{name}.{kind}"), work, || graph.run_into(inputs, &mut outputs));
    }
    Ok(())
}

fn linear(x: &Tensor, [weight, bias]: [&Tensor; 2]) -> Result<Tensor> {
    opsmith::linear_with(x, weight, LinearOptions::new().bias(bias))
}

/// The parameters of a transformer block of width 256 with 4 heads.
struct Block {
    norms: [[Tensor; 2]; 2],
    /// For queries, keys and values; after attention; the two of the feed-forward part.
    layers: [[Tensor; 2]; 4],
}

impl Block {
    fn new(generator: &Generator) -> Result<Block> {
        let width = 256;
        let norm = || -> Result<[Tensor; 2]> {
            let ones = opsmith::ones([width])?.requires_grad_(true)?;
            Ok([ones, opsmith::zeros([width])?.requires_grad_(true)?])
        };
        let layer = |inputs: i64, outputs: i64| -> Result<[Tensor; 2]> {
            Ok([parameter(&[outputs, inputs], inputs, generator)?, parameter(&[outputs], inputs, generator)?])
        };
        Ok(Block {
            norms: [norm()?, norm()?],
            layers: [
                layer(width, 3 * width)?,
                layer(width, width)?,
                layer(width, 4 * width)?,
                layer(4 * width, width)?,
            ],
        })
    }

    /// The block of parameters in the order of [`Block::parameters`].
    fn of(parameters: &[Tensor]) -> Result<Block> {
        let mut pairs = parameters.chunks_exact(2).map(|pair| [pair[0].clone(), pair[1].clone()]);
        let mut next = || pairs.next().ok_or_else(|| opsmith::Error::value("a block has twelve parameters"));
        Ok(Block { norms: [next()?, next()?], layers: [next()?, next()?, next()?, next()?] })
    }

    fn parameters(&self) -> impl Iterator<Item = &Tensor> {
        self.norms.iter().chain(&self.layers).flatten()
    }

    fn forward(&self, x: &Tensor, attention: Attention) -> Result<Tensor> {
        let &[batch, length, width] = x.shape() else { unreachable!("three dimensions") };
        let heads = 4;
        let norm = |x: &Tensor, [weight, bias]: &[Tensor; 2]| {
            opsmith::layer_norm_with(x, [width], LayerNormOptions::new().weight(weight).bias(bias))
        };
        let linear = |x: &Tensor, [weight, bias]: &[Tensor; 2]| linear(x, [weight, bias]);
        let [qkv, out, up, down] = &self.layers;
        let parts = linear(&norm(x, &self.norms[0])?, qkv)?
            .view([batch, length, 3, heads, width / heads])?
            .permute([2, 0, 3, 1, 4])?;
        let (q, k, v) = (parts.select(0, 0)?, parts.select(0, 1)?, parts.select(0, 2)?);
        let mixed = attention([&q, &k, &v])?.transpose(1, 2)?.reshape([batch, length, width])?;
        let x = (x + linear(&mixed, out)?)?;
        let wide = linear(&norm(&x, &self.norms[1])?, up)?.gelu()?;
        &x + linear(&wide, down)?
    }
}

/// From queries, keys and values to the mean of values.
type Attention = fn([&Tensor; 3]) -> Result<Tensor>;

/// Attention whose scores are a tensor.
fn manual([q, k, v]: [&Tensor; 3]) -> Result<Tensor> {
    let scores = (q.matmul(&k.transpose(-1, -2)?)? * (q.size(-1)? as f64).powf(-0.5))?;
    scores.softmax(-1)?.matmul(v)
}

fn block(harness: &mut Harness) -> Result<()> {
    let block = Block::new(&Generator::new(0))?;
    let x = normal(&[8, 128, 256])?;
    let flops = 2.0 * 1024.0 * 256.0 * (768 + 256 + 1024 + 1024) as f64
        + 2.0 * 2.0 * 8.0 * 4.0 * 128.0 * 128.0 * 64.0;
    let clear = || {
        block.parameters().for_each(Tensor::zero_grad);
        Ok(())
    };
    let fused: Attention = |[q, k, v]| opsmith::scaled_dot_product_attention(q, k, v);
    for (name, attention) in [("sdpa", fused), ("manual", manual)] {
        let total = || block.forward(&x, attention)?.sum();
        let work = Work { flops: 3.0 * flops, ..Work::default() };
        let step = format!("train.block_d256_{name}_fwd_bwd");
        harness.case(&step, work, || {
            clear()?;
            total()?.backward()
        });
        memory(harness, &format!("{step}.memory"), total, clear)?;
        let work = Work { flops, ..Work::default() };
        let name = format!("train.block_d256_{name}_fwd");
        autograd::no_grad(|| harness.case(&name, work, || block.forward(&x, attention)));
    }
    for (name, attention) in [("sdpa", fused), ("manual", manual)] {
        let step = |inputs: &[Tensor]| {
            let (x, parameters) = inputs.split_first().ok_or_else(|| opsmith::Error::value("no input"))?;
            let leaves = leaves(parameters)?;
            gradients(&Block::of(&leaves)?.forward(x, attention)?.sum()?, &leaves)
        };
        let work = Work { flops: 3.0 * flops, ..Work::default() };
        let inputs: Vec<Tensor> = std::iter::once(&x).chain(block.parameters()).map(Tensor::detach).collect();
        as_graphs(harness, &format!("block_d256_{name}_fwd_bwd"), work, step, &inputs)?;
    }
    Ok(())
}

/// Prints the memory of a step. Gradients of the step before are dropped first, so that they count.
fn memory(
    harness: &Harness,
    name: &str,
    loss: impl Fn() -> Result<Tensor>,
    finish: impl Fn() -> Result<()>,
) -> Result<()> {
    if !harness.wants(name) {
        return Ok(());
    }
    finish()?;
    let before = live_bytes();
    let (peak, result) = peak_bytes(|| {
        let loss = loss()?;
        let held = live_bytes() - before;
        let saved = loss.graph_node().map_or(0, |node| node.saved_bytes());
        loss.backward()?;
        Ok::<_, opsmith::Error>((held, saved))
    });
    let (held, saved) = result?;
    finish()?;
    let line = json!({
        "lib": "opsmith", "case": name, "held_bytes": held, "saved_bytes": saved, "peak_bytes": peak - before,
    });
    println!("{line}");
    Ok(())
}
