//! The programs of the guides: blocks with a file's name, ```` ```rust file=src/kernels/rows.rs ````.

use std::path::Path;

/// The files of a page of the documentation.
pub fn files_of_page(page: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    files_of_guide(&std::fs::read_to_string(root.join(page)).unwrap())
}

/// The blocks of a guide that name a file, each with its text.
fn files_of_guide(text: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(head) = line.strip_prefix("```").filter(|head| !head.is_empty()) else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if let Some((_, file)) = head.split_once(" file=") {
            files.push((file.to_owned(), body.join("\n") + "\n"));
        }
    }
    files
}
