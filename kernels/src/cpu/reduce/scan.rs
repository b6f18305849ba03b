//! Running sums and products.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::parallel::Shared;
use opsmith_runtime::{Complex32, Complex64, Element, Result, Scratch, View, ViewMut};

use crate::cpu::strides::expect_sizes;
use crate::cpu::tiles::{Tile, for_each_tile};

/// A type whose running results are kept in a wider one, as PyTorch keeps them.
pub trait Running: Arithmetic {
    /// `f64` for `f32`, `Complex64` for `Complex32`, else the type itself.
    type Wide: Arithmetic;
    /// The same number, wider.
    fn widen(self) -> Self::Wide;
    /// The number rounded.
    fn narrow(wide: Self::Wide) -> Self;
}

macro_rules! running {
    ($($ty:ty => $wide:ty, |$x:ident| $widen:expr, $narrow:expr;)*) => {$(
        impl Running for $ty {
            type Wide = $wide;
            #[inline(always)]
            fn widen(self) -> $wide {
                let $x = self;
                $widen
            }
            #[inline(always)]
            fn narrow($x: $wide) -> $ty {
                $narrow
            }
        }
    )*};
}

running! {
    bool => bool, |x| x, x;
    u8 => u8, |x| x, x;
    u16 => u16, |x| x, x;
    u32 => u32, |x| x, x;
    u64 => u64, |x| x, x;
    i8 => i8, |x| x, x;
    i16 => i16, |x| x, x;
    i32 => i32, |x| x, x;
    i64 => i64, |x| x, x;
    f32 => f64, |x| f64::from(x), x as f32;
    f64 => f64, |x| x, x;
    Complex32 => Complex64, |x| Complex64::new(x.re.into(), x.im.into()),
        Complex32::new(x.re as f32, x.im as f32);
    Complex64 => Complex64, |x| x, x;
}

/// Running sums along a dimension: `[1, 2, 3]` gives `[1, 3, 6]`.
///
/// Sums of `f32` and `complex64` are kept in double precision.
pub fn cumsum<T: Element<Compute: Running>>(self_: View<'_, T>, dim: i64, out: ViewMut<'_, T>) -> Result<()> {
    let add = |sum, x| Arithmetic::add(sum, x);
    scan(&self_, dim, <T::Compute as Running>::Wide::ZERO, add, out)
}

/// Running products along a dimension: `[1, 2, 3]` gives `[1, 2, 6]`.
///
/// Products of `f32` and `complex64` are kept in double precision.
pub fn cumprod<T: Element<Compute: Running>>(
    self_: View<'_, T>,
    dim: i64,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let multiply = |product, x| Arithmetic::mul(product, x);
    scan(&self_, dim, <T::Compute as Running>::Wide::ONE, multiply, out)
}

/// Running ln ∑ exp(x) along a dimension; sums of `f32` are kept in double precision.
pub fn logcumsumexp<T: Element<Compute: Running<Wide: LogAdd>>>(
    self_: View<'_, T>,
    dim: i64,
    out: ViewMut<'_, T>,
) -> Result<()> {
    scan(&self_, dim, LogAdd::NOTHING, LogAdd::log_add, out)
}

/// Types in which logarithms of sums are kept.
pub trait LogAdd: Arithmetic {
    /// The logarithm of 0.
    const NOTHING: Self;
    /// ln(eˣ + eʸ), without overflow.
    fn log_add(self, other: Self) -> Self;
}

impl LogAdd for f64 {
    const NOTHING: f64 = f64::NEG_INFINITY;

    #[inline(always)]
    fn log_add(self, other: f64) -> f64 {
        if self.is_nan() || other.is_nan() {
            return f64::NAN;
        }
        let (low, high) = (self.min(other), self.max(other));
        if low == high && high.is_infinite() { high } else { high + (low - high).exp().ln_1p() }
    }
}

/// Neighbouring lines that advance together where they are nearer in memory than a line's elements.
pub(in crate::cpu) const NEAR: usize = 256;
/// Lines that advance together elsewhere, so that the latencies of their sums overlap; few enough to
/// share the ways of a cache set where lines are a power of two apart.
pub(in crate::cpu) const FAR: usize = 4;

fn scan<T: Element<Compute: Running>>(
    input: &View<'_, T>,
    dim: i64,
    start: <T::Compute as Running>::Wide,
    step: impl Fn(<T::Compute as Running>::Wide, <T::Compute as Running>::Wide) -> <T::Compute as Running>::Wide
    + Sync,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let dim = wrap_dim(dim, input.dim())?;
    expect_sizes(out.sizes(), input.sizes())?;
    let strides = [input.strides(), out.strides()];
    let (source, target) = (Shared(input.as_ptr().cast_mut()), Shared(out.as_mut_ptr()));
    for_each_tile(
        input.sizes(),
        strides,
        dim,
        NEAR,
        FAR,
        || (),
        |(), tile| {
            let (source, target) = (source.at(tile.start[0]).cast_const(), target.at(tile.start[1]));
            let lanes = tile.lane.size as usize;
            let widen = |element: T| element.to_compute().widen();
            let narrow = |running| T::from_compute(Running::narrow(running));
            // SAFETY: the tile's positions are positions of the two views.
            unsafe {
                // A fixed number of running results stays in registers.
                match lanes {
                    1 => advance(source, target, &tile, [start; 1], widen, &step, narrow),
                    FAR => advance(source, target, &tile, [start; FAR], widen, &step, narrow),
                    _ => advance(source, target, &tile, Scratch::filled(start, lanes), widen, &step, narrow),
                }
            }
        },
    );
    Ok(())
}

/// Writes each line's running results.
///
/// # Safety
/// The tile's positions, relative to `source` and `target`, are valid for reads and for writes.
unsafe fn advance<T: Copy, W: Copy>(
    source: *const T,
    target: *mut T,
    tile: &Tile<2>,
    mut running: impl AsMut<[W]>,
    widen: impl Fn(T) -> W,
    step: impl Fn(W, W) -> W,
    narrow: impl Fn(W) -> T,
) {
    let (line, lane) = (tile.line, tile.lane);
    for index in 0..line.size as isize {
        let source = source.wrapping_offset(index * line.steps[0] as isize);
        let target = target.wrapping_offset(index * line.steps[1] as isize);
        for (number, running) in (0..).zip(running.as_mut()) {
            // SAFETY: the caller's promise.
            unsafe {
                *running = step(*running, widen(*source.offset(number * lane.steps[0] as isize)));
                *target.offset(number * lane.steps[1] as isize) = narrow(*running);
            }
        }
    }
}
