//! Every function of the device library gives its twin's results.
//!
//! In: the texts of the library, compiled by the host's C++ compiler with the stand-in's header. Out: comparisons with the
//! functions of `kernels::math`, `arith` and the conversions of tensors, over special values and 100 000 random ones of each
//! type. Functions of arithmetic alone agree bit for bit. The others call CUDA's functions, for which the C library's stand
//! in here: the distance allowed covers both sides' errors, not those of CUDA, which docs/design/device-library.md has.

mod device_support;

use std::ffi::c_void;

use device_support::numbers::Number;
use device_support::{Allowed, Case, EXACT, binary, check, compiled, conditioned, ternary, unary, units};
use half::{bf16, f16};
use opsmith_kernels::math;
use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::copy::ConvertFrom;
use opsmith_runtime::{Complex32, Complex64, Element, Scalar};

/// Cases of functions: how they are called, their names, their results' type, the distance, and their types.
macro_rules! cases {
    ($($call:ident [$($name:ident)*]: $allowed:expr, [$($ty:ident)*];)*) => {{
        let mut cases: Vec<Case> = Vec::new();
        $(cases!(@names $call $allowed, [$($name)*] [$($ty)*] cases);)*
        cases
    }};
    (@names $call:ident $allowed:expr, [$($name:ident)*] $types:tt $cases:ident) => {
        $(cases!(@types $call $allowed, $name $types $cases);)*
    };
    (@types $call:ident $allowed:expr, $name:ident [$($ty:ident)*] $cases:ident) => {
        $cases.extend([$($call(concat!("math::", stringify!($name)), math::$name::<$ty>, $allowed)),*]);
    };
}

#[test]
fn elementary_functions() {
    check(
        "elementary",
        cases! {
            unary [sqrt rsqrt reciprocal]: EXACT, [f32 f64 Complex32 Complex64];
            unary [exp exp2 log log1p log2 log10 expm1 sinh tanh asinh acosh atanh cosh sigmoid]: units(2), [f32];
            unary [sin cos tan asin acos atan]: units(1), [f32];
            unary [exp exp2 log asinh acosh atanh]: units(1), [f64];
            unary [tanh sigmoid]: units(2), [f64];
            unary [expm1 log1p log2 log10 sin cos tan asin acos atan sinh cosh]: EXACT, [f64];
            unary [exp exp2 expm1 log log1p log2 log10 sin cos tan atan]: EXACT, [Complex32 Complex64];
            unary [sinh cosh tanh atanh sigmoid]: EXACT, [Complex32 Complex64];
            unary [asin acos asinh acosh]: units(1), [Complex32 Complex64];
        },
    );
}

/// In single precision, a power's logarithm is rounded: a unit in its last place, or in that of the angle, is as many in
/// the power as the exponent is large.
fn rounded_power(arguments: &[Complex32], power: Complex32) -> Allowed {
    let (base, exponent) = (arguments[0], arguments[1]);
    let logarithm = base.norm().ln().abs().max(base.arg().abs());
    Allowed { units: 2.0 + f64::from(2.0 * exponent.norm() * logarithm), floor: f64::from(power.norm()) }
}

#[test]
fn powers() {
    let mut cases = cases! {
        binary [pow]: EXACT, [u8 u16 u32 u64 i8 i16 i32 i64 f64 Complex64];
        binary [pow]: units(1), [f32];
    };
    cases.push(conditioned("math::pow", math::pow::<Complex32>, rounded_power));
    check("powers", cases);
}

#[test]
fn special_functions() {
    // Near the roots of the logarithm, both sides' libraries give the digits that double precision leaves.
    let near_one = Allowed { units: 3.0, floor: 1.0 };
    check(
        "special",
        cases! {
            unary [erf erfc]: units(3), [f32 f64];
            unary [lgamma]: units(1), [f32];
            unary [lgamma]: near_one, [f64];
            unary [erfinv]: units(1), [f32];
            unary [erfinv]: units(5), [f64];
            unary [digamma]: EXACT, [f32 f64];
            unary [i0 i0e i1 i1e]: units(3), [f32 f64];
            binary [polygamma]: EXACT, [f32 f64];
            // In single precision the host has loops of its own, and devices their library.
            binary [atan2 hypot]: units(1), [f32];
            binary [atan2 hypot]: EXACT, [f64];
        },
    );
}

#[test]
fn numbers_and_signs() {
    check(
        "numbers",
        cases! {
            unary [abs sgn conj real imag is_nan is_inf is_finite floor ceil round trunc frac]: EXACT,
                [bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 Complex32 Complex64];
            unary [sign sign_bit]: EXACT, [bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64];
            binary [copysign next_after]: EXACT, [f32 f64];
            binary [complex]: EXACT, [Complex32 Complex64];
        },
    );
}

#[test]
fn choices_and_bits() {
    check(
        "choices",
        cases! {
            unary [truth logical_not]: EXACT,
                [bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 Complex32 Complex64];
            binary [logical_and logical_or logical_xor]: EXACT,
                [bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 Complex32 Complex64];
            binary [maximum minimum fmax fmin clamp_min clamp_max]: EXACT,
                [bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64];
            ternary [clamp]: EXACT, [bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64];
            unary [bitwise_not]: EXACT, [bool u8 u16 u32 u64 i8 i16 i32 i64];
            binary [bitwise_and bitwise_or bitwise_xor shift_left shift_right]: EXACT,
                [bool u8 u16 u32 u64 i8 i16 i32 i64];
        },
    );
}

