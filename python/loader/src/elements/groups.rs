//! The functions of numbers that each group of types has, as `functions:` of the stock spec declares them.
//!
//! In: a type. Out: the table of its functions, whose loops are compiled here.

/// Rows of a table for a type, by the form of the function: `One [exp sin] Two [pow]`.
macro_rules! rows {
    ($ty:ty: $($apply:ident [$($name:ident)*])*) => {
        &[$($($crate::elements::function::Function {
            name: stringify!($name),
            apply: $crate::elements::groups::row!($apply, opsmith_kernels::math::$name::<$ty>),
        },)*)*]
    };
}

/// The loop of a function.
macro_rules! row {
    (One, $function:expr) => {
        $crate::elements::function::Apply::One(|a| $crate::elements::function::one(a, $function))
    };
    (Part, $function:expr) => {
        $crate::elements::function::Apply::Part(|a| $crate::elements::function::one(a, $function))
    };
    (Test, $function:expr) => {
        $crate::elements::function::Apply::Test(|a| $crate::elements::function::one(a, $function))
    };
    (Two, $function:expr) => {
        $crate::elements::function::Apply::Two(|a, b| $crate::elements::function::two(a, b, $function))
    };
    (Compare, $function:expr) => {
        $crate::elements::function::Apply::Compare(|a, b| $crate::elements::function::two(a, b, $function))
    };
    (Three, $function:expr) => {
        $crate::elements::function::Apply::Three(|a, b, c| {
            $crate::elements::function::three(a, b, c, $function)
        })
    };
}

/// Groups of types, each with the functions that they have.
macro_rules! groups {
    ($d:tt $($group:ident: $($apply:ident [$($name:ident)*])*;)*) => {$(
        macro_rules! $group {
            ($d ty:ty) => {
                $crate::elements::groups::rows!($d ty: $($apply [$($name)*])*)
            };
        }
        pub(super) use $group;
    )*};
}

groups! { $
    all:
        One [sgn conj]
        Part [real imag]
        Test [is_nan is_inf is_finite logical_not]
        Compare [logical_and logical_or logical_xor];
    numeric: Part [abs] Two [pow];
    real:
        One [sign]
        Two [maximum minimum fmax fmin clamp_min clamp_max]
        Three [clamp]
        Test [sign_bit];
    real_numeric: One [floor ceil round trunc] Two [floor_div trunc_div remainder fmod];
    integral: One [bitwise_not] Two [bitwise_and bitwise_or bitwise_xor];
    integer: Two [shift_left shift_right];
    floating:
        One [erf erfc erfinv lgamma digamma frac i0 i0e i1 i1e]
        Two [polygamma atan2 hypot copysign next_after];
    inexact: One [
        exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh
        atanh sigmoid
    ];
    complex: Two [complex];
}
pub(super) use {row, rows};
