//! The sizes at which kernels take another path: lanes, blocks, tiles.
//!
//! Tests read them and try sizes on both sides of each; a kernel with a block of its own has a row here.

use super::linalg::innermost::{Blocked, Kernels};
use super::{
    attention, convolution, distance, factor, fft, grid, index, lanes, linalg, normalisation, order, pooling,
    random, reduce, search, softmax, sort, tiles,
};

/// Where a size stands, and how many elements it is.
pub const BLOCKS: &[(&str, usize)] = &[
    ("attention::COLUMNS", attention::COLUMNS),
    ("attention::ROWS", attention::ROWS),
    ("by_columns::BLOCK", convolution::BLOCK),
    ("patch::PATCH", convolution::PATCH),
    ("norm::LANES", distance::norm::LANES),
    ("side_by_side::PLACES", grid::side_by_side::PLACES),
    ("factor::BLOCK", factor::BLOCK),
    ("cholesky::COLUMNS", factor::cholesky::COLUMNS),
    ("divided::SMALL", factor::divided::SMALL),
    ("hermitian::SUMS", factor::hermitian::SUMS),
    ("lu::SMALL", factor::lu::SMALL),
    ("lu::WIDTH", factor::lu::WIDTH),
    ("matrix::LANES", factor::matrix::LANES),
    ("matrix::SUMS", factor::matrix::SUMS),
    ("reflectors::TOGETHER", factor::reflectors::TOGETHER),
    ("singular::PREPARED", factor::singular::PREPARED),
    ("few::FEW", linalg::few::FEW),
    ("few::LANES", linalg::few::LANES),
    ("few::LEAST", linalg::few::LEAST),
    ("few::ROWS", linalg::few::ROWS),
    ("few::TOGETHER", linalg::few::TOGETHER),
    ("halves::BAND_COLUMNS", linalg::halves::BAND_COLUMNS),
    ("halves::BLOCK", linalg::halves::BLOCK),
    ("halves::COLUMNS", linalg::halves::COLUMNS),
    ("halves::DEPTH", linalg::halves::DEPTH),
    ("halves::FEW_LINES", linalg::halves::FEW_LINES),
    ("halves::PART", linalg::halves::PART),
    ("halves::ROWS", linalg::halves::ROWS),
    ("halves::TOGETHER", linalg::halves::TOGETHER),
    ("int4::FEW_ROWS", linalg::int4::FEW_ROWS),
    ("int4::PART", linalg::int4::PART),
    ("int4::TILE", linalg::int4::TILE),
    ("whole_numbers::COLUMNS", linalg::whole_numbers::COLUMNS),
    ("whole_numbers::ROWS", linalg::whole_numbers::ROWS),
    ("panels::DEPTH", linalg::panels::DEPTH),
    ("panels::LINES", linalg::panels::LINES),
    ("panels::STEPS", linalg::panels::STEPS),
    ("lanes::LANES", lanes::LANES),
    ("lanes::NARROW", lanes::NARROW),
    ("lanes::SUMS", lanes::SUMS),
    ("lanes::TERMS", lanes::SUMS * lanes::TERMS),
    ("fft::TOGETHER", fft::TOGETHER),
    ("long::FEW", fft::long::FEW),
    ("long::SHORTEST", fft::long::SHORTEST),
    ("random::PIECE", random::PIECE),
    ("counts::BLOCK", order::counts::BLOCK),
    ("counts::PIECE", order::counts::PIECE),
    ("counts::TABLES", order::counts::TABLES),
    ("layer::CHUNK", normalisation::layer::CHUNK),
    ("largest::WIDTH", pooling::largest::WIDTH),
    ("means::WIDTH", pooling::means::WIDTH),
    ("linalg::BLOCK", linalg::BLOCK),
    ("blocked::FEW_BLOCKS", linalg::blocked::FEW_BLOCKS),
    ("blocked::MANY_BLOCKS", linalg::blocked::MANY_BLOCKS),
    ("extreme::FEW", reduce::extreme::FEW),
    ("extreme::SHORT", reduce::extreme::SHORT),
    ("loops::LEAF", reduce::loops::LEAF),
    ("loops::LEAVES", reduce::loops::LEAVES),
    ("plan::BLOCK_BYTES", reduce::plan::BLOCK_BYTES / size_of::<f64>()),
    ("plan::NARROW", reduce::plan::NARROW as usize),
    ("plan::OUTPUTS", reduce::plan::OUTPUTS),
    ("position::BLOCK", reduce::position::BLOCK),
    ("position::PIECE", reduce::position::PIECE),
    ("position::ROWS", reduce::position::ROWS as usize),
    ("position::TOGETHER", reduce::position::TOGETHER),
    ("position::WIDTH", reduce::position::WIDTH),
    ("scan::CONVERTED", reduce::scan::CONVERTED),
    ("scan::FAR", reduce::scan::FAR),
    ("scan::NEAR", reduce::scan::NEAR),
    ("advanced::CHECKED", index::advanced::CHECKED),
    ("parts::PARTS", index::parts::PARTS),
    ("places::RUN", index::places::RUN),
    ("select::SHARED", index::select::SHARED),
    ("search::TOGETHER", search::TOGETHER),
    ("softmax::BUFFER", softmax::BUFFER),
    ("sort::KEPT", sort::KEPT),
    ("digits::SHORTEST", sort::digits::SHORTEST),
    ("tiles::SHORT", tiles::SHORT as usize),
    ("variance::CACHED", reduce::variance::CACHED as usize),
];

