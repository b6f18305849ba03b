//! `opsmith lsp`, driven as an editor does: real messages to a real process. Here the life of the server, its checks and its
//! limits; `lsp_features.rs` has the requests.

#[allow(dead_code, reason = "other tests use the rest of the editor")]
#[path = "support/language_client.rs"]
mod language_client;

use language_client::{Editor, all, folder, line_of};
use serde_json::{Value, json};

#[test]
fn a_spec_without_mistakes_has_none_in_any_file() {
    let mut editor = Editor::start();
    assert_eq!(editor.open("ops.yaml"), Vec::<Value>::new());
    assert_eq!(editor.open("ops/losses.yaml"), Vec::<Value>::new());
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn mistakes_appear_in_the_file_they_are_in_and_go_when_they_are_mended() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    // A file that is not open calls an operator that gets another name.
    let text = editor.text("ops.yaml");
    editor.change("ops.yaml", &text.replace("func: mul(", "func: mull("));
    assert_eq!(editor.diagnostics("ops.yaml").len(), 3);
    let found = editor.diagnostics("ops/losses.yaml");
    assert_eq!(found.len(), 3, "{found:#?}");
    let first = &found[0];
    assert_eq!(
        (&first["code"], &first["severity"], &first["source"]),
        (&json!("E0327"), &json!(1), &json!("opsmith"))
    );
    assert_eq!(first["message"], "there is no operator `mul`: unknown operator\nhelp: did you mean `mull`?");
    let line = line_of(&editor, "ops/losses.yaml", "self.mul(self)");
    assert_eq!(
        first["range"],
        json!({ "start": { "line": line, "character": 18 }, "end": { "line": line, "character": 21 } })
    );
    editor.change("ops.yaml", &text);
    assert_eq!(editor.diagnostics("ops.yaml"), Vec::<Value>::new());
    assert_eq!(editor.diagnostics("ops/losses.yaml"), Vec::<Value>::new());
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn a_mistake_names_the_other_places_that_explain_it() {
    let mut editor = Editor::start();
    let text = editor.text("ops/losses.yaml").replace("func: square(", "func: add(");
    let found = editor.open_as("ops/losses.yaml", &text);
    let twice = found.iter().find(|found| found["code"] == "E0401").or(found.first()).expect("a mistake");
    let related = &twice["relatedInformation"][0]["location"];
    assert_eq!(related["uri"], editor.uri("ops.yaml"), "{found:#?}");
    assert_eq!(related["range"]["start"]["line"], line_of(&editor, "ops.yaml", "func: add("));
}

#[test]
fn an_included_file_is_checked_with_the_file_that_includes_it() {
    let mut editor = Editor::start();
    let text = editor.text("ops/losses.yaml").replace("self.mul(self)", "self.mull(self)");
    let found = editor.open_as("ops/losses.yaml", &text);
    assert_eq!(found.len(), 1, "{found:#?}");
    // The quick fix of the suggestion.
    let params = json!({
        "textDocument": { "uri": editor.uri("ops/losses.yaml") },
        "range": found[0]["range"],
        "context": { "diagnostics": found },
    });
    let actions = editor.ask("textDocument/codeAction", params);
    assert_eq!(all(&actions, "title"), ["Replace with `mul`"]);
    let edit = &actions[0]["edit"]["changes"][editor.uri("ops/losses.yaml")][0];
    assert_eq!((&edit["newText"], &edit["range"]), (&json!("mul"), &found[0]["range"]));
}

#[test]
fn unsaved_texts_count_in_files_that_are_read_from_the_disk() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    let text = editor.text("ops/losses.yaml").replace("decompose: self.mul(self)", "decompose: self.mul(1)");
    assert_eq!(editor.open_as("ops/losses.yaml", &text).len(), 1);
    // Closed without saving, the text of the disk counts again.
    let document = json!({ "textDocument": { "uri": editor.uri("ops/losses.yaml") } });
    editor.tell("textDocument/didClose", document);
    assert_eq!(editor.diagnostics("ops/losses.yaml"), Vec::<Value>::new());
}

#[test]
fn while_a_text_is_no_yaml_it_is_the_only_mistake_and_completion_works() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    let text = editor
        .text("ops.yaml")
        .replace("derivatives:\n    self: turned(grad)", "derivatives: {self: [turned(grad)\n  vie");
    editor.change("ops.yaml", &text);
    let found = editor.diagnostics("ops.yaml");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0]["code"].as_str().is_some_and(|code| code.starts_with("E00")));
    // Names of operators are still known.
    let marked = text.replacen(
        "pointwise: exp(width * self)\n  derivatives:\n    self: grad.mul(",
        "pointwise: exp(width * self)\n  derivatives:\n    self: grad.mu^l(",
        1,
    );
    let found = editor.ask("textDocument/completion", editor.at("ops.yaml", &marked));
    assert!(all(&found, "label").contains(&"square"), "{found}");
    let text = text.replace("\n  vie\n", "\n\n");
    editor.change("ops.yaml", &text.replace("{self: [turned(grad)", "{self: turned(grad)}"));
    assert_eq!(editor.diagnostics("ops.yaml"), Vec::<Value>::new());
}

