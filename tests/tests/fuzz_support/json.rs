//! Random changes of documents in JSON.

use opsmith_testing::fuzz::Random;
use serde_json::{Value, json};

/// The mutated values: those of one kind, by their paths.
pub fn places(value: &Value, wanted: &dyn Fn(&Value) -> bool) -> Vec<String> {
    fn visit(value: &Value, at: &str, wanted: &dyn Fn(&Value) -> bool, found: &mut Vec<String>) {
        if wanted(value) {
            found.push(at.to_owned());
        }
        match value {
            Value::Array(list) => {
                list.iter()
                    .enumerate()
                    .for_each(|(key, value)| visit(value, &format!("{at}/{key}"), wanted, found));
            }
            Value::Object(map) => {
                for (key, value) in map {
                    visit(
                        value,
                        &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")),
                        wanted,
                        found,
                    );
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    visit(value, "", wanted, &mut found);
    found
}

/// A place of the wanted kind.
pub fn place(document: &Value, random: &mut Random, wanted: &dyn Fn(&Value) -> bool) -> Option<String> {
    let places = places(document, wanted);
    (!places.is_empty()).then(|| places[random.below(places.len())].clone())
}

pub fn is_list(value: &Value) -> bool {
    value.as_array().is_some_and(|list| !list.is_empty())
}

/// Removes, swaps or repeats items of a list, or cuts it.
pub fn change_list(list: &mut Vec<Value>, random: &mut Random) {
    let (a, b) = (random.below(list.len()), random.below(list.len()));
    match random.below(4) {
        0 => drop(list.remove(a)),
        1 => list.swap(a, b),
        2 => list.insert(a, list[b].clone()),
        _ => list.truncate(a),
    }
}

/// The value of another place with the same last key, in the same document or in another one.
pub fn alike(other: &Value, at: &str, random: &mut Random) -> Option<Value> {
    let key = at.rsplit('/').next().unwrap_or_default();
    let alike: Vec<String> =
        places(other, &|_| true).into_iter().filter(|place| place.rsplit('/').next() == Some(key)).collect();
    other.pointer(alike.get(random.below(alike.len()))?).cloned()
}

pub fn set(document: &mut Value, at: &str, value: Value) {
    if let Some(place) = document.pointer_mut(at) {
        *place = value;
    }
}

/// Another number: near the one that was there, one from elsewhere in the graph, or one that may be too large.
pub fn number(document: &Value, at: &str, random: &mut Random) -> Value {
    let old = document.pointer(at).and_then(Value::as_i64).unwrap_or(0);
    match random.below(6) {
        0 => json!(old.wrapping_add(1)),
        1 => json!(old.wrapping_sub(1)),
        2 => json!(random.below(7) as i64 - 1),
        3 => match place(document, random, &Value::is_number) {
            Some(other) => document.pointer(&other).cloned().unwrap_or_default(),
            None => json!(old.wrapping_mul(2)),
        },
        4 => json!(old.wrapping_mul([2, 4, 1000, -1][random.below(4)])),
        _ => json!(NUMBERS[random.below(NUMBERS.len())]),
    }
}

const NUMBERS: [i64; 16] = [
    0,
    1,
    -1,
    -2,
    255,
    4096,
    100_000,
    1 << 31,
    (1 << 32) + 1,
    1 << 40,
    1 << 59,
    i64::MAX / 16,
    i64::MAX / 2 + 1,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
];
