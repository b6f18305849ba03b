//! Formatted pieces of a folder of generated files: a small list beside them says which bytes a piece wrote.
//!
//! In: the folder as an earlier run left it. Out: texts that the next run can take over. An edited file, an edited list and
//! the list of another build of the generator count as absent.

use std::fmt::Write;
use std::io;
use std::path::Path;

use super::stamp::{generator, text_hash};
use crate::emit::File;
use crate::emit::formatted::{Formatted, PieceKey};

/// The list's name in the folder.
const NAME: &str = ".opsmith-pieces";

/// The pieces that the folder has; none if nothing is known about it.
pub fn read(folder: &Path) -> Formatted {
    let mut formatted = Formatted::default();
    let Ok(list) = std::fs::read_to_string(folder.join(NAME)) else { return formatted };
    let list = list.split_once('\n').filter(|(first, lines)| head(lines).as_deref() == Some(*first));
    let Some((_, lines)) = list else {
        return formatted;
    };
    let mut text = None;
    for line in lines.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["file", hash, name] => {
                let content =
                    std::fs::read(folder.join(name)).ok().filter(|content| text_hash(content) == hash);
                text = content.and_then(|content| String::from_utf8(content).ok());
            }
            ["piece", key, start, length] => {
                let number = |word: &str| word.parse::<usize>().ok();
                let piece = || {
                    let key = PieceKey(u128::from_str_radix(key, 16).ok()?);
                    let start = number(start)?;
                    let end = start.checked_add(number(length)?)?;
                    Some((key, text.as_ref()?.get(start..end)?.to_owned()))
                };
                if let Some((key, text)) = piece() {
                    formatted.add(key, text);
                }
            }
            _ => {}
        }
    }
    formatted
}

/// Writes the list of the folder's files.
///
/// # Errors
/// Errors of the file system.
pub fn write(folder: &Path, files: &[File]) -> io::Result<()> {
    let mut list = String::new();
    for file in files.iter().filter(|file| !file.pieces.is_empty()) {
        let _ = writeln!(list, "file {} {}", text_hash(file.text.as_bytes()), file.name);
        for piece in &file.pieces {
            let _ = writeln!(list, "piece {:032x} {} {}", piece.key.0, piece.start, piece.length);
        }
    }
    let Some(head) = head(&list) else { return Ok(()) };
    std::fs::write(folder.join(NAME), format!("{head}\n{list}"))
}

/// The generator's build, and a hash of the lines below.
fn head(lines: &str) -> Option<String> {
    Some(format!("{} {}", generator()?, text_hash(lines.as_bytes())))
}