#[test]
fn columns_are_counted_in_the_units_that_were_agreed() {
    for (capabilities, agreed) in
        [(json!({}), "utf-16"), (json!({ "general": { "positionEncodings": ["utf-8", "utf-16"] } }), "utf-8")]
    {
        let mut editor = Editor::spawn(folder(), &[]);
        let answer = editor.ask("initialize", json!({ "capabilities": capabilities }));
        assert_eq!(answer["capabilities"]["positionEncoding"], agreed);
        editor.tell("initialized", json!({}));
        let check = "  check: [\"\\\"🦀ä\\\" == self.sze(0)\"]";
        let text = editor.text("ops.yaml").replace("  doc: \"The sum: 🦀 änd more.\"", check);
        let line = text.lines().position(|line| line.contains("sze")).unwrap();
        let before = &check[..check.find("sze").unwrap()];
        // `🦀` is two units of UTF-16 and four bytes, `ä` one and two.
        let start = if agreed == "utf-8" { before.len() } else { before.encode_utf16().count() };
        assert_eq!(before.len() - before.encode_utf16().count(), 3);
        let found = editor.open_as("ops.yaml", &text);
        let sze = found.iter().find(|found| found["code"] == "E0320").unwrap_or_else(|| panic!("{found:#?}"));
        let start = json!({ "line": line, "character": start });
        assert_eq!(sze["range"]["start"], start);
        // An incremental change behind the same letters, in the same units.
        let mut end = start.clone();
        end["character"] = json!(start["character"].as_u64().unwrap() + 3);
        editor.change_parts("ops.yaml", json!([{ "range": { "start": start, "end": end }, "text": "size" }]));
        let found = editor.diagnostics("ops.yaml");
        assert!(found.iter().all(|found| found["code"] != "E0320"), "{found:#?}");
    }
}

#[test]
fn cancelled_and_outdated_requests_are_dropped() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    let text = editor.text("ops.yaml");
    let params = editor.at_words("ops.yaml", "grad.m^ul(result)");
    // In one write, so that the server sees the rest before it answers.
    let message = |value: Value| {
        let text = value.to_string();
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    };
    let request = |id: i64| {
        message(json!({ "jsonrpc": "2.0", "id": id, "method": "textDocument/hover", "params": params }))
    };
    let cancel = message(json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": 901 } }));
    let change = message(json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
        "textDocument": { "uri": editor.uri("ops.yaml"), "version": 5 },
        "contentChanges": [{ "text": text }],
    } }));
    editor.write([request(901), cancel, request(902), change].concat().as_bytes());
    // Either the request was answered before the rest arrived, or it was dropped for its reason.
    let code = |answer: Value| answer["error"]["code"].as_i64();
    assert!(matches!(code(editor.answer(901)), None | Some(-32800)));
    assert!(matches!(code(editor.answer(902)), None | Some(-32801)));
}

#[test]
fn what_was_asked_before_the_end_is_answered() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    let params = editor.at_words("ops.yaml", "grad.m^ul(result)");
    let message = |id: i64, method: &str, params: &Value| {
        let text = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    };
    // In one write, so that the server sees all before it answers any.
    let hovers = (901..906).map(|id| message(id, "textDocument/hover", &params));
    let all =
        hovers.chain([message(906, "shutdown", &Value::Null), message(907, "textDocument/hover", &params)]);
    editor.write(all.collect::<String>().as_bytes());
    let answers: Vec<Value> = (0..7)
        .map(|_| editor.next(|message| message["id"].as_i64().is_some_and(|id| (901..908).contains(&id))))
        .collect();
    let ids: Vec<i64> = answers.iter().filter_map(|answer| answer["id"].as_i64()).collect();
    assert_eq!(ids, (901..908).collect::<Vec<_>>());
    assert!(answers[..5].iter().all(|answer| answer["result"]["contents"].is_object()), "{answers:#?}");
    assert_eq!(answers[6]["error"]["code"], -32600);
    editor.tell("exit", Value::Null);
}

