//! Mutated programs: a mutated archive is either rejected with an error, or a valid program.
//!
//! `cargo test -p opsmith-tests --test programs_fuzz -- --ignored --nocapture` runs for `OPSMITH_FUZZ_SECONDS` seconds
//! (60), from the seed `OPSMITH_FUZZ_SEED` (the time, printed). Each archive is loaded, checked, described and run at
//! several sizes, in a child process with little memory. `OPSMITH_FUZZ_ONLY=SEED` looks at one archive alone, in this
//! process. Each former finding is a test in `programs_hostile.rs`.

mod fuzz_support;
mod programs_support;

use std::collections::BTreeMap;
use std::path::Path;

use fuzz_support::children::{Children, number};
use fuzz_support::json::{alike, change_list, is_list, number as other_number, place, set};
use opsmith::{Tensor, TensorOps};
use opsmith_programs::{Program, ProgramInput, ProgramSize};
use opsmith_testing::fuzz::Random;
use programs_support::{bytes, changed};
use serde_json::{Value, json};

const CHILDREN: Children = Children {
    name: "programs-fuzz",
    // A loop may go on for ever, as any loop in a program.
    may_hang: |step, input| step.starts_with("run") && has_a_loop(input),
};

/// The corpus: programs with branches, windows, scans, recurrence and plain layers, as exported and decomposed, with elements
/// that decide, and with pickled weights.
const PROGRAMS: [&str; 10] = [
    "cond.pt2",
    "cond.decomposed.pt2",
    "convnet.pt2",
    "first_rows.pt2",
    "lstm.pt2",
    "mlp.pt2",
    "mlp.decomposed.pt2",
    "old.pt2",
    "scans.pt2",
    "window.pt2",
];
/// Larger runs would take all the time.
const LARGE: i64 = 1 << 20;

/// A program of the corpus: its archive, and the documents in it.
struct Saved {
    archive: Vec<u8>,
    documents: Vec<(String, Value)>,
}

fn corpus() -> Vec<Saved> {
    PROGRAMS.map(saved).into_iter().collect()
}

fn saved(name: &str) -> Saved {
    let archive = bytes(name);
    let mut documents = Vec::new();
    changed(&archive, |name, bytes| {
        if let Ok(document) = serde_json::from_slice::<Value>(&bytes)
            && name.ends_with(".json")
        {
            documents.push((name.to_owned(), document));
        }
        Some(bytes)
    });
    Saved { archive, documents }
}

/// An archive of the corpus with a few changes, which a seed decides.
fn mutated(corpus: &[Saved], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let saved = &corpus[random.below(corpus.len())];
    let mut documents = saved.documents.clone();
    for _ in 0..1 + random.below(4) / (1 + random.below(3)) {
        // Most is in the model.
        let largest =
            documents.iter().enumerate().max_by_key(|(_, (_, document))| document.to_string().len());
        let largest = largest.map_or(0, |(index, _)| index);
        let index = if random.below(8) == 0 { random.below(documents.len()) } else { largest };
        let other = &corpus[random.below(corpus.len())].documents;
        let other = &other[random.below(other.len())].1;
        change(&mut documents[index].1, other, &mut random);
    }
    let (member, drop_it) = (random.below(40), random.below(2) == 0);
    let mut number = 0;
    let mut archive = changed(&saved.archive, |name, mut bytes| {
        number += 1;
        if let Some((_, document)) = documents.iter().find(|(known, _)| known == name) {
            bytes = document.to_string().into_bytes();
        }
        if number == member {
            if drop_it {
                return None;
            }
            bytes.truncate(random.below(bytes.len() + 1));
        }
        Some(bytes)
    });
    if random.below(20) == 0 {
        let at = random.below(archive.len());
        archive[at] = random.draw() as u8;
    }
    archive
}

fn change(document: &mut Value, other: &Value, random: &mut Random) {
    match random.below(12) {
        0..5 => {
            let Some(at) = place(document, random, &Value::is_number) else { return };
            let number = other_number(document, &at, random);
            set(document, &at, number);
        }
        5..7 => {
            let Some(at) = place(document, random, &Value::is_string) else { return };
            let Some(from) = place(document, random, &Value::is_string) else { return };
            let text = document.pointer(&from).cloned().unwrap_or_default();
            set(document, &at, text);
        }
        7..9 => {
            let Some(at) = place(document, random, &is_list) else { return };
            if let Some(Value::Array(list)) = document.pointer_mut(&at) {
                change_list(list, random);
            }
        }
        9 => {
            let Some(at) = place(document, random, &|_| true) else { return };
            if let Some(value) = alike(other, &at, random) {
                set(document, &at, value);
            }
        }
        10 => {
            let Some(at) = place(document, random, &Value::is_boolean) else { return };
            let turned = !document.pointer(&at).and_then(Value::as_bool).unwrap_or_default();
            set(document, &at, json!(turned));
        }
        _ => {
            let Some(at) = place(document, random, &|_| true) else { return };
            let value = [json!(null), json!([]), json!({}), json!(""), json!(0.5), json!("1e999")];
            set(document, &at, value[random.below(value.len())].clone());
        }
    }
}

