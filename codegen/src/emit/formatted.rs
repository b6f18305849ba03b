//! Formatted pieces by the tokens that they were made of: another run formats only pieces that changed, which is most of its
//! time.
//!
//! In: pieces of an earlier run. Out: the text of a piece with the same tokens. Must not know where texts are kept.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};

use proc_macro2::TokenStream;

/// Texts of an earlier run of the same generator.
#[derive(Clone, Debug, Default)]
pub struct Formatted {
    texts: HashMap<PieceKey, String>,
}

impl Formatted {
    /// Adds a piece.
    pub fn add(&mut self, key: PieceKey, text: String) {
        self.texts.insert(key, text);
    }

    /// The number of pieces.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub(super) fn text(&self, key: PieceKey) -> Option<&String> {
        self.texts.get(&key)
    }
}

/// A hash of tokens, of 128 bits: a list of thousands has no two of the same by chance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PieceKey(pub u128);

impl PieceKey {
    pub(super) fn of(tokens: &TokenStream) -> Self {
        let mut halves = Halves([DefaultHasher::new(), DefaultHasher::new()]);
        halves.0[1].write_u8(1);
        // A hasher takes every text.
        let _ = write!(halves, "{tokens}");
        let [high, low] = halves.0.map(|half| u128::from(half.finish()));
        Self(high << 64 | low)
    }
}

struct Halves([DefaultHasher; 2]);

impl Write for Halves {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.iter_mut().for_each(|half| half.write(text.as_bytes()));
        Ok(())
    }
}

/// The share of a file that one piece wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PieceOfFile {
    /// The piece's tokens.
    pub key: PieceKey,
    /// The first byte of its text in the file.
    pub start: usize,
    /// The length of its text in bytes.
    pub length: usize,
}
