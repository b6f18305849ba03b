//! The guide: the documents of a crate that become pages.
//!
//! In: the folder of the spec. Out: [`Guide`], documents with their places in the site, in order. If there is a file
//! `docs/guide/index.md`, that is the first page, and the documents that its lists link to follow in that order, under its
//! headings; else `README.md` and the files of `docs`. Only reads from the disk.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use super::html::FileNames;

/// The documents, in the order of the guide.
#[derive(Clone, Debug, Default)]
pub struct Guide {
    /// The documents.
    pub documents: Vec<GuidePage>,
}

/// A document.
#[derive(Clone, Debug)]
pub struct GuidePage {
    /// Its file, relative to the folder of the spec, with `/`.
    pub path: String,
    /// Its text, Markdown.
    pub text: String,
    /// The part of the guide that it belongs to; empty before the first.
    pub part: String,
    /// Its page: `guide/graphs.html`.
    pub page: String,
    /// Its title, the text of its first heading.
    pub title: String,
}

/// The file that lists the documents.
const INDEX: &str = "docs/guide/index.md";

impl Guide {
    /// Reads the documents in a folder.
    ///
    /// # Errors
    /// If a document that the index links to cannot be read.
    pub fn read(folder: &Path) -> Result<Guide, String> {
        let mut listed = match std::fs::read_to_string(folder.join(INDEX)) {
            Ok(index) => {
                let mut listed = vec![(INDEX.to_owned(), String::new())];
                listed.extend(listed_by(&index));
                listed
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => found_in(folder),
            Err(error) => return Err(unreadable(&folder.join(INDEX), &error)),
        };
        let mut seen = BTreeSet::new();
        listed.retain(|(path, _)| seen.insert(path.clone()));
        let mut names = FileNames::default();
        let mut documents = Vec::new();
        for (path, part) in listed {
            let file = folder.join(&path);
            let text = std::fs::read_to_string(&file).map_err(|error| unreadable(&file, &error))?;
            let page = format!("guide/{}.html", names.add(&name_of(&path)));
            documents.push(GuidePage { title: title_of(&text, &path), page, path, text, part });
        }
        Ok(Guide { documents })
    }

    /// The page of a file, by its place relative to the folder of the spec.
    pub fn page(&self, path: &str) -> Option<&str> {
        self.documents.iter().find(|document| document.path == path).map(|document| document.page.as_str())
    }

    /// The documents by the part that they belong to, in order.
    pub fn parts(&self) -> Vec<(&str, Vec<&GuidePage>)> {
        let mut parts: Vec<(&str, Vec<&GuidePage>)> = Vec::new();
        for document in &self.documents {
            match parts.last_mut() {
                Some((part, documents)) if *part == document.part => documents.push(document),
                _ => parts.push((&document.part, vec![document])),
            }
        }
        parts
    }
}

/// The reason why there is no site, and the cure.
fn unreadable(file: &Path, error: &std::io::Error) -> String {
    let file = file.display();
    match error.kind() {
        std::io::ErrorKind::InvalidData => format!(
            "{file}, a document of the guide, is no UTF-8 text; save it as UTF-8, or move it out of the guide"
        ),
        _ => format!("cannot read {file}, which the guide has: {error}"),
    }
}

/// The documents that lists of an index link to, with the heading above each.
fn listed_by(index: &str) -> Vec<(String, String)> {
    let (mut listed, mut part) = (Vec::new(), String::new());
    let (mut in_heading, mut in_list) = (false, false);
    for event in Parser::new(index) {
        match event {
            Event::Start(Tag::Heading { level, .. }) if level != HeadingLevel::H1 => {
                in_heading = true;
                part.clear();
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Text(text) | Event::Code(text) if in_heading => part.push_str(&text),
            Event::Start(Tag::Item) => in_list = true,
            Event::End(TagEnd::Item) => in_list = false,
            Event::Start(Tag::Link { dest_url, .. }) if in_list => {
                let file = dest_url.split('#').next().unwrap_or_default();
                if let Some(path) = resolve(INDEX, file).filter(|path| path.ends_with(".md")) {
                    listed.push((path, part.clone()));
                }
            }
            _ => {}
        }
    }
    listed
}

/// The documents of a crate without an index.
fn found_in(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if folder.join("README.md").is_file() {
        found.push(("README.md".to_owned(), String::new()));
    }
    let entries = std::fs::read_dir(folder.join("docs")).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.path().is_file()).map(|entry| entry.file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| name.ends_with(".md"));
    names.sort();
    found.extend(names.into_iter().map(|name| (format!("docs/{name}"), String::new())));
    found
}

/// `docs/design/graph-mode.md` as `design-graph-mode`.
fn name_of(path: &str) -> String {
    let path = path.strip_suffix(".md").unwrap_or(path);
    let path = path.strip_prefix("docs/").unwrap_or(path);
    path.strip_prefix("guide/").unwrap_or(path).replace('/', "-").to_lowercase()
}

fn title_of(text: &str, path: &str) -> String {
    let (mut title, mut inside) = (String::new(), false);
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => inside = true,
            Event::End(TagEnd::Heading(_)) if inside => break,
            Event::Text(text) | Event::Code(text) if inside => title.push_str(&text),
            _ => {}
        }
    }
    if title.trim().is_empty() { name_of(path) } else { title.trim().to_owned() }
}

/// A relative address in a document as a place relative to the folder of the spec; `None` if it is absolute or leads
/// outside.
pub fn resolve(document: &str, address: &str) -> Option<String> {
    if address.is_empty() || address.contains(':') || address.starts_with('/') {
        return None;
    }
    let mut parts: Vec<String> = Vec::new();
    let folder = Path::new(document).parent().unwrap_or(Path::new(""));
    for part in folder.join(address).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?.to_owned()),
            Component::ParentDir => _ = parts.pop()?,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}
