//! A JSON Schema of spec files, for completion and hover in editors.
//!
//! In: the key tables that the reader itself uses. Out: a schema of draft 7, for yaml-language-server. It covers keys
//! and kinds of values; expressions are checked by `opsmith check`.

use opsmith_core::{Backend, DType, DTypeSet};
use serde_json::{Map, Value, json};

use opsmith_codegen::model::{NumberUse, Role, ValueUse};
use opsmith_codegen::spec::document::constraints::CONSTRAINTS;
use opsmith_codegen::spec::document::keys::{
    DECLARATION_KEYS, FILE_KEYS, FUNCTION_KEYS, KeySpec, OP_KEYS, ValueKind,
};

/// The schema.
pub fn json_schema() -> Value {
    let mut file = object(FILE_KEYS, &["edition"]);
    file["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    file["title"] = json!("opsmith spec");
    file["description"] =
        json!("Tensor operators, declared once. `opsmith check` knows more than this schema.");
    file
}

/// A mapping with the keys of a table and no others.
fn object(table: &[KeySpec], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        table.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(key: &KeySpec) -> Value {
    let mut value = match key.kind {
        ValueKind::Text => text(),
        ValueKind::Flag => json!({ "type": "boolean" }),
        ValueKind::TextList => one_or_list(words(key.name)),
        ValueKind::TextMap => json!({ "type": "object", "additionalProperties": text() }),
        ValueKind::TextListMap => json!({ "type": "object", "additionalProperties": one_or_list(text()) }),
        ValueKind::Entries => json!({ "type": "array", "items": object(entries(key.name), &["func"]) }),
        ValueKind::Any => json!({}),
    };
    details(key.name, &mut value);
    value["description"] = json!(key.doc);
    value
}

/// The table of the entries of a list.
fn entries(list: &str) -> &'static [KeySpec] {
    match list {
        "functions" => FUNCTION_KEYS,
        "declarations" => DECLARATION_KEYS,
        _ => OP_KEYS,
    }
}

/// Text. Values that YAML parses as numbers or booleans are text too.
fn text() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

fn one_or_list(item: Value) -> Value {
    json!({ "anyOf": [item, { "type": "array", "items": item }] })
}

/// The words of a list that has a fixed set of them.
fn words(key: &str) -> Value {
    match key {
        "variants" => json!({ "enum": ["functional", "inplace", "out"] }),
        "output_differentiability" => json!({ "enum": [true, false, "true", "false", "constant"] }),
        "dtypes" => dtype_words(),
        _ => text(),
    }
}

/// Details for editors that the key tables do not have.
fn details(key: &str, value: &mut Value) {
    match key {
        "edition" => *value = json!({ "enum": [1, "1"] }),
        "role" => *value = json!({ "enum": Role::ALL.map(|(_, name)| name) }),
        "dtypes" => {
            let list = one_or_list(dtype_words());
            let by_backend: Map<String, Value> =
                Backend::ALL.iter().map(|backend| (backend.key().to_owned(), list.clone())).collect();
            *value = json!({ "anyOf": [list, { "type": "object", "properties": by_backend, "additionalProperties": false }] });
        }
        "dispatch" => {
            let mut keys: Map<String, Value> =
                Backend::ALL.iter().map(|backend| (backend.key().to_owned(), text())).collect();
            keys.insert("View".to_owned(), text());
            keys.insert("Host".to_owned(), text());
            *value = json!({ "type": "object", "properties": keys, "additionalProperties": false });
        }
        "deprecated" => {
            let keys = json!({ "since": text(), "use": text() });
            *value = json!({ "type": "object", "properties": keys, "additionalProperties": false });
        }
        "value_depends" => {
            let words = ValueUse::WORDS.map(|(word, _)| word);
            *value = json!({ "type": "object", "additionalProperties": { "enum": words } });
        }
        "numbers" => {
            let words = NumberUse::WORDS.map(|(word, _)| word);
            *value = json!({ "type": "object", "additionalProperties": { "enum": words } });
        }
        "attributes" => {
            let constraints: Map<String, Value> =
                CONSTRAINTS.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
            let of_argument =
                json!({ "type": "object", "properties": constraints, "additionalProperties": false });
            *value = json!({ "type": "object", "additionalProperties": of_argument });
        }
        _ => {}
    }
}

/// The names of dtypes and of sets of them.
fn dtype_words() -> Value {
    let sets = DTypeSet::NAMED.iter().map(|(name, _)| *name);
    let names: Vec<&str> = sets.chain(DType::ALL.iter().map(|dtype| dtype.name())).collect();
    json!({ "enum": names })
}
