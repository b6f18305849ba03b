//! Values of environment variables.
//!
//! In: text. Out: numbers. Must not know their users.

/// A number of bytes with an optional unit.
pub fn parse_bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    digits.trim().parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn limits_have_units() {
        for (text, bytes) in [("1000", 1000), ("4K", 4096), (" 2m ", 2 << 20), ("3 G", 3 << 30)] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "K", "-1", "1T", "1.5G", "é"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
