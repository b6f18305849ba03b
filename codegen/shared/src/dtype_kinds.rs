//! The rows of [`for_each_dtype!`](crate::for_each_dtype) of some kinds of numbers.
//!
//! In: the table of element types. Out: macros over the floats that compute in `f32`, the dtypes that only store, and those
//! that kernels compute with. Nothing here knows tensors.

/// Calls a macro with the floats that compute in `f32`, a row in braces for each: variant, Rust type, bytes.
///
/// Such a type has `MANTISSA_DIGITS`, `MAX`, and conversions from and to `f32` and `f64`, as those of the crate `half`.
#[macro_export]
macro_rules! for_each_half {
    (@next [$($given:tt)*] [$($then:tt)+] [$($found:tt)*]) => {
        $($then)+! { $($given)* $($found)* }
    };
    (
        @next $given:tt $then:tt [$($found:tt)*]
        { $variant:ident: $rust:ty, $name:literal, Half, $size:tt, $($columns:tt)* } $($rest:tt)*
    ) => {
        $crate::for_each_half! { @next $given $then [$($found)* { $variant: $rust, $size }] $($rest)* }
    };
    (@next $given:tt $then:tt $found:tt $other:tt $($rest:tt)*) => {
        $crate::for_each_half! { @next $given $then $found $($rest)* }
    };
    ([@rows $given:tt $then:tt] $($rows:tt)*) => {
        $crate::for_each_half! { @next $given $then [] $($rows)* }
    };
    ([$($given:tt)*] $($then:tt)+) => {
        $crate::for_each_dtype! { [@rows [[$($given)*]] [$($then)+]] $crate::for_each_half }
    };
    ($($then:tt)+) => {
        $crate::for_each_dtype! { [@rows [] [$($then)+]] $crate::for_each_half }
    };
}

/// Calls a macro with the floats that only store, in the form of [`for_each_half!`].
///
/// Such a type has `MAX`, and conversions from and to `f32`.
#[macro_export]
macro_rules! for_each_stored_float {
    (@next [$($given:tt)*] [$($then:tt)+] [$($found:tt)*]) => {
        $($then)+! { $($given)* $($found)* }
    };
    (
        @next $given:tt $then:tt [$($found:tt)*]
        { $variant:ident: $rust:ty, $name:literal, Stored, $size:tt, $($columns:tt)* } $($rest:tt)*
    ) => {
        $crate::for_each_stored_float! { @next $given $then [$($found)* { $variant: $rust, $size }] $($rest)* }
    };
    (@next $given:tt $then:tt $found:tt $other:tt $($rest:tt)*) => {
        $crate::for_each_stored_float! { @next $given $then $found $($rest)* }
    };
    ([@rows $given:tt $then:tt] $($rows:tt)*) => {
        $crate::for_each_stored_float! { @next $given $then [] $($rows)* }
    };
    ([$($given:tt)*] $($then:tt)+) => {
        $crate::for_each_dtype! { [@rows [[$($given)*]] [$($then)+]] $crate::for_each_stored_float }
    };
    ($($then:tt)+) => {
        $crate::for_each_dtype! { [@rows [] [$($then)+]] $crate::for_each_stored_float }
    };
}

/// Calls a macro with the integers that only store, in the form of [`for_each_half!`].
///
/// Such a type has conversions from and to `i64`, of which it takes the low bits.
#[macro_export]
macro_rules! for_each_stored_int {
    (@next [$($given:tt)*] [$($then:tt)+] [$($found:tt)*]) => {
        $($then)+! { $($given)* $($found)* }
    };
    (
        @next $given:tt $then:tt [$($found:tt)*]
        { $variant:ident: $rust:ty, $name:literal, Signed4, $size:tt, $($columns:tt)* } $($rest:tt)*
    ) => {
        $crate::for_each_stored_int! { @next $given $then [$($found)* { $variant: $rust, $size }] $($rest)* }
    };
    (
        @next $given:tt $then:tt [$($found:tt)*]
        { $variant:ident: $rust:ty, $name:literal, Unsigned4, $size:tt, $($columns:tt)* } $($rest:tt)*
    ) => {
        $crate::for_each_stored_int! { @next $given $then [$($found)* { $variant: $rust, $size }] $($rest)* }
    };
    (@next $given:tt $then:tt $found:tt $other:tt $($rest:tt)*) => {
        $crate::for_each_stored_int! { @next $given $then $found $($rest)* }
    };
    ([@rows $given:tt $then:tt] $($rows:tt)*) => {
        $crate::for_each_stored_int! { @next $given $then [] $($rows)* }
    };
    ([$($given:tt)*] $($then:tt)+) => {
        $crate::for_each_dtype! { [@rows [[$($given)*]] [$($then)+]] $crate::for_each_stored_int }
    };
    ($($then:tt)+) => {
        $crate::for_each_dtype! { [@rows [] [$($then)+]] $crate::for_each_stored_int }
    };
}

/// Calls a macro with the dtypes that kernels compute with, all but those that only store, a row in braces for each: variant,
/// Rust type. `for_each_computing!([a, b] rows)` calls it with `[a, b]` before the rows.
#[macro_export]
macro_rules! for_each_computing {
    (@next $given:tt [$($then:tt)+] [$($found:tt)*]) => {
        $($then)+! { $given $($found)* }
    };
    (
        @next $given:tt $then:tt $found:tt
        { $variant:ident: $rust:ty, $name:literal, Stored, $($columns:tt)* } $($rest:tt)*
    ) => {
        $crate::for_each_computing! { @next $given $then $found $($rest)* }
    };
    (
        @next $given:tt $then:tt $found:tt
        { $variant:ident: $rust:ty, $name:literal, Signed4, $($columns:tt)* } $($rest:tt)*
    ) => {
        $crate::for_each_computing! { @next $given $then $found $($rest)* }
    };
    (
        @next $given:tt $then:tt $found:tt
        { $variant:ident: $rust:ty, $name:literal, Unsigned4, $($columns:tt)* } $($rest:tt)*
    ) => {
        $crate::for_each_computing! { @next $given $then $found $($rest)* }
    };
    (
        @next $given:tt $then:tt [$($found:tt)*]
        { $variant:ident: $rust:ty, $($columns:tt)* } $($rest:tt)*
    ) => {
        $crate::for_each_computing! { @next $given $then [$($found)* { $variant: $rust }] $($rest)* }
    };
    ([@rows $given:tt $then:tt] $($rows:tt)*) => {
        $crate::for_each_computing! { @next $given $then [] $($rows)* }
    };
    ([$($given:tt)*] $($then:tt)+) => {
        $crate::for_each_dtype! { [@rows [$($given)*] [$($then)+]] $crate::for_each_computing }
    };
}
