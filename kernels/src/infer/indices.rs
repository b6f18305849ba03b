//! The shape of a tensor indexed by several tensors at once: integers, or masks of truth values.
//!
//! In: the indexed tensor and the indices, one for each of its dimensions from the first on, or none where one is kept
//! whole. A mask takes as many dimensions as it has, and stands for that many lists of places, those where it holds.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::infer::InferContext;
use opsmith_runtime::infer::symbolic::{Shape, Size};
use opsmith_runtime::{DType, DTypeCategory, Dims, Error, Result, Scratch, Tensor};

use super::indexing::broadcast_pair;

/// The shape of `self`, in which the dimensions that `indices` are for are replaced by the shape that these broadcast to.
///
/// The function is that of [`crate::cpu::index::index`]; the number of places that a mask names is known in a run.
///
/// # Errors
/// If there are more indices than dimensions, or one is neither a mask nor of integers; if a mask has another shape than the dimensions
/// that it is for; if the indices do not broadcast.
pub fn index(context: &mut InferContext<'_>) -> Result<()> {
    let dtype = context.dtype("self")?;
    context.set_dtype(0, dtype)?;
    let whole = context.shape("self")?;
    let mut indices = Vec::new();
    for position in 0..context.instances("indices")? {
        let meta = context.variadic_input("indices", position)?;
        let index =
            meta.map(|meta| Ok::<_, Error>((is_mask(meta.dtype, meta.shape.numel() == 0)?, &meta.shape)));
        indices.push(index.transpose()?);
    }
    let taken: Option<Vec<Option<usize>>> = indices
        .iter()
        .map(|index| match index {
            None => Some(None),
            Some((false, _)) => Some(Some(1)),
            Some((true, shape)) => shape.rank().map(Some),
        })
        .collect();
    let (Some(sizes), Some(taken)) = (whole.sizes(), taken) else {
        return context.set_whole_shape(0, Shape::UnknownRank);
    };
    let placed = placed(sizes.len(), &taken)?;
    let mut broadcast = Shape::concrete(&[]);
    for (position, index) in indices.iter().enumerate() {
        let shape = match index {
            None => continue,
            Some((false, shape)) => (*shape).clone(),
            Some((true, mask)) => {
                let own = mask.sizes().unwrap_or_default();
                for (mask_size, size) in own.iter().zip(&sizes[placed.first[position]..]) {
                    let equal = context.equal(mask_size, size);
                    context.require(equal, MASK_SHAPE)?;
                }
                let found = context.mask_count("indices", position)?.map(Size::Const);
                let found = found.unwrap_or_else(|| Size::from(context.symbols().of_run(mask.numel())));
                std::iter::once(found).collect()
            }
        };
        broadcast = context.broadcast(&broadcast, &shape)?;
    }
    let Some(broadcast) = broadcast.sizes() else { return context.set_whole_shape(0, Shape::UnknownRank) };
    let mut result: Vec<Size> = placed.kept.iter().map(|&dim| sizes[dim].clone()).collect();
    result.splice(placed.start..placed.start, broadcast.iter().cloned());
    context.set_shape(0, result)
}

const MASK_SHAPE: &str = "a mask has the sizes of the dimensions that it stands for";

/// `self`'s shape.
///
/// # Errors
/// As [`index`], as far as the elements of masks do not matter.
pub fn index_put(self_: &Tensor, indices: &[Option<Tensor>]) -> Result<Dims> {
    let mut given = Vec::with_capacity(indices.len());
    for index in indices {
        fn taken(index: &Tensor) -> Result<(usize, &[i64])> {
            let is_mask = is_mask(index.dtype(), index.numel() == 0)?;
            // How many places a mask names is a matter of its elements; 1 broadcasts with everything.
            Ok(if is_mask { (index.dim(), &[1]) } else { (1, index.shape()) })
        }
        given.push(index.as_ref().map(taken).transpose()?);
    }
    let placed = indexed(self_.shape(), &given)?.placed;
    for (index, first) in indices.iter().zip(&placed.first) {
        if let Some(mask) = index.as_ref().filter(|index| matches!(index.dtype(), DType::Bool | DType::U8)) {
            check_mask(mask.shape(), &self_.shape()[*first..])?;
        }
    }
    Ok(self_.shape().into())
}

/// Whether an index is a mask, and not a tensor of integers.
///
/// # Errors
/// If it is neither. A tensor of integers without elements may be of any dtype.
pub fn is_mask(dtype: DType, is_empty: bool) -> Result<bool> {
    match dtype {
        DType::Bool | DType::U8 => Ok(true),
        DType::I64 | DType::I32 => Ok(false),
        other if is_empty && other.category() == DTypeCategory::Int => Ok(false),
        other => Err(Error::dtype(format!(
            "`indices` must be int64 or int32, or masks of bool or uint8, got {other}"
        ))),
    }
}

