//! Folding a slice with several partial results side by side.

/// Partial results of [`fold_lanes`]: enough to hide the latency of an addition in vector registers.
pub(crate) const LANES: usize = 32;

/// Joins the elements of a slice, `LANES` independent partial results at a time, so that the compiler
/// keeps them in vector registers. For use inside [`super::simd::widest`].
#[inline(always)]
pub(crate) fn fold_lanes<A: Copy, P: Copy>(
    elements: &[A],
    start: P,
    take: impl Fn(P, A) -> P,
    join: impl Fn(P, P) -> P,
) -> P {
    let (blocks, rest) = elements.as_chunks::<LANES>();
    if blocks.is_empty() {
        return rest.iter().fold(start, |partial, &element| take(partial, element));
    }
    let mut lanes = [start; LANES];
    for block in blocks {
        for (lane, &element) in lanes.iter_mut().zip(block) {
            *lane = take(*lane, element);
        }
    }
    for (lane, &element) in lanes.iter_mut().zip(rest) {
        *lane = take(*lane, element);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = join(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}
