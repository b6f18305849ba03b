//! Reads handwritten digits: `cargo run --release --bin opsmith-example-programs -- digits`.

use anyhow::Result;
use opsmith::{Device, TensorOps};
use opsmith_nn::npz::NpzArchive;
use opsmith_programs::Program;

use crate::file;

/// Brightnesses 0 to 16 as characters.
const SHADES: [char; 17] =
    [' ', '.', '.', ':', ':', '-', '-', '=', '=', '+', '+', '*', '*', '#', '#', '%', '@'];

/// Classifies a test set on a device, and shows three of its images.
///
/// # Errors
/// If a file is damaged, or the device does not exist.
pub fn main(device: Device) -> Result<()> {
    let mut program = Program::load(file("digits.pt2"))?;
    program.move_to(device)?;
    println!("{}", program.check()?);

    let mut tests = NpzArchive::open(file("digits.npz"))?;
    let (images, labels) = (tests.read("images")?, tests.read("labels")?);
    // The batch is any number of images.
    let logits = program.run(&[images.to_device(device)?])?.remove(0);
    let found = logits.argmax_with(1)?.to_device(Device::CPU)?;
    let right = found.eq(&labels)?.sum()?.item()?.to_i64();
    println!("{right} of {} digits are read right", labels.numel());

    let (found, pixels) = (found.to_vec::<i64>()?, images.to_vec::<u8>()?);
    for (digit, image) in found.iter().zip(pixels.chunks(64)).take(3) {
        println!("\nread as {digit}");
        for row in image.chunks(8) {
            // A character is twice as high as wide.
            println!("{}", row.iter().flat_map(|pixel| [SHADES[usize::from(*pixel)]; 2]).collect::<String>());
        }
    }
    Ok(())
}