/// Refuses a mask for dimensions of other sizes.
///
/// # Errors
/// As it says.
pub fn check_mask(mask: &[i64], dims: &[i64]) -> Result<()> {
    match dims.starts_with(mask) {
        true => Ok(()),
        false => Err(Error::shape(format!(
            "{MASK_SHAPE}: the mask has the shape {}, they have {}",
            ShapeText(mask),
            ShapeText(&dims[..mask.len().min(dims.len())])
        ))),
    }
}

/// The dimensions that indices are for.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The first dimension of each index.
    pub first: Scratch<usize>,
    /// The dimension of the result at which the broadcast shape starts.
    pub start: usize,
    /// The dimensions of the indexed tensor that the result keeps.
    pub kept: Scratch<usize>,
}

/// Shares the dimensions of a tensor out among indices, each of which takes so many, or none and keeps one whole.
///
/// # Errors
/// If they are more than there are.
pub fn placed(rank: usize, taken: &[Option<usize>]) -> Result<Placed> {
    let (mut first, mut kept, mut runs) = (Scratch::new(), Scratch::new(), 0);
    let (mut at, mut start, mut after) = (0, None, None);
    for taken in taken {
        first.push(at);
        match taken {
            None => kept.push(at),
            Some(_) => {
                start = start.or(Some(at));
                // A dimension that is kept in between ends a row of neighbours.
                runs += usize::from(after != Some(at));
                after = Some(at + taken.unwrap_or(0));
            }
        }
        at += taken.unwrap_or(1);
    }
    if at > rank {
        return Err(Error::index(format!("{at} indices are too many for {rank} dimensions"))
            .with_help("a mask counts as many as it has dimensions"));
    }
    kept.extend(at..rank);
    Ok(Placed { first, kept, start: if runs == 1 { start.unwrap_or(0) } else { 0 } })
}

/// The shape of a tensor indexed by tensors, and where its dimensions come from.
#[derive(Clone, Debug)]
pub struct Indexed {
    /// Sizes of the result.
    pub sizes: Dims,
    /// The shape all indices broadcast to.
    pub broadcast: Dims,
    /// Where they belong.
    pub placed: Placed,
}

/// The shape of a tensor of the given sizes, indexed. Each index has a number of dimensions that it takes, and the
/// shape of its places.
///
/// # Errors
/// If there are more indices than dimensions, or the indices do not broadcast.
pub fn indexed(sizes: &[i64], indices: &[Option<(usize, &[i64])>]) -> Result<Indexed> {
    let taken: Scratch<Option<usize>> = indices.iter().map(|index| index.map(|(taken, _)| taken)).collect();
    let placed = placed(sizes.len(), &taken)?;
    let mut broadcast = Dims::new();
    for (_, index) in indices.iter().flatten() {
        broadcast = broadcast_pair(&broadcast, index)?;
    }
    let mut result: Dims = placed.kept.iter().map(|&dim| sizes[dim]).collect();
    result.insert_from_slice(placed.start, &broadcast);
    Ok(Indexed { sizes: result, broadcast, placed })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many dimensions are indexed, and the shape of the indices.
    type Index<'a> = Option<(usize, &'a [i64])>;

    fn shape(sizes: &[i64], indices: &[Index<'_>]) -> Option<Vec<i64>> {
        indexed(sizes, indices).ok().map(|indexed| indexed.sizes.to_vec())
    }

    #[test]
    fn indexed_dimensions_stay_in_place_only_if_they_are_neighbours() {
        let (row, column): (Index<'_>, Index<'_>) = (Some((1, &[5, 1])), Some((1, &[6])));
        let sizes = [2, 3, 4];
        assert_eq!(shape(&sizes, &[None, row, column]).unwrap(), [2, 5, 6]);
        assert_eq!(shape(&sizes, &[row, None, column]).unwrap(), [5, 6, 3]);
        assert_eq!(shape(&sizes, &[None, column]).unwrap(), [2, 6, 4]);
        assert_eq!(shape(&sizes, &[]).unwrap(), [2, 3, 4]);
        assert!(shape(&sizes, &[None, None, None, column]).is_none());
        assert!(shape(&sizes, &[Some((1, &[2])), Some((1, &[3]))]).is_none());
        // A mask of two dimensions and one of none.
        assert_eq!(shape(&sizes, &[None, Some((2, &[6]))]).unwrap(), [2, 6]);
        assert_eq!(shape(&sizes, &[Some((2, &[6])), Some((1, &[1]))]).unwrap(), [6]);
        assert_eq!(shape(&sizes, &[None, Some((0, &[1]))]).unwrap(), [2, 1, 3, 4]);
        assert!(shape(&sizes, &[None, None, Some((2, &[1]))]).is_none());
    }
}
