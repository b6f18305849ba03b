//! Every folder of `bad/` has a spec with mistakes and its full message; every folder of `warned/` one that is accepted
//! with warnings.
//!
//! `OPSMITH_BLESS=1 cargo test -p opsmith-codegen --test bad` rewrites the texts; read the difference as a user would:
//! does the message give the mistake, its position, and the correction?

use std::fs;
use std::path::{Path, PathBuf};

use opsmith_codegen::Config;
use opsmith_codegen::diagnostics::{render, summary};
use opsmith_codegen::pipeline::{self, Checked};

fn checked(folder: &Path) -> Checked {
    // The message shows this name; the files that a spec includes are beside it.
    let config = Config::new(folder.join("spec.yaml"));
    let mut checked = pipeline::check(&config).expect("a bad spec is readable text");
    // The other specs have no kernels beside them.
    if folder.ends_with("kernel-file-missing") || folder.join("kernels").is_dir() {
        pipeline::check_kernel_files(&mut checked, &config);
    }
    checked
}

/// The message, and whether the spec was rejected.
fn check(folder: &Path) -> (String, bool) {
    let Checked { sources, diagnostics, .. } = checked(folder);
    let mut shown = String::new();
    for diagnostic in diagnostics.sorted() {
        shown.push_str(&render(&sources, diagnostic, false));
        shown.push_str("\n\n");
    }
    shown.push_str(&summary(&diagnostics));
    shown.push('\n');
    (shown, diagnostics.has_errors())
}

fn folders(kind: &str) -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(kind);
    let entries = fs::read_dir(&all).expect("the folder is part of the crate");
    let mut folders: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Compares the message of each spec of a kind with the recorded one.
fn as_recorded(kind: &str, at_least: usize, is_refused: bool) {
    let bless = std::env::var_os("OPSMITH_BLESS").is_some();
    let mut failures = Vec::new();
    let folders = folders(kind);
    assert!(folders.len() >= at_least, "only {} specs were found", folders.len());
    for folder in &folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let (shown, refused) = check(folder);
        assert_eq!(refused, is_refused, "{name}: refused is on the left\n{shown}");
        let recorded = folder.join("spec.stderr");
        if bless {
            fs::write(&recorded, &shown).expect("the recorded text can be written");
        } else if fs::read_to_string(&recorded).unwrap_or_default() != shown {
            failures.push(format!("---- {name} ----\n{shown}"));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} texts differ from their spec.stderr; if the new text is right, run\n    \
         OPSMITH_BLESS=1 cargo test -p opsmith-codegen --test bad\n\n{}",
        failures.len(),
        folders.len(),
        failures.join("\n")
    );
}

#[test]
fn messages_are_as_recorded() {
    as_recorded("bad", 120, true);
}

#[test]
fn warnings_are_as_recorded() {
    as_recorded("warned", 4, false);
}

#[test]
fn every_message_has_a_place_and_advice() {
    for folder in folders("bad").into_iter().chain(folders("warned")) {
        let Checked { sources, diagnostics, .. } = checked(&folder);
        for diagnostic in diagnostics.sorted() {
            let shown = render(&sources, diagnostic, false);
            assert!(!diagnostic.primary.text.is_empty(), "no label: {shown}");
            assert!(diagnostic.help.is_some() || diagnostic.code == "E0030", "no help:\n{shown}");
        }
    }
}

/// The entries of a spec that has only `ops:`, with operators renamed so that they are unique.
fn entries(text: &str, number: usize) -> Option<String> {
    let mut entries = text.strip_prefix("edition: 1\nops:\n")?.to_owned();
    if entries.lines().any(|line| line.starts_with(|c: char| c.is_alphabetic())) {
        return None;
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let heads = text.split("- func: ").skip(1);
    let names: Vec<String> = heads
        .map(|head| head.trim_start_matches(['"', '\'']).chars().take_while(|c| is_word(*c)).collect())
        .filter(|name: &String| !name.is_empty())
        .collect();
    for name in names {
        let pieces: Vec<&str> = entries.split(name.as_str()).collect();
        let mut renamed = pieces[0].to_owned();
        for piece in &pieces[1..] {
            let inside = renamed.ends_with(is_word) || piece.starts_with(|c| is_word(c) && c != '_');
            renamed.push_str(&if inside { name.clone() } else { format!("{name}{number}") });
            renamed.push_str(piece);
        }
        entries = renamed;
    }
    Some(entries)
}

/// The codes of a text's errors, sorted.
fn codes(text: &str) -> Vec<&'static str> {
    let (_, diagnostics) = opsmith_codegen::check_text("spec.yaml", text);
    let mut codes: Vec<&str> = diagnostics.errors().map(|error| error.code).collect();
    codes.sort_unstable();
    codes
}

