//! The header `opsmith_abi.h`.
//!
//! In: the numbers of the interface, from `opsmith_core`. Out: C. It is the same for all libraries.

use std::fmt::Write as _;

use opsmith_core::DType;
use opsmith_core::abi::{CODES, DEVICES, KINDS, NODES, VERSION, element};

const TEMPLATE: &str = include_str!("templates/opsmith_abi.h");

/// The header.
pub fn header() -> String {
    let dtypes = DType::ALL.into_iter().map(|dtype| {
        let (code, bits) = element(dtype);
        let name = dtype.name().to_uppercase();
        format!("  OPSMITH_TYPE_{name} = OPSMITH_DTYPE({code}, {bits}),\n")
    });
    TEMPLATE
        .replace("{{VERSION}}", &VERSION.to_string())
        .replace("{{CODES}}\n", &lines(CODES))
        .replace("{{KINDS}}\n", &lines(KINDS))
        .replace("{{NODES}}\n", &lines(NODES))
        .replace("{{DEVICES}}\n", &lines(DEVICES))
        .replace("{{DTYPES}}\n", &dtypes.collect::<String>())
}

fn lines(rows: &[(&str, i32, &str)]) -> String {
    let mut text = String::new();
    for (name, number, meaning) in rows {
        _ = writeln!(text, "  {name} = {number}, /* {meaning} */");
    }
    text
}
