//! Profiles two training steps of the quickstart's network: prints the operators, the call tree and the kernels with their lines, and
//! saves the profile for `opsmith profile`.
//!
//! ```text
//! cargo run --release --bin opsmith-example-profile -- work.profile.json
//! cargo run --release --bin opsmith -- profile report work.profile.json -o report.html
//! ```
//!
//! The variable `OPSMITH_DEVICE` names a device: `OPSMITH_DEVICE=cuda`.

use anyhow::{Context, Result};
use opsmith::{Generator, TensorOps};
use opsmith_examples::classifier::{Network, Sgd};
use opsmith_examples::{device_of_environment, digits};
use opsmith_profile::{Group, ProfileOptions, Profiler, range};

fn main() -> Result<()> {
    let file = std::env::args().nth(1).context("name the file to write, such as work.profile.json")?;
    let device = device_of_environment()?;
    let (training, _) = digits::load(1)?;
    let generator = Generator::new(1);
    let network = Network::new(&generator, device)?;
    let mut optimizer = Sgd::new(network.parameters(), 0.05, 0.9)?;
    let batch = training.select(&generator.permutation(training.len())[..256])?.to_device(device)?;

    // Three steps to warm up, then two that are recorded.
    let options = ProfileOptions::new().name("digits").limits(true).schedule(0, 3, 2);
    let mut profiler = Profiler::start(options)?;
    for _ in 0..5 {
        let loss = {
            let _range = range("forward");
            network.logits(&batch.images)?.cross_entropy(&batch.labels)?
        };
        loss.backward()?;
        optimizer.step()?;
        profiler.step()?;
    }
    let profile = profiler.stop();

    println!("{}", profile.key_averages(Group::Operator).row_limit(8).table());
    println!("{}", profile.key_averages(Group::Kernel).row_limit(5).table());
    println!("{}", profile.tree().text(4, 0.02));
    profile.save(&file)?;
    println!("saved {file}");
    Ok(())
}
