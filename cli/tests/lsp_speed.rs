//! The time from a keystroke in the stock spec to its diagnostics. It asserts no time; run it optimised:
//! `cargo test --release -p opsmith-cli --test lsp_speed -- --ignored --nocapture`.

#[allow(dead_code, reason = "other tests use the rest of the editor")]
#[path = "support/language_client.rs"]
mod language_client;

use std::path::Path;
use std::time::Instant;

use language_client::Editor;
use serde_json::{Value, json};

/// Keystrokes of which the median is taken.
const KEYSTROKES: usize = 20;

#[test]
#[ignore = "a measurement, which is of use in an optimised build alone"]
fn from_a_keystroke_to_its_diagnostics() {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is a folder of the workspace");
    let mut editor = Editor::spawn(root.to_owned(), &[]);
    editor.ask("initialize", json!({ "capabilities": {} }));
    editor.tell("initialized", json!({}));
    let cases = [
        ("a letter in a formula", "ops/reductions.yaml", "self: grad.expand(self.sizes())", "self: grad.exp"),
        ("a letter in documentation", "ops/elementary.yaml", "doc: ", "doc: "),
        ("a letter in a signature", "ops/comparison.yaml", "(Tensor self", "(Tensor sel"),
        ("a letter that makes it no YAML", "ops/views.yaml", "edition: 1", "edition"),
    ];
    for (edit, file, words, before) in cases {
        assert_eq!(editor.open(file), Vec::<Value>::new());
        let text = editor.text(file);
        let offset = text.find(words).expect("the words are there") + before.len();
        let line = text[..offset].matches('\n').count();
        let character = offset - text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        let start = json!({ "line": line, "character": character });
        let end = json!({ "line": line, "character": character + 1 });
        let mut times: Vec<f64> = (0..KEYSTROKES)
            .map(|number| {
                // One letter comes, the next keystroke takes it away.
                let change = match number % 2 {
                    0 => json!([{ "range": { "start": start, "end": start }, "text": "x" }]),
                    _ => json!([{ "range": { "start": start, "end": end }, "text": "" }]),
                };
                let begin = Instant::now();
                editor.change_parts(file, change);
                editor.diagnostics(file);
                begin.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let (median, most) = (times[KEYSTROKES / 2], times[KEYSTROKES - 1]);
        println!("{edit}: median of {KEYSTROKES} {median:.1} ms, at most {most:.1} ms");
    }
    assert_eq!(editor.end(), Some(0));
}
