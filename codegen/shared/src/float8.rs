//! Floats of 8 bits, which tensors store and no kernel computes with.
//!
//! In: numbers of single precision, or bytes. Out: the other. Rounding is to the nearest, ties to even. As in PyTorch (2.15),
//! numbers too large for `float8_e4m3fn`, which has no infinity, become the largest, infinity too; those too large for
//! `float8_e5m2` become infinite. Nothing here knows tensors.

/// The format of a float of 8 bits.
#[derive(Clone, Copy)]
struct Format {
    /// Bits of the fraction.
    fraction: u32,
    /// The difference of the exponent's bits and the exponent.
    bias: u32,
    /// The byte of the largest finite number.
    largest: u8,
    /// The byte without sign of all numbers too large: that of the largest, or infinity.
    overflow: u8,
}

const E4M3: Format = Format { fraction: 3, bias: 7, largest: 0x7e, overflow: 0x7e };
const E5M2: Format = Format { fraction: 2, bias: 15, largest: 0x7b, overflow: 0x7c };

/// The byte of every NaN, but for its sign.
const NAN: u8 = 0x7f;

impl Format {
    /// The nearest byte.
    #[inline(always)]
    const fn encode(self, number: f32) -> u8 {
        let bits = number.to_bits();
        let (sign, bits) = ((bits >> 24) as u8 & 0x80, bits & 0x7fff_ffff);
        if bits > 0x7f80_0000 {
            return sign | NAN;
        }
        let smallest_normal = (128 - self.bias) << 23;
        let code = if bits < smallest_normal {
            // The last bit of this number is worth the smallest subnormal one: adding it rounds, and leaves how many
            // there are.
            let unit = (128 - self.bias + 23 - self.fraction) << 23;
            (f32::from_bits(bits) + f32::from_bits(unit)).to_bits() - unit
        } else {
            let (dropped, rebias) = (23 - self.fraction, (127 - self.bias) << 23);
            let is_odd = (bits >> dropped) & 1;
            (bits - rebias + (1 << (dropped - 1)) - 1 + is_odd) >> dropped
        };
        sign | if code > self.largest as u32 { self.overflow } else { code as u8 }
    }

    /// The number of a byte, which single precision holds.
    const fn decode(self, byte: u8) -> f32 {
        let sign = (byte as u32 & 0x80) << 24;
        let code = byte & 0x7f;
        if code > self.largest {
            return f32::from_bits(sign | if code == self.overflow { 0x7f80_0000 } else { 0x7fc0_0000 });
        }
        let (fraction, exponent) = (code as u32 & ((1 << self.fraction) - 1), code as u32 >> self.fraction);
        let bits = match exponent {
            0 => {
                let unit = f32::from_bits((128 - self.bias - self.fraction) << 23);
                (fraction as f32 * unit).to_bits()
            }
            _ => ((exponent + 127 - self.bias) << 23) | (fraction << (23 - self.fraction)),
        };
        f32::from_bits(sign | bits)
    }

    /// The numbers of all bytes.
    const fn decoded(self) -> [f32; 256] {
        let (mut numbers, mut byte) = ([0.0; 256], 0);
        while byte < 256 {
            numbers[byte] = self.decode(byte as u8);
            byte += 1;
        }
        numbers
    }
}

macro_rules! floats {
    ($($(#[$attribute:meta])* $name:ident, $format:ident;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The largest finite number.
            pub const MAX: $name = $name($format.largest);

            /// The number of a byte.
            pub const fn from_bits(bits: u8) -> $name {
                $name(bits)
            }

            /// The byte of the number.
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest number, ties to even.
            #[inline(always)]
            pub const fn from_f32(number: f32) -> $name {
                $name($format.encode(number))
            }

            /// The number in single precision, which holds it.
            #[inline(always)]
            pub fn to_f32(self) -> f32 {
                static NUMBERS: [f32; 256] = $format.decoded();
                NUMBERS[usize::from(self.0)]
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl From<$name> for f32 {
            fn from(number: $name) -> f32 {
                number.to_f32()
            }
        }

        impl From<$name> for f64 {
            fn from(number: $name) -> f64 {
                f64::from(number.to_f32())
            }
        }
    )*};
}

floats! {
    /// An element of `float8_e4m3fn`: sign, 4 bits of exponent, 3 of fraction; to ±448, NaN, no infinity.
    ///
    /// `Float8E4M3::from_f32(0.3)` is 0.3125; `from_f32(500.0)` is 448.
    Float8E4M3, E4M3;
    /// An element of `float8_e5m2`: sign, 5 bits of exponent, 2 of fraction; to ±57344, infinities, NaN.
    ///
    /// `Float8E5M2::from_f32(0.3)` is 0.3125; `from_f32(1e6)` is infinite.
    Float8E5M2, E5M2;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every finite number, its neighbours in single precision, and the middle to the next with its neighbours, by exact
    /// arithmetic in double precision.
    #[test]
    fn every_boundary_rounds_to_the_nearest() {
        for (format, infinity) in [(E4M3, 480.0), (E5M2, 65536.0)] {
            let largest = format.largest;
            for code in 0..=largest {
                let next = if code == largest { format.overflow } else { code + 1 };
                let low = f64::from(format.decode(code));
                let high = if code == largest { infinity } else { f64::from(format.decode(code + 1)) };
                let middle = ((low + high) / 2.0) as f32;
                assert_eq!(f64::from(middle), (low + high) / 2.0, "the middle is a number");
                let at_middle = if code % 2 == 0 { code } else { next };
                for (number, expected) in [
                    (low as f32, code),
                    (middle.next_down(), code),
                    (middle, at_middle),
                    (middle.next_up(), next),
                ] {
                    assert_eq!(format.encode(number), expected, "{number:e}");
                    assert_eq!(format.encode(-number), expected | 0x80, "-{number:e}");
                }
            }
        }
    }

    #[test]
    fn every_byte_is_the_number_of_its_number() {
        for byte in 0..=255 {
            for format in [E4M3, E5M2] {
                let number = format.decode(byte);
                let expected = if number.is_nan() { byte | NAN } else { byte };
                assert_eq!(format.encode(number), expected, "{byte:#x}");
            }
        }
    }

    #[test]
    fn numbers_too_large() {
        for number in [448.0, 464.0, 464.1, 480.0, 1e30, f32::INFINITY] {
            assert_eq!(Float8E4M3::from_f32(number).to_f32(), 448.0, "{number}");
            assert_eq!(Float8E4M3::from_f32(-number).to_f32(), -448.0, "-{number}");
        }
        assert!(Float8E4M3::from_f32(f32::NAN).to_f32().is_nan());
        assert_eq!(Float8E5M2::MAX.to_f32(), 57344.0);
        assert_eq!(Float8E5M2::from_f32(61440.0).to_f32(), f32::INFINITY);
        assert_eq!(Float8E5M2::from_f32(-1e30).to_f32(), f32::NEG_INFINITY);
        assert!(Float8E5M2::from_f32(f32::NAN).to_f32().is_nan());
    }
}
