// @generated from spec.yaml.

/// The definition of each operator, as the dispatcher reads it.
#[allow(unused_imports, reason = "every module has the same imports")]
#[allow(
    unused_parens,
    reason = "expressions keep the parentheses that give them their order"
)]
#[allow(
    non_snake_case,
    reason = "underscores and capital letters keep names of a spec apart"
)]
#[allow(deprecated, reason = "what is deprecated still has to work")]
#[allow(clippy::all, reason = "generated code; the generator's own sources are linted")]
pub mod defs {
    use ::opsmith::runtime as rt;
    use crate::kernels::{self as kernels};
    include!(concat!(env!("OUT_DIR"), "/opsmith/defs.rs"));
}

/// Each operator with all its arguments in order, for generated formulas.
#[allow(unused_imports, reason = "every module has the same imports")]
#[allow(
    unused_parens,
    reason = "expressions keep the parentheses that give them their order"
)]
#[allow(
    non_snake_case,
    reason = "underscores and capital letters keep names of a spec apart"
)]
#[allow(deprecated, reason = "what is deprecated still has to work")]
#[allow(clippy::all, reason = "generated code; the generator's own sources are linted")]
pub mod raw {
    use ::opsmith::runtime as rt;
    use crate::kernels::{self as kernels};
    include!(concat!(env!("OUT_DIR"), "/opsmith/raw.rs"));
}

/// The functions users call.
#[allow(unused_imports, reason = "every module has the same imports")]
#[allow(
    unused_parens,
    reason = "expressions keep the parentheses that give them their order"
)]
#[allow(
    non_snake_case,
    reason = "underscores and capital letters keep names of a spec apart"
)]
#[allow(deprecated, reason = "what is deprecated still has to work")]
#[allow(clippy::all, reason = "generated code; the generator's own sources are linted")]
mod functions {
    use ::opsmith::runtime as rt;
    use crate::kernels::{self as kernels};
    include!(concat!(env!("OUT_DIR"), "/opsmith/functions.rs"));
}

/// The same operators as methods of tensors.
#[allow(unused_imports, reason = "every module has the same imports")]
#[allow(
    unused_parens,
    reason = "expressions keep the parentheses that give them their order"
)]
#[allow(
    non_snake_case,
    reason = "underscores and capital letters keep names of a spec apart"
)]
#[allow(deprecated, reason = "what is deprecated still has to work")]
#[allow(clippy::all, reason = "generated code; the generator's own sources are linted")]
mod methods {
    use ::opsmith::runtime as rt;
    use crate::kernels::{self as kernels};
    include!(concat!(env!("OUT_DIR"), "/opsmith/methods.rs"));
}

/// Shape and dtype inference.
#[allow(unused_imports, reason = "every module has the same imports")]
#[allow(
    unused_parens,
    reason = "expressions keep the parentheses that give them their order"
)]
#[allow(
    non_snake_case,
    reason = "underscores and capital letters keep names of a spec apart"
)]
#[allow(deprecated, reason = "what is deprecated still has to work")]
#[allow(clippy::all, reason = "generated code; the generator's own sources are linted")]
mod inference {
    use ::opsmith::runtime as rt;
    use crate::kernels::{self as kernels};
    include!(concat!(env!("OUT_DIR"), "/opsmith/inference.rs"));
}

/// The same rules as data, for sizes that are not known yet.
#[allow(unused_imports, reason = "every module has the same imports")]
#[allow(
    unused_parens,
    reason = "expressions keep the parentheses that give them their order"
)]
#[allow(
    non_snake_case,
    reason = "underscores and capital letters keep names of a spec apart"
)]
#[allow(deprecated, reason = "what is deprecated still has to work")]
#[allow(clippy::all, reason = "generated code; the generator's own sources are linted")]
mod rules {
    use ::opsmith::runtime as rt;
    use crate::kernels::{self as kernels};
    include!(concat!(env!("OUT_DIR"), "/opsmith/rules.rs"));
}

/// Kernels by backend and dtype.
#[allow(unused_imports, reason = "every module has the same imports")]
#[allow(
    unused_parens,
    reason = "expressions keep the parentheses that give them their order"
)]
#[allow(
    non_snake_case,
    reason = "underscores and capital letters keep names of a spec apart"
)]
#[allow(deprecated, reason = "what is deprecated still has to work")]
#[allow(clippy::all, reason = "generated code; the generator's own sources are linted")]
mod kernel_tables {
    use ::opsmith::runtime as rt;
    use crate::kernels::{self as kernels};
    include!(concat!(env!("OUT_DIR"), "/opsmith/kernel_tables.rs"));
}

/// Backward formulas, and forward ones that the spec writes.
#[allow(unused_imports, reason = "every module has the same imports")]
#[allow(
    unused_parens,
    reason = "expressions keep the parentheses that give them their order"
)]
#[allow(
    non_snake_case,
    reason = "underscores and capital letters keep names of a spec apart"
)]
#[allow(deprecated, reason = "what is deprecated still has to work")]
#[allow(clippy::all, reason = "generated code; the generator's own sources are linted")]
mod gradients {
    use ::opsmith::runtime as rt;
    use crate::kernels::{self as kernels};
    include!(concat!(env!("OUT_DIR"), "/opsmith/gradients.rs"));
}

/// The table of all operators, and calls by name.
#[allow(unused_imports, reason = "every module has the same imports")]
#[allow(
    unused_parens,
    reason = "expressions keep the parentheses that give them their order"
)]
#[allow(
    non_snake_case,
    reason = "underscores and capital letters keep names of a spec apart"
)]
#[allow(deprecated, reason = "what is deprecated still has to work")]
#[allow(clippy::all, reason = "generated code; the generator's own sources are linted")]
mod library {
    use ::opsmith::runtime as rt;
    use crate::kernels::{self as kernels};
    include!(concat!(env!("OUT_DIR"), "/opsmith/library.rs"));
}

pub use functions::*;

pub use library::{LIBRARY, call};

pub use methods::TensorOps;
