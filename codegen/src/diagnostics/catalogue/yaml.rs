//! Mistakes of the file's syntax.

use super::super::{Diagnostic, Span};

/// A file too large to be parsed.
pub fn file_too_large(span: Span, bytes: usize, limit: usize) -> Diagnostic {
    let message = format!("the file has {} MB, more than the limit of {} MB", bytes >> 20, limit >> 20);
    Diagnostic::error("E0001", message, span, "not read")
        .with_help("split it into several files and name them under `include:`")
}

/// A file without a value.
pub fn file_empty(span: Span) -> Diagnostic {
    Diagnostic::error("E0002", "the file is empty", span, "expected a spec")
        .with_help("start with `edition: 1` and list the operators under `ops:`")
}

/// A second document after `---`.
pub fn second_document(span: Span) -> Diagnostic {
    Diagnostic::error("E0003", "the file has a second document", span, "second document starts here")
        .with_help("remove this line, or move what follows to another file and name it under `include:`")
}

/// Lists and mappings nested too deeply.
pub fn too_deep(span: Span, limit: usize) -> Diagnostic {
    Diagnostic::error("E0004", format!("more than {limit} levels of nesting"), span, "one level too many")
        .with_help("a spec needs about five levels; is a bracket or a dash repeated?")
}

/// More values than the limit.
pub fn too_many_values(span: Span, limit: usize) -> Diagnostic {
    Diagnostic::error("E0005", format!("more than {limit} values in one file"), span, "reading stops here")
        .with_help("split the file and name the parts under `include:`")
}

/// Aliases that multiply the file.
pub fn aliases_too_large(span: Span, limit: usize) -> Diagnostic {
    let message = format!("aliases copy more than {} MB", limit >> 20);
    Diagnostic::error("E0006", message, span, "reading stops here")
        .with_help("write the values out, or refer to smaller ones")
}

/// `*name` without `&name`.
pub fn alias_unknown(span: Span, name: &str) -> Diagnostic {
    Diagnostic::error("E0007", format!("no anchor `&{name}` before this alias"), span, "unknown anchor")
        .with_help("text that starts with `*` must be quoted; an alias needs its anchor earlier in the file")
}

/// An alias inside the value it stands for.
pub fn alias_of_itself(span: Span) -> Diagnostic {
    Diagnostic::error("E0008", "this alias stands inside the value it refers to", span, "endless value")
        .with_help("write the value out")
}

/// `!!str`, `!mine`
pub fn tag_not_supported(span: Span) -> Diagnostic {
    Diagnostic::error("E0009", "a spec has no YAML tags", span, "tag")
        .with_help("remove the tag; text that starts with `!` must be quoted")
}

/// One key twice in a mapping.
pub fn key_twice(span: Span, first: Span, key: &str) -> Diagnostic {
    Diagnostic::error("E0010", format!("the key `{key}` stands twice"), span, "second time")
        .with_secondary(first, "first time")
        .with_help("remove one of them, or put their values together")
}

/// `<<: *other`
pub fn merge_key(span: Span) -> Diagnostic {
    Diagnostic::error("E0011", "merge keys are not part of the spec language", span, "`<<`")
        .with_help("write the keys out")
}

/// A list or mapping as a key.
pub fn key_not_text(span: Span) -> Diagnostic {
    Diagnostic::error("E0012", "a key must be text", span, "not text")
        .with_help("text that starts with `[` or `{` must be quoted")
}

/// A tab where YAML requires spaces.
pub fn tab(span: Span) -> Diagnostic {
    Diagnostic::error("E0020", "YAML is indented with spaces, not tabs", span, "tab")
        .with_help("replace the tab with spaces")
}

/// A quoted text without its end.
pub fn quote_not_closed(span: Span) -> Diagnostic {
    Diagnostic::error("E0021", "this quoted text is never closed", span, "no closing quote follows")
        .with_help("end it with the same quote; a `'` inside single quotes is written `''`")
}

/// A bracket without its pair.
pub fn bracket_not_closed(span: Span, open: char) -> Diagnostic {
    let close = if open == '[' { ']' } else { '}' };
    Diagnostic::error(
        "E0022",
        format!("this `{open}` is never closed"),
        span,
        format!("no `{close}` follows"),
    )
    .with_help(format!("add `{close}`; text that starts with `{open}` must be quoted"))
}

