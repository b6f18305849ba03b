//! Structs of options, as generated code declares them.
//!
//! In: the name of a struct with its fields, defaults and setters. Out: the rest, which is the same for all.

/// Functions of a struct of options that all have: the defaults by another name, and a copy where a reference is given.
#[doc(hidden)]
#[macro_export]
macro_rules! options {
    ($options:ident) => {
        impl $options {
            /// The defaults.
            pub fn new() -> Self {
                Self::default()
            }
        }

        impl From<&$options> for $options {
            fn from(options: &$options) -> Self {
                options.clone()
            }
        }
    };
}
