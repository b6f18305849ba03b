//! Tables of the functions and numbers of a library, or of the driver.
//!
//! In: names, signatures and values. Out: a structure with a field for each function, constants, and in tests a comparison of both with
//! the header. Must not know a library.

/// Defines a structure of a library's functions, and in tests their signatures, to be compared with the library's header.
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

        $crate::table::signatures! { $($name($($ty),*) -> $result;)* }
    };
}
pub(crate) use functions;

/// Defines, in tests, the list `SIGNATURES`: for each function the bytes of its result and its parameters, negative for addresses.
macro_rules! signatures {
    ($($name:ident($($ty:ty),*) -> $result:ty;)*) => {
        #[cfg(test)]
        pub const SIGNATURES: &[(&str, &[i64])] = &[$((
            stringify!($name),
            &[
                <$result as $crate::table::Parameter>::BYTES,
                $(<$ty as $crate::table::Parameter>::BYTES),*
            ],
        )),*];
    };
}
pub(crate) use signatures;

/// Defines numbers of a library's enumerations, and in tests the list `NUMBERS` of each with the header's name.
macro_rules! numbers {
    ($($(#[$attribute:meta])* $name:ident = $header:ident $value:literal;)*) => {
        $($(#[$attribute])* pub const $name: std::ffi::c_int = $value;)*
        #[cfg(test)]
        pub const NUMBERS: &[(&str, std::ffi::c_int)] = &[$((stringify!($header), $value)),*];
    };
}
pub(crate) use numbers;

/// Checks that numbers and signatures are those of a header, and that more assertions hold after it. Folders of headers are those of
/// the variable `OPSMITH_CUDA_HEADERS`, joined by colons.
#[cfg(test)]
#[track_caller]
pub fn compare_with_header(
    header: &str,
    numbers: &[(&str, std::ffi::c_int)],
    signatures: &[(&str, &[i64])],
    more: &str,
) {
    let mut text = format!("#include <{header}>\n{COMPARISON}");
    for (name, value) in numbers {
        text += &format!("static_assert(static_cast<int>({name}) == {value}, \"{name}\");\n");
    }
    for (name, parameters) in signatures {
        let list: Vec<String> = parameters.iter().map(i64::to_string).collect();
        let list = list.join(", ");
        text += &format!(
            "static_assert(agrees(static_cast<decltype(&{name})>(nullptr), {{{list}}}), \"{name}\");\n"
        );
    }
    text += more;
    let headers = std::env::var("OPSMITH_CUDA_HEADERS").expect("the folder of CUDA's headers");
    let file = std::env::temp_dir().join(format!("opsmith-{header}-{}.cc", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut command = std::process::Command::new(compiler);
    command.args(["-std=c++17", "-fsyntax-only", "-Wno-deprecated-declarations"]);
    for folder in headers.split(':') {
        command.args(["-I", folder, "-I"]).arg(format!("{folder}/cccl"));
    }
    let output = command.arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Functions of a text that compares signatures.
#[cfg(test)]
const COMPARISON: &str = "#include <initializer_list>
#include <type_traits>
template <class T> constexpr long bytes() {
  return std::is_pointer<T>::value ? -static_cast<long>(sizeof(T)) : static_cast<long>(sizeof(T));
}
template <class R, class... A>
constexpr bool agrees(R (*)(A...), std::initializer_list<long> expected) {
  const long found[] = {bytes<R>(), bytes<A>()...};
  if (expected.size() != 1 + sizeof...(A)) return false;
  for (unsigned i = 0; i < expected.size(); ++i) {
    if (found[i] != expected.begin()[i]) return false;
  }
  return true;
}
";

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
parameters!(u8, u16, i32, u32, i64, u64, usize);

#[cfg(test)]
impl<T> Parameter for *const T {
    const BYTES: i64 = -8;
}

#[cfg(test)]
impl<T> Parameter for *mut T {
    const BYTES: i64 = -8;
}
