//! Functions of generated code that are one call each, as rows.
//!
//! In: signatures, and the call behind each. Out: the functions. Must know no operator.

/// Functions that take every argument in order, as formulas call them.
#[doc(hidden)]
#[macro_export]
macro_rules! raw {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $result:ty = $invoke:ident($op:expr);
    )*) => {$(
        $(#[$attribute])*
        pub fn $name($($arg: $ty),*) -> $crate::Result<$result> {
            $crate::generated::call::$invoke($op, &[$($arg.into()),*])
        }
    )*};
}

/// Functions that differ from a first one as the words in brackets say, which document them. A parameter with `=>` is
/// whatever converts to its type.
#[doc(hidden)]
#[macro_export]
macro_rules! forms {
    (
        $first:ident: $summary:literal;
        $(
            $(#[$attribute:meta])*
            [$($word:ident)*] fn $name:ident $(<$lifetime:lifetime>)?(
                $($arg:ident $(: $ty:ty)? $(=> $into:ty)?),* $(,)?
            ) -> $result:ty = $body:expr;
        )*
    ) => {$(
        #[doc = $summary]
        #[doc = ""]
        #[doc = concat!(
            "As [`", stringify!($first), "`](fn@super::", stringify!($first), ")", $crate::__form!($($word)*)
        )]
        $(#[$attribute])*
        #[track_caller]
        pub fn $name $(<$lifetime>)?($($arg: $($ty)? $(impl Into<$into>)?),*) -> $result {
            $($(let $arg: $into = $arg.into();)?)*
            $body
        }
    )*};
}

/// The end of a sentence on a form: its difference from the first.
#[doc(hidden)]
#[macro_export]
macro_rules! __form {
    () => {
        "."
    };
    (options) => {
        ", with options."
    };
    (inplace $($options:ident)?) => {
        concat!(
            $crate::__form!($($options)?),
            " In place: writes the result into the first argument; one of another shape, or of a dtype that does not \
             hold it, is an error."
        )
    };
    (out $($options:ident)?) => {
        concat!(
            $crate::__form!($($options)?),
            " Writes the result into `out`, which must have the result's shape or no elements; any other is an error."
        )
    };
}
