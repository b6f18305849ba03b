//! Products of matrices for libraries of a device's vendor.
//!
//! In: nothing. Out: the description of a product, which a backend gives to a library. Must not know libraries.

use super::Elements;
use crate::scalar::Scalar;

/// A function of each element of a product.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Activation {
    /// The element, or 0 if it is negative.
    Relu,
    /// `x / 2 · (1 + tanh(√(2 / π) · (x + 0.044715 · x³)))`.
    TanhGelu,
}

/// A stack of products of matrices, whose operands have three dimensions and one dtype:
/// `out = activation(scale · left · right + factor · added)`. Elements of 16 bits are summed in 32.
#[derive(Clone, Copy, Debug)]
pub struct LibraryProduct<'a> {
    /// Of sizes `(stacks, rows, inner)`.
    pub left: Elements<'a>,
    /// Of sizes `(stacks, inner, columns)`.
    pub right: Elements<'a>,
    /// The result, of sizes `(stacks, rows, columns)`.
    pub out: Elements<'a>,
    /// The factor of the products.
    pub scale: Scalar,
    /// Elements of the result's sizes, with the stride 0 where one is repeated, and their factor, which is not 0.
    pub added: Option<(Elements<'a>, Scalar)>,
    /// The function of each element of the sum.
    pub activation: Option<Activation>,
}