/// Does everything with a program. Errors are answers, and each says something.
fn look(archive: Vec<u8>, note: &dyn Fn(&str)) {
    let says = |text: String| assert!(!text.trim().is_empty(), "an error without a text");
    note("load");
    let program = match Program::from_bytes(archive) {
        Ok(program) => program,
        Err(error) => return says(error.to_string()),
    };
    note("check");
    if let Err(errors) = program.check() {
        return says(errors.to_string());
    }
    note("describe");
    if let Ok(graph) = program.graph() {
        let _ = (graph.describe(), graph.to_html(), graph.to_dot());
    }
    for size in [0, 1, 2, 3, 8] {
        note(&format!("run at {size}"));
        let Some(inputs) =
            program.inputs().iter().map(|input| tensor(input, size)).collect::<Option<Vec<_>>>()
        else {
            continue;
        };
        if let Err(error) = program.run(&inputs) {
            says(error.to_string());
        }
    }
}

/// An input at about a size; `None` if it would be large.
fn tensor(input: &ProgramInput, near: i64) -> Option<Tensor> {
    let size = |size: &ProgramSize| match size {
        ProgramSize::Fixed(size) => *size,
        ProgramSize::Symbol { multiple_of, least, most, .. } => {
            near.max(*least).min(most.unwrap_or(i64::MAX)).checked_mul(*multiple_of).unwrap_or(i64::MAX)
        }
        // All symbols have about this size.
        ProgramSize::Sum { terms, plus, .. } => {
            terms.iter().fold(*plus, |sum, (factor, _)| sum.saturating_add(factor.saturating_mul(near)))
        }
    };
    let shape: Vec<i64> = input.sizes.iter().map(size).collect();
    let count = shape.iter().try_fold(1i64, |count, size| count.checked_mul(*size).filter(|_| *size >= 0))?;
    let values = opsmith::linspace(-1.0, 2.0, Some(count).filter(|count| *count <= LARGE)?).ok()?;
    values.reshape(&shape).ok()?.to_dtype(input.dtype).ok()
}

/// Whether the program in a folder has a loop, on elements or on sizes.
fn has_a_loop(folder: &Path) -> bool {
    std::fs::read(folder.join("program.pt2"))
        .ok()
        .and_then(|archive| Program::from_bytes(archive).ok())
        .is_some_and(|program| program.graph().is_ok_and(|graph| graph.describe().contains("while")))
}

#[test]
#[ignore = "is what the others start as a process of its own"]
fn child() {
    CHILDREN.child(|folder| {
        let (corpus, file) = (corpus(), folder.join("input/program.pt2"));
        Box::new(move |seed, note| {
            let archive = mutated(&corpus, seed);
            // Overwriting a file waits for the disk, making one does not.
            let _ = std::fs::remove_file(&file);
            std::fs::write(&file, &archive).expect("the folder for temporary files can be written");
            look(archive, note);
        })
    });
}

#[test]
fn a_few_mutated_programs() {
    let (inputs, found) = CHILDREN.fuzz("few", 1, 600, 150, 1);
    assert!(found.is_empty(), "{}", found.join("\n\n"));
    assert_eq!(inputs, 150);
}

#[test]
fn the_corpus_itself_runs() {
    let mut steps: BTreeMap<String, usize> = BTreeMap::new();
    for saved in corpus() {
        let steps = std::cell::RefCell::new(&mut steps);
        look(saved.archive, &|step| *steps.borrow_mut().entry(step.to_owned()).or_default() += 1);
    }
    assert_eq!(steps["run at 3"], PROGRAMS.len());
}

#[test]
#[ignore = "takes a minute; `.ci/run` calls it"]
fn fuzz_programs() {
    if let Some(seed) = number("OPSMITH_FUZZ_ONLY") {
        return look(mutated(&corpus(), seed), &|step| println!("{step}"));
    }
    CHILDREN.fuzz_long();
}
