//! Mistakes of entries, keys and kinds of values.

use super::super::{Diagnostic, Span, nearest};
use super::article;

/// The description of a key for messages.
pub struct ShownKey {
    /// The key.
    pub name: &'static str,
    /// Its meaning in one line.
    pub doc: &'static str,
    /// An example of its value, after "write".
    pub expected: String,
    /// The kind of its value, after "must be".
    pub noun: &'static str,
    /// Whether its value is one text.
    pub is_text: bool,
}

/// A file that is a list, or text.
pub fn file_not_mapping(span: Span, is_list: bool) -> Diagnostic {
    let label = if is_list { "a list starts here" } else { "text starts here" };
    let diagnostic =
        Diagnostic::error("E0201", "a spec is a mapping with the keys `edition` and `ops`", span, label);
    match is_list {
        true => diagnostic.with_help("put `edition: 1` and `ops:` before the list"),
        false => diagnostic.with_help("start with `edition: 1` and list the operators under `ops:`"),
    }
}

/// A file without `edition`.
pub fn edition_missing(span: Span) -> Diagnostic {
    Diagnostic::error(
        "E0202",
        "the file does not say which edition it is",
        span,
        "expected `edition: 1` before this",
    )
    .with_help("add the line `edition: 1` at the top")
}

/// An edition that does not exist.
pub fn edition_unknown(span: Span, written: &str, edition: u32) -> Diagnostic {
    let message = format!("unknown edition `{written}`");
    Diagnostic::error("E0214", message, span, format!("expected `{edition}`")).with_help(format!(
        "write `edition: {edition}`; if the spec needs a later edition, update the generator"
    ))
}

/// `ops:` or `functions:` that is not a list.
pub fn entries_not_list(span: Span, key: &str) -> Diagnostic {
    Diagnostic::error("E0203", format!("`{key}` must be a list"), span, "not a list")
        .with_help("start each entry with a dash, as in `- func: relu(Tensor self) -> Tensor`")
}

/// An entry that is text or a list.
pub fn entry_not_mapping(span: Span, noun: &str, found: &str, written: Option<&str>) -> Diagnostic {
    let help = match written {
        Some(text) if text.contains('(') => format!("write `- func: {text}`"),
        _ => "start it with `- func: `, followed by its signature".to_owned(),
    };
    let message = match found {
        "nothing" => format!("the entry of this {noun} is empty"),
        _ => format!("this {noun} is {found}, not a mapping"),
    };
    Diagnostic::error("E0204", message, span, "no key here").with_help(help)
}

/// An entry without `func`.
pub fn func_missing(span: Span, noun: &str) -> Diagnostic {
    let example = match noun {
        "operator" => "func: relu(Tensor self) -> Tensor",
        _ => "func: exp(x)",
    };
    Diagnostic::error("E0205", format!("this {noun} has no signature"), span, "no key `func` in this entry")
        .with_help(format!("add a line such as `{example}`"))
}

/// A key that does not exist; `synonym` is the known key with that meaning.
pub fn key_unknown(span: Span, key: &str, noun: &str, synonym: Option<&str>, known: &[&str]) -> Diagnostic {
    let help = match synonym.or_else(|| nearest(key, known.iter().copied())) {
        Some(near) => super::did_you_mean(near),
        None => {
            let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("the keys of {} {noun} are {}", article(noun), known.join(", ")).into()
        }
    };
    Diagnostic::error(
        "E0206",
        format!("unknown key `{key}`"),
        span,
        format!("not a key of {} {noun}", article(noun)),
    )
    .with_help(help)
}

/// `key:` without a value.
pub fn value_missing(span: Span, spec: &ShownKey) -> Diagnostic {
    let expected = &spec.expected;
    let help = match spec.name {
        // These keys are required.
        "func" => "write a signature such as `relu(Tensor self) -> Tensor` after `func: `".to_owned(),
        "edition" => "write `edition: 1`".to_owned(),
        _ => format!("write {expected}, or remove the key"),
    };
    Diagnostic::error("E0207", format!("`{}` has no value", spec.name), span, "expected a value")
        .with_help(help)
        .with_note(format!("`{}`: {}", spec.name, spec.doc))
}

