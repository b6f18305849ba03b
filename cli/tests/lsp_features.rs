//! The requests of `opsmith lsp`, driven as an editor does: completion, hover, definitions, references, renaming, formatting.

#[allow(dead_code, reason = "other tests use the rest of the editor")]
#[path = "support/language_client.rs"]
mod language_client;

use language_client::{Editor, all, edited, folder, line_of, places};
use serde_json::{Value, json};

#[test]
fn completion_of_keys_words_and_files() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    let text = editor.text("ops.yaml");
    let mut complete = |old: &str, new: &str| {
        let marked = text.replacen(old, new, 1);
        assert!(marked.contains('^'), "{old}");
        editor.change("ops.yaml", &marked.replace('^', ""));
        let params = editor.at("ops.yaml", &marked);
        editor.ask("textDocument/completion", params)
    };
    let keys = complete("  doc: The product.\n", "  doc: The product.\n  de^\n");
    let labels = all(&keys, "label");
    assert!(labels.contains(&"deterministic") && labels.contains(&"decompose"), "{labels:?}");
    // Those that are there already are left out.
    assert!(!labels.contains(&"doc") && !labels.contains(&"derivatives"), "{labels:?}");
    let item = keys.as_array().unwrap().iter().find(|item| item["label"] == "decompose").unwrap();
    assert_eq!(item["textEdit"]["newText"], "decompose: ");
    assert_eq!(item["documentation"]["value"], "the operator as an expression of other operators");
    let start = &item["textEdit"]["range"]["start"];
    assert_eq!(start["character"], 2);

    let words = complete("  doc: The product.\n", "  doc: The product.\n  variants: [fu^]\n");
    assert_eq!(all(&words, "label"), ["functional", "inplace", "out"]);
    let flags = complete("  doc: The product.\n", "  doc: The product.\n  view: ^\n");
    assert_eq!(all(&flags, "label"), ["true", "false"]);
    let sets = complete("  doc: The product.\n", "  doc: The product.\n  dtypes: ^\n");
    assert!(all(&sets, "label").contains(&"floating") && all(&sets, "label").contains(&"float32"));
    let backends = complete("dispatch: {CPU: native", "dispatch: {^CPU: native");
    assert_eq!(all(&backends, "label"), ["CPU", "CUDA", "Host", "View"]);
    let arguments =
        complete("  doc: The sum over dimensions.\n", "  doc: The sum over dimensions.\n  attributes: {^}\n");
    assert_eq!(all(&arguments, "label"), ["self", "dim", "keepdim"]);
    let types = complete("func: turned(Ten", "func: turned(Ten^");
    assert!(all(&types, "label").contains(&"Tensor"));
    let targets = complete("  doc: Its dimensions", "  alias_of: mu^\n  doc: Its dimensions");
    assert!(all(&targets, "label").contains(&"mul"));

    std::fs::write(editor.path("ops/more.yaml"), "edition: 1\nops: []\n").unwrap();
    let text = editor.text("ops.yaml").replacen("- ops/losses.yaml\n", "- ops/losses.yaml\n- ops/m^\n", 1);
    editor.change("ops.yaml", &text.replace('^', ""));
    let params = editor.at("ops.yaml", &text);
    let files = editor.ask("textDocument/completion", params);
    assert_eq!(all(&files, "label"), ["ops/more.yaml"]);
    assert_eq!(files[0]["textEdit"]["range"]["start"]["character"], 2);
}

