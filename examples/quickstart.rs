//! Trains a classifier of handwritten digits with operators declared in `ops.yaml`, then shows everything that one
//! declaration provides.
//!
//! ```text
//! cargo run --release --example quickstart
//! cargo run --release --example quickstart -- --device cuda
//! ```
//!
//! The variable `OPSMITH_DEVICE` names a device, too.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use opsmith::autograd::no_grad;
use opsmith::{Device, Generator, LIBRARY, Tensor, TensorOps, Value};
use opsmith_examples::classifier::{Network, Sgd};
use opsmith_examples::{device_named, device_of_environment, digits};

/// Determines the split of the digits, the initial weights and the order of the batches.
const SEED: u64 = 1;
const EPOCHS: usize = 20;
const BATCH: usize = 32;

fn main() -> Result<()> {
    train_a_classifier(device()?)?;
    look_at_one_operator()?;
    println!("\nThe documentation of all {} operators: cargo doc -p opsmith --open", LIBRARY.ops.len());
    Ok(())
}

/// The device that the command line or the environment names; the host without either.
fn device() -> Result<Device> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        None => device_of_environment(),
        Some("--device") => device_named(&words.next().context("`--device` needs a name, such as `cuda`")?),
        Some(other) => bail!("unknown option `{other}`; the only one is `--device NAME`"),
    }
}

// ---- A network with one hidden layer learns to read digits ----

fn train_a_classifier(device: Device) -> Result<()> {
    let start = Instant::now();
    let (training, test) = digits::load(SEED)?;
    println!("Learning from {} handwritten digits, testing on {} others.", training.len(), test.len());

    let generator = Generator::new(SEED);
    let network = Network::new(&generator, device)?;
    let mut optimizer = Sgd::new(network.parameters(), 0.05, 0.9)?;

    for epoch in 1..=EPOCHS {
        let mut sum = 0.0;
        for indices in generator.permutation(training.len()).chunks(BATCH) {
            let batch = training.select(indices)?.to_device(device)?;
            let loss = network.logits(&batch.images)?.cross_entropy(&batch.labels)?;
            loss.backward()?;
            optimizer.step()?;
            sum += loss.item()?.to_f64() * indices.len() as f64;
        }
        println!("epoch {epoch:2}   loss {:.4}", sum / training.len() as f64);
    }

    let accuracy = no_grad(|| network.accuracy(&test.to_device(device)?))?;
    println!("test accuracy {:.2} % after {:.1} s", 100.0 * accuracy, start.elapsed().as_secs_f64());
    Ok(())
}

// ---- The code from one entry of ops.yaml ----

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

    // The derivative of the sum of the results by each element: by the formula in ops.yaml, and numerically.
    let tracked = x.deep_clone()?.requires_grad_(true)?;
    tracked.sigmoid()?.sum()?.backward()?;
    let gradient = tracked.grad().context("backward leaves a gradient")?;
    let step = 1e-6;
    let change = x.add(step)?.sigmoid()?.sub(&x.sub(step)?.sigmoid()?)?.div(2.0 * step)?;
    println!("its gradient             {gradient}");
    let difference = gradient.sub(&change)?.abs()?.max()?.item()?.to_f64();
    println!("by finite differences    {change}, at most {difference:.0e} apart");

    let by_name = opsmith::call("sigmoid", &[Value::Tensor(x)], &[])?;
    println!("call(\"sigmoid\", …)       {}", by_name[0].clone().into_tensor()?);
    if let Err(error) = opsmith::call("sigmod", &[], &[]) {
        println!("call(\"sigmod\", …)        {error}");
    }
    println!("The code behind it: cargo opsmith expand sigmoid");
    Ok(())
}
