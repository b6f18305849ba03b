//! Progress of loading on the terminal.
//!
//! In: numbers of weights that are done and of all. Out: a line on the standard error that is rewritten, and erased at the end;
//! nothing if that is no terminal, or loading is quick.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// The time before the first line.
const QUIET: Duration = Duration::from_millis(500);

/// The least time between two lines.
const PAUSE: Duration = Duration::from_millis(100);

/// The most characters of the line: one that a terminal breaks cannot be erased.
const WIDTH: usize = 79;

/// Calls a function that loads a file, and shows the progress that it reports.
pub fn shown<T>(file: &Path, load: impl FnOnce(&mut dyn FnMut(usize, usize)) -> T) -> T {
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    let is_terminal = io::stderr().is_terminal();
    let mut line = Line { name, next: Instant::now() + QUIET, width: 0 };
    load(&mut |done, of| {
        if is_terminal && let Some(text) = line.text(Instant::now(), done, of) {
            // A terminal that is gone ends nothing.
            _ = io::stderr().write_all(text.as_bytes());
        }
    })
}

/// The line of a file.
struct Line {
    name: String,
    /// The time of the next line.
    next: Instant,
    /// The characters of the line on the terminal.
    width: usize,
}

impl Line {
    /// The characters that write the line over the one before, or erase it after the last weight; `None` if it is too early.
    fn text(&mut self, now: Instant, done: usize, of: usize) -> Option<String> {
        if done == of {
            let erased = std::mem::take(&mut self.width);
            return (erased > 0).then(|| format!("\r{:erased$}\r", ""));
        }
        if now < self.next {
            return None;
        }
        self.next = now + PAUSE;
        let text = format!("loaded {done} of {of} weights of {}", self.name);
        let text: String = text.chars().take(WIDTH).collect();
        let before = std::mem::replace(&mut self.width, text.chars().count());
        Some(format!("\r{text:before$}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_comes_late_and_is_erased() {
        let start = Instant::now();
        let mut line = Line { name: "model.npz".to_owned(), next: start + QUIET, width: 0 };
        assert_eq!(line.text(start, 1, 20), None);
        assert_eq!(line.text(start, 20, 20), None);
        let first = "\rloaded 10 of 20 weights of model.npz";
        assert_eq!(line.text(start + QUIET, 10, 20).as_deref(), Some(first));
        assert_eq!(line.text(start + QUIET, 11, 20), None);
        let second = line.text(start + QUIET + PAUSE, 9, 20);
        assert_eq!(second.as_deref(), Some("\rloaded 9 of 20 weights of model.npz "));
        let erased = format!("\r{}\r", " ".repeat(35));
        assert_eq!(line.text(start + QUIET + PAUSE, 20, 20), Some(erased));
    }
}
