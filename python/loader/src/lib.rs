//! Operators of a spec that a running program reads.
//!
//! In: the text of a spec, and the library whose operators its formulas may call. Out: definitions as the dispatcher has
//! them, or every mistake of the spec. The checker is the generator's. Rules of inference are evaluated as trees, expressions
//! of elements block by block, compositions and formulas of gradients call by call, custom kernels by `opsmith_aot`. A kernel
//! in Rust is refused. Must not know any operator by name, graphs, or Python.
//!
//! ```
//! use opsmith_loader::{Source, load};
//! use opsmith_runtime::{Tensor, Value, boxed};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = "edition: 1\nops:\n- func: cube(Tensor self) -> Tensor\n  doc: The third power.\n  pointwise: self * self * self\n";
//! let library = load(&opsmith::LIBRARY, &Source::text("cubes.yaml", text))?;
//! let cubes = boxed::call(library, "cube", &[Value::Tensor(Tensor::of(&[1.0f32, 2.0]))], &[])?;
//! assert_eq!(cubes[0].clone().into_tensor()?.to_vec::<f32>()?, [1.0, 8.0]);
//! # Ok(())
//! # }
//! ```

mod arguments;
mod check;
mod define;
mod elements;
mod evaluate;
mod gradients;
mod infer;
mod item;
mod kernel;
mod operator;
mod query;
mod slots;

pub use check::{Failure, Mistake, Source};

use opsmith_runtime::library::{Documentation, Library};

/// Checks a spec, and makes its operators, which may call those of `parent`, the stock library, and each other. Definitions
/// live as long as the program, as all definitions do.
///
/// # Errors
/// If the spec cannot be read, has mistakes, or needs a compiler for Rust.
pub fn load(parent: &'static Library, source: &Source) -> Result<&'static Library, Failure> {
    load_documented(parent, source).map(|documentation| documentation.library)
}

/// The same, with the documentation that the generator would write.
///
/// # Errors
/// As [`load`].
pub fn load_documented(parent: &'static Library, source: &Source) -> Result<&'static Documentation, Failure> {
    let checked = check::check(source)?;
    define::library(parent, source, checked)
}

/// The stock library's own operators that need no compiler, loaded as a user's are: tests compare them with the compiled ones.
///
/// # Errors
/// As [`load`].
#[doc(hidden)]
pub fn load_stock(parent: &'static Library) -> Result<&'static Library, Failure> {
    let source = Source::stock();
    let checked = check::check(&source)?;
    define::library(parent, &source, checked).map(|documentation| documentation.library)
}
