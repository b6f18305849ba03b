//! The exported model and the JSON Schema: complete, deterministic, and consistent with the model and keys.

use std::path::{Path, PathBuf};

use opsmith_codegen::spec::document::keys::{
    DECLARATION_KEYS, FILE_KEYS, FUNCTION_KEYS, KeySpec, OP_KEYS, ValueKind,
};
use opsmith_codegen::spec::yaml::{self, Node, NodeKind, ScalarStyle};
use opsmith_codegen::{Config, diagnostics, pipeline};
use opsmith_tools::{export, json_schema};
use serde_json::{Map, Value, json};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn stock() -> pipeline::Checked {
    pipeline::check(&Config::stock(repository("ops.yaml"))).unwrap()
}

#[test]
fn every_operator_with_its_rules_as_trees() {
    let checked = stock();
    let value = export::export(&checked.model);
    assert_eq!(value["format"], 1);
    let operators = value["operators"].as_array().unwrap();
    assert_eq!(operators.len(), checked.model.ops.len());
    assert_eq!(value["functions"].as_array().unwrap().len(), checked.model.functions.len());
    let mm = operators.iter().find(|op| op["name"] == "mm").unwrap();
    assert_eq!(mm["signature"], "mm(Tensor self, Tensor mat2) -> Tensor");
    let size = |of: &str, dim: i64| {
        json!({
            "is": "query", "name": "size", "type": "int",
            "of": { "is": "argument", "name": of, "type": "Tensor" },
            "arguments": [{ "is": "int", "value": dim, "type": "int" }],
        })
    };
    assert_eq!(
        mm["inference"]["shapes"][0],
        json!({ "is": "list", "type": "int[]", "items": [size("self", 0), size("mat2", 1)] })
    );
    assert_eq!(mm["derivatives"][0]["saves"], json!([{ "argument": "mat2" }]));
    assert_eq!(mm["body"]["kernels"][0]["source"]["rust"], "linalg::mm");
}

#[test]
fn equal_specs_give_equal_bytes() {
    let text = |checked: &pipeline::Checked| serde_json::to_string(&export::export(&checked.model)).unwrap();
    assert_eq!(text(&stock()), text(&stock()));
}

/// `docs/export.md` describes the format; every field must be documented there.
#[test]
fn every_field_is_documented() {
    let docs = std::fs::read_to_string(repository("docs/export.md")).unwrap();
    let value = export::export(&stock().model);
    let mut keys = std::collections::BTreeSet::new();
    fields(&value["functions"][0], &mut keys);
    for op in value["operators"].as_array().unwrap() {
        fields(op, &mut keys);
    }
    for key in keys {
        assert!(docs.contains(&format!("`{key}`")), "docs/export.md does not say what `{key}` is");
    }
}

/// The keys of an operator and of the objects in it, except those that are names of the spec.
fn fields(value: &Value, keys: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| fields(item, keys)),
        Value::Object(entries) => {
            for (key, value) in entries {
                keys.insert(key.clone());
                let named_by_spec = matches!(key.as_str(), "dtypes" | "origin")
                    || (matches!(key.as_str(), "derivatives" | "wirtinger") && value.is_object());
                let is_sample = key == "arguments" && value.is_object();
                if !named_by_spec && !is_sample {
                    fields(value, keys);
                }
            }
        }
        _ => {}
    }
}

/// The name of a value's type in JSON schemas.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The violations of a schema by a value. Supports only the features that `json_schema` uses; any other fails the test.
fn problems(value: &Value, schema: &Value, path: &str, found: &mut Vec<String>) {
    for (keyword, wanted) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "type" => {
                let kinds: Vec<&str> = match wanted {
                    Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
                    kind => kind.as_str().into_iter().collect(),
                };
                let kind = type_name(value);
                if !kinds.contains(&kind) {
                    found.push(format!("{path} is {kind}, not {kinds:?}"));
                }
            }
            "enum" => {
                if !wanted.as_array().unwrap().contains(value) {
                    found.push(format!("{path} is {value}, none of {wanted}"));
                }
            }
            "anyOf" => {
                let fits = wanted.as_array().unwrap().iter().any(|schema| {
                    let mut found = Vec::new();
                    problems(value, schema, path, &mut found);
                    found.is_empty()
                });
                if !fits {
                    found.push(format!("{path} fits nothing: {value}"));
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    problems(item, wanted, &format!("{path}[{index}]"), found);
                }
            }
            "required" => {
                for key in wanted.as_array().unwrap().iter().filter_map(Value::as_str) {
                    if value.as_object().is_some_and(|object| !object.contains_key(key)) {
                        found.push(format!("{path} has no `{key}`"));
                    }
                }
            }
            "properties" => {}
            "additionalProperties" => {
                let properties = schema["properties"].as_object();
                for (key, value) in value.as_object().into_iter().flatten() {
                    let path = format!("{path}.{key}");
                    match (properties.and_then(|properties| properties.get(key)), wanted) {
                        (Some(schema), _) => problems(value, schema, &path, found),
                        (None, Value::Bool(false)) => found.push(format!("{path} is no key")),
                        (None, schema) => problems(value, schema, &path, found),
                    }
                }
            }
            "$schema" | "title" | "description" => {}
            other => panic!("the test does not know `{other}`"),
        }
    }
}

