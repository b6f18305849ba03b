//! Keys: hashes of all that decides something.
//!
//! In: parts. Out: text for the name of a file or an index. Must not know its use.

use sha2::{Digest, Sha256};

/// A key in the making.
pub struct Key(Sha256);

impl Key {
    /// The key of no parts, for a kind of things.
    pub fn new(kind: &str) -> Key {
        Key(Sha256::new_with_prefix(kind))
    }

    /// Adds a part with its length, so that no two lists of parts look alike.
    pub fn add(&mut self, part: &str) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// 128 bits of it as text.
    pub fn finish(self) -> String {
        self.0.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}
