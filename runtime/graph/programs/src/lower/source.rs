//! Lines of Python from stack traces.
//!
//! In: the stack trace of a node. Out: the innermost line of a file, which is where the user or a library called the
//! operator.

use crate::model::Source;

/// The innermost line in a file; code that PyTorch generates (`<eval_with_key>.1`) is in none.
pub(super) fn of(trace: &str) -> Source {
    let lines: Vec<&str> = trace.lines().collect();
    let mut frames = lines.iter().enumerate().filter_map(|(number, line)| {
        let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
        if file.starts_with('<') {
            return None;
        }
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next().filter(|digits| !digits.is_empty())?;
        let code = lines.get(number + 1).map(|code| code.trim());
        let code = code.filter(|code| !code.starts_with("File \"")).unwrap_or("");
        Some(Source { place: format!("{file}:{digits}"), code: code.to_owned() })
    });
    frames.next_back().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_line_in_a_file_is_the_source() {
        let trace = "File \"a.py\", line 3, in main\n    model(x)\n  File \"b.py\", line 23, in forward\n    \
                     return x + 1\n  File \"<eval_with_key>.48\", line 11, in forward\n    add = a + b";
        assert_eq!(of(trace), Source { place: "b.py:23".to_owned(), code: "return x + 1".to_owned() });
        assert_eq!(of(trace).to_string(), "b.py:23: `return x + 1`");
        assert_eq!(of("").to_string(), "an unknown line");
        assert_eq!(of("File \"a.py\", line , in").place, "");
    }
}