#[test]
fn completion_in_formulas() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    editor.open("ops/losses.yaml");
    let mut at = |file: &str, words: &str| {
        let params = editor.at_words(file, words);
        editor.ask("textDocument/completion", params)
    };
    let found = at("ops.yaml", "shape: red^uce(self, dim, keepdim)");
    let reduce = found.as_array().unwrap().iter().find(|item| item["label"] == "reduce").unwrap();
    assert_eq!(reduce["detail"], "reduce(Tensor, int[]?, bool)");
    assert!(all(&found, "label").contains(&"dim"));
    let found = at("ops.yaml", "dtype: promote_^float(self)");
    assert!(all(&found, "label").contains(&"promote_float") && all(&found, "label").contains(&"bfloat16"));
    let found = at("ops.yaml", "pointwise: e^xp(width * self)");
    let labels = all(&found, "label");
    assert!(
        labels.contains(&"exp") && labels.contains(&"width") && !labels.contains(&"square"),
        "{labels:?}"
    );
    let found = at("ops.yaml", "self: g^rad.mul(result)");
    let labels = all(&found, "label");
    assert!(
        labels.contains(&"grad") && labels.contains(&"result") && labels.contains(&"square"),
        "{labels:?}"
    );
    let found = at("ops/losses.yaml", "self.m^ul(self)");
    let labels = all(&found, "label");
    assert!(labels.contains(&"mul") && labels.contains(&"sizes") && !labels.contains(&"self"), "{labels:?}");
    let mul = found.as_array().unwrap().iter().find(|item| item["label"] == "mul").unwrap();
    assert_eq!(mul["detail"], "mul(Tensor self, Tensor other) -> Tensor");
    assert_eq!(mul["documentation"]["value"], "The product.");
}

#[test]
fn completion_in_braces() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    let text = editor.text("ops.yaml");
    let mut complete = |new: &str| {
        let marked = text.replacen("    {keepdim} = λ\n", new, 1);
        editor.change("ops.yaml", &marked.replace('^', ""));
        let params = editor.at("ops.yaml", &marked);
        editor.ask("textDocument/completion", params)
    };
    let open = complete("    \"🦀\" {^\n");
    assert_eq!(all(&open, "label"), ["self", "dim", "keepdim"]);
    let edit = &open[1]["textEdit"];
    assert_eq!((&edit["newText"], &open[1]["detail"]), (&json!("dim}"), &json!("int[]")));
    assert_eq!(edit["range"]["start"]["character"], 4 + "\"🦀\" {".encode_utf16().count());
    let closed = complete("    {k^} = λ\n");
    assert_eq!(closed[2]["textEdit"]["newText"], "keepdim");
    let words = complete("    λ = ar^\n");
    assert!(all(&words, "label").contains(&"argmax") && !all(&words, "label").contains(&"dim"), "{words}");
}

#[test]
fn hover_of_everything() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    editor.open("ops/losses.yaml");
    let cases = [
        ("ops.yaml", "  poi^ntwise: self + other", "**`pointwise`**: one element of the output"),
        ("ops.yaml", "func: add^(Tensor self", "add(Tensor self, Tensor other) -> Tensor"),
        (
            "ops.yaml",
            "func: add^(Tensor self",
            "pub fn add(self_: &Tensor, other: &Tensor) -> Result<Tensor>",
        ),
        ("ops.yaml", "func: add^(Tensor self", "pub fn add_out("),
        ("ops.yaml", "shape: re^duce(self, dim", "reduce(Tensor, int[]?, bool)"),
        ("ops.yaml", "reduce(self, dim, keep^dim)", "bool keepdim"),
        ("ops.yaml", "pointwise: e^xp(width", "The exponential function."),
        ("ops.yaml", "promote_float(self)\n  pointwise: exp(wid^th", "float width"),
        ("ops.yaml", "grad.mul(res^ult)", "`result`: a result of `soft`."),
        ("ops.yaml", "Σ_{ di^m } {self}", "int[] dim"),
        ("ops.yaml", "Σ_{ di^m } {self}", "the dimensions that the sum is over"),
        ("ops.yaml", "\"Σ_{d^im} {self}\"", "int[] dim"),
        ("ops.yaml", "derivative: {x^: result}", "element x"),
        ("ops/losses.yaml", "self.m^ul(self)", "The product."),
        ("ops/losses.yaml", "self.m^ul(self)", "Declared at `ops.yaml:"),
        ("ops/losses.yaml", "squ^are(scaled)", "The product of `self` and itself."),
        ("ops/losses.yaml", "alias_of: m^ul", "The product."),
        ("ops.yaml", "{func: ex^p(x), doc", "A scalar function for float"),
        ("ops.yaml", "derivative: {x: res^ult}", "`result`: a result."),
        ("ops.yaml", "dtypes: inex^act", "`inexact`: the dtypes float16"),
        ("ops.yaml", "{CPU: native/tu^rn.cc:turn}", "native/turn.cc`"),
    ];
    for (file, words, expected) in cases {
        let params = editor.at_words(file, words);
        let found = editor.ask("textDocument/hover", params);
        let text = found["contents"]["value"].as_str().unwrap_or_default();
        assert!(text.contains(expected), "{words}: {text}");
    }
    let params = editor.at_words("ops.yaml", "# A spec ^for");
    assert_eq!(editor.ask("textDocument/hover", params), Value::Null);
}

