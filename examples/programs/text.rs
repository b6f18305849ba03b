//! Writes text, a character at a time: `cargo run --release --bin opsmith-example-programs -- text`.
//!
//! The program is one step of a language model. It keeps the keys and values of earlier characters in buffers of its own, so
//! that a step computes those of new characters alone: of the whole prompt at first, of one character later.

use std::io::{Write as _, stdout};
use std::time::Instant;

use anyhow::{Context, Result};
use opsmith::{Device, Generator, MultinomialOptions, Tensor, TensorOps};
use opsmith_programs::Program;

use crate::file;

/// The start of the text.
pub const PROMPT: &str = "A graph is ";
/// The number of characters that follow; with the prompt at most 256, the size of the buffers.
pub const LENGTH: usize = 230;
/// Determines the choices.
pub const SEED: u64 = 1;
/// Below 1, likely characters become likelier.
const TEMPERATURE: f64 = 0.6;
/// Each character is one of so many likeliest.
const CHOICES: i64 = 8;

/// Writes a text on a device.
///
/// # Errors
/// If a file is damaged, or the device does not exist.
pub fn main(device: Device) -> Result<()> {
    let mut program = Program::load(file("text.pt2"))?;
    program.move_to(device)?;
    println!("{}\n", program.check()?);

    print!("{PROMPT}");
    let generator = Generator::new(SEED);
    let (mut text, mut first, mut times) = (PROMPT.as_bytes().to_vec(), 0, Vec::new());
    for _ in 0..LENGTH {
        let start = Instant::now();
        let logits = step(&program, &text[first..], first)?;
        first = text.len();
        let character = sample(&logits.select(0, -1)?, &generator)?;
        times.push(start.elapsed());
        text.push(character);
        print!("{}", char::from(character));
        stdout().flush()?;
    }
    println!();
    let (prompt, rest) = times.split_first().context("a text has characters")?;
    let time = rest.iter().sum::<std::time::Duration>().as_secs_f64();
    eprintln!(
        "{:.1} ms for the prompt, then {:.0} characters a second",
        1e3 * prompt.as_secs_f64(),
        rest.len() as f64 / time
    );
    Ok(())
}

/// The logits of the characters that follow each of `characters`, the first of which is at a position of the text; shape
/// `[characters, 128]`, on the host.
///
/// # Errors
/// If there are more than 256 characters.
pub fn step(program: &Program, characters: &[u8], position: usize) -> opsmith::Result<Tensor> {
    let characters: Vec<i64> = characters.iter().map(|character| i64::from(*character)).collect();
    let positions: Vec<i64> = (position as i64..).take(characters.len()).collect();
    let characters = Tensor::of(&characters).unsqueeze(0)?.to_device(program.device())?;
    let positions = Tensor::of(&positions).to_device(program.device())?;
    program.run(&[characters, positions])?.remove(0).squeeze_dim(0)?.to_device(Device::CPU)
}

/// One of the likeliest characters, drawn with their probabilities.
///
/// # Errors
/// If the logits are no vector of floats.
pub fn sample(logits: &Tensor, generator: &Generator) -> opsmith::Result<u8> {
    let (best, characters) = logits.topk(CHOICES)?;
    let chances = best.div(TEMPERATURE)?.softmax(0)?;
    let options = MultinomialOptions::new().replacement(true).generator(generator);
    let choice = chances.multinomial_with(1, options)?;
    Ok(characters.gather(0, &choice)?.item()?.to_i64() as u8)
}
