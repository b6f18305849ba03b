//! Paths of files and the URIs by which editors name them.

use std::path::{Component, Path, PathBuf};

use gen_lsp_types::Uri;

/// The path of a `file:` URI.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    let text = uri.as_ref().strip_prefix("file://")?;
    // The name of a host may stand before the path.
    let path = &text[text.find('/')?..];
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped =
            after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    // `/C:/folder` on Windows.
    let drive = text.as_bytes().get(2) == Some(&b':') && cfg!(windows);
    Some(PathBuf::from(if drive { &text[1..] } else { &text }))
}

/// The URI of a path.
pub fn uri_of(path: &Path) -> Uri {
    let text = path.to_string_lossy();
    let text = if cfg!(windows) { text.replace('\\', "/").into() } else { text };
    let mut uri = String::from(if text.starts_with('/') { "file://" } else { "file:///" });
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"/-._~!$&'()+,;=:@".contains(&byte) {
            true => uri.push(char::from(byte)),
            false => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    Uri::from(uri)
}

/// One path for all spellings of a file: that of the disk, or of its folder if the file is not there.
pub fn identity(path: &Path) -> PathBuf {
    if let Ok(whole) = std::fs::canonicalize(path) {
        return whole;
    }
    let lexical = normalized(path);
    match (lexical.parent().and_then(|folder| std::fs::canonicalize(folder).ok()), lexical.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => lexical,
    }
}

/// A path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = found.pop(),
            part => found.push(part),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_and_paths() {
        for path in ["/a/b.yaml", "/with blank/ü#%.yaml", "/a+b(c)/100%25"] {
            assert_eq!(path_of(&uri_of(Path::new(path))).as_deref(), Some(Path::new(path)));
        }
        assert_eq!(uri_of(Path::new("/a b/ü.yaml")).as_ref(), "file:///a%20b/%C3%BC.yaml");
        assert_eq!(path_of(&Uri::from("file://host/a%2fb")).as_deref(), Some(Path::new("/a/b")));
        assert_eq!(path_of(&Uri::from("untitled:Untitled-1")), None);
        assert_eq!(normalized(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }
}
