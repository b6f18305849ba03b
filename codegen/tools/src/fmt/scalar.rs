//! The notation of a text: plain where that is equivalent, else in quotes, else as a block.

use opsmith_codegen::spec::yaml::ScalarStyle;

/// The context of a scalar.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// The value of a key, or an item of a block list.
    Block,
    /// A key of a block mapping.
    Key,
    /// Inside brackets.
    Flow,
}

/// A scalar on one line.
pub(super) fn inline(text: &str, style: ScalarStyle, context: Context) -> String {
    let was_quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
    // Quotes around a symbol, or around text that other YAML readers parse as a number, mark it as text.
    let is_symbol = !text.contains(char::is_alphanumeric);
    let quotes_say_something = was_quoted && (is_symbol || looks_like_another_type(text));
    if !quotes_say_something && is_plain(text, context) { text.to_owned() } else { quoted(text) }
}

/// Whether a text is unchanged without quotes.
fn is_plain(text: &str, context: Context) -> bool {
    let mut letters = text.chars();
    let (Some(first), second) = (letters.next(), letters.next()) else { return false };
    let in_flow = context == Context::Flow;
    let separates = |c: char| c.is_whitespace() || (in_flow && ",[]{}".contains(c));
    let begins = match first {
        '-' | '?' | ':' => second.is_some_and(|second| !separates(second)),
        _ => !",[]{}#&*!|>'\"%@`".contains(first) && !first.is_whitespace(),
    };
    begins
        && !matches!(text, "~" | "null" | "Null" | "NULL")
        && !text.starts_with("---")
        && !text.starts_with("...")
        && !text.ends_with(char::is_whitespace)
        && !text.ends_with(':')
        && text.chars().all(|c| c == ' ' || is_printable(c))
        && !text.contains(" #")
        && !text.contains(": ")
        && !(in_flow && text.contains([',', '[', ']', '{', '}']))
}

/// Whether a character is allowed unescaped in any kind of scalar.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !c.is_whitespace()
        && !matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
}

fn looks_like_another_type(text: &str) -> bool {
    matches!(
        text.to_lowercase().as_str(),
        "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "~" | "y" | "n"
    ) || text.parse::<f64>().is_ok()
        || text.starts_with("0x")
        || text.starts_with("0o")
}

/// In double quotes; in single quotes if that saves escapes.
fn quoted(text: &str) -> String {
    let printable = text.chars().all(|c| c == ' ' || is_printable(c));
    if printable && text.contains(['"', '\\']) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            ' ' => out.push(' '),
            c if is_printable(c) => out.push(c),
            c if (c as u32) < 0x100 => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if (c as u32) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push_str(&format!("\\U{:08x}", c as u32)),
        }
    }
    out.push('"');
    out
}

/// A text of several lines as the lines of a block: its header (`|`, `>-`, …) and its lines, not indented yet. `step`
/// is the additional indentation of the lines, `width` their maximal length. `None` if a block cannot represent it.
pub(super) fn block(
    text: &str,
    style: ScalarStyle,
    step: usize,
    width: usize,
) -> Option<(String, Vec<String>)> {
    let body = text.trim_end_matches('\n');
    let chomp = match text.len() - body.len() {
        0 => "-",
        1 => "",
        // A block that keeps several final line breaks would also keep the blank lines after it.
        _ => return None,
    };
    let mut lines = body.split('\n');
    let unusual = body.is_empty()
        || lines.clone().any(|line| line.chars().any(|c| !matches!(c, ' ' | '\t') && !is_printable(c)))
        || lines.clone().any(|line| !line.is_empty() && line.trim().is_empty());
    if unusual {
        return None;
    }
    let folds = style == ScalarStyle::Folded && lines.clone().all(|line| !line.starts_with([' ', '\t']));
    let first = lines.clone().find(|line| !line.is_empty()).unwrap_or_default();
    let indicator = if first.starts_with([' ', '\t']) || body.starts_with('\n') {
        step.to_string()
    } else {
        String::new()
    };
    if !folds {
        return Some((format!("|{indicator}{chomp}"), lines.map(str::to_owned).collect()));
    }
    // In a folded block a line break is written as a blank line.
    let mut written = Vec::new();
    let mut previous_text = false;
    for line in lines.by_ref() {
        if line.is_empty() {
            written.push(String::new());
            continue;
        }
        if previous_text {
            written.push(String::new());
        }
        written.extend(wrap(line, Breaks::Words, width, width));
        previous_text = true;
    }
    Some((format!(">{indicator}{chomp}"), written))
}

/// Positions where a line may be broken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Breaks {
    /// At any blank.
    Words,
    /// Where an argument, an operand of `&&` or `||`, or a branch ends.
    Code,
}

/// A line broken at single blanks so that the first piece has at most `first` columns and the others `rest`, if there
/// are positions to break it.
pub(super) fn wrap(line: &str, breaks: Breaks, first: usize, rest: usize) -> Vec<String> {
    let mut pieces: Vec<String> = vec![String::new()];
    for (index, part) in unbroken(line, breaks).into_iter().enumerate() {
        let limit = if pieces.len() == 1 { first } else { rest };
        let current = pieces.last_mut().expect("there is always a piece");
        if index == 0 {
            current.push_str(&part);
        } else if columns(current) + 1 + columns(&part) <= limit {
            current.push(' ');
            current.push_str(&part);
        } else {
            pieces.push(part);
        }
    }
    pieces
}

/// The parts of a line between the blanks where it may be broken.
fn unbroken(line: &str, breaks: Breaks) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut previous = "";
    for (index, word) in line.split(' ').enumerate() {
        // Two blanks stay together, and no line may begin like an item or a key.
        let possible = !word.is_empty()
            && !previous.is_empty()
            && !previous.ends_with('\t')
            && !word.starts_with(['-', '?', ':', '#', '\t', '|', '>']);
        let wanted = match breaks {
            Breaks::Words => true,
            Breaks::Code => previous.ends_with([',', '{', ';']) || matches!(previous, "&&" | "||"),
        };
        match parts.last_mut() {
            Some(part) if index > 0 && !(possible && wanted) => {
                part.push(' ');
                part.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
        previous = word;
    }
    parts
}

/// The width of a text in columns.
pub(super) fn columns(text: &str) -> usize {
    text.chars().count()
}
