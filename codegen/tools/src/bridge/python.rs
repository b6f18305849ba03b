//! The C interface for packages of Python, by `ctypes`.
//!
//! In: the numbers of the interface. Out: a module that describes calls and infers their results, for frameworks that ask Python for it.

use minijinja::{Value, context};
use opsmith_core::DType;
use opsmith_core::abi::{CODES, KINDS, NODES, VERSION, element};

/// The module.
pub const INTERFACE: &str = include_str!("templates/abi.py.j2");

/// Numbers by name, as a dictionary of Python.
fn dictionary(rows: &[(&str, i32, &str)]) -> String {
    let one = |(name, number, _): &(&str, i32, &str)| {
        format!("\"{}\": {number}", name.strip_prefix("OPSMITH_").unwrap_or(name))
    };
    format!("{{{}}}", rows.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// The element types of a byte and more, each with its category and bits.
fn dtypes() -> String {
    let known = DType::ALL.into_iter().filter(|dtype| dtype.bits() >= 8);
    let one = |dtype: DType| {
        let (code, bits) = element(dtype);
        format!("\"{}\": ({code}, {bits})", dtype.name())
    };
    format!("{{{}}}", known.map(one).collect::<Vec<_>>().join(", "))
}

/// The holes of the module, with those that all folders share.
pub fn numbers(shared: &Value) -> Value {
    context! {
        kinds => dictionary(KINDS),
        nodes => dictionary(NODES),
        codes => dictionary(CODES),
        dtypes => dtypes(),
        version => VERSION,
        ..shared.clone()
    }
}
