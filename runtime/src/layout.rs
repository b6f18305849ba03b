//! Sizes, strides and offset: which elements of a storage a tensor shows, and their order.

use smallvec::SmallVec;

use crate::error::{Error, Result, ShapeText};

/// A list of sizes or strides; up to six stay off the heap.
pub type Dims = SmallVec<[i64; 6]>;

/// The strided view of a storage.
#[derive(PartialEq, Eq, Debug)]
pub struct Layout {
    /// Elements along each dimension.
    pub sizes: Dims,
    /// Elements to step in memory for one step along each dimension.
    pub strides: Dims,
    /// Elements to skip at the start of the storage.
    pub offset: i64,
}

impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Layout {
        Layout { sizes: copied(&self.sizes), strides: copied(&self.strides), offset: self.offset }
    }
}

impl Layout {
    /// The row-major layout of a shape.
    #[inline]
    pub fn contiguous(sizes: &[i64]) -> Layout {
        Layout { sizes: Dims::from_slice(sizes), strides: contiguous_strides(sizes), offset: 0 }
    }

    /// Makes this the row-major layout of a shape, at the same offset.
    #[inline]
    pub fn set_contiguous(&mut self, sizes: &[i64]) {
        self.strides.clear();
        write_contiguous_strides(sizes, &mut self.strides);
        self.sizes.clear();
        self.sizes.extend_from_slice(sizes);
    }

    /// Number of dimensions.
    pub fn dim(&self) -> usize {
        self.sizes.len()
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> i64 {
        numel(&self.sizes)
    }

    /// Whether the elements lie in memory in row-major order without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(&self.sizes, &self.strides)
    }

    /// Whether the elements fill their memory without gaps, each once, in any order of the dimensions. For layouts with elements.
    pub(crate) fn is_dense(&self) -> bool {
        let mut steps: SmallVec<[(i64, i64); 6]> =
            std::iter::zip(&self.strides, &self.sizes).map(|(stride, size)| (*stride, *size)).collect();
        steps.retain(|(_, size)| *size != 1);
        steps.sort_unstable();
        let mut next = 1;
        steps.into_iter().all(|(stride, size)| {
            let follows = stride == next;
            next = next.saturating_mul(size);
            follows
        })
    }

    /// Whether an index leads to the same place of the memory as in another layout, counted from the first element of each.
    #[inline]
    pub(crate) fn has_order_of(&self, other: &Layout) -> bool {
        same_sizes(&self.sizes, &other.sizes)
            && std::iter::zip(&self.sizes, std::iter::zip(&self.strides, &other.strides))
                .all(|(size, (stride, other))| *size == 1 || stride == other)
    }

    /// The lowest and one past the highest element of the storage that the layout touches; `None`
    /// without elements.
    #[inline]
    pub fn extent(&self) -> Option<(i64, i64)> {
        let (mut low, mut high) = (self.offset, self.offset);
        for (&size, &stride) in self.sizes.iter().zip(&self.strides) {
            if size == 0 {
                return None;
            }
            // Strides can come from a user; where they overflow, the extent must not look small.
            let reach = (size - 1).saturating_mul(stride);
            if reach < 0 { low = low.saturating_add(reach) } else { high = high.saturating_add(reach) }
        }
        Some((low, high.saturating_add(1)))
    }

    /// Whether a tensor can have this layout over memory of so many elements: it has no more elements than can be
    /// counted, and each lies inside.
    ///
    /// # Errors
    /// If not, or if there are not as many strides as sizes.
    #[inline]
    pub fn check_inside(&self, capacity: i64) -> Result<()> {
        if self.sizes.len() != self.strides.len() {
            return Err(self.other_rank());
        }
        checked_numel(&self.sizes)?;
        match self.extent() {
            Some((low, high)) if low < 0 || high > capacity => Err(outside(low, high, capacity)),
            _ => Ok(()),
        }
    }

    #[cold]
    fn other_rank(&self) -> Error {
        Error::shape(format!(
            "a view of the shape {} has {} strides",
            ShapeText(&self.sizes),
            self.strides.len()
        ))
        .with_help("a layout has a stride for each size")
    }