/// A list or mapping instead of text.
pub fn value_not_text(span: Span, spec: &ShownKey, found: &str, written: Option<&str>) -> Diagnostic {
    let help = match written {
        Some(written) if spec.is_text && !written.contains('"') => {
            format!("text that starts with a bracket must be quoted: `{}: \"{written}\"`", spec.name)
        }
        Some(written) if spec.is_text && !written.contains('\'') => {
            format!("text that starts with a bracket must be quoted: `{}: '{written}'`", spec.name)
        }
        _ => format!("write {}", spec.expected),
    };
    Diagnostic::error(
        "E0208",
        format!("`{}` must be {}, not {found}", spec.name, spec.noun),
        span,
        format!("{found} here"),
    )
    .with_help(help)
    .with_note(format!("`{}`: {}", spec.name, spec.doc))
}

/// A flag that is neither `true` nor `false`.
pub fn value_not_flag(span: Span, spec: &ShownKey, written: Option<&str>) -> Diagnostic {
    let meant = match written.map(str::to_ascii_lowercase).as_deref() {
        Some("yes" | "on" | "y" | "true" | "1") => "write `true`",
        Some("no" | "off" | "n" | "false" | "0") => "write `false`",
        _ => "write `true` or `false`",
    };
    Diagnostic::error("E0209", format!("`{}` must be `true` or `false`", spec.name), span, "neither")
        .with_help(meant)
        .with_note(format!("`{}`: {}", spec.name, spec.doc))
}

/// Text or a list instead of a mapping.
pub fn value_not_mapping(span: Span, spec: &ShownKey, found: &str) -> Diagnostic {
    Diagnostic::error(
        "E0210",
        format!("`{}` must be a mapping, not {found}", spec.name),
        span,
        format!("{found} here"),
    )
    .with_help(format!("write {}", spec.expected))
    .with_note(format!("`{}`: {}", spec.name, spec.doc))
}

/// A key of a mapping without its value.
pub fn map_value_missing(span: Span, key: &str, spec: &ShownKey) -> Diagnostic {
    Diagnostic::error("E0215", format!("`{key}` in `{}` has no value", spec.name), span, "expected a value")
        .with_help(format!("write `{key}: …`, or remove it"))
        .with_note(format!("`{}`: {}", spec.name, spec.doc))
}

/// An item that is not text.
pub fn item_not_text(span: Span, spec: &ShownKey, found: &str) -> Diagnostic {
    let message = format!("an item of `{}` must be text, not {found}", spec.name);
    Diagnostic::error("E0211", message, span, format!("{found} here"))
        .with_help("quote text that starts with a bracket or holds `: `")
        .with_note(format!("`{}`: {}", spec.name, spec.doc))
}

/// A file to include that cannot be read.
pub fn include_unreadable(span: Span, path: &str, why: &str) -> Diagnostic {
    Diagnostic::error("E0213", format!("`{path}` cannot be included"), span, why)
        .with_help("name a spec by its path from the folder of this one")
}

/// A file of a feature that is not included.
pub fn feature_of_no_file(span: Span, path: &str, feature: &str) -> Diagnostic {
    let message = format!("the feature `{feature}` has `{path}`, which is not included");
    Diagnostic::error("E0216", message, span, "not among the files of `include`")
        .with_help("name it under `include` too, by the same path")
}

/// A comma inside parentheses that ended an item.
pub fn item_split(span: Span, written: &str) -> Diagnostic {
    let help = match written.contains('"') || written.contains('\n') {
        true => "quote the item, or write it on its own line".to_owned(),
        false => format!("quote the item: `\"{written}\"`"),
    };
    Diagnostic::error("E0212", "YAML splits this item at the comma", span, "meant as one item")
        .with_help(help)
        .with_note("between `[` and `]` or `{` and `}`, a comma ends an item even inside parentheses")
}
