//! The handwritten digits in `data/`: read, and split into training and test data.

use std::io::Read;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use opsmith::{Device, Generator, Tensor, TensorOps};

const FILE: &[u8] = include_bytes!("../data/digits.csv.gz");
const PIXELS: usize = 64;
/// The brightness of a white pixel.
const WHITE: f64 = 16.0;

/// Images with their labels.
pub struct Digits {
    /// A row of 64 brightnesses from 0 to 1 for each image; `float32`.
    pub images: Tensor,
    /// The digit of each image, 0 to 9; `int64`.
    pub labels: Tensor,
}

/// The digits, in an order determined by the seed: four fifths for training, the rest for testing.
///
/// # Errors
/// If the file is damaged.
pub fn load(seed: u64) -> Result<(Digits, Digits)> {
    let all = read().context("the digits cannot be read")?;
    let order = Generator::new(seed).permutation(all.len());
    let (learn, test) = order.split_at(all.len() * 4 / 5);
    Ok((all.select(learn)?, all.select(test)?))
}

fn read() -> Result<Digits> {
    let mut text = String::new();
    GzDecoder::new(FILE).read_to_string(&mut text)?;
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let numbers = line.split(',').map(str::parse).collect::<Result<Vec<u8>, _>>()?;
        let (label, pixels) = numbers.split_last().context("a line is empty")?;
        ensure!(pixels.len() == PIXELS, "a line has {} pixels", pixels.len());
        images.extend_from_slice(pixels);
        labels.push(i64::from(*label));
    }
    let count = labels.len() as i64;
    let images = Tensor::from_slice(&images, &[count, PIXELS as i64])?;
    // Dividing integers gives floats.
    Ok(Digits { images: images.div(WHITE)?, labels: Tensor::of(&labels) })
}

impl Digits {
    /// Number of digits.
    pub fn len(&self) -> usize {
        self.labels.numel() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The digits on a device.
    ///
    /// # Errors
    /// If the device does not exist, or its memory is exhausted.
    pub fn to_device(&self, device: Device) -> opsmith::Result<Digits> {
        Ok(Digits { images: self.images.to_device(device)?, labels: self.labels.to_device(device)? })
    }

    /// The digits with the given indices.
    ///
    /// # Errors
    /// If an index is out of range.
    pub fn select(&self, indices: &[i64]) -> opsmith::Result<Digits> {
        let indices = Tensor::of(indices).to_device(self.labels.device())?;
        Ok(Digits {
            images: self.images.index_select(0, &indices)?,
            labels: self.labels.index_select(0, &indices)?,
        })
    }
}