/// A code identifies one message, so that a search for it leads to the cause: each is used in one function of the
/// catalogue, whose branches differ only in the subject.
#[test]
fn a_code_stands_for_one_message() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/diagnostics/catalogue");
    let mut functions = std::collections::BTreeMap::<String, Vec<String>>::new();
    for file in fs::read_dir(folder).expect("the catalogue is part of the crate").flatten() {
        let mut function = String::new();
        for line in fs::read_to_string(file.path()).expect("a file of Rust").lines() {
            if let Some((_, rest)) = line.split_once("fn ") {
                function = rest.split(['(', '<']).next().unwrap_or_default().to_owned();
            }
            let quoted = line.split('"').skip(1).step_by(2);
            let is_code = |text: &&str| {
                let digits = text.strip_prefix(['E', 'W']).unwrap_or_default();
                digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_digit())
            };
            for code in quoted.filter(is_code) {
                let known = functions.entry(code.to_owned()).or_default();
                if !known.contains(&function) {
                    known.push(function.clone());
                }
            }
        }
    }
    assert!(functions.len() > 250, "only {} codes were found", functions.len());
    functions.retain(|_, functions| functions.len() > 1);
    assert!(functions.is_empty(), "codes of several messages; give each its own: {functions:?}");
}

/// Mistakes hide no others in other entries: combined specs have the errors that each has alone. Excluded are specs
/// whose mistake affects the rest of a file, or is about the whole file.
#[test]
fn as_many_errors_as_mistakes() {
    let mut combined = "edition: 1\nops:\n".to_owned();
    let mut expected: Vec<&'static str> = Vec::new();
    let (mut together, mut apart) = (Vec::new(), Vec::new());
    for (number, folder) in folders("bad").iter().enumerate() {
        let text = fs::read_to_string(folder.join("spec.yaml")).expect("a bad spec is readable text");
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(entries) = entries(&text, number).filter(|entries| entries.ends_with('\n')) else {
            continue;
        };
        let own = codes(&format!("edition: 1\nops:\n{entries}"));
        if own.iter().any(|code| *code < "E0100") {
            continue;
        }
        let mut both = [expected.as_slice(), &own].concat();
        both.sort_unstable();
        if own == codes(&text) && codes(&format!("{combined}{entries}")) == both {
            combined.push_str(&entries);
            expected = both;
            together.push(name);
        } else {
            apart.push(name);
        }
    }
    let (_, diagnostics) = opsmith_codegen::check_text("spec.yaml", &combined);
    assert!(
        summary(&diagnostics).starts_with(&format!("{} errors", expected.len())),
        "{}",
        summary(&diagnostics)
    );
    assert!(
        together.len() >= 80 && expected.len() >= 250,
        "only {} errors of {} specs; apart are {}",
        expected.len(),
        together.len(),
        apart.join(", ")
    );
}

/// The message in the README is the generator's, for a mistake in an entry after the stock ones.
#[test]
fn the_message_of_the_readme_is_real() {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is a folder of the workspace");
    let readme = fs::read_to_string(root.join("README.md")).expect("there is a README");
    let start = readme.find("error[E").expect("it shows an error");
    let shown = &readme[start..start + readme[start..].find("\n```").expect("the block ends")];
    let family = root.join("ops/arithmetic.yaml");
    let arithmetic = fs::read_to_string(&family).expect("there is a spec");
    let text = format!(
        "{arithmetic}\n- func: bell_curve(Tensor self, *, float width=1.0) -> Tensor\n  doc: A bell curve.\n  \
         dtype: promote_float(self)\n  dtypes: real\n  pointwise: exp(-(self * slef) / (2.0 * width * width))\n"
    );
    let config = opsmith_codegen::Config::stock(root.join("ops.yaml"));
    let open = |path: &Path| if path == family { Ok(text.clone().into_bytes()) } else { fs::read(path) };
    let checked = opsmith_codegen::pipeline::check_from(&config, &open).expect("all files are there");
    let errors = checked.diagnostics.errors().map(|error| render(&checked.sources, error, false));
    let errors: Vec<String> = errors.collect();
    // The line number changes whenever the stock spec grows, by digits too; other numbers are one or two of these.
    let without_lines = |text: &str| -> String {
        let mut words = String::new();
        for part in text.split_inclusive(|c: char| !c.is_ascii_digit()) {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            words += if digits >= 3 { &part[digits..] } else { part };
        }
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(without_lines(&errors[0]), without_lines(shown), "{}", errors[0]);
}
