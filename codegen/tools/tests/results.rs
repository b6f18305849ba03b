//! Files of test results: reading, merging, refusals.

use std::fs;
use std::path::PathBuf;

use opsmith_codegen::analysis::fingerprint::fingerprint;
use opsmith_codegen::check_text;
use opsmith_codegen::model::Model;
use opsmith_codegen::pipeline;
use opsmith_tools::results::{Cell, Example, Outcome, Results, Timing};
use proptest::prelude::*;

const SPEC: &str = "edition: 1\nops:\n- func: twice(Tensor x) -> Tensor\n  doc: Twice.\n  pointwise: x + x\n  \
    derivatives: {x: None}\n";

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let folder = std::env::temp_dir().join(format!("opsmith-results-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            fs::write(folder.join(file), text).unwrap();
        }
        Folder(folder)
    }

    fn read(&self) -> Result<Results, String> {
        Results::read(&self.0).map_err(|error| error.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn model(text: &str) -> Model {
    assert_eq!(check_text("spec.yaml", text).1.error_count(), 0);
    pipeline::check_text("spec.yaml", text).model
}

fn head(fingerprint: &str, time: u32) -> String {
    format!(
        "{{\"opsmith_results\":1,\"library\":\"mine\",\"fingerprint\":\"{fingerprint}\",\"time\":{time}}}\n"
    )
}

fn cell(dtype: &str, check: &str, outcome: Outcome) -> Cell {
    Cell { backend: "CPU".to_owned(), dtype: dtype.to_owned(), check: check.to_owned(), outcome }
}

const CELL: &str = "{\"op\":\"twice\",\"backend\":\"CPU\",\"dtype\":\"float32\",\"check\":\"forward\",";

#[test]
fn runs_are_merged_and_the_last_one_decides() {
    let model = model(SPEC);
    let own = format!("{:016x}", fingerprint(&model));
    let first = format!("{}{CELL}\"failed\":[\"wrong\"]}}\n{CELL}\"passed\":2}}\n", head(&own, 1));
    let graph = CELL.replace("forward", "graph");
    let second = format!(
        "{}{CELL}\"passed\":2}}\n{CELL}\"skipped\":\"why\"}}\n{CELL}\"passed\":3}}\n{graph}\"skipped\":\"no\"}}\n\
         {{\"op\":\"twice\",\"example\":{{\"code\":\"twice(&x)?\",\"output\":\"[2]\"}}}}\n{CELL}\"pas",
        head(&own, 2)
    );
    let bench = "{\"lib\":\"opsmith\",\"case\":\"info\",\"threads\":1}\n\
        {\"lib\":\"opsmith\",\"case\":\"ew.twice.1e6\",\"threads\":2,\"op\":\"twice\",\"median_ns\":1500.5,\"gbs\":8.0}\n\
        {\"lib\":\"opsmith\",\"case\":\"net\",\"threads\":1,\"median_ns\":1}\n";
    let files =
        [("b.jsonl", first.as_str()), ("a.jsonl", &second), ("bench.jsonl", bench), ("notes.txt", "no")];
    let results = Folder::new("merge", &files).read().unwrap();
    let found = results.operator("twice").unwrap();
    let wanted = [
        cell("float32", "forward", Outcome::Passed(5)),
        cell("float32", "graph", Outcome::Skipped("no".to_owned())),
    ];
    assert_eq!(found.cells, wanted);
    assert_eq!(found.examples, [Example { code: "twice(&x)?".to_owned(), output: "[2]".to_owned() }]);
    let case = "ew.twice.1e6, 2 threads".to_owned();
    assert_eq!(found.timings, [Timing { case, nanoseconds: 1500.5, bytes_per_second: Some(8e9) }]);
    assert!(results.operator("other").is_none() && results.is_of(&model));
    assert_eq!((results.operators().count(), results.libraries()), (1, vec!["mine", "opsmith"]));
}

#[test]
fn results_of_another_spec_are_stale() {
    let model = model(SPEC);
    let stale = format!("{}{CELL}\"passed\":2}}\n", head("0123456789abcdef", 9));
    let results = Folder::new("stale", &[("a.jsonl", &stale)]).read().unwrap();
    assert!(!results.is_of(&model) && results.operator("twice").is_some());
    assert!(results.of(&model).operator("twice").is_none());
}

#[test]
fn a_fingerprint_is_of_the_entries_alone() {
    let own = fingerprint(&model(SPEC));
    let moved = SPEC.replace("ops:", "# A comment.\n\nops:").replace("x + x", "x  +  x");
    assert_eq!(fingerprint(&model(&moved)), own);
    for (from, to) in
        [("x + x", "x - x"), ("Twice.", "Double."), ("twice", "double"), ("{x: None}", "{x: grad}")]
    {
        assert_ne!(fingerprint(&model(&SPEC.replace(from, to))), own, "{from} -> {to}");
    }
}

#[test]
fn refusals_say_where_and_how_to_go_on() {
    let own = head("0123456789abcdef", 1);
    let newer = own.replace("\"opsmith_results\":1", "\"opsmith_results\":2");
    let odd = own.replace("0123456789abcdef", "../../etc");
    let again = "remove the file and run the tests again";
    for (name, text, wanted) in [
        ("version", newer, format!("line 1: version 2 of results, where this reads 1; {again}")),
        (
            "early",
            format!("{CELL}\"passed\":2}}\n"),
            format!("line 1: an outcome before the head of a run; {again}"),
        ),
        ("head", odd, format!("line 1: a head without library and fingerprint; {again}")),
        (
            "none",
            format!("{own}{CELL}\"passed\":2,\"skipped\":\"x\"}}\n"),
            format!("line 2: a line that has not one outcome; {again}"),
        ),
        (
            "place",
            format!("{own}{{\"op\":\"a\",\"passed\":1}}\n"),
            format!("line 2: an outcome without backend, dtype and check; {again}"),
        ),
    ] {
        let error = Folder::new(name, &[("a.jsonl", &text)]).read().unwrap_err();
        assert!(error.ends_with(&wanted), "{error}");
    }
    let error = Folder::new("json", &[("a.jsonl", &format!("{own}nothing\n"))]).read().unwrap_err();
    assert!(error.contains("line 2: no line of results"), "{error}");
    let error = Results::read(std::path::Path::new("/nowhere/at/all")).unwrap_err().to_string();
    assert!(error.contains("OPSMITH_RESULTS"), "{error}");
}

#[test]
fn long_texts_are_cut() {
    let long = "ä".repeat(200_000);
    let text = format!(
        "{}{{\"op\":\"a\",\"example\":{{\"code\":\"{long}\",\"output\":\"\"}}}}\n",
        head("0123456789abcdef", 1)
    );
    let results = Folder::new("long", &[("a.jsonl", &text)]).read().unwrap();
    assert!(results.operator("a").unwrap().examples[0].code.len() < 70_000);
}

proptest! {
    /// Damaged files are results or an error, never a panic.
    #[test]
    fn any_bytes_are_results_or_an_error(cut in 0usize..400, byte: u8, at in 0usize..400) {
        let mut bytes = format!("{}{CELL}\"passed\":2}}\n{CELL}\"failed\":[\"a\"]}}\n", head("0123456789abcdef", 1)).into_bytes();
        bytes.truncate(cut.max(1));
        let at = at % bytes.len();
        bytes[at] = byte;
        let folder = Folder::new(&format!("any-{cut}-{byte}-{at}"), &[]);
        fs::write(folder.0.join("a.jsonl"), bytes).unwrap();
        let _ = folder.read();
    }
}

#[test]
fn sizes_at_samples_are_read_once_and_the_last_run_decides() {
    let model = model(SPEC);
    let own = format!("{:016x}", fingerprint(&model));
    let line = |results: &str| {
        format!(
            "{{\"op\":\"twice\",\"sizes\":{{\"arguments\":[{{\"name\":\"x\",\"sizes\":[\"s0\"]}}],\"results\":{results},\
             \"conditions\":[\"s0 >= 2\"],\"run\":[]}}}}\n"
        )
    };
    let first = format!("{}{}", head(&own, 1), line("[[\"2*s0\"]]"));
    let second = format!("{}{}{}", head(&own, 2), line("[[\"s0\"],null,[null]]").repeat(2), line("[]"));
    let results = Folder::new("sizes", &[("a.jsonl", &first), ("b.jsonl", &second)]).read().unwrap();
    let sizes = &results.operator("twice").unwrap().sizes;
    assert_eq!(sizes.len(), 2);
    assert_eq!(sizes[0].results, [Some(vec![Some("s0".to_owned())]), None, Some(vec![None])]);
    assert_eq!(sizes[0].conditions, ["s0 >= 2"]);
    let long = format!("{}{}", head(&own, 1), line(&format!("[{}]", ["[]"; 100].join(","))));
    let results = Folder::new("sizes-long", &[("a.jsonl", &long)]).read().unwrap();
    assert!(results.operator("twice").unwrap().sizes.is_empty(), "a list without end is no sample");
}
