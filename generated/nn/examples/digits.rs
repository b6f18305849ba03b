//! A network that learns to read handwritten digits: layers, dropout, AdamW and a schedule.
//!
//! ```text
//! cargo run --release --example digits
//! ```
//!
//! Of the last fifth of the digits, which it never learns from, it reads at least 97 % correctly; else it fails. The variable
//! `OPSMITH_DEVICE` names a device: `OPSMITH_DEVICE=cuda`.

use std::io::Read;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use opsmith::autograd::no_grad;
use opsmith::{Device, Generator, Tensor, TensorOps};
// Makes the devices of CUDA known to programs.
use opsmith_cuda as _;
use opsmith_nn::optim::{AdamW, AdamWConfig, OneCycle, Scheduler, clip_grad_norm};
use opsmith_nn::{Dropout, Layer, Linear, Module, Relu, sequential};

/// Images of 8 × 8 pixels, brightnesses 0 to 16, and their digit, a line each; `examples/data/README.md` has their source.
const FILE: &[u8] = include_bytes!("../../../examples/data/digits.csv.gz");
const PIXELS: i64 = 64;
const WHITE: f64 = 16.0;
const EPOCHS: usize = 25;
const BATCH: usize = 32;

fn main() -> Result<()> {
    let name = std::env::var("OPSMITH_DEVICE").unwrap_or_else(|_| "cpu".to_owned());
    let device = Device::from_name(&name)
        .with_context(|| format!("`{name}` is no device; try `cpu`, `cuda` or `cuda:1`"))?;
    let generator = Generator::new(1);
    let (images, labels) = read(device)?;
    let order = generator.permutation(labels.numel() as usize);
    let (training, test) = order.split_at(order.len() * 4 / 5);

    let mut network = sequential![
        Linear::new(PIXELS, 128, &generator)?,
        Relu,
        Dropout::new(0.2)?.generator(&generator),
        Linear::new(128, 64, &generator)?,
        Relu,
        Linear::new(64, 10, &generator)?,
    ];
    network.to_device(device)?;
    let mut optimizer = AdamW::new(network.parameters(), AdamWConfig::new())?;
    let steps = EPOCHS * training.len().div_ceil(BATCH);
    let mut scheduler = Scheduler::new(OneCycle::new(0.005, steps as u64), &mut optimizer);

    for epoch in 1..=EPOCHS {
        let mut sum = 0.0;
        for positions in generator.permutation(training.len()).chunks(BATCH) {
            let batch: Vec<i64> = positions.iter().map(|position| training[*position as usize]).collect();
            let batch = Tensor::from(batch).to_device(device)?;
            let logits = network.forward(&images.index_select(0, &batch)?)?;
            let loss = logits.cross_entropy(&labels.index_select(0, &batch)?)?;
            optimizer.zero_grad();
            loss.backward()?;
            clip_grad_norm(&network.parameters(), 5.0, 2.0)?;
            optimizer.step()?;
            scheduler.step(&mut optimizer);
            sum += loss.item()?.to_f64() * positions.len() as f64;
        }
        if epoch % 5 == 0 {
            println!("epoch {epoch:2}   loss {:.4}", sum / training.len() as f64);
        }
    }

    network.eval();
    let test = Tensor::of(test).to_device(device)?;
    let found = no_grad(|| network.forward(&images.index_select(0, &test)?)?.argmax_with(1))?;
    let correct = found.eq(&labels.index_select(0, &test)?)?.sum()?.item()?.to_f64();
    let accuracy = correct / test.numel() as f64;
    println!("test accuracy {:.2} %", 100.0 * accuracy);
    ensure!(accuracy >= 0.97, "the network learned too little");
    Ok(())
}

/// Images, `(digits, 64)`, brightnesses from 0 to 1, and labels, on a device.
fn read(device: Device) -> Result<(Tensor, Tensor)> {
    let mut text = String::new();
    GzDecoder::new(FILE).read_to_string(&mut text)?;
    let (mut images, mut labels) = (Vec::<u8>::new(), Vec::<i64>::new());
    for line in text.lines() {
        let numbers = line.split(',').map(str::parse).collect::<Result<Vec<u8>, _>>()?;
        let (label, pixels) = numbers.split_last().context("a line is empty")?;
        ensure!(pixels.len() == PIXELS as usize, "a line has {} pixels", pixels.len());
        images.extend_from_slice(pixels);
        labels.push(i64::from(*label));
    }
    let images = Tensor::from_slice(&images, &[labels.len() as i64, PIXELS])?;
    Ok((images.div(WHITE)?.to_device(device)?, Tensor::from(labels).to_device(device)?))
}