#[test]
fn definitions_of_operators_kernels_and_files() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    editor.open("ops/losses.yaml");
    let mul = format!("ops.yaml:{}", line_of(&editor, "ops.yaml", "func: mul("));
    let turn = format!("turn.cc:{}", line_of(&editor, "native/turn.cc", "int turn("));
    let total = format!("reduce.rs:{}", line_of(&editor, "kernels/src/cpu/reduce.rs", "pub fn total"));
    let exp = format!("ops.yaml:{}", line_of(&editor, "ops.yaml", "func: exp("));
    let dim = format!("ops.yaml:{}", line_of(&editor, "ops.yaml", "func: total("));
    let square = format!("losses.yaml:{}", line_of(&editor, "ops/losses.yaml", "func: square("));
    let cases = [
        ("ops/losses.yaml", "self.m^ul(self)", &mul),
        ("ops/losses.yaml", "alias_of: m^ul", &mul),
        ("ops/losses.yaml", "squ^are(scaled)", &square),
        ("ops.yaml", "CPU: native/tu^rn.cc:turn", &turn),
        ("ops.yaml", "CPU: \"reduce::to^tal(self", &total),
        ("ops.yaml", "pointwise: e^xp(width", &exp),
        ("ops.yaml", "shape: reduce(self, d^im", &dim),
        ("ops.yaml", "\"🦀 along dim\" Σ_{ ^dim }", &dim),
        ("ops.yaml", "\"Σ_{di^m} {self}\"", &dim),
        ("ops.yaml", "- ops/los^ses.yaml", &"losses.yaml:0".to_owned()),
    ];
    for (file, words, expected) in cases {
        let params = editor.at_words(file, words);
        let found = editor.ask("textDocument/definition", params);
        assert_eq!(places(&found), [expected.as_str()], "{words}");
    }
}

#[test]
fn references_and_symbols() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    editor.open("ops/losses.yaml");
    let mut params = editor.at_words("ops/losses.yaml", "self.m^ul(self)");
    params["context"] = json!({ "includeDeclaration": true });
    let found = editor.ask("textDocument/references", params);
    let in_losses = ["self.mul(self)", "mul(self, target)", "alias_of: mul"];
    let in_ops = ["func: mul(", "self: mul(grad, other)", "other: mul(grad, self)", "self: grad.mul(result)"];
    let in_losses =
        in_losses.map(|words| format!("losses.yaml:{}", line_of(&editor, "ops/losses.yaml", words)));
    let in_ops = in_ops.map(|words| format!("ops.yaml:{}", line_of(&editor, "ops.yaml", words)));
    assert_eq!(places(&found), [&in_ops[..], &in_losses[..]].concat());

    // The method of a number is no operator, though it has the name of one.
    let mut params = editor.at_words("ops/losses.yaml", "conj(self.co^nj())");
    params["context"] = json!({ "includeDeclaration": false });
    let found = editor.ask("textDocument/references", params);
    let [gradient, twice] = ["grad.conj()", "conj(self.conj())"]
        .map(|words| format!("losses.yaml:{}", line_of(&editor, "ops/losses.yaml", words)));
    assert_eq!(places(&found), [gradient, twice.clone(), twice]);
    let params = editor.at_words("ops/losses.yaml", "if by.co^nj()");
    let text = editor.ask("textDocument/hover", params)["contents"]["value"].to_string();
    assert!(text.contains("a number's complex conjugate"), "{text}");

    let params = json!({ "textDocument": { "uri": editor.uri("ops/losses.yaml") } });
    let symbols = editor.ask("textDocument/documentSymbol", params);
    assert_eq!(all(&symbols, "name"), ["square", "loss", "product", "conj", "same"]);
    assert_eq!(symbols[0]["range"]["start"]["line"], line_of(&editor, "ops/losses.yaml", "func: square("));
    let found = editor.ask("workspace/symbol", json!({ "query": "sqr" }));
    assert_eq!(all(&found, "name"), ["square"]);
}