#[test]
fn bad_messages_end_nothing() {
    let mut editor = Editor::spawn(folder(), &[]);
    assert_eq!(editor.refused("textDocument/hover", json!({}))["code"], -32002);
    editor.ask("initialize", json!({ "capabilities": {} }));
    editor.tell("initialized", json!({}));
    assert_eq!(editor.refused("initialize", json!({ "capabilities": {} }))["code"], -32600);
    for (bytes, code) in [
        ("Content-Length: 5\r\n\r\n{\"a\":", -32700),
        ("Content-Length: 2\r\n\r\n[]", -32600),
        ("Content-Length: 12\r\n\r\n{\"id\": true}", -32600),
        ("Nonsense\r\n\r\n", -32700),
        ("Content-Length: x\r\n\r\n", -32700),
    ] {
        editor.write(bytes.as_bytes());
        let answer = editor.next(|message| message.get("error").is_some() && message["id"].is_null());
        assert_eq!(answer["error"]["code"], code, "{bytes}");
    }
    for id in [json!(null), json!(1.5), json!(true), json!([1]), json!(1_u64 << 40)] {
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": "textDocument/hover", "params": {} }).to_string();
        editor.write(format!("Content-Length: {}\r\n\r\n{request}", request.len()).as_bytes());
        let known = if id.is_u64() { &id } else { &Value::Null };
        let answer = editor.next(|message| message.get("error").is_some() && message["id"] == *known);
        assert_eq!(answer["error"]["code"], -32600, "{request}");
    }
    assert_eq!(editor.refused("no/method", json!({}))["code"], -32601);
    assert_eq!(editor.refused("textDocument/hover", json!({ "position": 1 }))["code"], -32602);
    editor.tell("textDocument/didOpen", json!({ "textDocument": 1 }));
    editor.next(|message| message["method"] == "window/logMessage");
    editor.tell("no/notification", json!({}));
    // A text that is no file, and one that is no spec.
    let document = |uri: &str| json!({ "textDocument": { "uri": uri, "languageId": "yaml", "version": 1, "text": "a: 1\n" } });
    editor.tell("textDocument/didOpen", document("untitled:one"));
    let other = editor.uri("compose.yaml");
    editor.tell("textDocument/didOpen", document(&other));
    let params = json!({ "textDocument": { "uri": other }, "position": { "line": 99, "character": 99 } });
    assert_eq!(editor.ask("textDocument/completion", params), Value::Null);
    assert_eq!(editor.open("ops.yaml"), Vec::<Value>::new());
    assert_eq!(editor.end(), Some(0));
    assert_eq!(Editor::start().hang_up(), Some(2));
}

#[test]
fn hostile_texts_get_the_limits_of_the_checker() {
    let mut editor = Editor::start();
    let deep = format!("edition: 1\nops: {}\n", "[".repeat(100_000));
    let found = editor.open_as("ops.yaml", &deep);
    assert_eq!(found.len(), 1, "{found:#?}");
    let params = json!({ "textDocument": { "uri": editor.uri("ops.yaml") }, "position": { "line": 1, "character": 50_000 } });
    editor.ask("textDocument/completion", params.clone());
    let large = format!("edition: 1\nops:\n{}", "# A comment, and no more than that.\n".repeat(1_000_000));
    editor.change("ops.yaml", &large);
    let found = editor.diagnostics("ops.yaml");
    assert!(found.iter().any(|found| found["code"] == "E0001"), "{found:#?}");
    assert_eq!(editor.ask("textDocument/hover", params), Value::Null);
    let text = editor.text("ops.yaml");
    editor.change("ops.yaml", &text);
    assert_eq!(editor.diagnostics("ops.yaml"), Vec::<Value>::new());
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn expressions_without_end_are_mistakes() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    let text = editor.text("ops.yaml");
    let line =
        text.lines().position(|line| line.contains("pointwise: exp(width * self)")).expect("it is there");
    for (before, after) in [
        ("(", ")"),
        ("[", "]"),
        ("!", ""),
        ("-", ""),
        ("if true {", "} else {1}"),
        ("|x| ", ""),
        ("", ".f()"),
    ] {
        for count in [70, 700, 20_000] {
            let deep = format!("\"{}self{}\"", before.repeat(count), after.repeat(count));
            editor.change("ops.yaml", &text.replacen("exp(width * self)", &deep, 1));
            let found = editor.diagnostics("ops.yaml");
            let deep = found.iter().find(|found| found["code"] == "E0316" || count == 70);
            let deep = deep.unwrap_or_else(|| panic!("{before}…{after} × {count}: {found:#?}"));
            assert!(count == 70 || deep["range"]["start"]["line"] == line, "{deep}");
        }
        let params = json!({ "textDocument": { "uri": editor.uri("ops.yaml") }, "position": { "line": line, "character": 40 } });
        for method in ["hover", "completion", "definition", "documentHighlight"] {
            editor.ask(&format!("textDocument/{method}"), params.clone());
        }
        let params = json!({ "textDocument": { "uri": editor.uri("ops.yaml") }, "options": { "tabSize": 2, "insertSpaces": true } });
        editor.ask("textDocument/formatting", params);
    }
    editor.change("ops.yaml", &text);
    assert_eq!(editor.diagnostics("ops.yaml"), Vec::<Value>::new());
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn code_that_is_missing_is_found_when_the_editor_rests() {
    let mut editor = Editor::start();
    let text = editor.text("ops.yaml").replace("native/turn.cc:turn}", "native/turn.cc:trn}");
    assert_eq!(editor.open_as("ops.yaml", &text), Vec::<Value>::new());
    let found = editor.diagnostics("ops.yaml");
    assert_eq!((found.len(), &found[0]["code"]), (1, &json!("E0498")), "{found:#?}");
}
