//! Formatted pieces of an earlier run: another run takes over those that did not change, and no damaged one.

use std::fs;
use std::path::{Path, PathBuf};

use opsmith_codegen::emit::File;
use opsmith_codegen::emit::formatted::Formatted;
use opsmith_codegen::{Config, output, pipeline};

/// Enough entries for several pieces of each module.
const ENTRIES: usize = 100;

/// A spec of two files in a folder of its own.
fn spec(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("formatted").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("ops")).unwrap();
    let entry = |number: usize| {
        format!(
            "- func: plus_{number}(Tensor self, *, float width=1.0) -> Tensor\n  doc: Adds {number}.\n  \
             variants: [functional, inplace, out]\n  pointwise: self * width + {number}\n  derivatives: {{self: non_differentiable}}\n\n"
        )
    };
    let entries = |numbers: std::ops::Range<usize>| numbers.map(entry).collect::<String>();
    let first = format!("edition: 1\n\ninclude:\n- ops/more.yaml\n\nops:\n\n{}", entries(0..ENTRIES / 2));
    fs::write(folder.join("ops.yaml"), first).unwrap();
    fs::write(
        folder.join("ops/more.yaml"),
        format!("edition: 1\n\nops:\n\n{}", entries(ENTRIES / 2..ENTRIES)),
    )
    .unwrap();
    folder
}

/// The files of a spec, by a run after the one that `earlier` is of.
fn generated(spec: &Path, earlier: &Formatted) -> Vec<File> {
    let config = Config::new(spec);
    let checked = pipeline::check(&config).expect("the spec can be read");
    assert!(!checked.diagnostics.has_errors(), "{:?}", checked.diagnostics.sorted().next());
    pipeline::generate_after(&checked, &config, earlier).expect("a good spec gives good code")
}

fn write(folder: &Path, files: &[File]) -> usize {
    let written = output::write(folder, files).unwrap();
    output::formatted::write(folder, files).unwrap();
    written
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{} has no `{from}`", path.display());
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn a_run_after_an_edit_writes_the_files_of_a_run_from_nothing() {
    let folder = spec("edits");
    let (spec, out) = (folder.join("ops.yaml"), folder.join("out"));
    write(&out, &generated(&spec, &Formatted::default()));
    let edits = [
        ("ops.yaml", "  doc: ", "  doc: Edited. "),
        ("ops.yaml", "\n- func: ", "\n# a line more\n- func: "),
        (
            "ops/more.yaml",
            "\n- func: ",
            "\n- func: twice_of(Tensor self) -> Tensor\n  pointwise: self + self\n  derivatives: {self: non_differentiable}\n- func: ",
        ),
        (
            "ops/more.yaml",
            "\n- func: twice_of(Tensor self) -> Tensor\n  pointwise: self + self\n  derivatives: {self: non_differentiable}\n",
            "\n",
        ),
    ];
    for (file, from, to) in edits {
        edit(&folder.join(file), from, to);
        let from_nothing = generated(&spec, &Formatted::default());
        let after = generated(&spec, &output::formatted::read(&out));
        assert!(after == from_nothing, "{file}: `{from}` to `{to}`");
        assert!(write(&out, &after) > 0, "{file}: `{from}` to `{to}` changes a file");
    }
}

#[test]
fn pieces_that_did_not_change_are_taken_over() {
    let folder = spec("kept");
    let (spec, out) = (folder.join("ops.yaml"), folder.join("out"));
    let files = generated(&spec, &Formatted::default());
    // A mark that no run would write shows who wrote a piece.
    let mut kept = Formatted::default();
    let mut pieces = 0;
    for piece in files.iter().flat_map(|file| &file.pieces) {
        kept.add(piece.key, format!("// kept {}\n", piece.key.0));
        pieces += 1;
    }
    edit(&folder.join("ops/more.yaml"), "  doc: ", "  doc: Edited. ");
    let marked: usize =
        generated(&spec, &kept).iter().map(|file| file.text.matches("// kept ").count()).sum();
    assert!(marked >= pieces - 8, "{marked} of {pieces} pieces are taken over after an edit of one text");
    assert!(marked < pieces, "the edited entry is written anew");
    write(&out, &files);
    assert_eq!(output::formatted::read(&out).len(), pieces_with_text(&files));
}

fn pieces_with_text(files: &[File]) -> usize {
    let keys: std::collections::HashSet<_> =
        files.iter().flat_map(|file| &file.pieces).map(|piece| piece.key.0).collect();
    keys.len()
}

#[test]
fn damaged_files_and_lists_count_as_absent() {
    let folder = spec("damaged");
    let (spec, out) = (folder.join("ops.yaml"), folder.join("out"));
    let files = generated(&spec, &Formatted::default());
    write(&out, &files);
    let whole = output::formatted::read(&out).len();
    let functions = out.join("functions.rs");
    edit(&functions, "fn ", "fn damaged_");
    assert!(output::formatted::read(&out).len() < whole, "pieces of an edited file are not taken over");
    assert!(generated(&spec, &output::formatted::read(&out)) == files);

    write(&out, &files);
    let list = out.join(".opsmith-pieces");
    let good = fs::read_to_string(&list).unwrap();
    let other_build = good.replacen("opsmith ", "opsmith 0", 1);
    // The length of each piece has a digit more.
    let too_far: String = good
        .lines()
        .map(|line| format!("{line}{}\n", if line.starts_with("piece") { "9" } else { "" }))
        .collect();
    for text in ["", "piece", &other_build, &good[..good.len() / 2], &too_far, "\u{0}\u{1}"] {
        fs::write(&list, text).unwrap();
        assert!(generated(&spec, &output::formatted::read(&out)) == files);
    }
}
