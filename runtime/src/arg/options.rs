//! Structs of options, as generated code declares them.
//!
//! In: the name of a struct with its fields, defaults and setters. Out: the parts that are the same for all such
//! structs.

/// Functions common to all structs of options: the defaults under another name, and a copy from a reference.
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
