//! Classes of block sizes: eight for each power of two, a fixed room beyond.

use super::ALIGNMENT;

/// Room of a block beyond the requested bytes: a storage's header.
pub const HEADROOM: usize = if cfg!(loom) { 8 * ALIGNMENT } else { ALIGNMENT };
/// Classes of up to 1 KiB, 64 B apart.
const LINEAR_CLASSES: usize = 16;
/// Eight classes for each power of two from 1 KiB to 2^47 B after those.
pub const CLASSES: usize = LINEAR_CLASSES + 8 * 37;
/// Classes of up to 1 MiB, whose blocks are cached by thread.
pub const SMALL_CLASSES: usize = LINEAR_CLASSES + 8 * 10;
/// Size in bytes of the blocks of a class: the headroom and 64, 128, 192, … 1024, 1152, 1280, …
#[inline]
pub const fn class_size(class: usize) -> usize {
    if class < LINEAR_CLASSES {
        return HEADROOM + 64 * (class + 1);
    }
    let base = 1024usize << ((class - LINEAR_CLASSES) / 8);
    HEADROOM + base + base / 8 * ((class - LINEAR_CLASSES) % 8 + 1)
}

/// The smallest class that holds the headroom and `bytes`.
#[inline]
pub const fn class_of(bytes: usize) -> usize {
    let last = bytes.saturating_sub(1);
    if last < 1024 {
        return last / 64;
    }
    let power = (usize::BITS - 1 - last.leading_zeros()) as usize;
    let base = 1usize << power;
    LINEAR_CLASSES + 8 * (power - 10) + (last - base) / (base / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_what_was_asked_and_wastes_at_most_an_eighth() {
        for bytes in
            (0..5000).chain((12..40).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]))
        {
            let size = class_size(class_of(bytes));
            assert!(size >= HEADROOM + bytes, "{bytes} in {size}");
            assert!(size <= HEADROOM + bytes * 9 / 8 + ALIGNMENT, "{bytes} in {size}");
        }
    }

    #[test]
    fn powers_of_two_with_a_header_fill_their_class() {
        for power in 6..40 {
            let bytes = 1usize << power;
            assert_eq!(class_size(class_of(bytes)), HEADROOM + bytes);
            assert_eq!(class_of(bytes + 1), class_of(bytes) + 1);
        }
    }
}
