//! Shared code of several test files.

pub mod specs;

/// The stock spec as one text: the entries of included files come after its own, and functions before them.
#[allow(dead_code, reason = "not every file of tests reads it")]
pub fn stock_text() -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).expect("a file of the stock spec");
    let mut text = read("ops.yaml");
    let included = opsmith_tools::fmt::includes(&text);
    if !text.contains("\nops:\n") {
        text.push_str("\nops:\n");
    }
    for file in &included {
        text = text.replacen(&format!("- {file}\n"), "", 1);
        let more = read(file);
        match (more.split_once("\nops:\n"), more.split_once("\nfunctions:\n")) {
            (Some((_, entries)), _) => text.push_str(&format!("\n{entries}")),
            (None, Some((_, functions))) => {
                text = text.replacen("\nops:\n", &format!("\nfunctions:\n{functions}\nops:\n"), 1);
            }
            (None, None) => panic!("{file} has no entries"),
        }
    }
    // One text has no files that a feature could have.
    let features = text.find("\nfeatures:\n").expect("the stock spec has features") + 1;
    let end = features + text[features..].find("\n\n").expect("other keys follow");
    text.replace_range(features..end, "");
    text.replacen("\ninclude:\n", "\n", 1)
}
