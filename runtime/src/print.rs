//! Printing tensors: nested brackets, aligned columns, large tensors in excerpts.
//!
//! The layout and the choice of digits are those of NumPy's `array2string` with `floatmode="maxprec_equal"` and `", "`
//! between elements: all numbers show the same number of digits after the point, the maximum that any needs, at most
//! [`PrintOptions::precision`].

mod number;

use std::fmt;
use std::sync::{PoisonError, RwLock};

use crate::arg::Arg;
use crate::device::Device;
use crate::dispatch::Borrows;
use crate::element::Element;
use crate::error::ShapeText;
use crate::layout::Dims;
use crate::tensor::Tensor;
use crate::view::View;

/// Options of tensor printing.
///
/// ```
/// use opsmith_runtime::Tensor;
/// let tensor = Tensor::from_slice(&[1.0f32, 0.25, -10.5, 3.0], &[2, 2])?;
/// assert_eq!(tensor.to_string(), "[[  1.00,   0.25],\n [-10.50,   3.00]]");
/// // A precision in the format string counts for this call alone.
/// assert_eq!(format!("{tensor:.1}"), "[[  1.0,   0.2],\n [-10.5,   3.0]]");
/// # Ok::<(), opsmith_runtime::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PrintOptions {
    /// Most digits after the point; 4 unless set.
    pub precision: usize,
    /// A tensor with more elements than this is printed in excerpts; 1000 unless set.
    pub threshold: usize,
    /// Number of entries at either end of a dimension in an excerpt; 3 unless set.
    pub edge_items: usize,
    /// Maximal length of a line in characters; 80 unless set.
    pub line_width: usize,
    /// Whether floats are written like `1.5e-03`: always, never, or (`None`) where the largest is at
    /// least 10^8 (10^6 for `float32`, 10^3 for the 16-bit types), the smallest but zero below 10^-4,
    /// or the two are more than a factor of 1000 apart.
    pub sci_mode: Option<bool>,
}

impl PrintOptions {
    const DEFAULT: PrintOptions =
        PrintOptions { precision: 4, threshold: 1000, edge_items: 3, line_width: 80, sci_mode: None };
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions::DEFAULT
    }
}

static OPTIONS: RwLock<PrintOptions> = RwLock::new(PrintOptions::DEFAULT);

/// The print options of this process.
pub fn print_options() -> PrintOptions {
    *OPTIONS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the print options of this process; returns the former ones.
///
/// ```
/// use opsmith_runtime::print::{print_options, set_print_options};
/// let mut options = print_options();
/// options.precision = 8;
/// let before = set_print_options(options);
/// # set_print_options(before);
/// ```
pub fn set_print_options(options: PrintOptions) -> PrintOptions {
    std::mem::replace(&mut OPTIONS.write().unwrap_or_else(PoisonError::into_inner), options)
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_elements(f, self, 0)
    }
}

/// Prints `tensor(elements, dtype=…, shape=…)`, and whether the tensor is part of a graph.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PREFIX: &str = "tensor(";
        f.write_str(PREFIX)?;
        write_elements(f, self, PREFIX.len())?;
        write!(f, ", dtype={}, shape={:#}", self.dtype(), ShapeText(self.shape()))?;
        if self.device() != Device::CPU {
            write!(f, ", device={}", self.device())?;
        }
        if self.requires_grad() {
            f.write_str(", requires_grad=true")?;
        }
        f.write_str(")")
    }
}