/// A spec in an editor's view: plain scalars have the types of YAML's core schema.
fn as_json(node: &Node) -> Value {
    match &node.kind {
        NodeKind::Null => Value::Null,
        NodeKind::Broken => panic!("broken"),
        NodeKind::Scalar(scalar) if scalar.style == ScalarStyle::Plain => {
            match (scalar.text.as_str(), scalar.text.parse::<i64>(), scalar.text.parse::<f64>()) {
                ("true", ..) => json!(true),
                ("false", ..) => json!(false),
                (_, Ok(number), _) => json!(number),
                (_, _, Ok(number)) if number.is_finite() => json!(number),
                (text, ..) => json!(text),
            }
        }
        NodeKind::Scalar(scalar) => json!(scalar.text),
        NodeKind::Seq(items) => items.iter().map(as_json).collect(),
        NodeKind::Map(entries) => {
            Value::Object(entries.iter().map(|(key, value)| (key.text.clone(), as_json(value))).collect())
        }
    }
}

fn validate(text: &str) -> Vec<String> {
    let mut sources = diagnostics::SourceMap::new();
    let mut mistakes = diagnostics::Diagnostics::default();
    let source = sources.add("spec.yaml", text);
    let root = yaml::parse(&sources, source, &mut mistakes).expect("usable YAML");
    let mut found = Vec::new();
    problems(&as_json(&root), &json_schema::json_schema(), "spec", &mut found);
    found
}

#[test]
fn every_spec_of_the_repository_fits_the_schema() {
    for path in ["ops.yaml", "ops/random.yaml", "examples/custom_op/ops.yaml", "tests/fixture/spec.yaml"] {
        let found = validate(&std::fs::read_to_string(repository(path)).unwrap());
        assert!(found.is_empty(), "{path}:\n{}", found.join("\n"));
    }
}

/// A value that matches a key's kind.
fn sample(key: &KeySpec) -> Value {
    let by_name = match key.name {
        "edition" => json!(1),
        "role" => json!("cast"),
        "variants" => json!(["out"]),
        "output_differentiability" => json!([true]),
        "dtypes" => json!("all"),
        "dispatch" => json!({ "CPU": "a::b" }),
        "deprecated" => json!({ "use": "other" }),
        "value_depends" => json!({ "x": "required" }),
        "numbers" => json!({ "x": "held" }),
        "attributes" => json!({ "x": { "min": 1 } }),
        _ => Value::Null,
    };
    match (by_name, key.kind) {
        (Value::Null, ValueKind::Text | ValueKind::TextList | ValueKind::Any) => json!("text"),
        (Value::Null, ValueKind::Flag) => json!(true),
        (Value::Null, ValueKind::TextMap | ValueKind::TextListMap) => json!({ "x": "text" }),
        (Value::Null, ValueKind::Entries) => json!([]),
        (value, _) => value,
    }
}

#[test]
fn every_key_is_accepted_and_every_typo_is_refused() {
    let schema = json_schema::json_schema();
    let tables: [(&str, &[KeySpec]); 4] =
        [("", FILE_KEYS), ("ops", OP_KEYS), ("functions", FUNCTION_KEYS), ("declarations", DECLARATION_KEYS)];
    for (list, table) in tables {
        for key in table {
            let spec = |name: &str| {
                let mut entry = Map::from_iter([(name.to_owned(), sample(key))]);
                if list.is_empty() {
                    entry.entry("edition").or_insert(json!(1));
                    return Value::Object(entry);
                }
                entry.entry("func").or_insert(json!("f(x)"));
                json!({ "edition": 1, list: [entry] })
            };
            let check = |name: &str| {
                let mut found = Vec::new();
                problems(&spec(name), &schema, "spec", &mut found);
                found
            };
            assert_eq!(check(key.name), [] as [&str; 0], "`{}` of {list}", key.name);
            for typo in [format!("{}x", key.name), key.name[..key.name.len() - 1].to_owned()] {
                if table.iter().all(|other| other.name != typo) {
                    assert!(!check(&typo).is_empty(), "`{typo}` of {list} is accepted");
                }
            }
        }
    }
    // Every key has a description for an editor's hover.
    let file = &schema["properties"];
    for key in FILE_KEYS {
        assert_eq!(file[key.name]["description"], key.doc);
    }
}

#[test]
fn wrong_values_are_refused() {
    for (keys, expected) in [
        ("variants: [functional, outt]", "fits nothing"),
        ("view: maybe", "not [\"boolean\"]"),
        ("dtypes: floats", "fits nothing"),
        ("dispatch: {CUDDA: a::b}", "is no key"),
        ("role: casting", "none of"),
    ] {
        let found = validate(&format!("edition: 1\nops:\n- func: f(Tensor x) -> Tensor\n  {keys}\n"));
        assert!(found.iter().any(|problem| problem.contains(expected)), "{keys}: {found:?}");
    }
}
