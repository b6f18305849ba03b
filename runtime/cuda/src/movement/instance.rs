//! Lines that define kernels of the text of movement.
//!
//! In: dtypes and counts. Out: lines. Must not know layouts.

use opsmith_core::{DType, DTypeSet};

/// Converts a row of elements.
pub fn convert_row(to: DType, from: DType) -> String {
    format!("OPSMITH_CONVERT_ROW(opsmith_kernel, {}, {})", element_type(to), element_type(from))
}

/// Converts elements of any layout.
pub fn convert_each(to: DType, from: DType, index: &str) -> String {
    format!("OPSMITH_CONVERT(opsmith_kernel, {}, {}, {index})", element_type(to), element_type(from))
}

/// Moves elements of a size from any layout to any other.
pub fn move_bits(size: usize, index: &str) -> String {
    format!("OPSMITH_MOVE(opsmith_kernel, {}, {index})", bits(size))
}

/// Moves elements of a size between layouts that are each other's transposition.
pub fn move_tiles(size: usize) -> String {
    format!("OPSMITH_TRANSPOSE(opsmith_kernel, {})", bits(size))
}

/// Writes a number into all elements.
pub fn fill_each(to: DType, index: &str) -> String {
    format!("OPSMITH_FILL(opsmith_kernel, {}, {index})", element_type(to))
}

/// Adds elements to a target.
pub fn accumulate_each(dtype: DType, index: &str) -> String {
    format!("OPSMITH_ACCUMULATE(opsmith_kernel, {}, {index})", element_type(dtype))
}

/// Every line.
pub fn all() -> impl Iterator<Item = String> {
    const INDICES: [&str; 2] = [U32, U64];
    const SIZES: [usize; 5] = [1, 2, 4, 8, 16];
    let dtypes = || DTypeSet::ALL.iter();
    let pairs = move || dtypes().flat_map(move |to| dtypes().map(move |from| (to, from)));
    let pairs = move || pairs().filter(|(to, from)| to != from);
    let with_index = move |index: &'static str| {
        let moves = SIZES.into_iter().map(move |size| move_bits(size, index));
        let fills = dtypes().map(move |dtype| fill_each(dtype, index));
        let sums = dtypes().filter(|dtype| dtype.is_differentiable());
        let sums = sums.map(move |dtype| accumulate_each(dtype, index));
        let conversions = pairs().map(move |(to, from)| convert_each(to, from, index));
        moves.chain(fills).chain(sums).chain(conversions)
    };
    let rows = pairs().map(|(to, from)| convert_row(to, from));
    SIZES.into_iter().map(move_tiles).chain(rows).chain(INDICES.into_iter().flat_map(with_index))
}

const U32: &str = "u32";
const U64: &str = "u64";

/// The type of positions below a count.
pub fn index_type(count: u64) -> &'static str {
    if count <= u64::from(u32::MAX) { U32 } else { U64 }
}

/// The type of elements that are only moved.
fn bits(size: usize) -> &'static str {
    match size {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "u64",
        _ => "bits128",
    }
}

/// The name of an element type in the text.
fn element_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "truth",
        DType::U8 => "u8",
        DType::U16 => "u16",
        DType::U32 => "u32",
        DType::U64 => "u64",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C64 => "c32",
        DType::C128 => "c64",
        // Only moved: the host converts them.
        DType::F8E4M3 | DType::F8E5M2 | DType::I4 | DType::U4 => "u8",
    }
}