/// `[ … }`
pub fn bracket_mismatched(span: Span, opening: Span, open: char, close: char) -> Diagnostic {
    let message = format!("`{close}` closes what `{open}` opened");
    let wanted = if open == '[' { ']' } else { '}' };
    Diagnostic::error("E0016", message, span, format!("expected `{wanted}`"))
        .with_secondary(opening, "opened here")
        .with_help(format!("write `{wanted}`, or quote the text that holds brackets"))
}

/// A closing bracket that nothing opened.
pub fn bracket_unexpected(span: Span) -> Diagnostic {
    Diagnostic::error("E0017", "nothing opened this bracket", span, "closes nothing")
        .with_help("remove it, or quote the text that holds it")
}

/// Something other than `,` or the closing bracket inside brackets.
pub fn flow_separator(span: Span, close: char) -> Diagnostic {
    let message = format!("expected `,` or `{close}`");
    Diagnostic::error("E0023", message, span, "not part of the list")
        .with_help("separate items with commas, and quote items that hold brackets, commas or `: `")
}

/// `doc: note: this`
pub fn colon_in_text(span: Span) -> Diagnostic {
    Diagnostic::error("E0024", "a second `: ` on one line", span, "starts another mapping")
        .with_help("quote text that holds `: `, as in `doc: \"Note: in place.\"`")
}

/// A line that is neither a key nor a value.
pub fn colon_missing(span: Span) -> Diagnostic {
    Diagnostic::error("E0025", "expected `key: value`", span, "no `: ` after the key")
        .with_help("put a colon and a space after the key; indent a value that goes on over several lines")
}

/// `@` and other reserved characters at the start of a value.
pub fn reserved_character(span: Span, character: char) -> Diagnostic {
    Diagnostic::error("E0026", format!("text cannot start with `{character}`"), span, "reserved by YAML")
        .with_help("quote the text")
}

/// `"a" b`
pub fn text_after_quote(span: Span) -> Diagnostic {
    Diagnostic::error("E0027", "text follows the closing quote", span, "not part of the quoted text")
        .with_help("put all of it into quotes; a `\"` inside double quotes is written `\\\"`")
}

/// `"\q"`
pub fn bad_escape(span: Span) -> Diagnostic {
    Diagnostic::error("E0028", "unknown escape in double quotes", span, "not an escape")
        .with_help("write `\\\\` for a backslash, or use single quotes, where nothing is escaped")
}

/// A line whose indentation matches no level above.
pub fn indentation(span: Span) -> Diagnostic {
    Diagnostic::error("E0029", "this line does not fit the lines above", span, "unexpected here")
        .with_help("indent the keys of one entry alike, and list items alike")
}

/// `key:` deeper than its neighbours, which continues the value above.
pub fn indented_too_far(span: Span, key: &str) -> Diagnostic {
    Diagnostic::error("E0018", "this line is indented too far", span, "read as part of the value above")
        .with_help(format!("indent `{key}` like the other keys of the entry"))
}

/// Any other mistake, in the parser's words.
pub fn yaml_syntax(span: Span, message: &str) -> Diagnostic {
    Diagnostic::error("E0030", format!("not valid YAML: {message}"), span, "here")
}

/// A file in a Latin encoding, or a binary file.
pub fn file_not_utf8(span: Span, byte: u8, more: usize) -> Diagnostic {
    let more = match more {
        0 => String::new(),
        1 => "; one more place of the file is like it".to_owned(),
        _ => format!("; {more} more places of the file are like it"),
    };
    let label = format!("the byte {byte:#04x} here is not UTF-8{more}");
    Diagnostic::error("E0013", "the file is not text in UTF-8", span, label).with_help(
        "save the file as UTF-8; `iconv -f latin1 -t utf-8` converts one that an older editor wrote",
    )
}

/// A file with the byte order mark of UTF-16.
pub fn file_utf16(span: Span) -> Diagnostic {
    Diagnostic::error("E0015", "the file is not text in UTF-8", span, "it is UTF-16")
        .with_help("save the file as UTF-8; `iconv -f utf-16 -t utf-8` converts it")
}

/// A character that changes the order in which text is shown.
pub fn bidirectional(span: Span, character: char) -> Diagnostic {
    let code = u32::from(character);
    let message = format!("a character that changes the direction of text, U+{code:04X}");
    Diagnostic::error("E0014", message, span, "invisible, and displaces the text after it").with_help(
        format!("remove it; where a text has to hold it, write \\u{code:04X} between double quotes"),
    )
}