#[test]
fn an_argument_is_highlighted_wherever_it_stands() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    let params = editor.at_words("ops.yaml", "{self}_{d^im}");
    let found = editor.ask("textDocument/documentHighlight", params);
    let text = editor.text("ops.yaml");
    let lines: Vec<Vec<u16>> = text.lines().map(|line| line.encode_utf16().collect()).collect();
    let found = found.as_array().expect("a list");
    for range in found.iter().map(|found| &found["range"]) {
        let at = |end: &str, key: &str| range[end][key].as_u64().expect("a number") as usize;
        let units = &lines[at("start", "line")][at("start", "character")..at("end", "character")];
        assert_eq!(String::from_utf16_lossy(units), "dim");
    }
    // In the signature, `descriptions`, `notation`, the formula, `shape`, `dispatch` and a sample.
    assert_eq!(found.len(), 8, "{found:#?}");
}

#[test]
fn an_operator_is_renamed_in_every_file() {
    let mut editor = Editor::start();
    editor.open("ops/losses.yaml");
    let params = editor.at_words("ops/losses.yaml", "self.m^ul(self)");
    assert_eq!(editor.ask("textDocument/prepareRename", params.clone())["placeholder"], "mul");
    let with = |new: &str| {
        let mut params = params.clone();
        params["newName"] = json!(new);
        params
    };
    let edit = editor.ask("textDocument/rename", with("times"));
    let (ops, losses) = (edited(&editor, &edit, "ops.yaml"), edited(&editor, &edit, "ops/losses.yaml"));
    let old = (editor.text("ops.yaml"), editor.text("ops/losses.yaml"));
    assert_eq!(ops, old.0.replace("mul(", "times("));
    assert_eq!(losses, old.1.replace("mul(", "times(").replace("alias_of: mul", "alias_of: times"));
    // Refused, with nothing edited.
    for (new, expected) in [
        ("1x", "`1x` is no name"),
        ("match", "`match` is no name"),
        ("square", "`square` exists already"),
        ("call", "the renamed spec would have a mistake"),
    ] {
        let error = editor.refused("textDocument/rename", with(new));
        assert_eq!(error["code"], -32803);
        assert!(error["message"].as_str().is_some_and(|text| text.contains(expected)), "{new}: {error}");
    }
}