/// Prints the elements, where `column` characters of the line are already used.
fn write_elements(f: &mut fmt::Formatter<'_>, tensor: &Tensor, column: usize) -> fmt::Result {
    let mut options = print_options();
    options.precision = f.precision().unwrap_or(options.precision);
    if tensor.numel() == 0 {
        return f.write_str("[]");
    }
    if tensor.storage().is_meta() {
        return f.write_str("[... when the graph runs]");
    }
    let excerpt = (tensor.numel() as u64 > options.threshold as u64).then_some(options.edge_items as i64);
    let Ok(tensor) = &tensor.on_host() else { return write!(f, "[... on {}]", tensor.device()) };
    let words = {
        let reads = [Arg::Tensor(tensor)];
        let _held = Borrows::acquire(&reads, &[]).map_err(|_| fmt::Error)?;
        crate::with_dtype!(tensor.dtype(), T => {
            // SAFETY: the dtype is T's, and the borrow is held.
            let view = unsafe { tensor.view_unchecked::<T>() };
            number::words(&shown_elements(&view, excerpt), &options)
        })
    };
    let width = words.iter().map(|word| word.len()).max().unwrap_or(0);
    let words = words.into_iter().map(|word| format!("{word:>width$}"));
    let mut printer = Printer { shape: tensor.shape(), excerpt, words, width: options.line_width };
    let mut text = String::new();
    printer.write(&mut text, 0, column + 1);
    f.write_str(&text)
}

/// The numbers of printed indices of a dimension: at its start, and at its end.
fn shown(size: i64, excerpt: Option<i64>) -> (i64, i64) {
    match excerpt {
        Some(edge) if size > 2 * edge => (edge, edge),
        _ => (size, 0),
    }
}

/// The printed elements, in row-major order.
fn shown_elements<T: Element>(view: &View<'_, T>, excerpt: Option<i64>) -> Vec<T> {
    let mut positions = vec![0];
    for (&size, &stride) in view.sizes().iter().zip(view.strides()) {
        let (first, last) = shown(size, excerpt);
        let indices: Dims = (0..first).chain(size - last..size).collect();
        positions = positions
            .iter()
            .flat_map(|base| indices.iter().map(move |index| base + index * stride))
            .collect();
    }
    // SAFETY: every position belongs to an index inside the sizes.
    positions.into_iter().map(|position| unsafe { view.at(position) }).collect()
}

struct Printer<'a, Words> {
    shape: &'a [i64],
    excerpt: Option<i64>,
    words: Words,
    width: usize,
}

impl<Words: Iterator<Item = String>> Printer<'_, Words> {
    /// Writes the part of the tensor from dimension `dim` on, whose lines begin at `indent`.
    fn write(&mut self, text: &mut String, dim: usize, indent: usize) {
        let Some(&size) = self.shape.get(dim) else {
            text.extend(self.words.next());
            return;
        };
        let (first, last) = shown(size, self.excerpt);
        let hidden = first + last < size;
        let entries = (first + last) as usize + usize::from(hidden);
        let gap = hidden.then_some(first as usize);
        text.push('[');
        if dim + 1 == self.shape.len() {
            self.write_row(text, entries, gap, dim, indent);
        } else {
            for entry in 0..entries {
                if entry > 0 {
                    text.push(',');
                    // A blank line between matrices, two between stacks of them.
                    text.extend(std::iter::repeat_n('\n', self.shape.len() - dim - 1));
                    text.extend(std::iter::repeat_n(' ', indent));
                }
                if gap == Some(entry) {
                    text.push_str("...");
                } else {
                    self.write(text, dim + 1, indent + 1);
                }
            }
        }
        text.push(']');
    }

    /// Writes the entries of the last dimension, broken into lines.
    fn write_row(
        &mut self,
        text: &mut String,
        entries: usize,
        gap: Option<usize>,
        dim: usize,
        indent: usize,
    ) {
        // The closing brackets of outer dimensions, and a comma, must fit after the last word.
        let limit = self.width.saturating_sub(dim + 1);
        let mut column = indent;
        for entry in 0..entries {
            let word = match gap {
                Some(hidden) if hidden == entry => "...".to_owned(),
                _ => self.words.next().unwrap_or_default(),
            };
            if column + word.len() > limit && column > indent {
                text.truncate(text.trim_end().len());
                text.push('\n');
                text.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            }
            text.push_str(&word);
            column += word.len();
            if entry + 1 < entries {
                text.push_str(", ");
                column += 2;
            }
        }
    }
}
