//! Texts inside JSON, SVG and HTML.

/// A text with the reserved characters of XML and HTML replaced.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            // XML has no such characters, not even replaced.
            control if control.is_control() && !matches!(control, '\n' | '\t') => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A text as JSON has it, quoted.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A colour of a name, the same in every report: hue from the name, light enough for dark text.
pub(super) fn colour(name: &str) -> String {
    let hash =
        name.bytes().fold(0xcbf2_9ce4_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("hsl({} {}% {}%)", hash % 360, 45 + hash / 360 % 20, 68 + hash / 7200 % 12)
}