    /// Whether two index tuples may name the same element, as in an expanded tensor.
    ///
    /// Sorts dimensions by stride and asks that each step clears everything below it. That is
    /// sufficient for "no overlap"; a layout that interleaves without touching is also reported.
    pub fn has_internal_overlap(&self) -> bool {
        if self.is_contiguous() {
            return false;
        }
        // Not contiguous, hence not without elements.
        let mut steps: SmallVec<[(i64, i64); 6]> = self
            .sizes
            .iter()
            .zip(&self.strides)
            .filter(|(size, _)| **size > 1)
            .map(|(&size, &stride)| (stride.saturating_abs(), size))
            .collect();
        steps.sort_unstable();
        let mut reach = 0;
        for (stride, size) in steps {
            if stride <= reach {
                return true;
            }
            reach = stride.saturating_mul(size - 1).saturating_add(reach);
        }
        false
    }
}

#[cold]
fn outside(low: i64, high: i64, capacity: i64) -> Error {
    Error::index(format!(
        "a view of elements {low} to {high} reaches outside its storage of {capacity} elements"
    ))
}

/// Whether two shapes are the same. Most have one to four sizes, for which a call of the system's
/// comparison takes longer than the comparison.
#[inline]
pub(crate) fn same_sizes(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && std::iter::zip(a, b).all(|(a, b)| a == b)
}

/// A copy of sizes or strides as one block. An element-by-element copy would be read again, on its way to its
/// destination, before the processor has finished the writes.
#[inline]
pub(crate) fn copied(dims: &Dims) -> Dims {
    if dims.spilled() {
        return dims.clone();
    }
    // SAFETY: dims that are inline own no heap memory, so a bitwise copy is a second valid value.
    unsafe { std::ptr::read(dims) }
}

/// Writes a copy of sizes or strides that may have been written just now, number by number: a copy of larger blocks waits until
/// these writes have reached the memory.
///
/// # Safety
/// The place is valid for writes; its former content is forgotten.
#[inline]
pub(crate) unsafe fn write_copied(place: *mut Dims, dims: &Dims) {
    if dims.spilled() {
        // SAFETY: the caller's promise.
        return unsafe { place.write(dims.clone()) };
    }
    // SAFETY: the caller's promise; inline dims have room for as many numbers as other inline ones. The compiler does not join
    // volatile reads.
    unsafe {
        place.write(Dims::new());
        let target = (*place).as_mut_ptr();
        for dim in 0..dims.len() {
            target.add(dim).write(dims.as_ptr().add(dim).read_volatile());
        }
        (*place).set_len(dims.len());
    }
}

/// Number of elements of a shape.
#[inline]
pub fn numel(sizes: &[i64]) -> i64 {
    sizes.iter().product()
}

/// The size that dimensions have when they are joined to one: 6 for `[2, 3]`. Those of shapes that were not checked yet
/// may be too large for any tensor, which the check of the result says.
pub fn joined(sizes: &[i64]) -> i64 {
    if sizes.contains(&0) {
        0
    } else {
        sizes.iter().fold(1, |joined: i64, &size| joined.saturating_mul(size))
    }
}

/// The most elements a tensor can have: their bytes can be counted in an `i64` for every dtype.
pub const MAX_NUMEL: i64 = i64::MAX / 16;

/// The stride of so many steps of another stride, which may be larger than any memory where there is but one element
/// along it; it stays so small that a walk over the elements can add and subtract it.
pub fn scaled_stride(stride: i64, steps: i64) -> i64 {
    stride.saturating_mul(steps).clamp(-MAX_NUMEL, MAX_NUMEL)
}

/// Number of elements of a shape that comes from a user.
///
/// # Errors
/// If a size is negative, or the sizes (0 counted as 1, since strides are computed so) multiply to
/// more than [`MAX_NUMEL`].
pub fn checked_numel(sizes: &[i64]) -> Result<i64> {
    let mut steps: i64 = 1;
    for &size in sizes {
        if size < 0 {
            return Err(Error::shape(format!("the shape {} has a negative size", ShapeText(sizes))));
        }
        steps = steps.checked_mul(size.max(1)).filter(|steps| *steps <= MAX_NUMEL).ok_or_else(|| {
            Error::shape(format!("the shape {} has more elements than memory can hold", ShapeText(sizes)))
        })?;
    }
    Ok(if sizes.contains(&0) { 0 } else { steps })
}

