//! Places in source code: relative to the spec's folder, and as links.
//!
//! In: `file:line` as descriptions of operators have it, relative to the folder that the command runs in or absolute. Out:
//! the same relative to the folder of the spec, so that a site has no path of a machine.

use std::path::Path;

use serde::Serialize;

/// The address of source code, with `{path}` and perhaps `{line}` for a file and a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceUrl(String);

impl SourceUrl {
    /// An address such as `https://host/blob/main/{path}#L{line}`.
    ///
    /// # Errors
    /// If it is none of the web or has no `{path}`.
    pub fn parse(template: &str) -> Result<SourceUrl, String> {
        let is_web = template.starts_with("https://") || template.starts_with("http://");
        match is_web && template.contains("{path}") {
            true => Ok(SourceUrl(template.to_owned())),
            false => Err(format!(
                "`{template}` is no address of source code; write one such as https://host/blob/main/{{path}}#L{{line}}"
            )),
        }
    }

    /// The address of a line, or of a file.
    pub fn of(&self, path: &str, line: Option<&str>) -> String {
        let template = match line {
            Some(line) => self.0.replace("{line}", line),
            // A part of the address after `#` or `?` that is about a line has no meaning without one.
            None => self.0.find("{line}").map_or(self.0.clone(), |line| {
                let start = self.0[..line].rfind(['#', '?']).unwrap_or(line);
                self.0[..start].to_owned()
            }),
        };
        let path: String = path
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                    char::from(byte).to_string()
                }
                byte => format!("%{byte:02X}"),
            })
            .collect();
        template.replace("{path}", &path)
    }
}

/// A place in source code as a page shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Place {
    /// `kernels/src/cpu/linalg/mod.rs:32`.
    pub text: String,
    /// Its address, if one is known.
    pub url: Option<String>,
}

/// A place relative to the folder of a spec.
pub fn place(text: &str, spec: &Path, url: Option<&SourceUrl>) -> Place {
    let text = relative(text, spec);
    let (path, line) = match text.rsplit_once(':') {
        Some((path, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => (path, Some(line)),
        _ => (text.as_str(), None),
    };
    let url = url.map(|url| url.of(path, line));
    Place { url, text }
}

/// A path relative to the folder of a spec, with `/`.
pub fn relative(text: &str, spec: &Path) -> String {
    let folder = spec.parent().unwrap_or(Path::new(""));
    let stripped = Path::new(text).strip_prefix(folder).ok().and_then(Path::to_str);
    stripped.unwrap_or(text).replace('\\', "/")
}
