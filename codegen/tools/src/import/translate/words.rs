//! Words of C++ with a counterpart in the spec language.

use super::Name;
use opsmith_codegen::expr::path;
use opsmith_codegen::spec::schema::INT_CONSTANTS;

/// The binding strength of a binary operator in Rust.
pub(super) fn level(symbol: &str) -> u8 {
    match symbol {
        "||" => 1,
        "&&" => 2,
        "==" | "!=" | "<" | ">" | "<=" | ">=" => 3,
        "|" => 4,
        "^" => 5,
        "&" => 6,
        "+" | "-" => 7,
        _ => 8,
    }
}

/// `1.` gets a trailing zero.
pub(super) fn number(text: &str) -> String {
    match text.split_once('.') {
        Some((whole, "")) => format!("{whole}.0"),
        Some((whole, rest)) if rest.starts_with(['e', 'E']) => format!("{whole}.0{rest}"),
        _ => text.to_owned(),
    }
}

/// Dtypes by the constants of the C++ library.
const DTYPES: [(&str, &str); 12] = [
    ("kBool", "bool"),
    ("kByte", "uint8"),
    ("kChar", "int8"),
    ("kShort", "int16"),
    ("kInt", "int32"),
    ("kLong", "int64"),
    ("kHalf", "float16"),
    ("kBFloat16", "bfloat16"),
    ("kFloat", "float32"),
    ("kDouble", "float64"),
    ("kComplexFloat", "complex64"),
    ("kComplexDouble", "complex128"),
];

/// Constants of `<cmath>` and of the language.
const CONSTANTS: [(&str, &str); 15] = [
    ("true", "true"),
    ("false", "false"),
    ("nullptr", "None"),
    ("nullopt", "None"),
    ("INFINITY", "inf"),
    ("NAN", "nan"),
    ("M_PI", "3.141592653589793"),
    ("M_PI_2", "1.5707963267948966"),
    ("M_PI_4", "0.7853981633974483"),
    ("M_E", "2.718281828459045"),
    ("M_LN2", "0.6931471805599453"),
    ("M_LN10", "2.302585092994046"),
    ("M_2_SQRTPI", "1.1283791670955126"),
    ("M_SQRT1_2", "0.7071067811865476"),
    ("M_SQRT2", "1.4142135623730951"),
];

/// The equivalent of a constant.
pub(super) fn constant(name: &Name) -> Option<&'static str> {
    let find = |table: &[(&str, &'static str)]| {
        table.iter().find(|(known, _)| *known == name.last()).map(|(_, text)| *text)
    };
    if name.path.iter().any(|part| part == "Reduction") {
        let index = INT_CONSTANTS.iter().find(|(known, _)| *known == name.last()).map(|(_, value)| *value);
        return match index {
            None if name.last() == "None" => Some("0"),
            Some(1) => Some("1"),
            Some(2) => Some("2"),
            _ => None,
        };
    }
    find(&CONSTANTS).or_else(|| find(&DTYPES))
}

/// Metadata queries. `size()` of a list is its length.
pub(super) fn query(method: &str, arguments: usize, of_list: bool) -> Option<&'static str> {
    Some(match (method, arguments) {
        ("sym_sizes" | "sizes", 0) => "sizes",
        ("size", 0) if of_list => "len",
        ("sym_size" | "size", 1) => "size",
        ("sym_strides" | "strides", 0) => "strides",
        ("sym_numel" | "numel", 0) => "numel",
        ("sym_storage_offset" | "storage_offset", 0) => "storage_offset",
        ("dim" | "ndimension", 0) => "dim",
        ("scalar_type" | "dtype", 0) => "dtype",
        ("device", 0) => "device",
        ("layout", 0) => "layout",
        _ => return None,
    })
}

/// Whether a method of C++ lists tests for emptiness.
pub(super) fn asks_if_empty(method: &str) -> bool {
    "empty()".strip_suffix("()") == Some(method)
}

/// A name in an expression's syntax: a Rust keyword gets an underscore.
pub(super) fn callable(name: &str) -> String {
    match path::is_identifier(name) {
        true => name.to_owned(),
        false => format!("{name}_"),
    }
}