/// [`BLOCKS`], and the tiles of matrix products on this processor.
pub fn sizes() -> Vec<usize> {
    let mut sizes: Vec<usize> = BLOCKS.iter().map(|(_, size)| *size).collect();
    fn tiles<T: 'static>(kernels: Option<&Kernels<T>>) -> impl Iterator<Item = usize> {
        kernels.map(|kernels| [kernels.lanes, kernels.rows, kernels.columns]).into_iter().flatten()
    }
    sizes.extend(tiles(f32::kernels()).chain(tiles(f64::kernels())));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constants whose number is no place where a path changes, or where threads begin to share work
    /// (`tests/tests/threads.rs`).
    const OTHERS: [&str; 34] = [
        "blocked::ROWS",
        "copy::AHEAD",
        "innermost::LANES",
        "innermost::ROWS",
        "innermost::COLUMNS",
        "plan::PART",
        "blocked::SHARED",
        "blocked::PACKED",
        "parts::PLACES",
        "patch::SLACK",
        "implicit::PANELS",
        "of_weight::GROUPS",
        "paired::COLUMNS",
        "paired::LANES",
        "paired::REGISTERS",
        "paired::ROWS",
        "pairs::BAND",
        "pairs::LANES",
        "panels::SHORT",
        "convolution::TOGETHER",
        "singular::PASSES",
        "secular::STEPS",
        "fft::NUMBERS",
        "long::LONG",
        "lines::PLACES",
        "plan::MOST_PASSES",
        "sampler::PLACES",
        "sampler::EXACT",
        "side_by_side::ALONG",
        "side_by_side::TAPS",
        "sort::SORTED",
        "digits::PART",
        "digits::VALUES",
        "digits::TABLES",
    ];

    #[test]
    fn every_block_has_a_row() {
        let mut missing = Vec::new();
        let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cpu"))];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let stem = match path.file_stem().unwrap().to_str().unwrap() {
                    "mod" => path.parent().unwrap().file_name().unwrap().to_str().unwrap(),
                    stem => stem,
                };
                for line in std::fs::read_to_string(&path).unwrap().lines() {
                    let declared = line.trim_start().trim_start_matches("pub(super) ");
                    let declared = declared.trim_start_matches("pub(crate) ");
                    let declared = declared.trim_start_matches("pub(in crate::cpu) ");
                    let Some((name, rest)) =
                        declared.strip_prefix("const ").and_then(|text| text.split_once(": "))
                    else {
                        continue;
                    };
                    let name = format!("{stem}::{name}");
                    let known = BLOCKS.iter().any(|(block, _)| *block == name) || OTHERS.contains(&&*name);
                    if (rest.starts_with("usize") || rest.starts_with("i64")) && rest.contains('=') && !known
                    {
                        missing.push(name);
                    }
                }
            }
        }
        assert!(missing.is_empty(), "no row of BLOCKS, nor of OTHERS: {missing:?}");
    }
}
