//! The largest and the smallest of the elements up to each along a dimension.
//!
//! NaN counts as both; of equal elements the last wins.

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::parallel::Shared;
use opsmith_runtime::{Element, Result, View, ViewMut};

use crate::cpu::strides::expect_sizes;
use crate::cpu::tiles::for_each_tile;

/// The largest element up to each along a dimension, and its place: `[1, 3, 2]` gives `[1, 3, 3]`.
///
/// # Errors
/// If there is no such dimension.
pub fn cummax<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    dim: i64,
    values: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    running(&self_, dim, values, indices, Ordered::ge)
}

/// The smallest element up to each along a dimension, and its place: `[2, 1, 3]` gives `[2, 1, 1]`.
///
/// # Errors
/// If there is no such dimension.
pub fn cummin<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    dim: i64,
    values: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    running(&self_, dim, values, indices, Ordered::le)
}

fn running<T: Element<Compute: Ordered>>(
    input: &View<'_, T>,
    dim: i64,
    mut values: ViewMut<'_, T>,
    mut indices: ViewMut<'_, i64>,
    no_worse: impl Fn(T::Compute, T::Compute) -> bool + Sync,
) -> Result<()> {
    let dim = wrap_dim(dim, input.dim())?;
    expect_sizes(values.sizes(), input.sizes())?;
    expect_sizes(indices.sizes(), input.sizes())?;
    let strides = [input.strides(), values.strides(), indices.strides()];
    let source = Shared(input.as_ptr().cast_mut());
    let (values, indices) = (Shared(values.as_mut_ptr()), Shared(indices.as_mut_ptr()));
    for_each_tile(
        input.sizes(),
        strides,
        dim,
        1,
        1,
        || (),
        |(), tile| {
            let mut best: Option<(T, i64)> = None;
            for place in 0..tile.line.size {
                let at: [i64; 3] =
                    std::array::from_fn(|view| tile.start[view] + place * tile.line.steps[view]);
                // SAFETY: the tile's positions are positions of the three views, those of the outputs no other tile's.
                unsafe {
                    let new = *source.at(at[0]);
                    let kept = best.filter(|(old, _)| {
                        let (new, old) = (new.to_compute(), old.to_compute());
                        let is_nan = !new.equal(new);
                        !is_nan && (!old.equal(old) || !no_worse(new, old))
                    });
                    let (element, index) = kept.unwrap_or((new, place));
                    best = Some((element, index));
                    *values.at(at[1]) = element;
                    *indices.at(at[2]) = index;
                }
            }
        },
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::Array;

    #[test]
    fn the_last_of_equals_and_nan() {
        let input = Array::new(&[6], [1.0f32, 3.0, 3.0, f32::NAN, 9.0, f32::NAN]);
        let (mut values, mut places) = (Array::zeros(&[6]), Array::zeros(&[6]));
        cummax(input.view(), 0, values.view_mut(), places.view_mut()).unwrap();
        assert_eq!(places.to_vec(), [0, 1, 2, 3, 3, 5]);
        assert!(values.to_vec()[4].is_nan());
        cummin(input.view(), 0, values.view_mut(), places.view_mut()).unwrap();
        assert_eq!(places.to_vec(), [0, 0, 0, 3, 3, 5]);
    }
}