#[test]
fn an_argument_is_renamed_in_its_entry_and_where_it_is_given_by_name() {
    let mut editor = Editor::start();
    editor.open("ops.yaml");
    let mut rename = |words: &str, new: &str| {
        let mut params = editor.at_words("ops.yaml", words);
        params["newName"] = json!(new);
        let edit = editor.ask("textDocument/rename", params);
        (edited(&editor, &edit, "ops.yaml"), edited(&editor, &edit, "ops/losses.yaml"))
    };
    let (ops, losses) = rename("reduce(self, dim, keep^dim)", "kept");
    assert!(!ops.contains("keepdim") && losses.contains("kept = true"), "{ops}{losses}");
    let (ops, _) = rename("{self}_{d^im}", "axes");
    for part in [
        "int[] axes",
        "{axes: the dimensions",
        "\"Σ_{axes} {self}\"",
        "y = \"🦀 along dim\" Σ_{ axes } {self}_{axes}\n",
        "reduce(self, axes, keepdim)",
        "total(self, axes, keepdim)",
        "axes: [1]",
    ] {
        assert!(ops.contains(part), "{part}: {ops}");
    }
    let (ops, _) = rename("exp(wi^dth * self)", "scale");
    for part in
        ["float scale=1.0", "{scale: {min: 0}}", "exp(scale * self)", "scale: 0.5", "of `width` times"]
    {
        assert!(ops.contains(part), "{part}: {ops}");
    }
    let (ops, _) = rename("derivative: {x^: result}", "z");
    assert!(ops.contains("func: exp(z)") && ops.contains("derivative: {z: result}"), "{ops}");
    let mut params = editor.at_words("ops.yaml", "exp(wi^dth * self)");
    params["newName"] = json!("self");
    let error = editor.refused("textDocument/rename", params);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("`self` exists already")), "{error}");
    let mut params = editor.at_words("ops.yaml", "poi^ntwise: self + other");
    params["newName"] = json!("x");
    let error = editor.refused("textDocument/rename", params);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("only operators and")), "{error}");
}

#[test]
fn formatting_is_that_of_fmt_and_leaves_mistakes_alone() {
    let mut editor = Editor::start();
    let plain = editor.text("ops/losses.yaml");
    editor
        .open_as("ops/losses.yaml", &plain.replace("  doc: Another name.\n", "  doc:   \"Another name.\"\n"));
    let params = json!({ "textDocument": { "uri": editor.uri("ops/losses.yaml") }, "options": { "tabSize": 2, "insertSpaces": true } });
    let edits = editor.ask("textDocument/formatting", params.clone());
    assert_eq!(edits[0]["newText"], plain);
    assert_eq!(edits[0]["range"]["start"], json!({ "line": 0, "character": 0 }));
    editor.change("ops/losses.yaml", &plain);
    assert_eq!(editor.ask("textDocument/formatting", params.clone()), json!([]));
    editor.change("ops/losses.yaml", &plain.replace("doc: Another", "dock: Another"));
    let error = editor.refused("textDocument/formatting", params);
    let expected = "losses.yaml is left alone, because it has mistakes: unknown key `dock` (losses.yaml:";
    assert!(error["message"].as_str().is_some_and(|text| text.starts_with(expected)), "{error}");
    editor.next(|message| message["method"] == "window/showMessage");
}

#[test]
fn a_library_that_the_spec_builds_on_is_known_with_its_unsaved_text() {
    let folder = folder();
    let own =
        "edition: 1\nops:\n- func: mine(Tensor self) -> Tensor\n  doc: D\n  decompose: self.mul(self)\n";
    let other = folder.join("mine");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("ops.yaml"), own).unwrap();
    let base = folder.join("ops.yaml").display().to_string();
    let mut editor = Editor::spawn(folder, &["--builds-on", &base]);
    editor.ask("initialize", json!({ "capabilities": {} }));
    editor.tell("initialized", json!({}));
    assert_eq!(editor.open("mine/ops.yaml"), Vec::<Value>::new());
    let params = editor.at_words("mine/ops.yaml", "self.m^ul(self)");
    let found = editor.ask("textDocument/definition", params.clone());
    assert_eq!(found[0]["uri"], editor.uri("ops.yaml"));
    assert_eq!(found[0]["range"]["start"]["line"], line_of(&editor, "ops.yaml", "func: mul("));
    // Renamed there, not here.
    let mut rename = params;
    rename["newName"] = json!("times");
    let error = editor.refused("textDocument/rename", rename);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("belongs to a library")), "{error}");
    // The library's text in the editor counts before it is saved.
    let changed = editor.text("ops.yaml").replace("func: mul(", "func: mull(");
    editor.open_as("ops.yaml", &changed);
    let found = editor.diagnostics("mine/ops.yaml");
    assert_eq!((found.len(), &found[0]["code"]), (1, &json!("E0327")), "{found:#?}");
}
