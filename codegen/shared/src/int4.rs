//! Integers of four bits, which tensors store and no kernel computes with.
//!
//! In: integers, or bytes. Out: the other. An integer out of range leaves its low four bits, as for the longer types. An
//! element has a byte of its own, whose upper bits are those of the integer of eight bits; a byte from elsewhere counts by its
//! low four bits. Nothing here knows tensors.

macro_rules! integers {
    ($($(#[$attribute:meta])* $name:ident as $byte:ident;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $name($byte);

        impl $name {
            /// The integer of a byte's low four bits.
            #[inline(always)]
            pub const fn from_bits(bits: u8) -> $name {
                $name(((bits << 4) as $byte) >> 4)
            }

            /// The low four bits, the upper ones zero.
            #[inline(always)]
            pub const fn to_bits(self) -> u8 {
                self.0 as u8 & 15
            }

            /// The integer of the low four bits.
            #[inline(always)]
            pub const fn from_i64(number: i64) -> $name {
                $name::from_bits(number as u8)
            }

            /// The integer.
            #[inline(always)]
            pub const fn to_i64(self) -> i64 {
                $name::from_bits(self.0 as u8).0 as i64
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                self.to_bits() == other.to_bits()
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.to_i64(), f)
            }
        }

        impl From<$name> for i64 {
            fn from(number: $name) -> i64 {
                number.to_i64()
            }
        }
    )*};
}

integers! {
    /// An element of `int4`: −8 to 7.
    ///
    /// `Int4::from_i64(7)` is 7; `Int4::from_i64(9)` is −7, whose low four bits are those of 9.
    Int4 as i8;
    /// An element of `uint4`: 0 to 15.
    ///
    /// `UInt4::from_i64(15)` is 15; `UInt4::from_i64(-1)` is 15, whose low four bits are those of −1.
    UInt4 as u8;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_bits_are_the_integer() {
        for number in -300i64..300 {
            let low = number.rem_euclid(16);
            assert_eq!(UInt4::from_i64(number).to_i64(), low);
            assert_eq!(Int4::from_i64(number).to_i64(), if low > 7 { low - 16 } else { low });
            assert_eq!(Int4::from_i64(number).to_bits(), low as u8);
        }
        assert_eq!(Int4::from_bits(0x0f), Int4::from_bits(0xff));
        assert_eq!(format!("{:?} {:?}", Int4::from_bits(0x1f), UInt4::from_bits(0x1f)), "-1 15");
    }
}
