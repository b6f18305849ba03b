//! Numbers to call functions with, and the distance between two results.
//!
//! In: a type of elements. Out: its name in the device library, special and random values, distances in units in the last
//! place.

use half::{bf16, f16};
use opsmith_runtime::{Complex32, Complex64};

/// Random bits: SplitMix64.
pub struct Bits(pub u64);

impl Bits {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// An element type that functions are called with.
pub trait Number: Copy + std::fmt::Debug + 'static {
    /// Its name in the device library.
    const NAME: &'static str;
    /// Values at which functions change their ways.
    fn special() -> Vec<Self>;
    /// A random value: any bits, or one of moderate size.
    fn random(bits: &mut Bits) -> Self;
    /// Distance in units in the last place, those of `floor` for smaller numbers; NaN is NaN, and zeros have signs. If `floor`
    /// is infinite, so is the whole number, and infinite parts are alike.
    fn distance(self, other: Self, floor: f64) -> f64;
}

impl Number for bool {
    const NAME: &'static str = "bool";
    fn special() -> Vec<bool> {
        vec![false, true]
    }
    fn random(bits: &mut Bits) -> bool {
        bits.next() & 1 == 1
    }
    fn distance(self, other: bool, _floor: f64) -> f64 {
        if self == other { 0.0 } else { f64::INFINITY }
    }
}

macro_rules! integers {
    ($($ty:ident)*) => {$(
        impl Number for $ty {
            const NAME: &'static str = stringify!($ty);
            fn special() -> Vec<$ty> {
                let width = <$ty>::BITS as $ty;
                let mut values = vec![<$ty>::MIN, <$ty>::MIN + 1, <$ty>::MAX - 1, <$ty>::MAX, (0 as $ty).wrapping_sub(1)];
                values.extend([0, 1, 2, 3, 7, 10, width - 1, width, width + 1]);
                values
            }
            fn random(bits: &mut Bits) -> $ty {
                let next = bits.next();
                let small = (next >> 32) as $ty % 100;
                if next & 1 == 0 { (next >> 1) as $ty } else if next & 2 == 0 { small } else { small.wrapping_neg() }
            }
            fn distance(self, other: $ty, _floor: f64) -> f64 {
                if self == other { 0.0 } else { f64::INFINITY }
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 i8 i16 i32 i64);

macro_rules! floats {
    ($($ty:ident $name:literal $bits:ident;)*) => {$(
        impl Number for $ty {
            const NAME: &'static str = $name;
            fn special() -> Vec<$ty> {
                let mut values = vec![$ty::NAN];
                for bits in [0, 1, 2, $ty::MIN_POSITIVE.to_bits() - 1, $ty::MIN_POSITIVE.to_bits(),
                             $ty::MAX.to_bits() - 1, $ty::MAX.to_bits(), $ty::INFINITY.to_bits(),
                             (1.0 as $ty).to_bits() - 1, (1.0 as $ty).to_bits() + 1] {
                    values.push($ty::from_bits(bits));
                }
                values.extend([1e-30, 1e-8, 1e-3, 0.1, 0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0, 4.5, 10.0, 22.0]);
                values.extend([std::$ty::consts::PI, 44.0, 88.5, 89.0, 104.0, 127.0, 170.0, 171.0, 255.0, 256.0, 710.0]);
                values.extend([746.0, 32_768.0, 65_504.0, 65_520.0, 16_777_217.0, 2_147_483_648.0, 1e10]);
                values.extend([9_223_372_036_854_775_808.0, 18_446_744_073_709_551_616.0, 1e22, 1e38]);
                let negative: Vec<$ty> = values.iter().map(|value| -value).collect();
                values.extend(negative);
                values
            }
            fn random(bits: &mut Bits) -> $ty {
                let next = bits.next();
                let unit = (next >> 11) as f64 / (1u64 << 53) as f64;
                match next & 7 {
                    0 | 1 => $ty::from_bits(bits.next() as $bits),
                    2 => (unit * 200.0 - 100.0).round() as $ty * 0.5,
                    3 => (unit * 200.0 - 100.0) as $ty,
                    4 => (unit * 12.0 - 6.0) as $ty,
                    _ => (unit * 2.0 - 1.0) as $ty,
                }
            }
            fn distance(self, other: $ty, floor: f64) -> f64 {
                if self.is_nan() || other.is_nan() {
                    return if self.is_nan() && other.is_nan() { 0.0 } else { f64::INFINITY };
                }
                if floor == f64::INFINITY && self.is_infinite() && other.is_infinite() {
                    return 0.0;
                }
                let ordered = |value: $ty| {
                    let size = (value.to_bits() & ($bits::MAX >> 1)) as i128;
                    if value.is_sign_negative() { -1 - size } else { size }
                };
                let units = (ordered(self) - ordered(other)).unsigned_abs() as f64;
                let unit = floor * f64::from($ty::EPSILON);
                let difference = f64::from(self) - f64::from(other);
                if units > 0.0 && unit > 0.0 && difference.abs() < f64::INFINITY {
                    units.min(difference.abs() / unit)
                } else {
                    units
                }
            }
        }
    )*};
}

floats! { f32 "float" u32; f64 "double" u64; }

macro_rules! halves {
    ($($ty:ident)*) => {$(
        impl Number for $ty {
            const NAME: &'static str = stringify!($ty);
            fn special() -> Vec<$ty> {
                (0..=u16::MAX).map($ty::from_bits).collect()
            }
            fn random(bits: &mut Bits) -> $ty {
                $ty::from_bits(bits.next() as u16)
            }
            fn distance(self, other: $ty, _floor: f64) -> f64 {
                let same = self.to_bits() == other.to_bits() || self.is_nan() && other.is_nan();
                if same { 0.0 } else { (f64::from(self.to_bits()) - f64::from(other.to_bits())).abs() }
            }
        }
    )*};
}

halves!(f16 bf16);

macro_rules! complexes {
    ($($ty:ident $name:literal $real:ident;)*) => {$(
        impl Number for $ty {
            const NAME: &'static str = $name;
            fn special() -> Vec<$ty> {
                let parts = [0.0, $real::MIN_POSITIVE, 1e-8, 0.5, 1.0, 1.5, 3.0, 30.0, 1e10, $real::MAX, $real::INFINITY, $real::NAN];
                let signed: Vec<$real> = parts.iter().flat_map(|&part| [part, -part]).collect();
                signed.iter().flat_map(|&re| signed.iter().map(move |&im| $ty::new(re, im))).collect()
            }
            fn random(bits: &mut Bits) -> $ty {
                $ty::new(Number::random(bits), Number::random(bits))
            }
            fn distance(self, other: $ty, floor: f64) -> f64 {
                self.re.distance(other.re, floor).max(self.im.distance(other.im, floor))
            }
        }
    )*};
}

complexes! { Complex32 "c32" f32; Complex64 "c64" f64; }
