//! Trains a classifier of handwritten digits with operators that exist because `ops.yaml` declares them,
//! then shows what one declaration gives.
//!
//! ```text
//! cargo run --release --example quickstart
//! ```

use std::time::Instant;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use opsmith::autograd::no_grad;
use opsmith::{ArgmaxOptions, Generator, LIBRARY, SubOptions, Tensor, TensorOps, Value};
use opsmith_examples::digits::{self, Digits};

/// Decides how the digits are split, how the network begins and in which order it sees them.
const SEED: u64 = 1;
const EPOCHS: usize = 20;
const BATCH: usize = 32;

fn main() -> Result<()> {
    train_a_classifier()?;
    look_at_one_operator()?;
    println!("\nThe documentation of all {} operators: cargo doc -p opsmith --open", LIBRARY.ops.len());
    Ok(())
}

// ---- A network of two layers learns to read digits ----

fn train_a_classifier() -> Result<()> {
    let start = Instant::now();
    let (training, test) = digits::load(SEED)?;
    println!("Learning from {} handwritten digits, testing on {} others.", training.len(), test.len());

    let generator = Generator::new(SEED);
    let network = Network::new(&generator)?;
    let mut optimizer = Momentum::new(network.parameters(), 0.05, 0.9)?;
    let steps = training.len().div_ceil(BATCH);
    let bar = ProgressBar::new((EPOCHS * steps) as u64);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} steps, {eta} left")?);

    for epoch in 1..=EPOCHS {
        let mut sum = 0.0;
        for places in generator.permutation(training.len()).chunks(BATCH) {
            let batch = training.select(places)?;
            let loss = network.scores(&batch.images)?.cross_entropy(&batch.labels)?;
            loss.backward()?;
            optimizer.step()?;
            sum += loss.item()?.to_f64() * places.len() as f64;
            bar.inc(1);
        }
        bar.suspend(|| println!("epoch {epoch:2}   loss {:.4}", sum / training.len() as f64));
    }
    bar.finish_and_clear();

    let accuracy = no_grad(|| network.accuracy(&test))?;
    println!("test accuracy {:.2} % after {:.1} s", 100.0 * accuracy, start.elapsed().as_secs_f64());
    Ok(())
}

/// 64 pixels, 128 hidden numbers, 10 scores.
struct Network {
    hidden_weight: Tensor,
    hidden_bias: Tensor,
    score_weight: Tensor,
    score_bias: Tensor,
}

impl Network {
    fn new(generator: &Generator) -> Result<Network> {
        // Small random weights, so that each layer's results are about as large as its inputs.
        let weight = |inputs: i64, outputs: i64| -> opsmith::Result<Tensor> {
            let scale = (2.0 / inputs as f64).sqrt();
            opsmith::randn_generator([inputs, outputs], Some(generator))?
                .mul_scalar(scale)?
                .requires_grad_(true)
        };
        let bias = |outputs: i64| opsmith::zeros([outputs])?.requires_grad_(true);
        Ok(Network {
            hidden_weight: weight(64, 128)?,
            hidden_bias: bias(128)?,
            score_weight: weight(128, 10)?,
            score_bias: bias(10)?,
        })
    }

    fn parameters(&self) -> Vec<Tensor> {
        let Network { hidden_weight, hidden_bias, score_weight, score_bias } = self;
        [hidden_weight, hidden_bias, score_weight, score_bias].map(Tensor::clone).into()
    }

    /// How much each image looks like each digit.
    fn scores(&self, images: &Tensor) -> opsmith::Result<Tensor> {
        let hidden = self.hidden_bias.addmm(images, &self.hidden_weight)?.relu()?;
        self.score_bias.addmm(&hidden, &self.score_weight)
    }

    /// The part of the digits that get their highest score for what they are.
    fn accuracy(&self, digits: &Digits) -> opsmith::Result<f64> {
        let guesses = self.scores(&digits.images)?.argmax_with(&ArgmaxOptions::new().dim(1))?;
        let right = guesses.eq(&digits.labels)?.sum()?;
        Ok(right.item()?.to_f64() / digits.len() as f64)
    }
}

/// Gradient descent that keeps going in the direction it went.
struct Momentum {
    parameters: Vec<Tensor>,
    velocities: Vec<Tensor>,
    rate: f64,
    momentum: f64,
}

impl Momentum {
    fn new(parameters: Vec<Tensor>, rate: f64, momentum: f64) -> Result<Momentum> {
        let velocities = parameters.iter().map(TensorOps::zeros_like).collect::<opsmith::Result<_>>()?;
        Ok(Momentum { parameters, velocities, rate, momentum })
    }

    /// Moves each parameter against its gradient, in place, and forgets the gradient.
    fn step(&mut self) -> opsmith::Result<()> {
        no_grad(|| {
            for (parameter, velocity) in self.parameters.iter().zip(&self.velocities) {
                let Some(gradient) = parameter.grad() else { continue };
                velocity.mul_scalar_(self.momentum)?;
                velocity.add_(&gradient)?;
                parameter.sub_with_(velocity, &SubOptions::new().alpha(self.rate))?;
                parameter.zero_grad();
            }
            Ok(())
        })
    }
}

// ---- What one entry of ops.yaml gives ----

fn look_at_one_operator() -> Result<()> {
    let (sigmoid, _) = LIBRARY.get("sigmoid")?;
    println!("\nOne operator: {}\n  {} ({})", sigmoid.schema.text, sigmoid.doc, sigmoid.location);

    let x = Tensor::of(&[-2.0, -0.5, 0.0, 1.0, 3.0]);
    println!("x                        {x}");
    println!("x.sigmoid()              {}", x.sigmoid()?);

    let mut result = Tensor::of::<f64>(&[]);
    x.sigmoid_out(&mut result)?;
    println!("x.sigmoid_out(&mut r)    {result}");

    let y = x.deep_clone()?;
    y.sigmoid_()?;
    println!("y = a copy, y.sigmoid_() {y}");

    // How the sum of the results changes with each element: by the formula in ops.yaml, and by trying.
    let tracked = x.deep_clone()?.requires_grad_(true)?;
    tracked.sigmoid()?.sum()?.backward()?;
    let gradient = tracked.grad().context("backward leaves a gradient")?;
    let step = 1e-6;
    let change =
        x.add_scalar(step)?.sigmoid()?.sub(&x.sub_scalar(step)?.sigmoid()?)?.div_scalar(2.0 * step)?;
    println!("its gradient             {gradient}");
    let difference = gradient.sub(&change)?.abs()?.max()?.item()?.to_f64();
    println!("by finite differences    {change}, at most {difference:.0e} apart");

    let by_name = opsmith::call("sigmoid", &[Value::Tensor(x)], &[])?;
    println!("call(\"sigmoid\", …)       {}", by_name[0].clone().into_tensor()?);
    if let Err(error) = opsmith::call("sigmod", &[], &[]) {
        println!("call(\"sigmod\", …)        {error}");
    }
    println!("The code behind it: cargo run -p opsmith-cli -- expand sigmoid");
    Ok(())
}
