//! Structs of options, as generated code declares them.
//!
//! In: the name of a struct with its fields, each with its default and its setter. Out: the struct, with the functions
//! common to all structs of options.

/// A struct of options. In a row, the type and the default of a field stand before the type that its setter takes and
/// the field's value for that; a type after `from`, with the parameters of its conversion, converts to the options.
#[doc(hidden)]
#[macro_export]
macro_rules! options {
    (
        $(#[$attribute:meta])*
        $options:ident;
        $(
            $(#[$docs:meta])*
            $field:ident: $ty:ty = $default:expr,
            set $given:ty => $value:expr $(, from [$($parameter:ident: $bound:path)?] $source:ty)?;
        )*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $options {
            $($field: $ty),*
        }

        impl Default for $options {
            fn default() -> Self {
                $options { $($field: $default),* }
            }
        }

        impl $options {
            /// The defaults.
            pub fn new() -> Self {
                <Self as Default>::default()
            }

            $(
                $(#[$docs])*
                pub fn $field(mut self, $field: $given) -> Self {
                    self.$field = $value;
                    self
                }
            )*
        }

        $($(
            impl $(<$parameter: $bound>)? From<$source> for $options {
                fn from(value: $source) -> Self {
                    $options::new().$field(value)
                }
            }
        )?)*

        impl From<&$options> for $options {
            fn from(options: &$options) -> Self {
                options.clone()
            }
        }
    };
}
