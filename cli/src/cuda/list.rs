//! `opsmith cuda list`: the kernels of an archive.
//!
//! In: an archive. Out: text. Must not know compilers.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use opsmith_cuda::images::{ArchivedImage, ArchivedKernel, ImageArchive, ImageTarget};

use crate::Outcome;

/// Lists the kernels of an archive of images with registers and memory
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith cuda list kernels.images
  opsmith cuda list kernels.images --verify
      Reads all images and compares their hashes.

Exit status: 0 if the archive is whole as far as it was read, 1 if an image is damaged, 2 if its index is.")]
pub struct Arguments {
    /// The archive
    #[arg(value_name = "FILE")]
    archive: PathBuf,
    /// Reads all images
    #[arg(long)]
    verify: bool,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let archive = ImageArchive::open(&arguments.archive)?;
    let mut out = io::stdout().lock();
    kernels(&mut out, &archive)?;
    writeln!(out, "{}: {} kernels", archive.place(), archive.kernels().len())?;
    summary(&mut out, &archive)?;
    if !arguments.verify {
        return Ok(Outcome::Fine);
    }
    let mut outcome = Outcome::Fine;
    for (kernel, image) in images(&archive) {
        if let Err(error) = archive.image(image) {
            writeln!(out, "{} ({}) for {}: {error}", kernel.name, kernel.line, image.target)?;
            outcome = Outcome::Mistakes;
        }
    }
    if matches!(outcome, Outcome::Fine) {
        writeln!(out, "all images are whole")?;
    }
    Ok(outcome)
}

fn images(archive: &ImageArchive) -> impl Iterator<Item = (&ArchivedKernel, &ArchivedImage)> {
    archive.kernels().iter().flat_map(|kernel| kernel.images.iter().map(move |image| (kernel, image)))
}

/// A line for each image: kernel, architecture, size, resources.
pub fn kernels(out: &mut impl Write, archive: &ImageArchive) -> io::Result<()> {
    for (kernel, image) in images(archive) {
        write!(out, "{} ({}): {}, {} bytes", kernel.name, kernel.line, image.target, image.bytes)?;
        if let Some(resources) = image.resources {
            write!(out, ", {} registers, {} bytes shared", resources.registers, resources.shared_bytes)?;
            if resources.spilled_bytes > 0 {
                write!(out, ", {} bytes spilled", resources.spilled_bytes)?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A line for each architecture, and one for the file.
pub fn summary(out: &mut impl Write, archive: &ImageArchive) -> io::Result<()> {
    let mut by_target: BTreeMap<ImageTarget, Vec<&ArchivedImage>> = BTreeMap::new();
    for (_, image) in images(archive) {
        by_target.entry(image.target).or_default().push(image);
    }
    for (target, images) in by_target {
        let bytes = images.iter().map(|image| image.bytes).sum();
        write!(out, "{target}: {} images, {}", images.len(), megabytes(bytes))?;
        let mut registers: Vec<u32> =
            images.iter().filter_map(|image| Some(image.resources?.registers)).collect();
        registers.sort_unstable();
        if let Some(most) = registers.last() {
            let spilling =
                images.iter().filter(|image| image.resources.is_some_and(|own| own.spilled_bytes > 0));
            let (middle, spilling) = (registers[registers.len() / 2], spilling.count());
            write!(out, "; registers: {middle} in the middle, {most} at most; {spilling} kernels spill")?;
        }
        writeln!(out)?;
    }
    let (whole, stored) = archive.sizes();
    writeln!(out, "all: {}, {} compressed", megabytes(whole), megabytes(stored))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}
