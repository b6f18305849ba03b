//! Random changes of saved graphs: numbers, several at a time, texts, steps, lists, parts of other graphs, and the
//! header of the constants.

use opsmith_testing::fuzz::Random;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::corpus::Saved;
use crate::fuzz_support::json::{alike, change_list, is_list, number, places, set};

/// The files of a changed graph.
pub struct Changed {
    pub structure: String,
    pub constants: Vec<u8>,
}

/// A graph of the corpus with one to five changes, which a seed decides.
pub fn changed(corpus: &[Saved], seed: u64) -> (&'static str, Changed) {
    let mut random = Random::new(seed);
    let saved = &corpus[random.below(corpus.len())];
    let (mut structure, mut constants) = (saved.structure.clone(), saved.constants.clone());
    // Most changes break so much that a second one is never reached.
    for _ in 0..1 + random.below(5) / (1 + random.below(3)) {
        if random.below(24) == 0 && !constants.is_empty() {
            let at = random.below(constants.len());
            constants[at] = random.draw() as u8;
            if random.below(4) == 0 {
                constants.truncate(at);
            }
        } else {
            change(&mut structure, corpus, &mut random);
        }
    }
    if let Some(digest) = structure.get_mut("constants") {
        // Otherwise the mutated constants would be rejected by their digest.
        *digest =
            Sha256::digest(&constants).iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
    }
    (saved.name, Changed { structure: structure.to_string(), constants })
}

/// A place in the graph itself, of the wanted kind; now and then one in the whole document.
fn place(document: &Value, random: &mut Random, wanted: &dyn Fn(&Value) -> bool) -> Option<String> {
    let (part, at) = match random.below(40) {
        0 => (document, ""),
        _ => (document.get("graph")?, "/graph"),
    };
    let places = places(part, wanted);
    (!places.is_empty()).then(|| format!("{at}{}", places[random.below(places.len())]))
}

/// The place of a number: any, that of an attribute, or that of a tensor in a step. Most other changes are refused.
fn number_place(document: &Value, random: &mut Random) -> Option<String> {
    let of_steps = |place: &String| place.contains("/args/") || place.contains("/outs/");
    let is_tensor = |place: &str| place.contains("/tensor") || place.contains("/outs/");
    let kind = random.below(4);
    if kind < 2 {
        return place(document, random, &Value::is_number);
    }
    let places: Vec<String> = places(document, &Value::is_number)
        .into_iter()
        .filter(|place| of_steps(place) && is_tensor(place) == (kind == 2))
        .collect();
    places.get(random.below(places.len())).cloned()
}

fn change(document: &mut Value, corpus: &[Saved], random: &mut Random) {
    match random.below(12) {
        0..5 => {
            let Some(at) = number_place(document, random) else { return };
            let number = number(document, &at, random);
            set(document, &at, number);
        }
        5 => {
            let Some(at) = place(document, random, &Value::is_string) else { return };
            let Some(other) = place(document, random, &Value::is_string) else { return };
            let text = match random.below(3) {
                0 => json!(WORDS[random.below(WORDS.len())]),
                _ => document.pointer(&other).cloned().unwrap_or_default(),
            };
            set(document, &at, text);
        }
        6..9 => {
            let Some(at) = place(document, random, &is_list) else { return };
            if let Some(Value::Array(list)) = document.pointer_mut(&at) {
                change_list(list, random);
            }
        }
        9 => {
            // A part of another graph, or of the same.
            let other = &corpus[random.below(corpus.len())].structure;
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
            // A number becomes a formula, an unknown one, or something else.
            let Some(at) = place(document, random, &Value::is_number) else { return };
            let times = number(document, &at, random);
            let value = match random.below(4) {
                0 => json!(null),
                1 => json!([{"times": times, "of": [0]}]),
                2 => json!([{"times": times, "of": [0, 0]}, {"times": 1, "of": []}]),
                _ => json!(WORDS[random.below(WORDS.len())]),
            };
            set(document, &at, value);
        }
    }
}

const WORDS: [&str; 14] = [
    "bool",
    "uint8",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "cpu",
    "cuda",
    "nan",
    "-inf",
    "1e308",
    "",
];