#[test]
fn divisions() {
    check(
        "divisions",
        cases! {
            binary [floor_div trunc_div remainder fmod]: EXACT, [u8 u16 u32 u64 i8 i16 i32 i64 f32 f64];
        },
    );
}

/// Arithmetic of one type.
fn arithmetic<T: Number + Arithmetic>(cases: &mut Vec<Case>) {
    cases.push(binary("opsmith::add", <T as Arithmetic>::add, EXACT));
    cases.push(binary("opsmith::sub", <T as Arithmetic>::sub, EXACT));
    cases.push(binary("opsmith::mul", <T as Arithmetic>::mul, EXACT));
    cases.push(binary("opsmith::div", <T as Arithmetic>::div, EXACT));
    cases.push(binary("opsmith::rem", <T as Arithmetic>::rem, EXACT));
    cases.push(unary("opsmith::neg", <T as Arithmetic>::neg, EXACT));
    cases.push(binary("opsmith::equal", <T as Arithmetic>::equal, EXACT));
}

/// Order of one type.
fn order<T: Number + Ordered>(cases: &mut Vec<Case>) {
    cases.push(binary("opsmith::lt", <T as Ordered>::lt, EXACT));
    cases.push(binary("opsmith::le", <T as Ordered>::le, EXACT));
    cases.push(binary("opsmith::gt", <T as Ordered>::gt, EXACT));
    cases.push(binary("opsmith::ge", <T as Ordered>::ge, EXACT));
}

macro_rules! for_each {
    ($function:ident, $cases:expr, [$($ty:ident)*]) => { $($function::<$ty>($cases);)* };
}

#[test]
fn arithmetic_and_order() {
    let mut cases = Vec::new();
    for_each!(arithmetic, &mut cases, [bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 Complex32 Complex64]);
    for_each!(order, &mut cases, [bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64]);
    check("arithmetic", cases);
}

/// Conversions of one type to every other.
fn conversions<S: Number>(cases: &mut Vec<Case>)
where
    bool: ConvertFrom<S>,
    u8: ConvertFrom<S>,
    u16: ConvertFrom<S>,
    u32: ConvertFrom<S>,
    u64: ConvertFrom<S>,
    i8: ConvertFrom<S>,
    i16: ConvertFrom<S>,
    i32: ConvertFrom<S>,
    i64: ConvertFrom<S>,
    f16: ConvertFrom<S>,
    bf16: ConvertFrom<S>,
    f32: ConvertFrom<S>,
    f64: ConvertFrom<S>,
    Complex32: ConvertFrom<S>,
    Complex64: ConvertFrom<S>,
{
    macro_rules! to {
        ($($ty:ident)*) => {$(
            let function = format!("convert<{}>", <$ty as Number>::NAME);
            cases.push(unary(&function, <$ty as ConvertFrom<S>>::convert_from, EXACT));
        )*};
    }
    to!(bool u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64 Complex32 Complex64);
}

#[test]
fn conversions_of_elements() {
    let mut cases = Vec::new();
    for_each!(conversions, &mut cases, [bool u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64 Complex32 Complex64]);
    check("conversions", cases);
}

/// Numbers of a call as elements of one type.
fn scalars<T: Number + Element>(cases: &mut Vec<Case>) {
    let function = format!("from_scalar<{}>", T::NAME);
    cases.push(unary(&function, |x: bool| T::from_scalar(Scalar::Bool(x)), EXACT));
    cases.push(unary(&function, |x: i64| T::from_scalar(Scalar::Int(x)), EXACT));
    cases.push(unary(&function, |x: f64| T::from_scalar(Scalar::Float(x)), EXACT));
    cases.push(unary(&function, |x: Complex64| T::from_scalar(Scalar::Complex(x)), EXACT));
}

#[test]
fn numbers_of_calls() {
    let mut cases = Vec::new();
    for_each!(scalars, &mut cases, [bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 Complex32 Complex64]);
    check("scalars", cases);
}

#[test]
fn an_integer_division_by_zero_is_reported() {
    let text = "extern \"C\" void divide(unsigned *status, const int *pairs, int *out) { opsmith_status = status; \
                *out = opsmith::math::floor_div(pairs[0], pairs[1]); opsmith_status = nullptr; }";
    let library = compiled("reports", text);
    type Divide = unsafe extern "C" fn(*mut u32, *const c_void, *mut i32);
    // SAFETY: the text defines this function.
    let divide = unsafe { library.get::<Divide>(b"divide") }.unwrap();
    for (pair, quotient, reported) in [([7, 2], 3, 0), ([7, 0], 0, 1), ([i32::MIN, -1], i32::MIN, 0)] {
        let (mut status, mut found) = (0u32, 5i32);
        // SAFETY: two integers are read and one is written.
        unsafe { divide(&mut status, pair.as_ptr().cast(), &mut found) };
        assert_eq!((found, status), (quotient, reported), "{pair:?}");
    }
}
