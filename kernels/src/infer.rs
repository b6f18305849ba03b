//! Shapes that no rule expresses: what a spec names where `broadcast` or `reduce` do not do.
//!
//! In: the arguments of a call. Out: sizes, or an error about the arguments. Nothing here reads
//! elements.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{Dims, Error, Result};

/// The shape of a tensor indexed by tensors, and where its dimensions come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Indexed {
    /// Sizes of the result.
    pub sizes: Dims,
    /// The shape all indices broadcast to.
    pub broadcast: Dims,
    /// The dimension of the result at which the broadcast shape starts.
    pub start: usize,
    /// The dimensions of the indexed tensor that the result keeps.
    pub kept: Vec<usize>,
}

/// The shape of a tensor of the given sizes indexed by tensors of the given sizes, one a dimension,
/// `None` where a dimension is kept whole.
///
/// # Errors
/// If there are more indices than dimensions, or the indices do not broadcast.
pub fn indexed(sizes: &[i64], indices: &[Option<&[i64]>]) -> Result<Indexed> {
    if indices.len() > sizes.len() {
        return Err(Error::index(format!(
            "{} indices are too many for the shape {}",
            indices.len(),
            ShapeText(sizes)
        )));
    }
    let mut broadcast = Dims::new();
    for index in indices.iter().copied().flatten() {
        broadcast = broadcast_pair(&broadcast, index)?;
    }
    let is_indexed = |dim: usize| indices.get(dim).is_some_and(Option::is_some);
    let first = (0..sizes.len()).find(|&dim| is_indexed(dim)).unwrap_or(0);
    let count = indices.iter().flatten().count();
    let neighbours = (first..first + count).all(is_indexed);
    let start = if neighbours { first } else { 0 };
    let kept: Vec<usize> = (0..sizes.len()).filter(|&dim| !is_indexed(dim)).collect();
    let mut result: Dims = kept.iter().map(|&dim| sizes[dim]).collect();
    result.insert_from_slice(start, &broadcast);
    Ok(Indexed { sizes: result, broadcast, start, kept })
}

fn broadcast_pair(a: &[i64], b: &[i64]) -> Result<Dims> {
    let rank = a.len().max(b.len());
    let size = |shape: &[i64], dim: usize| match (dim + shape.len()).checked_sub(rank) {
        Some(own) => shape[own],
        None => 1,
    };
    (0..rank)
        .map(|dim| match (size(a, dim), size(b, dim)) {
            (a, b) if a == b || b == 1 => Ok(a),
            (1, b) => Ok(b),
            _ => Err(Error::shape(format!(
                "the shapes {} and {} do not broadcast",
                ShapeText(a),
                ShapeText(b)
            ))
            .with_help("sizes must be equal or 1, counted from the last dimension")),
        })
        .collect()
}
