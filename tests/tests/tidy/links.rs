//! Links between files of the repository: each is one, and leads somewhere.

use std::fs;
use std::path::Path;

/// Where a file of one line leads, if its text is the relative path of something.
fn path_in(file: &Path) -> Option<String> {
    let short = fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.len() < 256);
    let text = short.then(|| fs::read_to_string(file).ok()).flatten()?;
    let leads = text.contains('/') && !text.contains('\n') && file.parent()?.join(&text).exists();
    leads.then_some(text)
}

fn offenders_under(folder: &Path, offenders: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with('.') || ["target", "node_modules"].contains(&&*name) {
            continue;
        }
        let shown = path.strip_prefix(super::root()).unwrap().display();
        if path.is_symlink() {
            let broken = fs::metadata(&path).err();
            offenders.extend(broken.map(|error| format!("{shown}: a link that leads nowhere: {error}")));
        } else if path.is_dir() {
            offenders_under(&path, offenders);
        } else if let Some(text) = path_in(&path) {
            offenders.push(format!("{shown}: a file whose text is the path {text:?}, where a link belongs"));
        }
    }
}

#[test]
fn links_are_links() {
    let mut offenders = Vec::new();
    offenders_under(&super::root(), &mut offenders);
    super::assert_none(offenders, "a link is recorded as one (`ln -s`), not as a file with its text");
}

#[test]
fn a_file_with_the_text_of_a_link_is_found() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("links");
    fs::create_dir_all(folder.join("docs")).unwrap();
    fs::write(folder.join("guide"), "docs/../docs").unwrap();
    assert_eq!(path_in(&folder.join("guide")).as_deref(), Some("docs/../docs"));
    fs::write(folder.join("guide"), "docs/elsewhere").unwrap();
    assert_eq!(path_in(&folder.join("guide")), None);
}
