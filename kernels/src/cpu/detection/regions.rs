//! Regions of images, divided into cells, and the elements that a cell's samples read.
//!
//! In: a region's numbers. Out: for each cell and dimension, elements with weights. A sample reads the two elements beside it, also
//! where the weight of one is 0. The twin is `detection.cuh`.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{Element, Error, Result, Scratch};

use crate::cpu::float::Float;

/// Samples along a dimension of a cell, at most: more than that are apart by less than elements are.
const MOST_SAMPLES: f64 = (1u64 << 31) as f64;

/// The sizes of images, and the division of their regions.
pub(crate) struct Cells {
    pub regions: usize,
    pub images: usize,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    pub rows: usize,
    pub columns: usize,
    scale: f64,
    ratio: i64,
    aligned: bool,
}

impl Cells {
    /// Of images, regions and cells of these sizes.
    ///
    /// # Errors
    /// If they do not go together.
    pub fn new(
        input: &[i64],
        rois: &[i64],
        out: &[i64],
        scale: f64,
        ratio: i64,
        aligned: bool,
    ) -> Result<Cells> {
        let (&[images, channels, height, width], &[regions, 5], &[first, second, rows, columns]) =
            (input, rois, out)
        else {
            return Err(misfit(input, rois, out));
        };
        if first != regions || second != channels || rows < 1 || columns < 1 {
            return Err(misfit(input, rois, out));
        }
        let [regions, images, channels, height, width, rows, columns] =
            [regions, images, channels, height, width, rows, columns].map(|size| size as usize);
        Ok(Cells { regions, images, channels, height, width, rows, columns, scale, ratio, aligned })
    }

    /// Cells of a channel of a region.
    pub fn of_plane(&self) -> usize {
        self.rows * self.columns
    }

    /// A channel of an image.
    pub fn plane<'a, T>(&self, images: &'a [T], image: usize, channel: usize) -> &'a [T] {
        let size = self.height * self.width;
        &images[(image * self.channels + channel) * size..][..size]
    }

    /// The region of a number.
    ///
    /// # Errors
    /// If it is of a sample that is not there.
    pub fn region<T: Element<Compute: Float>>(&self, rois: &[T], number: usize) -> Result<Region> {
        let [sample, x1, y1, x2, y2] =
            std::array::from_fn(|part| rois[5 * number + part].to_compute().double());
        if !(sample >= 0.0 && sample < self.images as f64) {
            return Err(Error::index(format!(
                "region {number} is of sample {sample}, and there are {} samples",
                self.images
            )));
        }
        Ok(Region {
            image: sample as usize,
            down: self.side(y1, y2, self.rows, self.height),
            across: self.side(x1, x2, self.columns, self.width),
        })
    }

    fn side(&self, from: f64, to: f64, cells: usize, length: usize) -> Side {
        let shift = if self.aligned { 0.5 } else { 0.0 };
        let (start, end) = (from * self.scale - shift, to * self.scale - shift);
        let extent = end - start;
        // Comparisons with NaN do not hold.
        let extent = if !self.aligned && extent < 1.0 { 1.0 } else { extent };
        let cell = extent / cells as f64;
        let samples = match self.ratio {
            1.. => self.ratio,
            _ if cell > 0.0 => cell.ceil().min(MOST_SAMPLES) as i64,
            _ => 0,
        };
        Side { start, cell, samples, length: length as i64, cells }
    }
}

#[cold]
fn misfit(input: &[i64], rois: &[i64], out: &[i64]) -> Error {
    Error::shape(format!(
        "images of shape {}, regions of {} and cells of {} do not go together",
        ShapeText(input),
        ShapeText(rois),
        ShapeText(out)
    ))
    .with_help("images are (samples, channels, height, width), regions (number, 5), cells (number, channels, rows, columns)")
}

/// A region of an image.
pub(crate) struct Region {
    pub image: usize,
    pub down: Side,
    pub across: Side,
}

impl Region {
    /// Samples of a cell, at least 1.
    pub fn samples<C: Float>(&self) -> C {
        C::of((self.down.samples as f64 * self.across.samples as f64).max(1.0))
    }
}

/// A dimension of a region.
pub(crate) struct Side {
    start: f64,
    cell: f64,
    samples: i64,
    /// Elements of the image.
    length: i64,
    cells: usize,
}

impl Side {
    /// Calls a function with the elements of each sample of a cell that is not outside the image, and their weights.
    fn for_each_sample(&self, number: usize, mut visit: impl FnMut([(i64, f64); 2])) {
        let length = self.length as f64;
        let (base, step) = (self.start + number as f64 * self.cell, self.cell / self.samples as f64);
        let (mut first, mut end) = (0, self.samples);
        if step > 0.0 {
            let bound = |place: f64| place.clamp(0.0, self.samples as f64) as i64;
            first = bound(((-1.0 - base) / step - 1.5).floor());
            end = bound(((length - base) / step + 1.5).ceil());
        }
        for sample in first..end {
            let place = base + (sample as f64 + 0.5) * self.cell / self.samples as f64;
            if !(place >= -1.0 && place <= length) || self.length == 0 {
                continue;
            }
            let place = place.max(0.0);
            let low = place as i64;
            visit(if low >= self.length - 1 {
                [(self.length - 1, 1.0), (self.length - 1, 0.0)]
            } else {
                [(low, 1.0 - (place - low as f64)), (low + 1, place - low as f64)]
            });
        }
    }
}

/// An element along a dimension.
#[derive(Clone, Copy)]
pub(crate) struct Tap<C> {
    pub at: usize,
    pub weight: C,
}

/// The elements that the cells of a region read along a dimension.
pub(crate) struct Taps<C> {
    taps: Scratch<Tap<C>>,
    /// The end of each cell's.
    ends: Scratch<usize>,
}

impl<C: Float> Taps<C> {
    pub fn of(side: &Side) -> Taps<C> {
        let mut count = 0;
        for cell in 0..side.cells {
            side.for_each_sample(cell, |_| count += 2);
        }
        let mut taps = Scratch::with_capacity(count);
        let mut ends = Scratch::with_capacity(side.cells);
        for cell in 0..side.cells {
            side.for_each_sample(cell, |sample| {
                taps.extend(sample.map(|(at, weight)| Tap { at: at as usize, weight: C::of(weight) }));
            });
            ends.push(taps.len());
        }
        Taps { taps, ends }
    }

    pub fn of_cell(&self, number: usize) -> &[Tap<C>] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.taps[start..self.ends[number]]
    }
}
