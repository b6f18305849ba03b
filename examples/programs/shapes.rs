//! Names drawn shapes in noisy images: `cargo run --release --bin opsmith-example-programs -- shapes`.

use std::time::Instant;

use anyhow::Result;
use opsmith::{Device, TensorOps};
use opsmith_nn::npz::NpzArchive;
use opsmith_programs::Program;

use crate::file;

const NAMES: [&str; 4] = ["circle", "square", "triangle", "cross"];

/// Classifies a test set on a device, one image after the other.
///
/// # Errors
/// If a file is damaged, or the device does not exist.
pub fn main(device: Device) -> Result<()> {
    let mut program = Program::load(file("shapes.pt2"))?;
    program.move_to(device)?;
    println!("{}\n", program.check()?);

    let mut tests = NpzArchive::open(file("shapes.npz"))?;
    let (images, labels) = (tests.read("images")?, tests.read("labels")?.to_vec::<i64>()?);
    let start = Instant::now();
    let mut counts = [[0; NAMES.len()]; NAMES.len()];
    for (number, label) in labels.iter().enumerate() {
        let image = images.narrow(0, number as i64, 1)?.to_device(device)?;
        let logits = program.run(&[image])?.remove(0);
        let found = logits.argmax_with(1)?.item()?.to_i64();
        counts[*label as usize][found as usize] += 1;
    }
    let time = start.elapsed().as_secs_f64() / labels.len() as f64;

    println!("is \\ named {}", NAMES.map(|name| format!("{name:>9}")).concat());
    for (name, row) in NAMES.iter().zip(&counts) {
        println!("{name:10} {}", row.map(|count| format!("{count:9}")).concat());
    }
    let right: i64 = (0..NAMES.len()).map(|shape| counts[shape][shape]).sum();
    println!("{right} of {} images are named right", labels.len());
    eprintln!("{:.2} ms an image", 1e3 * time);
    Ok(())
}
