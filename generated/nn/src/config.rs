//! Options by value: a struct with defaults and a method for each field.
//!
//! In: fields with types and defaults. Out: the struct, `new`, `Default` and setters, as the options of operators have
//! them.

/// Defines the options of a layer or an optimizer.
macro_rules! config {
    (
        $(#[$doc:meta])*
        $name:ident $(<const $n:ident: usize>)? {
            $($(#[$field_doc:meta])* $field:ident: $ty:ty = $default:expr $(, set $arg:ty => $value:expr)?;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name $(<const $n: usize>)? {
            $(pub(crate) $field: $ty,)*
        }

        impl $(<const $n: usize>)? $name $(<$n>)? {
            /// The defaults.
            pub fn new() -> Self {
                Self { $($field: $default,)* }
            }

            $(
                $(#[$field_doc])*
                #[must_use]
                pub fn $field(mut self, $field: $crate::config::config!(@argument $ty $(, $arg)?)) -> Self {
                    self.$field = $crate::config::config!(@value $field $(, $value)?);
                    self
                }
            )*
        }

        impl $(<const $n: usize>)? Default for $name $(<$n>)? {
            fn default() -> Self {
                Self::new()
            }
        }
    };
    (@argument $ty:ty) => { $ty };
    (@argument $ty:ty, $arg:ty) => { $arg };
    (@value $field:ident) => { $field };
    (@value $field:ident, $value:expr) => { $value };
}

pub(crate) use config;
