//! The Philox 4x32-10 block function.
//!
//! Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.

const MULTIPLIER: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// Added to the key each round: the golden ratio and √3 − 1, as fractions of 2^32.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// Four random words from a 128-bit counter and a 64-bit key, words in little-endian order.
///
/// A bijection of counters for each key, so the blocks of one key never repeat before 2^128.
#[inline]
pub const fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    let mut round = 0;
    while round < ROUNDS {
        let product0 = MULTIPLIER[0] as u64 * c0 as u64;
        let product1 = MULTIPLIER[1] as u64 * c2 as u64;
        c0 = (product1 >> 32) as u32 ^ c1 ^ k0;
        c1 = product1 as u32;
        c2 = (product0 >> 32) as u32 ^ c3 ^ k1;
        c3 = product0 as u32;
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
        round += 1;
    }
    [c0, c1, c2, c3]
}

/// Counters whose blocks are computed side by side, in vector registers.
pub(super) const LANES: usize = 16;

/// As [`philox4x32_10`] of counters of one key: the first word of each, the second, and so on.
#[inline(always)]
pub(super) fn side_by_side(counters: [[u32; LANES]; 4], key: [u32; 2]) -> [[u32; LANES]; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counters;
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        for lane in 0..LANES {
            let product0 = u64::from(MULTIPLIER[0]) * u64::from(c0[lane]);
            let product1 = u64::from(MULTIPLIER[1]) * u64::from(c2[lane]);
            c0[lane] = (product1 >> 32) as u32 ^ c1[lane] ^ k0;
            c1[lane] = product1 as u32;
            c2[lane] = (product0 >> 32) as u32 ^ c3[lane] ^ k1;
            c3[lane] = product0 as u32;
        }
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    [c0, c1, c2, c3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_side_by_side_are_those_of_their_counters() {
        let counters: [[u32; LANES]; 4] = std::array::from_fn(|word| {
            std::array::from_fn(|lane| {
                (word as u32 + 1).wrapping_mul(0x9E37_79B9).wrapping_mul(lane as u32 + 1)
            })
        });
        let key = [0xa409_3822, 0x299f_31d0];
        let words = side_by_side(counters, key);
        for lane in 0..LANES {
            let counter = counters.map(|word| word[lane]);
            assert_eq!(words.map(|word| word[lane]), philox4x32_10(counter, key), "{counter:?}");
        }
    }

    /// The known-answer tests that the authors publish with Random123 (`kat_vectors`).
    #[test]
    fn known_answers() {
        let check = |counter, key, expected: [u32; 4]| {
            assert_eq!(philox4x32_10(counter, key), expected, "counter {counter:08x?}, key {key:08x?}");
        };
        check([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        check([u32::MAX; 4], [u32::MAX; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        check(
            [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
            [0xa4093822, 0x299f31d0],
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
        );
    }
}
