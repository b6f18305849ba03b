//! Convolutions for libraries of a device's vendor.
//!
//! In: nothing. Out: the description of a convolution, which a backend gives to a library. Must not know libraries.

use super::Elements;

/// The operand of a convolution that is computed from the two others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConvolutionPart {
    /// The output: the convolution itself.
    Output,
    /// The image: a transposed convolution, and the gradient of a convolution by its input.
    Image,
    /// The gradient by the weight.
    Weight,
}

/// A convolution of one to three dimensions after samples and channels, or its counterpart that computes another operand. Operands
/// have one dtype. Elements of 16 bits are summed in 32.
#[derive(Clone, Copy, Debug)]
pub struct LibraryConvolution<'a> {
    /// Of sizes `(samples, channels, places…)`.
    pub image: Elements<'a>,
    /// Of sizes `(outputs, channels / groups, window…)`.
    pub weight: Elements<'a>,
    /// Of sizes `(samples, outputs, positions…)`.
    pub output: Elements<'a>,
    /// The operand that is written.
    pub part: ConvolutionPart,
    /// Elements of the written operand's sizes that are added, with the stride 0 where one is repeated.
    pub added: Option<Elements<'a>>,
    /// Zeros on both sides of each dimension.
    pub padding: &'a [i64],
    /// Places from a position to the next.
    pub stride: &'a [i64],
    /// Places from an element of the window to the next.
    pub dilation: &'a [i64],
    /// Groups of channels.
    pub groups: i64,
}

impl<'a> LibraryConvolution<'a> {
    /// The operand that is written.
    pub fn result(&self) -> &Elements<'a> {
        match self.part {
            ConvolutionPart::Output => &self.output,
            ConvolutionPart::Image => &self.image,
            ConvolutionPart::Weight => &self.weight,
        }
    }
}
