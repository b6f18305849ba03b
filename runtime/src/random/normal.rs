//! Box and Muller's transformation in `f32`, the same to the bit wherever it runs.
//!
//! Only additions, multiplications, a square root and conversions appear, which IEEE 754 defines to
//! the last bit; none of them may be contracted to a fused multiply-add (Rust never does; CUDA code
//! uses the `_rn` intrinsics). The polynomials are those of the Cephes library's `logf`, `sinf` and
//! `cosf`, with errors below 2 units in the last place on the ranges used here.

const TWO_TO_MINUS_32: f32 = 1.0 / 4_294_967_296.0;

/// Two independent normal numbers from two random words.
#[inline(always)]
pub(super) fn pair_f32(first: u32, second: u32) -> (f32, f32) {
    let uniform = (first as f32 + 1.0) * TWO_TO_MINUS_32;
    let radius = (-2.0 * ln(uniform)).max(0.0).sqrt();
    let (cosine, sine) = cos_sin_of_turn(second);
    (radius * cosine, radius * sine)
}

/// The natural logarithm of a positive normal number.
#[inline(always)]
fn ln(value: f32) -> f32 {
    const SQRT_HALF_BITS: u32 = 0x3f35_04f3;
    // Splits into exponent and a mantissa between √½ and √2, by integer arithmetic on the bits.
    let shifted = value.to_bits().wrapping_sub(SQRT_HALF_BITS);
    let exponent = (shifted as i32 >> 23) as f32;
    let x = f32::from_bits((shifted & 0x007f_ffff) + SQRT_HALF_BITS) - 1.0;
    let square = x * x;
    let mut tail = 7.037_683_6e-2;
    for coefficient in [
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        tail = tail * x + coefficient;
    }
    let tail = tail * x * square - 2.121_944_4e-4 * exponent - 0.5 * square;
    (x + tail) + 0.693_359_4 * exponent
}

/// Cosine and sine of `turn / 2^32` of a full turn.
#[inline(always)]
fn cos_sin_of_turn(turn: u32) -> (f32, f32) {
    // The nearest quarter turn, and the rest of at most an eighth turn either way.
    let quarter = turn.wrapping_add(1 << 29) >> 30;
    let rest = turn.wrapping_sub(quarter << 30) as i32;
    let x = rest as f32 * (std::f32::consts::TAU * TWO_TO_MINUS_32);
    let square = x * x;
    let sine = ((-1.951_529_6e-4 * square + 8.332_161e-3) * square - 1.666_665_5e-1) * square * x + x;
    let cosine = ((2.443_315_7e-5 * square - 1.388_731_6e-3) * square + 4.166_664_6e-2) * square * square
        - 0.5 * square
        + 1.0;
    // Odd quarters exchange the two; signs follow the quarter. No branch: it would be a coin toss.
    let (cosine, sine) = if quarter & 1 == 0 { (cosine, sine) } else { (sine, cosine) };
    let with_sign = |value: f32, negative: u32| f32::from_bits(value.to_bits() ^ negative << 31);
    (with_sign(cosine, (quarter + 1) >> 1 & 1), with_sign(sine, quarter >> 1 & 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "safe code, interpreted for a million numbers")]
    fn the_polynomials_follow_the_real_functions() {
        for step in 0..1_000_000u32 {
            let word = step.wrapping_mul(4295).wrapping_add(step & 7);
            let uniform = (word as f32 + 1.0) * TWO_TO_MINUS_32;
            let exact = f64::from(uniform).ln();
            assert!(
                (f64::from(ln(uniform)) - exact).abs() <= 2.5e-7 * exact.abs().max(f64::MIN_POSITIVE),
                "ln({uniform})"
            );
            let (cosine, sine) = cos_sin_of_turn(word);
            let angle = std::f64::consts::TAU * f64::from(word) / 4_294_967_296.0;
            assert!((f64::from(cosine) - angle.cos()).abs() < 1.5e-7, "cos of {word}");
            assert!((f64::from(sine) - angle.sin()).abs() < 1.5e-7, "sin of {word}");
        }
    }

    #[test]
    fn the_extremes_are_finite() {
        assert_eq!(pair_f32(u32::MAX, 0), (0.0, 0.0));
        let (largest, _) = pair_f32(0, 0);
        assert!((largest - 6.660_437).abs() < 1e-6, "{largest}");
    }
}