/// The strides that repeat a layout to a larger shape: 0 where its size is 1 or a dimension missing.
///
/// ```
/// use opsmith_runtime::layout::broadcast_strides;
///
/// assert_eq!(broadcast_strides(&[3, 1], &[1, 1], &[2, 3, 4])?[..], [0, 1, 0]);
/// assert!(broadcast_strides(&[3], &[1], &[4]).is_err());
/// # Ok::<(), opsmith_runtime::Error>(())
/// ```
///
/// # Errors
/// If the view does not broadcast to the shape.
pub fn broadcast_strides(sizes: &[i64], strides: &[i64], target: &[i64]) -> Result<Dims> {
    let refuse = || {
        Error::shape(format!("the shape {} does not broadcast to {}", ShapeText(sizes), ShapeText(target)))
            .with_help("sizes must be equal or 1, counted from the last dimension")
    };
    let missing = target.len().checked_sub(sizes.len()).ok_or_else(refuse)?;
    let mut result = Dims::from_elem(0, target.len());
    for (dim, (&size, &stride)) in sizes.iter().zip(strides).enumerate() {
        if size == target[missing + dim] {
            result[missing + dim] = stride;
        } else if size != 1 {
            return Err(refuse());
        }
    }
    Ok(result)
}

/// Whether a shape broadcasts to another.
#[inline]
pub fn broadcasts(sizes: &[i64], to: &[i64]) -> bool {
    let Some(missing) = to.len().checked_sub(sizes.len()) else { return false };
    std::iter::zip(sizes, &to[missing..]).all(|(&size, &to)| size == to || size == 1)
}

/// The strides of a row-major tensor.
#[inline]
pub fn contiguous_strides(sizes: &[i64]) -> Dims {
    let mut strides = Dims::new();
    write_contiguous_strides(sizes, &mut strides);
    strides
}

/// Writes the strides of a row-major tensor into an empty list.
#[inline]
pub(crate) fn write_contiguous_strides(sizes: &[i64], strides: &mut Dims) {
    strides.reserve(sizes.len());
    let start = strides.as_mut_ptr();
    let mut step = 1;
    for (dim, &size) in sizes.iter().enumerate().rev() {
        // SAFETY: there is room for as many strides as there are sizes. Each is written once, where it
        // stays, because a copy of bytes just written waits for the memory.
        unsafe { start.add(dim).write(step) };
        step = step.wrapping_mul(size.max(1));
    }
    // SAFETY: all of them were written.
    unsafe { strides.set_len(sizes.len()) };
}

/// Whether strides are exactly those of a row-major tensor, also where there is but one element along a dimension.
#[inline]
pub fn has_contiguous_strides(sizes: &[i64], strides: &[i64]) -> bool {
    let (mut step, mut exact) = (1i64, true);
    for (&size, &stride) in sizes.iter().zip(strides).rev() {
        exact &= stride == step;
        step = step.wrapping_mul(size.max(1));
    }
    exact
}

/// Whether sizes and strides are row-major without gaps. Strides of dimensions of size 1 do not
/// matter, and none does without elements.
#[inline]
pub fn is_contiguous(sizes: &[i64], strides: &[i64]) -> bool {
    let mut expected = 1;
    for (&size, &stride) in sizes.iter().zip(strides).rev() {
        if size == 0 {
            return true;
        }
        if size != 1 {
            if stride != expected {
                return sizes.contains(&0);
            }
            expected *= size;
        }
    }
    true
}

/// Turns a dimension that may count from the end into one from the start.
///
/// `wrap_dim(-1, 3)` is 2. A scalar counts as having one dimension, so -1 and 0 are allowed there.
#[inline]
pub fn wrap_dim(dim: i64, rank: usize) -> Result<usize> {
    let count = rank.max(1) as i64;
    if dim < -count || dim >= count {
        return Err(Error::index(format!(
            "dimension {dim} is out of range for a tensor with {rank} dimension{}",
            if rank == 1 { "" } else { "s" }
        ))
        .with_help(format!("use {} to {}", -count, count - 1)));
    }
    Ok(if dim < 0 { dim + count } else { dim } as usize)
}
