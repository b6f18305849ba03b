//! Elements where a mask is true.

use opsmith_runtime::axes::{Axes, Axis, Walk, axes, merge};
use opsmith_runtime::{Dims, Element, Error, Result, View, ViewMut};

use crate::cpu::strides::broadcast_strides;

/// `self` with the elements of `source`, in row-major order, wherever the mask is true, in row-major
/// order too. `self` and the mask broadcast to the output's shape.
///
/// # Errors
/// If they do not broadcast, or `source` has fewer elements than the mask true ones.
pub fn masked_scatter<T: Element>(
    self_: View<'_, T>,
    mask: View<'_, bool>,
    source: View<'_, T>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    masked_scatter_bits(self_.bits(), mask, source.bits(), unsafe { out.bits() })
}

#[inline(never)]
fn masked_scatter_bits<B: Element>(
    self_: View<'_, B>,
    mask: View<'_, bool>,
    source: View<'_, B>,
    mut out: ViewMut<'_, B>,
) -> Result<()> {
    let (outer, row) = rows(&self_, &mask, &out)?;
    let mut elements = source.iter();
    for [from, mask_at, to] in Walk::new(&outer) {
        for element in 0..row.size {
            // SAFETY: the walk's positions are positions of the views.
            unsafe {
                let value = if mask.at(mask_at + element * row.steps[1]) {
                    elements.next().ok_or_else(|| too_few(&source))?
                } else {
                    self_.at(from + element * row.steps[0])
                };
                out.set(to + element * row.steps[2], value);
            }
        }
    }
    Ok(())
}

#[cold]
fn too_few<T: Element>(source: &View<'_, T>) -> Error {
    Error::shape(format!("source has {} elements, the mask has more that are true", source.numel()))
        .with_help("give as many elements as the mask selects")
}

/// Steps in `self`, the mask and the output, the last stretch apart.
fn rows<T: Element>(
    self_: &View<'_, T>,
    mask: &View<'_, bool>,
    out: &ViewMut<'_, T>,
) -> Result<(Axes<3>, Axis<3>)> {
    let from: Dims = broadcast_strides(self_.sizes(), self_.strides(), out.sizes())?;
    let mask: Dims = broadcast_strides(mask.sizes(), mask.strides(), out.sizes())?;
    let mut outer = merge(axes(out.sizes(), [&from, &mask, out.strides()], |_| true));
    let row = outer.pop().unwrap_or(Axis { size: 1, steps: [1; 3] });
    Ok((outer, row))
}
