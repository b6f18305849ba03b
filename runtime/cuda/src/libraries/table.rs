//! Tables of a library's functions.
//!
//! In: names and signatures. Out: a structure with a field for each function. Must not know a library.

/// Defines a structure of a library's functions, and in tests its signatures as the list `SIGNATURES`: for each function the
/// bytes of its result and its parameters, negative for addresses, to be compared with the library's header.
macro_rules! functions {
    (
        $(#[$attribute:meta])* pub struct $table:ident;
        $($name:ident($($argument:ident: $ty:ty),* $(,)?) -> $result:ty;)*
    ) => {
        $(#[$attribute])*
        #[allow(non_snake_case, reason = "names of the library's interface")]
        pub struct $table {
            $(pub $name: unsafe extern "C" fn($($argument: $ty),*) -> $result,)*
        }

        impl $table {
            /// Looks up every function.
            ///
            /// # Errors
            /// The name that is missing.
            pub fn of(library: &Library) -> Result<$table, &'static str> {
                // SAFETY: each name has the signature of the library's header, which a test compares; libraries stay loaded.
                unsafe {
                    Ok($table {
                        $($name: *library
                            .get(concat!(stringify!($name), "\0").as_bytes())
                            .map_err(|_| stringify!($name))?,)*
                    })
                }
            }
        }

        #[cfg(test)]
        pub const SIGNATURES: &[(&str, &[i64])] = &[$((
            stringify!($name),
            &[
                <$result as $crate::libraries::table::Parameter>::BYTES,
                $(<$ty as $crate::libraries::table::Parameter>::BYTES),*
            ],
        )),*];
    };
}
pub(crate) use functions;

/// Types of parameters, for the comparison of signatures.
#[cfg(test)]
pub trait Parameter {
    /// Bytes, negative for addresses.
    const BYTES: i64;
}

#[cfg(test)]
macro_rules! parameters {
    ($($ty:ty),*) => {
        $(impl Parameter for $ty {
            const BYTES: i64 = size_of::<$ty>() as i64;
        })*
    };
}

#[cfg(test)]
parameters!(i32, i64, u64, usize);

#[cfg(test)]
impl<T> Parameter for *const T {
    const BYTES: i64 = -8;
}

#[cfg(test)]
impl<T> Parameter for *mut T {
    const BYTES: i64 = -8;
}
