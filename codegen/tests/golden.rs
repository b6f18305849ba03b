//! Every folder of `golden/` holds a good spec and the files generated from it.
//!
//! `OPSMITH_BLESS=1 cargo test -p opsmith-codegen --test golden` rewrites the files; read the
//! difference as a user of the generated code would. The crate `tests/fixture` compiles a larger spec.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use opsmith_codegen::config::{RustPath, Tables};
use opsmith_codegen::diagnostics::{render, summary};
use opsmith_codegen::emit::File;
use opsmith_codegen::{Config, pipeline};

fn folders() -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = fs::read_dir(&golden).expect("the folder tests/golden is part of the crate");
    let mut folders: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn generated(folder: &Path) -> Vec<File> {
    generated_with(folder, Tables::Inside)
}

fn generated_with(folder: &Path, tables: Tables) -> Vec<File> {
    let config = Config { library: "golden".to_owned(), tables, ..Config::new(folder.join("spec.yaml")) };
    let checked = pipeline::check(&config).expect("the spec can be read");
    let said: Vec<String> =
        checked.diagnostics.sorted().map(|diagnostic| render(&checked.sources, diagnostic, false)).collect();
    assert!(checked.diagnostics.is_empty(), "{}\n{}", said.join("\n\n"), summary(&checked.diagnostics));
    pipeline::generate(&checked, &config).expect("a good spec gives good code")
}

#[test]
fn files_are_as_recorded() {
    let bless = std::env::var_os("OPSMITH_BLESS").is_some();
    let mut differing = Vec::new();
    for folder in folders() {
        for file in generated(&folder) {
            let path = folder.join("out").join(&file.name);
            if bless {
                fs::create_dir_all(folder.join("out")).expect("the folder can be made");
                fs::write(&path, &file.text).expect("the recorded file can be written");
            } else if fs::read_to_string(&path).unwrap_or_default() != file.text {
                differing.push(first_difference(&path, &file.text));
            }
        }
    }
    assert!(
        differing.is_empty(),
        "{} files differ from what is recorded; if the new code is right, run\n    \
         OPSMITH_BLESS=1 cargo test -p opsmith-codegen --test golden\n\n{}",
        differing.len(),
        differing.join("\n\n")
    );
}

fn first_difference(path: &Path, new: &str) -> String {
    let old = fs::read_to_string(path).unwrap_or_default();
    let (mut old_lines, mut new_lines) = (old.lines(), new.lines());
    let mut number = 1;
    loop {
        match (old_lines.next(), new_lines.next()) {
            (old, new) if old == new && old.is_some() => number += 1,
            (old, new) => {
                let path = path.display();
                return format!(
                    "{path}:{number}\n- {}\n+ {}",
                    old.unwrap_or("(end)"),
                    new.unwrap_or("(end)")
                );
            }
        }
    }
}

#[test]
fn crates_share_the_modules_of_one() {
    let modules = |files: &[File]| -> BTreeMap<String, String> {
        let module = |file: &&File| file.name != "lib.rs" && file.name.ends_with(".rs");
        files.iter().filter(module).map(|file| (file.name.clone(), file.text.clone())).collect()
    };
    let root = |files: &[File]| files.iter().find(|file| file.name == "lib.rs").unwrap().text.clone();
    let path = |text: &str| RustPath::parse(text).unwrap();
    for folder in folders() {
        let mut whole = modules(&generated(&folder));
        let tables = whole.remove("kernel_tables.rs").unwrap();
        let rest = generated_with(&folder, Tables::Of(vec![path("::some"), path("::others")]));
        assert_eq!(modules(&rest), whole, "{}", folder.display());
        for name in ["::some", "::others"] {
            assert!(root(&rest).contains(&format!("pub use {name}::kernel_tables::*;")), "{}", root(&rest));
        }
        let some = generated_with(&folder, Tables::Families(vec!["spec.yaml".to_owned()]));
        assert!(root(&some).contains("pub use generated::kernel_tables;"), "{}", root(&some));
        assert_eq!(modules(&some), BTreeMap::from([("kernel_tables.rs".to_owned(), tables)]));
        let others = modules(&generated_with(&folder, Tables::Families(Vec::new())));
        assert!(!others["kernel_tables.rs"].contains("static"), "{}", others["kernel_tables.rs"]);
    }
}

#[test]
fn two_runs_give_the_same_bytes() {
    for folder in folders() {
        assert_eq!(generated(&folder), generated(&folder), "{}", folder.display());
    }
}

#[test]
fn rust_files_parse_and_say_where_they_come_from() {
    for folder in folders() {
        for file in generated(&folder) {
            let head = file.text.lines().next().unwrap_or_default();
            assert!(head.contains("@generated from spec.yaml"), "{}: {head}", file.name);
            if file.name.ends_with(".rs") {
                syn::parse_file(&file.text).unwrap_or_else(|error| panic!("{}: {error}", file.name));
            }
            // A text of several sentences is one literal.
            let is_text = |line: &str| line.trim_start().starts_with('"');
            let long = file.text.lines().find(|line| line.chars().count() > 300 && !is_text(line));
            assert_eq!(long, None, "{}: a line that nobody can read", file.name);
        }
    }
}
